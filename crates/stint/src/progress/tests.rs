//! What is shown of a run, from Jobs and Pods made up here. No cluster, no terminal.

use serde_json::json;

use super::*;

fn job(status: serde_json::Value) -> Job {
    serde_json::from_value(json!({
        "metadata": {"name": "work", "namespace": "default", "uid": "u"},
        "spec": {"completions": 4, "completionMode": "Indexed", "template": {}},
        "status": status,
    }))
    .expect("it is a Job")
}

fn pod(uid: &str, index: u32, node: &str, phase: &str) -> PodSight {
    let code = i32::from(phase == "Failed");
    serde_json::from_value(json!({
        "metadata": {"name": format!("work-{index}-{uid}"), "namespace": "default", "uid": uid,
            "labels": {"batch.kubernetes.io/controller-uid": "u"},
            "annotations": {"batch.kubernetes.io/job-completion-index": index.to_string()}},
        "spec": {"nodeName": node},
        "status": {"phase": phase, "containerStatuses": [
            {"name": "main", "state": {"terminated": {"exitCode": code, "reason": "Error"}}}]},
    }))
    .expect("it is a Pod")
}

fn started() -> (Progress, Instant) {
    let mut progress = Progress::default();
    let now = Instant::now();
    progress.add(job(json!({})), IndexSet::new(), now);
    (progress, now)
}

#[test]
fn a_second_pod_of_an_index_is_a_retry() {
    let (mut progress, now) = started();
    for (uid, index) in [("a", 0), ("b", 1), ("c", 1), ("c", 1)] {
        progress.observe_pod(&pod(uid, index, "n", "Failed"), false, now);
    }
    let job = &progress.jobs()[0];
    assert_eq!(job.retries, 1);
    let failed: Vec<_> = job.failures().map(|it| (it.index, it.times)).collect();
    assert_eq!(failed, [(Some(0), 1), (Some(1), 2)]);
    assert!(job.failures().all(|it| it.why == "exit code 1"));
}

#[test]
fn a_pod_that_is_seen_again_after_its_end_changes_nothing() {
    let (mut progress, now) = started();
    let failed = pod("a", 0, "n", "Failed");
    assert_eq!(progress.observe_pod(&failed, false, now).len(), 1);
    assert_eq!(progress.observe_pod(&failed, false, now), []);
    assert_eq!(progress.observe_pod(&failed, true, now), []);
}

#[test]
fn the_slowest_come_first() {
    let (mut progress, now) = started();
    for (index, seconds) in [(0, 2), (1, 9), (2, 5)] {
        let uid = index.to_string();
        progress.observe_pod(&pod(&uid, index, "n", "Pending"), false, now);
        let then = now + Duration::from_secs(seconds);
        progress.observe_pod(&pod(&uid, index, "n", "Succeeded"), false, then);
    }
    let order: Vec<_> = progress.jobs()[0].slowest().iter().map(|it| it.what.as_str()).collect();
    assert_eq!(order, ["index 1", "index 2", "index 0"]);
}

#[test]
fn an_index_that_was_tried_again_is_among_the_slowest_once() {
    let (mut progress, now) = started();
    for (uid, index, seconds) in [("a", 0, 3), ("b", 1, 4), ("c", 0, 5), ("d", 0, 2)] {
        progress.observe_pod(&pod(uid, index, "n", "Running"), false, now);
        let then = now + Duration::from_secs(seconds);
        progress.observe_pod(&pod(uid, index, "n", "Failed"), false, then);
    }
    let told = progress.jobs()[0].slowest().iter().map(|it| (it.what.as_str(), it.time.as_secs()));
    assert_eq!(told.collect::<Vec<_>>(), [("index 0", 5), ("index 1", 4)]);
}

#[test]
fn what_was_done_before_is_not_counted() {
    let mut progress = Progress::default();
    let now = Instant::now();
    let preset = IndexSet::parse_strict("0,1", 4).expect("it is a list");
    progress.add(job(json!({"succeeded": 2, "completedIndexes": "0,1"})), preset, now);
    progress.observe_pod(&pod("a", 2, "n", "Running"), false, now);
    progress.observe_pod(&pod("b", 3, "", "Pending"), false, now);
    let counts = progress.jobs()[0].counts();
    let expected = Counts { total: Some(2), running: 1, waiting: Some(1), ..Counts::default() };
    assert_eq!(counts, expected);
    let changes =
        progress.observe_job(job(json!({"succeeded": 3, "completedIndexes": "0-2"})), false, now);
    assert_eq!(changes, [Change::Counted { job: 0 }]);
    assert_eq!(progress.jobs()[0].completed_indexes().to_string(), "2");
}

