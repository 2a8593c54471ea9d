//! What keeps a Job from having all the Pods that it wants: how many are missing, and whether
//! they wait for a failure's backoff. Values in, values out.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use stint_api::index_set::IndexSet;
use stint_controller::{BackoffDelays, FailureStreak};

use super::state::State;
use crate::job_text;
use crate::pod_sight::{PodSight, Stage};
use crate::progress::completions;
use crate::words;

/// How many Pods a Job wants and does not have.
pub(crate) fn missing(job: &Job, pods: &[PodSight]) -> u64 {
    if !matches!(State::of(job), State::Running | State::Waiting) {
        return 0;
    }
    let Some(spec) = &job.spec else {
        return 0;
    };
    let count = |count: Option<i32>| u64::try_from(count.unwrap_or(0)).unwrap_or(0);
    let status = job.status.as_ref();
    let succeeded = count(status.and_then(|status| status.succeeded));
    let parallelism = spec.parallelism.map_or(1, |parallelism| count(Some(parallelism)));
    let wanted = match spec.completions {
        Some(_) => {
            let given_up = failed_indexes(job).count();
            parallelism.min(u64::from(completions(job)).saturating_sub(succeeded + given_up))
        }
        // Without a number of completions no Pod follows the first success.
        None if succeeded > 0 => 0,
        None => parallelism,
    };
    let is_there = |pod: &&PodSight| pod.is_under_way() && !pod.is_deleted();
    wanted.saturating_sub(pods.iter().filter(is_there).count() as u64)
}

/// A row for the backoff that Pods which are missing wait for. How long that is the API does not
/// tell; it is said by the delays that Job controllers have unless they are told others.
pub(crate) fn backoff_row(job: &Job, pods: &[PodSight], now: Timestamp) -> String {
    let is_per_index = job.spec.as_ref().is_some_and(|spec| spec.backoff_limit_per_index.is_some());
    let waits = match missing(job, pods) {
        0 => None,
        _ if is_per_index => waiting_indexes(job, pods, now),
        _ => waiting_job(pods, now),
    };
    waits.map(|text| job_text::row("backoff", &text)).unwrap_or_default()
}

/// After a failure all Pods of the Job wait.
fn waiting_job(pods: &[PodSight], now: Timestamp) -> Option<String> {
    let mut streak = FailureStreak::default();
    let mut failures: u64 = 0;
    let mut ends: Vec<(Timestamp, bool)> = pods.iter().filter_map(end).collect();
    ends.sort_unstable();
    for (at, is_success) in ends {
        if is_success {
            streak.succeeded(at);
            failures = 0;
        } else {
            streak.failed(at);
            failures += 1;
        }
    }
    let ready_at = streak.ready_at(&BackoffDelays::default()).filter(|at| *at > now)?;
    let failed = if failures == 1 { "a Pod" } else { &format!("{failures} Pods in a row") };
    Some(format!("{failed} failed: the next comes in {}, {}", wait(ready_at, now), by_default()))
}

/// After a failure of an index, only that index waits.
fn waiting_indexes(job: &Job, pods: &[PodSight], now: Timestamp) -> Option<String> {
    let completed = job.status.as_ref().and_then(|status| status.completed_indexes.as_deref());
    let completed = IndexSet::parse_lenient(completed.unwrap_or(""), completions(job));
    let failed = failed_indexes(job);
    let mut latest: BTreeMap<u32, &PodSight> = BTreeMap::new();
    for pod in pods {
        let is_open = |index: &u32| !completed.contains(*index) && !failed.contains(*index);
        if let Some(index) = pod.index().filter(is_open) {
            let last = latest.entry(index).or_insert(pod);
            if last.order() < pod.order() {
                *last = pod;
            }
        }
    }
    let due = latest.into_iter().filter_map(|(index, pod)| {
        let (at, is_success) = end(pod)?;
        let failures = pod.failures_before().saturating_add(1);
        let ready_at = BackoffDelays::default().ready_at(failures, at);
        (!is_success && ready_at > now).then_some((ready_at, index))
    });
    let due: Vec<(Timestamp, u32)> = due.collect();
    let &(ready_at, index) = due.iter().min()?;
    let who = match due.len() {
        1 => format!("index {index} failed: its next Pod comes"),
        count => format!("{count} indexes failed: the next Pod, of index {index}, comes"),
    };
    Some(format!("{who} in {}, {}", wait(ready_at, now), by_default()))
}

/// When a Pod has ended, and whether it succeeded.
fn end(pod: &PodSight) -> Option<(Timestamp, bool)> {
    let is_success = match pod.stage() {
        Stage::Succeeded => true,
        Stage::Failed => false,
        Stage::Waiting | Stage::Running => return None,
    };
    Some((pod.ended().or(pod.created())?, is_success))
}

/// What is left, to the second that it is over in.
fn wait(ready_at: Timestamp, now: Timestamp) -> String {
    words::age(ready_at.duration_since(now).saturating_add(SignedDuration::from_millis(999)))
}

