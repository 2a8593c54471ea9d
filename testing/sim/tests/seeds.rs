//! Random runs from seeds: the first few hundred, and what a seed promises.

use stint_sim::run::{Options, from_seed, replay};
use stint_sim::shrink::shrink;

fn check(seed: u64) {
    let run = from_seed(seed, &Options::default());
    if let Err(broken) = &run.result {
        let shortest = shrink(&run, &Options::default());
        panic!("seed {seed}: {broken}\n{}", shortest.trace.join("\n"));
    }
}

#[test]
fn the_first_seeds_break_nothing() {
    (0..300).for_each(check);
}

#[test]
fn a_failure_is_not_replaced_by_a_pod_that_a_stale_list_shows_running() {
    check(357_458);
}

#[test]
fn a_pod_that_only_an_answer_told_of_is_missed_in_a_new_list() {
    check(208_595);
}

#[test]
fn an_index_that_had_failed_succeeds_while_no_index_can_fail() {
    check(743_939);
}

#[test]
fn a_job_does_not_end_while_an_adoption_is_on_its_way() {
    check(6_036_864);
}

#[test]
fn a_pod_that_the_writer_of_the_end_could_not_know_of_counts_for_nothing() {
    check(7_091_614);
}

#[test]
fn a_success_whose_finalizer_could_not_be_removed_counts_once_its_index_is_wanted_again() {
    check(11_087_070);
}

#[test]
fn of_two_leaders_a_success_of_a_pod_that_was_taken_for_a_failure_is_nobodys() {
    check(11_006_125);
}

#[test]
fn of_two_leaders_one_may_be_given_a_name_that_a_user_had_and_left() {
    check(12_045_092);
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