#[test]
fn a_run_is_over_when_every_job_has_ended_and_settled_when_its_pods_are_known() {
    let (mut progress, now) = started();
    let conditions = json!([{"type": "Failed", "status": "True", "reason": "FailedIndexes"}]);
    let ended = job(json!({"failed": 1, "conditions": conditions}));
    let changes = progress.observe_job(ended.clone(), false, now);
    assert_eq!(changes, [Change::Counted { job: 0 }, Change::Ended { job: 0 }]);
    assert!(progress.is_over() && !progress.is_settled());
    progress.observe_pod(&pod("a", 0, "n", "Failed"), false, now);
    assert!(progress.is_settled());
    assert_eq!(progress.observe_job(ended, true, now), []);
    assert_eq!(progress.jobs()[0].end(), End::Failed);
}

#[test]
fn a_job_that_is_removed_before_its_end_is_gone() {
    let (mut progress, now) = started();
    let changes = progress.observe_job(job(json!({})), true, now);
    assert_eq!(changes, [Change::Ended { job: 0 }]);
    assert!(progress.is_over() && progress.jobs()[0].is_gone);
    assert_eq!(progress.jobs()[0].end(), End::Unfinished);
}

#[test]
fn a_pod_that_waits_in_vain_is_told_once_for_each_reason() {
    let (mut progress, now) = started();
    let waiting = |uid: &str, reason: &str, message: &str| -> PodSight {
        serde_json::from_value(json!({
            "metadata": {"name": uid, "uid": uid,
                "labels": {"batch.kubernetes.io/controller-uid": "u"}},
            "status": {"phase": "Pending", "containerStatuses": [
                {"name": "main", "state": {"waiting": {"reason": reason, "message": message}}}]},
        }))
        .expect("it is a Pod")
    };
    let mut told = |uid: &str, reason: &str, message: &str| {
        progress.observe_pod(&waiting(uid, reason, message), false, now).len()
    };
    assert_eq!(told("a", "ContainerCreating", ""), 0);
    assert_eq!(told("a", "CrashLoopBackOff", "10s left"), 1);
    assert_eq!(told("a", "CrashLoopBackOff", "9s left"), 0);
    assert_eq!(told("b", "CrashLoopBackOff", "9s left"), 0, "one Pod speaks for all");
    assert_eq!(told("a", "CreateContainerConfigError", "no such ConfigMap"), 1);
    assert_eq!(told("a", "ContainerCreating", ""), 0);
    assert_eq!(told("b", "CrashLoopBackOff", "8s left"), 1);
    let waits = progress.jobs()[0].waits().expect("it does").clone();
    assert_eq!((waits.what.as_str(), waits.why.as_str()), ("Pod b", "CrashLoopBackOff: 8s left"));
}

#[test]
fn the_pace_leaves_out_what_was_done_before_the_run() {
    let mut progress = Progress::default();
    let now = Instant::now();
    progress.add(job(json!({"succeeded": 2, "completedIndexes": "0,1"})), IndexSet::new(), now);
    let seen = job(json!({"succeeded": 3, "completedIndexes": "0-2"}));
    progress.observe_job(seen, false, now);
    let job = &progress.jobs()[0];
    assert_eq!((job.counts().total, job.counts().done), (Some(4), 3));
    let counts = job.counts_of_this_run();
    assert_eq!((counts.total, counts.done), (Some(2), 1));
}

#[test]
fn the_latest_failure_is_the_last_in_time_whichever_job_it_is_of() {
    let (mut progress, now) = started();
    let mut other = job(json!({}));
    other.metadata.uid = Some("other".to_owned());
    other.metadata.name = Some("last".to_owned());
    progress.add(other, IndexSet::new(), now);
    let of_other = |uid: &str| -> PodSight {
        serde_json::from_value(json!({
            "metadata": {"name": uid, "namespace": "default", "uid": uid,
                "labels": {"batch.kubernetes.io/controller-uid": "other"}},
            "spec": {"nodeName": "n"}, "status": {"phase": "Failed"},
        }))
        .expect("it is a Pod")
    };
    progress.observe_pod(&of_other("x"), false, now);
    progress.observe_pod(&pod("a", 3, "n", "Failed"), false, now);
    let (job, failure) = progress.latest_failure().expect("there is one");
    assert_eq!((job.title.as_str(), failure.index), ("work", Some(3)));
}

#[test]
fn containers_that_are_started_again_are_retries() {
    let (mut progress, now) = started();
    let seen = |count: u32| -> PodSight {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "default", "uid": "a",
                "labels": {"batch.kubernetes.io/controller-uid": "u"}},
            "spec": {"nodeName": "n", "restartPolicy": "OnFailure"},
            "status": {"phase": "Running", "containerStatuses": [
                {"name": "main", "restartCount": count, "state": {"running": {}}}]},
        }))
        .expect("it is a Pod")
    };
    for count in [0, 1, 1, 3] {
        progress.observe_pod(&seen(count), false, now);
    }
    assert_eq!(progress.jobs()[0].retries, 3);
}

