//! Makes a failing world small: fewer choices, then a simpler setting.
//!
//! Delta debugging (Zeller): chunks of choices are left out, large ones first, for as long as
//! the same invariant breaks. A choice that cannot happen any more is skipped, and the calm
//! always follows, so any shorter list is a run of its own.

use std::sync::Arc;

use crate::choice::Choice;
use crate::invariant::Invariant;
use crate::run::{Options, Run, replay};
use crate::scenario::Scenario;

/// Fields of a Job's spec that it can do without.
const OPTIONAL_FIELDS: [&str; 9] = [
    "maxFailedIndexes",
    "successPolicy",
    "podFailurePolicy",
    "podReplacementPolicy",
    "activeDeadlineSeconds",
    "suspend",
    "backoffLimitPerIndex",
    "backoffLimit",
    "managedBy",
];

/// The shortest run found that breaks the same invariant.
pub fn shrink(run: &Run, options: &Options) -> Run {
    let Err(broken) = &run.result else {
        return run.clone();
    };
    let shrinker = Shrinker { invariant: broken.invariant, options };
    let mut scenario = Arc::clone(&run.scenario);
    let mut choices = shrinker.fewer_choices(&scenario, run.choices.clone());
    scenario = shrinker.simpler(&scenario, &choices);
    choices = shrinker.fewer_choices(&scenario, choices);
    let traced = Options { is_traced: true, ..options.clone() };
    replay(&scenario, &choices, &traced)
}

struct Shrinker<'a> {
    invariant: Invariant,
    options: &'a Options,
}

impl Shrinker<'_> {
    fn still_breaks(&self, scenario: &Arc<Scenario>, choices: &[Choice]) -> bool {
        let run = replay(scenario, choices, self.options);
        run.result.is_err_and(|broken| broken.invariant == self.invariant)
    }

    fn fewer_choices(&self, scenario: &Arc<Scenario>, mut choices: Vec<Choice>) -> Vec<Choice> {
        if !self.still_breaks(scenario, &choices) {
            return choices;
        }
        let mut size = choices.len().div_ceil(2).max(1);
        loop {
            let mut from = 0;
            let mut has_shrunk = false;
            while from < choices.len() {
                let to = (from + size).min(choices.len());
                let mut fewer = choices.clone();
                fewer.drain(from..to);
                if self.still_breaks(scenario, &fewer) {
                    choices = fewer;
                    has_shrunk = true;
                } else {
                    from = to;
                }
            }
            match (size, has_shrunk) {
                (1, false) => return choices,
                (1, true) => {}
                _ => size = size.div_ceil(2),
            }
        }
    }

    fn simpler(&self, scenario: &Arc<Scenario>, choices: &[Choice]) -> Arc<Scenario> {
        let mut best = Arc::clone(scenario);
        let mut attempt = |change: &dyn Fn(&mut Scenario)| {
            let mut simpler = Scenario::clone(&best);
            change(&mut simpler);
            let simpler = Arc::new(simpler);
            if self.still_breaks(&simpler, choices) {
                best = simpler;
            }
        };
        for field in OPTIONAL_FIELDS {
            attempt(&|scenario| {
                if let Some(spec) = scenario.spec.as_object_mut() {
                    spec.remove(field);
                }
            });
        }
        attempt(&|scenario| scenario.fates.failure = 0);
        attempt(&|scenario| scenario.has_bystander = false);
        attempt(&|scenario| scenario.leaders = 1);
        for count in [1, 2] {
            attempt(&|scenario| scenario.spec["parallelism"] = count.into());
            attempt(&|scenario| {
                if !scenario.spec["completions"].is_null() {
                    scenario.spec["completions"] = count.into();
                }
            });
        }
        best
    }
}
