//! The shrinker, on an invariant that breaks on purpose.

use stint_sim::choice::Choice;
use stint_sim::invariant::Invariant;
use stint_sim::run::{Options, from_seed};
use stint_sim::shrink::shrink;

/// Every world in which somebody waits long twice breaks this one.
fn options() -> Options {
    let ignored = Invariant::ALL.into_iter().filter(|it| *it != Invariant::Artificial).collect();
    Options { ignored, breaks_on_purpose: true, ..Options::default() }
}

#[test]
fn a_failing_run_is_shrunk_to_what_it_takes_to_fail() {
    let run = (0..50)
        .map(|seed| from_seed(seed, &options()))
        .find(|run| run.result.is_err() && run.choices.len() > 20)
        .expect("somebody waits in some world");
    let shortest = shrink(&run, &options());
    let broken = shortest.result.expect_err("the shrunk run fails as well");
    assert_eq!(broken.invariant, Invariant::Artificial);
    assert_eq!(shortest.choices, [Choice::Wait(20_000), Choice::Wait(20_000)]);
    assert!(!shortest.trace.is_empty(), "a shrunk run has a trace");
}
