//! A world's setting, from a seed: the Job, how its Pods end, what goes wrong, and what
//! users do.
//!
//! Every seed turns most things off: few things at a time reach deeper than all at once.

use serde_json::{Value, json};

use crate::api::CUSTOM_MANAGER;
use crate::choice::Storm;
use crate::random::Random;

/// A setting.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The spec of the Job.
    pub spec: Value,
    /// How Pods end.
    pub fates: Fates,
    /// How often things go wrong.
    pub faults: Faults,
    /// What users do.
    pub users: Vec<UserKind>,
    /// How many controllers there are of the Job's own kind: two may lead at once.
    pub leaders: usize,
    /// Whether there is also a controller that the Job is not for.
    pub has_bystander: bool,
    /// How many choices are taken at random before things calm down.
    pub chaos_steps: u32,
}

/// How Pods end, in percent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fates {
    /// Pods that fail.
    pub failure: u8,
    /// Exit codes of failures go from 1 to this.
    pub exit_codes: u8,
}

/// Weights of what goes wrong; a delivery of the watch weighs 20.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Crashes, and lists that are older than they could be.
    pub crash: u32,
    /// Watches that break.
    pub relist: u32,
    /// Watch events that come twice.
    pub repeat: u32,
    /// Requests and answers that take their time.
    pub slow: u32,
    /// Answers that are lost.
    pub lost: u32,
    /// Requests that are refused.
    pub refused: u32,
    /// Evictions.
    pub evict: u32,
    /// Failed Pods that turn out to have succeeded.
    pub recant: u32,
    /// Clock jumps.
    pub clock: u32,
    /// Restarts with another feature gate.
    pub gate: u32,
    /// Starts and stops of leaders.
    pub lead: u32,
    /// Pods that succeeded and turn out to have failed.
    pub relapse: u32,
    /// A refusal that lasts.
    pub storm: Option<Storm>,
    /// Pods that do not end once they are deleted, in percent.
    pub stuck: u8,
}

/// A kind of thing that users do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserKind {
    /// Suspend and resume.
    Suspend,
    /// Change parallelism.
    Parallelism,
    /// Scale an elastic Job.
    Scale,
    /// Edit activeDeadlineSeconds and backoffLimit.
    Limits,
    /// Edit maxFailedIndexes.
    MaxFailedIndexes,
    /// Delete Pods.
    DeletePod,
    /// Delete the Job.
    DeleteJob,
    /// Take finalizers off.
    StripFinalizer,
    /// Take annotations off.
    StripAnnotations,
    /// Take labels off and put them on.
    Labels,
    /// Take owner references off.
    StripOwner,
    /// Create Pods that the Job may adopt.
    MakeOrphan,
    /// Create Pods under the Job's names.
    Squat,
    /// Corrupt the status.
    Corrupt,
}

impl UserKind {
    /// Those that every seed draws from. [`with_later_users`] has the others.
    const DRAWN: [UserKind; 13] = [
        UserKind::Suspend,
        UserKind::Parallelism,
        UserKind::Scale,
        UserKind::Limits,
        UserKind::DeletePod,
        UserKind::DeleteJob,
        UserKind::StripFinalizer,
        UserKind::StripAnnotations,
        UserKind::Labels,
        UserKind::StripOwner,
        UserKind::MakeOrphan,
        UserKind::Squat,
        UserKind::Corrupt,
    ];
}

impl Scenario {
    /// The setting of a seed.
    pub fn from_seed(seed: u64) -> Self {
        let random = &mut Random::new(seed);
        let is_custom = random.chance(8);
        let is_elastic = random.chance(12);
        let mut spec = job_spec(random, is_elastic);
        if is_custom {
            spec["managedBy"] = json!(CUSTOM_MANAGER);
        }
        if random.chance(1) {
            spec["completionMode"] = json!("Sharded");
        }
        let mut users = Vec::new();
        for kind in UserKind::DRAWN {
            let percent = if kind == UserKind::Scale { 100 } else { 12 };
            // The parallelism of an elastic Job changes with its completions.
            let fits = (kind != UserKind::Scale || is_elastic)
                && (kind != UserKind::Parallelism || !is_elastic);
            if fits && random.chance(percent) {
                users.push(kind);
            }
        }
        let users = with_later_users(users, &spec, seed);
        Self {
            spec,
            fates: Fates {
                failure: [0, 10, 30, 60][random.below(4) as usize],
                exit_codes: 1 + random.below(4) as u8,
            },
            faults: with_later_faults(faults(random, is_custom), seed),
            users,
            leaders: if random.chance(15) { 2 } else { 1 },
            has_bystander: is_custom || random.chance(5),
            chaos_steps: 40 + random.below(360) as u32,
        }
    }
}

