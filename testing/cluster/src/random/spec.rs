//! Specs of Jobs, by chance: everything that matters to a controller.

use serde_json::{Value, json};
use stint_kit::End;

use super::script::name;
use crate::dice::Dice;

/// Exit codes that Pods end with and rules speak of.
const CODES: [i32; 5] = [1, 2, 3, 42, 137];

/// Conditions that Pods end with and rules speak of.
const CONDITIONS: [&str; 2] = ["DisruptionTarget", "ConfigIssue"];

/// A failure.
pub(crate) fn failure(dice: &mut Dice) -> End {
    let code = dice.pick(&CODES);
    match dice.percent(25) {
        true => End::FailsBy(dice.pick(&CONDITIONS), code),
        false => End::Fails(code),
    }
}

/// A spec.
pub(crate) fn spec(dice: &mut Dice, seed: u64) -> Value {
    let mut spec = json!({"template": {
        "metadata": {"labels": {}, "annotations": {}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]},
    }});
    add_counts(dice, &mut spec);
    add_limits(dice, &mut spec);
    add_policies(dice, &mut spec);
    add_times(dice, &mut spec);
    add_template(dice, &mut spec, seed);
    spec
}

fn add_counts(dice: &mut Dice, spec: &mut Value) {
    match dice.below(100) {
        0..65 => {
            let completions = if dice.percent(2) { 0 } else { dice.between(1, 6) };
            spec["completionMode"] = "Indexed".into();
            spec["completions"] = completions.into();
            let all_at_once = dice.percent(40);
            let parallelism =
                if all_at_once { completions } else { dice.between(1, completions + 1) };
            spec["parallelism"] = parallelism.into();
        }
        65..90 => {
            spec["completions"] = dice.between(1, 5).into();
            if dice.percent(80) {
                spec["parallelism"] = dice.between(1, 4).into();
            }
            if dice.percent(30) {
                spec["completionMode"] = "NonIndexed".into();
            }
        }
        _ => {
            if dice.percent(80) {
                spec["parallelism"] = dice.between(1, 4).into();
            }
        }
    }
    if dice.percent(3) {
        spec["parallelism"] = 0.into();
    }
    if dice.percent(12) {
        spec["suspend"] = true.into();
    }
}

fn add_limits(dice: &mut Dice, spec: &mut Value) {
    let is_indexed = spec["completionMode"] == "Indexed";
    if is_indexed && dice.percent(45) {
        spec["backoffLimitPerIndex"] = dice.between(0, 2).into();
        if dice.percent(40) {
            let completions = spec["completions"].as_u64().unwrap_or(0) as u32;
            spec["maxFailedIndexes"] = dice.between(0, completions.min(2)).into();
        }
        if dice.percent(25) {
            spec["backoffLimit"] = dice.between(0, 5).into();
        }
    } else if dice.percent(60) {
        spec["backoffLimit"] = dice.between(0, 4).into();
    }
}

fn add_policies(dice: &mut Dice, spec: &mut Value) {
    let is_indexed = spec["completionMode"] == "Indexed";
    let completions = spec["completions"].as_u64().unwrap_or(0) as u32;
    if is_indexed && completions > 0 && dice.percent(25) {
        let rules: Vec<Value> =
            (0..dice.between(1, 3)).map(|_| success_rule(dice, completions)).collect();
        spec["successPolicy"] = json!({"rules": rules});
    }
    if dice.percent(35) {
        let has_limit = !spec["backoffLimitPerIndex"].is_null();
        let rules: Vec<Value> =
            (0..dice.between(1, 3)).map(|_| failure_rule(dice, has_limit)).collect();
        spec["podFailurePolicy"] = json!({"rules": rules});
        if dice.percent(40) {
            spec["podReplacementPolicy"] = "Failed".into();
        }
        return;
    }
    match dice.below(100) {
        0..30 => spec["podReplacementPolicy"] = "Failed".into(),
        30..50 => spec["podReplacementPolicy"] = "TerminatingOrFailed".into(),
        _ => {}
    }
    if dice.percent(20) {
        spec["template"]["spec"]["restartPolicy"] = "OnFailure".into();
    }
}

