//! What the policies of a Job say, by a reading of their own: the generator must know where a Job
//! comes to rest, and asks neither of the controllers.

use std::collections::BTreeSet;

use serde_json::Value;
use stint_kit::End;

/// What a failure means to the Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Counts,
    Ignored,
    FailsIndex,
    FailsJob,
}

/// The exit code of a container that is told to end.
pub(crate) const TOLD_TO_END: i32 = 143;

/// What a Pod failure policy says of an end; `Value::Null` is none.
pub(crate) fn judge(policy: &Value, end: &End) -> Verdict {
    let (code, condition) = match end {
        End::Fails(code) => (*code, None),
        End::FailsBy(condition, code) => (*code, Some(*condition)),
        End::Succeeds | End::Runs | End::Restarts(_) => panic!("{end:?} is no failure"),
    };
    let rules = policy["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rule = rules.iter().find(|rule| match rule.get("onExitCodes") {
        Some(codes) => has_code(codes, code),
        None => has_condition(&rule["onPodConditions"], condition),
    });
    match rule.and_then(|rule| rule["action"].as_str()) {
        None | Some("Count") => Verdict::Counts,
        Some("Ignore") => Verdict::Ignored,
        Some("FailIndex") => Verdict::FailsIndex,
        Some("FailJob") => Verdict::FailsJob,
        Some(other) => panic!("no action {other}"),
    }
}

/// Only the container `main` ever ends here.
fn has_code(codes: &Value, code: i32) -> bool {
    let is_main = codes.get("containerName").is_none_or(|name| name == "main");
    let is_listed = codes["values"].as_array().into_iter().flatten().any(|it| it == code);
    is_main && is_listed == (codes["operator"] == "In")
}

fn has_condition(patterns: &Value, condition: Option<&str>) -> bool {
    let is_it = |pattern: &Value| {
        pattern["type"].as_str() == condition
            && pattern.get("status").is_none_or(|status| status == "True")
    };
    condition.is_some() && patterns.as_array().into_iter().flatten().any(is_it)
}

/// Whether a success policy is met; `Value::Null` is none.
pub(crate) fn is_met(policy: &Value, completed: &BTreeSet<u32>) -> bool {
    let mut rules = policy["rules"].as_array().into_iter().flatten();
    rules.any(|rule| {
        let listed = rule["succeededIndexes"].as_str().map(indexes);
        let matched = match &listed {
            Some(listed) => completed.intersection(listed).count(),
            None => completed.len(),
        };
        let enough = rule["succeededCount"].as_u64().map(|count| count as usize);
        matched >= enough.or(listed.map(|it| it.len())).unwrap_or(usize::MAX)
    })
}

/// `0,2-4`.
pub(crate) fn indexes(text: &str) -> BTreeSet<u32> {
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.parse::<u32>().expect("an index");
        number(first)..=number(last)
    };
    text.split(',').filter(|it| !it.is_empty()).flat_map(part).collect()
}