fn faults(random: &mut Random, is_custom: bool) -> Faults {
    let mut weight = |percent: u64, weights: [u32; 2]| {
        if random.chance(percent) { weights[random.below(2) as usize] } else { 0 }
    };
    Faults {
        crash: weight(40, [1, 4]),
        relist: weight(30, [1, 4]),
        repeat: weight(20, [2, 6]),
        slow: weight(60, [5, 20]),
        lost: weight(40, [2, 8]),
        refused: weight(40, [1, 6]),
        evict: weight(30, [1, 5]),
        recant: weight(15, [2, 8]),
        clock: weight(10, [1, 2]),
        // With managedBy off every controller takes every Job, which is chaos by design.
        gate: if is_custom { 0 } else { weight(10, [1, 2]) },
        lead: weight(100, [1, 3]),
        ..Faults::default()
    }
}

/// Faults that were thought of later, by a chance of their own: a seed without them is the
/// world that it always was.
fn with_later_faults(faults: Faults, seed: u64) -> Faults {
    let random = &mut Random::new(seed ^ 0xfa17_1a7f);
    let relapse = if random.chance(10) { [2, 8][random.below(2) as usize] } else { 0 };
    let storm = random.chance(12).then(|| Storm::ALL[random.below(3) as usize]);
    let stuck = if random.chance(15) { [30, 100][random.below(2) as usize] } else { 0 };
    Faults { relapse, storm, stuck, ..faults }
}

/// The same for what users do.
fn with_later_users(mut users: Vec<UserKind>, spec: &Value, seed: u64) -> Vec<UserKind> {
    let random = &mut Random::new(seed ^ 0x1a7e_05e2);
    if !spec["backoffLimitPerIndex"].is_null() && random.chance(15) {
        users.push(UserKind::MaxFailedIndexes);
    }
    users
}

fn job_spec(random: &mut Random, is_elastic: bool) -> Value {
    let completions = 1 + random.below(5);
    let is_indexed = is_elastic || random.chance(60);
    let mut spec = json!({"parallelism": 1 + random.below(4)});
    // Most Jobs must be able to end well in spite of failures.
    spec["backoffLimit"] = json!(if random.chance(30) { random.below(5) } else { 1_000 });
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
    let restarts = random.chance(12);
    if restarts {
        spec["template"] = json!({"spec": {"restartPolicy": "OnFailure"}});
    } else {
        spec["template"] = json!({"spec": {"restartPolicy": "Never"}});
        if random.chance(30) {
            add_failure_policy(random, &mut spec);
        }
    }
    if random.chance(8) {
        spec["activeDeadlineSeconds"] = json!(10 + random.below(200));
    }
    if random.chance(4) {
        spec["suspend"] = json!(true);
    }
    if is_elastic {
        spec["parallelism"] = json!(completions);
    }
    spec
}

fn add_indexed(random: &mut Random, completions: u64, spec: &mut Value) {
    if random.chance(40) {
        spec["backoffLimitPerIndex"] = json!(random.below(3));
        if random.chance(50) {
            spec["maxFailedIndexes"] = json!(random.below(completions + 1));
        }
    }
    if random.chance(25) {
        let rules: Vec<Value> = (0..1 + random.below(2))
            .map(|_| {
                let last = random.below(completions);
                if random.chance(50) {
                    json!({"succeededIndexes": format!("{last}")})
                } else {
                    json!({"succeededCount": 1 + random.below(completions)})
                }
            })
            .collect();
        spec["successPolicy"] = json!({"rules": rules});
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
        let action = actions[random.below(2) as usize];
        rules.push(json!({"action": action, "onPodConditions": [{"type": "DisruptionTarget"}]}));
    }
    spec["podFailurePolicy"] = json!({"rules": rules});
    spec["podReplacementPolicy"] = json!("Failed");
}