#[test]
fn what_is_gone_is_not_remembered() {
    let (mut progress, now) = started();
    for number in 0..10 {
        let ended = pod(&number.to_string(), number % 4, "n", "Succeeded");
        progress.observe_pod(&ended, false, now);
        progress.observe_pod(&ended, true, now);
    }
    let job = &progress.jobs()[0];
    assert_eq!(job.over_count, 10);
    assert!(!job.over.contains("0") && !job.over.contains("9") && job.attempts.is_empty());
}

#[test]
fn a_pod_that_does_not_start_is_asked_about_after_a_while_and_until_it_starts() {
    let (mut progress, now) = started();
    let seen = |state: serde_json::Value| -> PodSight {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "default", "uid": "a",
                "labels": {"batch.kubernetes.io/controller-uid": "u"}},
            "spec": {"nodeName": "n"},
            "status": {"phase": "Pending",
                "containerStatuses": [{"name": "main", "state": state}]},
        }))
        .expect("it is a Pod")
    };
    let creating = seen(json!({"waiting": {"reason": "ContainerCreating"}}));
    let patience = Duration::from_secs(1);
    progress.observe_pod(&creating, false, now);
    assert_eq!(progress.stalled(patience, now), []);
    let later = now + patience;
    assert_eq!(progress.stalled(patience, later), [(0, "a".to_owned())]);
    assert!(progress.explain(0, "a", "FailedMount: no map").is_some());
    assert!(progress.explain(0, "a", "FailedMount: no map").is_none(), "it is told once");
    progress.observe_pod(&creating, false, later);
    assert!(progress.jobs()[0].waits().is_some(), "it still does not start");
    progress.observe_pod(&seen(json!({"running": {}})), false, later);
    assert!(progress.jobs()[0].waits().is_none());
    assert_eq!(progress.stalled(patience, later), []);
}

#[test]
fn a_container_that_failed_and_runs_again_is_a_failure_until_its_pod_succeeds() {
    let (mut progress, now) = started();
    let seen = |restarts: u32, phase: &str| -> PodSight {
        let state = match phase {
            "Succeeded" => json!({"terminated": {"exitCode": 0}}),
            _ => json!({"waiting": {"reason": "CrashLoopBackOff"}}),
        };
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "default", "uid": "a",
                "labels": {"batch.kubernetes.io/controller-uid": "u"}},
            "spec": {"nodeName": "n", "restartPolicy": "OnFailure"},
            "status": {"phase": phase, "containerStatuses": [
                {"name": "main", "restartCount": restarts, "state": state,
                    "lastState": {"terminated": {"exitCode": 4, "reason": "Error"}}}]},
        }))
        .expect("it is a Pod")
    };
    for restarts in [0, 0, 1] {
        progress.observe_pod(&seen(restarts, "Running"), false, now);
    }
    let job = &progress.jobs()[0];
    let failures: Vec<&Failure> = job.failures().collect();
    let [failure] = failures[..] else { panic!("{failures:?}") };
    assert_eq!((&*failure.why, failure.times, failure.goes_on), ("exit code 4", 2, true));
    assert_eq!((job.counts().running, job.pods()), (0, (0, 0)), "it waits, and has not failed");
    let changes = progress.observe_pod(&seen(2, "Succeeded"), false, now);
    assert_eq!(changes, []);
    assert_eq!(progress.jobs()[0].failures().count(), 0);
}

#[test]
fn a_run_whose_hook_is_not_over_has_not_failed() {
    let (mut progress, now) = started();
    let seen = |restarts: u32, reason: &str| -> PodSight {
        let ended = json!({"exitCode": 4, "reason": "Error", "containerID": "p://a.main.0"});
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "default", "uid": "a",
                "labels": {"batch.kubernetes.io/controller-uid": "u"}},
            "spec": {"nodeName": "n", "restartPolicy": "OnFailure"},
            "status": {"phase": "Running", "containerStatuses": [{
                "name": "main", "restartCount": restarts,
                "containerID": format!("p://a.main.{restarts}"),
                "state": {"waiting": {"reason": reason}}, "lastState": {"terminated": ended}}]},
        }))
        .expect("it is a Pod")
    };
    progress.observe_pod(&seen(0, "CrashLoopBackOff"), false, now);
    progress.observe_pod(&seen(1, "ContainerCreating"), false, now);
    let failures = progress.jobs()[0].failures();
    let failures: Vec<_> = failures.map(|it| (&*it.why, it.times, it.run)).collect();
    assert_eq!(failures, [("exit code 4", 1, Some(0))]);
}

