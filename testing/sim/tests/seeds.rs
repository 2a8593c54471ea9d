//! Seeds that once broke something, and the first few hundred.

use stint_sim::world::World;

fn run(seed: u64) {
    if let Err(broken) = World::new(seed).run() {
        panic!("seed {seed}: broken: {}\n{}", broken.invariant, broken.details);
    }
}

#[test]
fn the_first_seeds_break_nothing() {
    (0..400).for_each(run);
}

#[test]
fn an_index_whose_pod_succeeds_while_it_is_given_up_is_not_failed_as_well() {
    [103_423, 106_595, 109_422, 109_474].into_iter().for_each(run);
}

#[test]
fn a_pod_that_was_to_be_removed_counts_when_the_job_fails_first() {
    [57_569, 69_683].into_iter().for_each(run);
}

#[test]
fn a_seed_is_the_same_world_each_time() {
    let trace = |seed: u64| {
        let mut world = World::new(seed);
        world.run().expect("nothing is broken");
        world.trace
    };
    assert_eq!(trace(7), trace(7));
    assert_ne!(trace(7), trace(8));
}
