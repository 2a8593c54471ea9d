//! Jobs in which Pods race: how they end is certain, and not how far the others came by then.

use kube::api::PropagationPolicy;
use serde_json::{Value, json};
use stint_kit::End;

use super::generate::{fate, stays};
use super::model::Rest;
use super::script::{Scope, Script, Turn, manifest};
use super::step::{Courses, Step};
use crate::dice::Dice;

/// The script of a seed whose outcome is determined in part.
pub(crate) fn generate(mut dice: Dice, seed: u64) -> Script {
    let kinds = [limit, success_policy, failed_indexes, fail_job, orphan];
    let race = dice.pick(&kinds)(&mut dice);
    let mut spec = race.spec;
    spec["template"] = json!({"spec": {
        "restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}],
    }});
    Script {
        seed,
        manifest: manifest(seed, spec, json!({}), json!({})),
        stays: stays(Some(dice.below(2))),
        courses: race.courses,
        finales: Courses::new(),
        turns: race.turns,
        end: race.end.to_owned(),
        is_fleeting: false,
        scope: Scope::Part(race.reason),
    }
}

struct Race {
    spec: Value,
    courses: Courses,
    turns: Vec<Turn>,
    end: &'static str,
    reason: &'static str,
}

/// How many Pods of a place may come before its Job has ended in any case: the highest limit is 2,
/// so that the third failure ends it, and a Pod that was made meanwhile is the fourth.
const ENOUGH: usize = 4;

/// Every Pod of these indexes ends so.
fn always(dice: &mut Dice, indexes: impl Iterator<Item = u32>, end: &End) -> Courses {
    let mut course = || (0..ENOUGH).map(|_| fate(dice, end.clone())).collect();
    indexes.map(|index| (Some(index), course())).collect()
}

fn indexed(completions: u32) -> Value {
    json!({"completionMode": "Indexed", "completions": completions, "parallelism": completions})
}

/// Pods fail side by side until they are too many.
fn limit(dice: &mut Dice) -> Race {
    let completions = dice.between(2, 5);
    let mut spec = indexed(completions);
    spec["backoffLimit"] = dice.below(3).into();
    // At least one index never succeeds.
    let mut courses = always(dice, 1..completions, &End::Fails(1));
    let end = if dice.percent(50) { End::Succeeds } else { End::Fails(2) };
    courses.extend(always(dice, 0..1, &end));
    Race {
        spec,
        courses,
        turns: Vec::new(),
        end: "Failed BackoffLimitExceeded",
        reason: "how many Pods fail by the time that one too many is noticed depends on when",
    }
}

/// More Pods succeed side by side than must.
fn success_policy(dice: &mut Dice) -> Race {
    let completions = dice.between(3, 6);
    let mut spec = indexed(completions);
    let enough = dice.between(1, completions - 1);
    spec["successPolicy"] = json!({"rules": [{"succeededCount": enough}]});
    Race {
        spec,
        courses: always(dice, 0..completions, &End::Succeeds),
        turns: Vec::new(),
        end: "Complete SuccessPolicy",
        reason: "how many Pods succeed by the time that they are noticed to be enough depends on \
                 when",
    }
}

/// More indexes fail side by side than may.
fn failed_indexes(dice: &mut Dice) -> Race {
    let completions = dice.between(3, 6);
    let most = dice.below(completions - 1);
    let mut spec = indexed(completions);
    (spec["backoffLimitPerIndex"], spec["maxFailedIndexes"]) = (0.into(), most.into());
    let mut courses = always(dice, 0..most + 1, &End::Fails(1));
    let end = if dice.percent(50) { End::Succeeds } else { End::Fails(3) };
    courses.extend(always(dice, most + 1..completions, &end));
    Race {
        spec,
        courses,
        turns: Vec::new(),
        end: "Failed MaxFailedIndexesExceeded",
        reason: "how many indexes finish by the time that one too many is noticed depends on when",
    }
}

/// Several Pods fail, each of which is reason enough.
fn fail_job(dice: &mut Dice) -> Race {
    let completions = dice.between(2, 5);
    let mut spec = indexed(completions);
    spec["podFailurePolicy"] = json!({"rules": [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
    ]});
    Race {
        spec,
        courses: always(dice, 0..completions, &End::Fails(42)),
        turns: Vec::new(),
        end: "Failed PodFailurePolicy",
        reason: "which Pod is noticed first, and how many there are by then, depends on when",
    }
}

/// The Job leaves its Pods behind.
fn orphan(dice: &mut Dice) -> Race {
    let completions = dice.between(1, 4);
    let rest = Rest {
        active: completions,
        succeeded: 0,
        failed: 0,
        ended: 0,
        is_suspended: false,
        has_started: true,
        indexes: Some((0..completions).collect()),
    };
    let step = Step::Delete { propagation: PropagationPolicy::Orphan };
    Race {
        spec: indexed(completions),
        courses: Courses::new(),
        turns: vec![Turn { rest, step, terminating: None }],
        end: "",
        reason: "what a Job that goes looks like last depends on when its Pods are let go",
    }
}
