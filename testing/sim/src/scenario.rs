//! A world's setting, from a seed: the Job, how its Pods end, what goes wrong, and what
//! users do meanwhile.

use serde_json::{Value, json};

use crate::random::Random;

/// A setting.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The spec of the Job.
    pub spec: Value,
    /// How Pods end.
    pub fates: Fates,
    /// What goes wrong.
    pub faults: Faults,
    /// What users do, and in which step.
    pub plan: Vec<(u64, Action)>,
}

/// How Pods end, in percent.
#[derive(Clone, Copy, Debug)]
pub struct Fates {
    /// Pods that fail.
    pub failure: u64,
    /// Pods that are evicted, for each look at them.
    pub eviction: u64,
    /// Exit codes of failures go from 1 to this.
    pub exit_codes: u64,
}

/// What goes wrong, in percent of the ops or steps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Answers that are lost, before or after the write was applied.
    pub lost_answer: u64,
    /// Writes that are refused for now.
    pub refused: u64,
    /// Crashes of the controller.
    pub crash: u64,
    /// Moments in which the watch delivers nothing.
    pub slow_watch: u64,
}

/// What a user does.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    /// Holds the Job back.
    Suspend,
    /// Lets it go on.
    Resume,
    /// Changes parallelism.
    Parallelism(i32),
    /// Scales an elastic Job.
    Scale(i32),
    /// Deletes a Pod.
    DeletePod,
    /// Deletes the Job.
    DeleteJob,
}

impl Scenario {
    /// The setting of a seed.
    pub fn from_seed(seed: u64) -> Self {
        let random = &mut Random::new(seed);
        let is_indexed = random.chance(60);
        let completions = 1 + random.below(12);
        let parallelism = 1 + random.below(6);
        let mut spec = json!({"parallelism": parallelism});
        // Most Jobs must be able to end well in spite of failures.
        spec["backoffLimit"] = json!(if random.chance(30) { random.below(6) } else { 1_000 });
        if is_indexed {
            spec["completionMode"] = json!("Indexed");
            spec["completions"] = json!(completions);
            add_indexed(random, completions, &mut spec);
        } else if random.chance(80) {
            spec["completions"] = json!(completions);
        }
        if random.chance(30) {
            spec["podReplacementPolicy"] = json!("Failed");
        }
        if random.chance(30) {
            add_failure_policy(random, &mut spec);
        }
        if random.chance(10) {
            spec["activeDeadlineSeconds"] = json!(10 + random.below(200));
        }
        let is_elastic = is_indexed && spec["successPolicy"].is_null() && random.chance(20);
        if is_elastic {
            spec["parallelism"] = json!(completions);
        }
        Self {
            plan: plan(random, is_elastic),
            spec,
            fates: Fates {
                failure: [0, 10, 30, 60][random.below(4) as usize],
                eviction: [0, 0, 3, 10][random.below(4) as usize],
                exit_codes: 1 + random.below(4),
            },
            faults: Faults {
                lost_answer: [0, 5, 20][random.below(3) as usize],
                refused: [0, 5, 20][random.below(3) as usize],
                crash: [0, 2, 8][random.below(3) as usize],
                slow_watch: [0, 30, 70][random.below(3) as usize],
            },
        }
    }
}

fn add_indexed(random: &mut Random, completions: u64, spec: &mut Value) {
    if random.chance(40) {
        spec["backoffLimitPerIndex"] = json!(random.below(3));
        if random.chance(50) {
            spec["maxFailedIndexes"] = json!(random.below(completions + 1));
        }
    }
    if random.chance(30) {
        let last = random.below(completions);
        let rule = if random.chance(50) {
            json!({"succeededIndexes": format!("{last}")})
        } else {
            json!({"succeededCount": 1 + random.below(completions)})
        };
        spec["successPolicy"] = json!({"rules": [rule]});
    }
}

fn add_failure_policy(random: &mut Random, spec: &mut Value) {
    let has_per_index = !spec["backoffLimitPerIndex"].is_null();
    let actions = ["Ignore", "Count", "FailJob", if has_per_index { "FailIndex" } else { "Count" }];
    let mut rules = Vec::new();
    for code in 1..=random.below(4) {
        let action = actions[random.below(4) as usize];
        rules.push(json!({"action": action, "onExitCodes": {"operator": "In", "values": [code]}}));
    }
    if random.chance(50) {
        rules.push(json!({"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}));
    }
    spec["podFailurePolicy"] = json!({"rules": rules});
    spec["podReplacementPolicy"] = json!("Failed");
}

fn plan(random: &mut Random, is_elastic: bool) -> Vec<(u64, Action)> {
    let mut plan = Vec::new();
    for _ in 0..random.below(5) {
        let step = random.below(60);
        match random.below(6) {
            0 => plan
                .extend([(step, Action::Suspend), (step + 1 + random.below(40), Action::Resume)]),
            1 if is_elastic => plan.push((step, Action::Scale(1 + random.below(12) as i32))),
            1 | 2 if !is_elastic => {
                plan.push((step, Action::Parallelism(random.below(6) as i32)));
                plan.push((
                    step + random.below(40),
                    Action::Parallelism(1 + random.below(6) as i32),
                ));
            }
            3 | 4 => plan.push((step, Action::DeletePod)),
            5 if random.chance(30) => plan.push((step, Action::DeleteJob)),
            _ => {}
        }
    }
    // A Job that is held back at the end never ends.
    plan.extend(
        [(150, Action::Resume), (151, Action::Parallelism(2))].into_iter().filter(|_| !is_elastic),
    );
    plan.extend([(150, Action::Resume)].into_iter().filter(|_| is_elastic));
    plan.sort_by_key(|(step, _)| *step);
    plan
}