fn by_default() -> String {
    let BackoffDelays { base, cap } = BackoffDelays::default();
    let (base, cap) = (words::age(base), words::age(cap));
    format!("unless its controller has other delays than {base}, doubled each time up to {cap}")
}

fn failed_indexes(job: &Job) -> IndexSet {
    let text = job.status.as_ref().and_then(|status| status.failed_indexes.as_deref());
    IndexSet::parse_lenient(text.unwrap_or(""), completions(job))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn job(spec: Value, status: Value) -> Job {
        let mut spec = spec;
        spec["template"] = json!({});
        serde_json::from_value(
            json!({"metadata": {"name": "work"}, "spec": spec, "status": status}),
        )
        .expect("it is a Job")
    }

    /// A Pod with its index, the failures before it, its exit code if it has ended, and when.
    fn pod(index: u32, before: u32, code: Option<i32>, second: u32) -> PodSight {
        let time = format!("2026-01-01T00:00:{second:02}Z");
        let status = match code {
            Some(code) => json!({"phase": if code == 0 { "Succeeded" } else { "Failed" },
                "containerStatuses": [{"name": "main",
                    "state": {"terminated": {"exitCode": code, "finishedAt": time}}}]}),
            None => json!({"phase": "Running"}),
        };
        serde_json::from_value(json!({
            "metadata": {"name": format!("w-{index}-{second}"), "creationTimestamp": time,
                "annotations": {"batch.kubernetes.io/job-completion-index": index.to_string(),
                    "batch.kubernetes.io/job-index-failure-count": before.to_string()}},
            "spec": {"nodeName": "n"}, "status": status}))
        .expect("it is a Pod")
    }

    #[test]
    fn what_is_missing_is_what_is_wanted_and_not_there() {
        let rows = [
            (json!({"parallelism": 3, "completions": 5}), json!({"succeeded": 1}), 2),
            (json!({"parallelism": 3, "completions": 2}), json!({"succeeded": 1}), 0),
            (json!({"completions": 2}), json!({}), 0),
            (json!({"parallelism": 4}), json!({}), 3),
            (json!({"parallelism": 4}), json!({"succeeded": 1}), 0),
            (
                json!({"parallelism": 4, "completions": 4, "backoffLimitPerIndex": 0}),
                json!({"failedIndexes": "0-1"}),
                1,
            ),
            (json!({"parallelism": 4, "suspend": true}), json!({}), 0),
        ];
        for (spec, status, expected) in rows {
            let text = spec.to_string();
            let pods = [pod(0, 0, None, 1), pod(1, 0, Some(0), 1)];
            assert_eq!(missing(&job(spec, status), &pods), expected, "{text}");
        }
    }

    #[test]
    fn a_job_that_waits_for_its_backoff_says_how_long() {
        let plain = || job(json!({"parallelism": 2, "completions": 4}), json!({"failed": 2}));
        let pods = [pod(0, 0, Some(0), 1), pod(1, 0, Some(1), 5), pod(2, 0, Some(1), 10)];
        let at = |second: i64| Timestamp::from_second(1_767_225_600 + second).expect("a time");
        let row = backoff_row(&plain(), &pods, at(12));
        let expected = "  backoff    2 Pods in a row failed: the next comes in 18s, unless its \
                        controller has other delays than 10s, doubled each time up to 10m00s\n";
        assert_eq!(row, expected);
        assert_eq!(backoff_row(&plain(), &pods, at(30)), "", "it is over");
        let running = [pod(0, 0, None, 1), pod(1, 0, None, 5), pod(2, 0, Some(1), 10)];
        assert_eq!(backoff_row(&plain(), &running, at(12)), "", "nothing is missing");
    }

    #[test]
    fn with_limits_per_index_each_index_waits_for_itself() {
        let spec = json!({"parallelism": 3, "completions": 4, "completionMode": "Indexed",
            "backoffLimitPerIndex": 3});
        let job = job(spec, json!({"completedIndexes": "0"}));
        let at = |second: i64| Timestamp::from_second(1_767_225_600 + second).expect("a time");
        // Index 0 is done, 1 has failed twice, 2 once and runs again, 3 once.
        let pods = [
            pod(0, 0, Some(1), 1),
            pod(1, 0, Some(1), 1),
            pod(1, 1, Some(1), 12),
            pod(2, 0, Some(1), 1),
            pod(2, 1, None, 12),
            pod(3, 0, Some(1), 9),
        ];
        let row = backoff_row(&job, &pods, at(13));
        assert!(row.contains("2 indexes failed: the next Pod, of index 3, comes in 6s"), "{row}");
        let row = backoff_row(&job, &pods, at(20));
        assert!(row.contains("index 1 failed: its next Pod comes in 12s"), "{row}");
        assert_eq!(backoff_row(&job, &pods, at(32)), "");
    }
}
