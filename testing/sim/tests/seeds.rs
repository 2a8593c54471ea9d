//! Random runs from seeds: the first few hundred, and what a seed promises.

use stint_sim::run::{Options, from_seed, replay};
use stint_sim::shrink::shrink;

#[test]
fn the_first_seeds_break_nothing() {
    for seed in 0..300 {
        let run = from_seed(seed, &Options::default());
        if let Err(broken) = &run.result {
            let shortest = shrink(&run, &Options::default());
            panic!("seed {seed}: {broken}\n{}", shortest.trace.join("\n"));
        }
    }
}

#[test]
fn a_seed_is_the_same_world_each_time() {
    let options = Options { is_traced: true, ..Options::default() };
    for seed in 0..40 {
        let (one, two) = (from_seed(seed, &options), from_seed(seed, &options));
        assert_eq!(one.trace, two.trace, "seed {seed}");
        assert_eq!(one.result.err(), two.result.err(), "seed {seed}");
    }
    assert_ne!(from_seed(7, &options).trace, from_seed(8, &options).trace);
}

#[test]
fn the_choices_of_a_run_replay_it() {
    let options = Options { is_traced: true, ..Options::default() };
    for seed in 0..40 {
        let run = from_seed(seed, &options);
        let again = replay(&run.scenario, &run.choices, &options);
        assert_eq!(run.trace, again.trace, "seed {seed}");
    }
}