fn success_rule(dice: &mut Dice, completions: u32) -> Value {
    if dice.percent(35) {
        return json!({"succeededCount": dice.between(1, completions)});
    }
    let first = dice.below(completions);
    let last = dice.between(first, completions - 1);
    let text = if first == last { first.to_string() } else { format!("{first}-{last}") };
    match dice.percent(50) {
        true => {
            let count = dice.between(1, last - first + 1);
            json!({"succeededIndexes": text, "succeededCount": count})
        }
        false => json!({"succeededIndexes": text}),
    }
}

fn failure_rule(dice: &mut Dice, has_limit_per_index: bool) -> Value {
    let actions: &[&str] = match has_limit_per_index {
        true => &["Count", "Ignore", "FailJob", "FailIndex", "FailIndex"],
        false => &["Count", "Ignore", "FailJob", "FailJob"],
    };
    let action = dice.pick(actions);
    if dice.percent(35) {
        let pattern = |dice: &mut Dice| match dice.below(4) {
            0 => json!({"type": dice.pick(&CONDITIONS), "status": "True"}),
            1 => {
                json!({"type": dice.pick(&CONDITIONS), "status": dice.pick(&["False", "Unknown"])})
            }
            _ => json!({"type": dice.pick(&CONDITIONS)}),
        };
        let patterns: Vec<Value> = (0..dice.between(1, 2)).map(|_| pattern(dice)).collect();
        return json!({"action": action, "onPodConditions": patterns});
    }
    let mut values: Vec<i32> = (0..dice.between(1, 3)).map(|_| dice.pick(&CODES)).collect();
    if dice.percent(20) {
        values.push(143);
    }
    values.sort_unstable();
    values.dedup();
    let operator = if dice.percent(75) { "In" } else { "NotIn" };
    let mut codes = json!({"operator": operator, "values": values});
    match dice.below(100) {
        0..25 => codes["containerName"] = "main".into(),
        // One that never says how it ended.
        25..35 => codes["containerName"] = "helper".into(),
        _ => {}
    }
    json!({"action": action, "onExitCodes": codes})
}

fn add_times(dice: &mut Dice, spec: &mut Value) {
    if dice.percent(20) {
        spec["activeDeadlineSeconds"] = 3600.into();
    }
    match dice.below(100) {
        0..10 => spec["ttlSecondsAfterFinished"] = 3600.into(),
        10..15 => spec["ttlSecondsAfterFinished"] = dice.between(0, 2).into(),
        _ => {}
    }
}

fn add_template(dice: &mut Dice, spec: &mut Value, seed: u64) {
    let rules = spec["podFailurePolicy"]["rules"].as_array().cloned().unwrap_or_default();
    let is_named = rules.iter().any(|rule| rule["onExitCodes"]["containerName"] == "helper");
    if is_named || dice.percent(10) {
        let containers = spec["template"]["spec"]["containers"].as_array_mut().expect("a list");
        containers.push(json!({"name": "helper", "image": "i"}));
    }
    if dice.percent(30) {
        spec["template"]["metadata"]["labels"]["tier"] = dice.pick(&["front", "back"]).into();
    }
    if dice.percent(30) {
        spec["template"]["metadata"]["annotations"]["example.com/note"] =
            "from the template".into();
    }
    if dice.percent(12) {
        let name = name(seed);
        spec["manualSelector"] = true.into();
        spec["selector"] = match dice.percent(50) {
            true => json!({"matchLabels": {"app": name}}),
            false => json!({"matchExpressions": [
                {"key": "app", "operator": "In", "values": [name, "another"]},
            ]}),
        };
        let labels = &mut spec["template"]["metadata"]["labels"];
        (labels["app"], labels["job-name"]) = (name.clone().into(), name.into());
    }
}