#[test]
fn a_pod_that_its_node_has_ended_says_why() {
    let pod: PodSight = serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "default", "uid": "a"},
        "status": {"phase": "Failed", "reason": "DeadlineExceeded", "containerStatuses": [
            {"name": "main", "state": {"terminated": {"exitCode": 143, "reason": "Error"}}}]},
    }))
    .expect("it is a Pod");
    assert_eq!(pod.why_failed(), "DeadlineExceeded: exit code 143 (signal 15)");
}

/// A Pod without an index whose container has been run again so often.
fn restarted(uid: &str, phase: &str, restarts: u32) -> PodSight {
    let ended = json!({"terminated": {"exitCode": 3, "reason": "Error"}});
    let state = if phase == "Running" { json!({"running": {}}) } else { ended.clone() };
    serde_json::from_value(json!({
        "metadata": {"name": uid, "namespace": "default", "uid": uid,
            "labels": {"batch.kubernetes.io/controller-uid": "u"}},
        "spec": {"nodeName": "n", "restartPolicy": "OnFailure"},
        "status": {"phase": phase, "containerStatuses": [{"name": "main",
            "restartCount": restarts, "state": state, "lastState": ended}]},
    }))
    .expect("it is a Pod")
}

#[test]
fn a_pod_whose_containers_failed_before_it_did_is_one_failure() {
    let (mut progress, now) = started();
    for pod in [restarted("a", "Running", 1), restarted("a", "Running", 2)] {
        progress.observe_pod(&pod, false, now);
    }
    progress.observe_pod(&restarted("a", "Failed", 2), false, now);
    let failed: Vec<_> = progress.jobs()[0].failures().map(|it| (&*it.pod, it.times)).collect();
    assert_eq!(failed, [("a", 3)]);
}

#[test]
fn a_pod_that_made_good_does_not_hide_another_that_failed() {
    let (mut progress, now) = started();
    progress.observe_pod(&restarted("a", "Failed", 0), false, now);
    progress.observe_pod(&restarted("b", "Running", 1), false, now);
    progress.observe_pod(&restarted("b", "Succeeded", 1), false, now);
    let job = &progress.jobs()[0];
    assert!(job.has_failures());
    assert_eq!(job.failures().map(|it| &*it.pod).collect::<Vec<_>>(), ["a"]);
}

/// The same Pod as one that was ended from outside.
fn interrupted(uid: &str, index: u32) -> PodSight {
    let mut pod = json!({
        "metadata": {"name": format!("work-{index}-{uid}"), "namespace": "default", "uid": uid,
            "labels": {"batch.kubernetes.io/controller-uid": "u"},
            "annotations": {"batch.kubernetes.io/job-completion-index": index.to_string()}},
        "spec": {"nodeName": "n"},
    });
    pod["status"] = json!({"phase": "Failed",
        "conditions": [{"type": "DisruptionTarget", "status": "True"}],
        "containerStatuses": [{"name": "main",
            "state": {"terminated": {"exitCode": 137, "reason": "Error"}}}]});
    serde_json::from_value(pod).expect("it is a Pod")
}

#[test]
fn interruptions_are_counted_apart_from_failures_and_do_not_hide_them() {
    let (mut progress, now) = started();
    let pods = [
        interrupted("a", 0),
        interrupted("b", 0),
        interrupted("c", 1),
        pod("d", 1, "n", "Failed"),
        pod("e", 1, "n", "Failed"),
        interrupted("f", 1),
    ];
    for pod in &pods {
        progress.observe_pod(pod, false, now);
    }
    let told: Vec<_> = progress.jobs()[0]
        .failures()
        .map(|it| format!("{} {}{}: {}", it.what(), it.happened(), it.tally(), it.told()))
        .collect();
    let expected = [
        "index 0 was interrupted, 2 times: exit code 137 (signal 9)",
        "index 1 failed, 2 times (and was interrupted 2 times): exit code 1",
    ];
    assert_eq!(told, expected);
}

#[test]
fn the_failure_by_which_a_job_has_ended_is_told_first() {
    let (mut progress, now) = started();
    for (uid, index) in [("a", 0), ("b", 1), ("c", 2)] {
        progress.observe_pod(&pod(uid, index, "n", "Failed"), false, now);
    }
    let first = |progress: &Progress| -> Vec<_> {
        progress.jobs()[0].told_failures().map(|it| it.index).collect()
    };
    assert_eq!(first(&progress), [Some(0), Some(1), Some(2)]);
    let message = "Container main for pod default/work-2-c failed with exit code 1 matching FailJob \
        rule at index 0";
    let failed = json!({"conditions": [{"type": "Failed", "status": "True",
        "reason": "PodFailurePolicy", "message": message}]});
    progress.observe_job(job(failed), false, now);
    assert_eq!(first(&progress), [Some(2), Some(0), Some(1)]);
}
