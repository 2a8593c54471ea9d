//! The plays, one by one, in fair weather.

use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use serde_json::json;

use stint_kit::job::{counts, end};
use stint_kit::play::{driver, play, plays};
use stint_kit::{Driver, Fate, Stage};

use crate::cluster::{Cluster, check_all};

/// A test for each play.
macro_rules! plays {
    ($($test:ident: $name:literal),* $(,)?) => {
        const PLAYED: &[&str] = &[$($name),*];

        $(#[tokio::test(start_paused = true)]
        async fn $test() {
            let cluster = Cluster::new(driver()).await;
            cluster.start();
            play($name).give(&cluster).await;
            check_all(&cluster).await;
        })*
    };
}

plays! {
    an_indexed_job_completes: "indexed",
    a_job_with_completions_completes: "counted",
    pods_that_end_at_once_are_counted: "instant",
    a_work_queue_completes_when_its_pods_have: "queue",
    failures_are_retried_after_a_backoff: "retried",
    more_failures_than_the_limit_fail_the_job: "limited",
    a_deadline_fails_the_job_and_its_pods: "late",
    an_index_fails_alone: "perindex",
    too_many_failed_indexes_fail_the_job: "maxfailed",
    both_limits_hold: "bothlimits",
    restarts_of_containers_count_against_the_limit: "restarted",
    a_job_without_completions_to_reach_is_complete: "nothing",
    a_success_policy_ends_the_job_early: "enough",
    a_leader_is_enough: "leader",
    a_success_policy_that_needs_everyone: "everyone",
    a_success_policy_is_met_despite_failures: "despite",
    a_failure_policy_fails_the_job: "failjob",
    an_ignored_failure_does_not_count: "ignored",
    a_failure_policy_fails_an_index: "failindex",
    a_suspended_job_has_no_pods: "suspended",
    a_job_is_scaled: "scaled",
    an_elastic_job_is_shrunk: "elastic",
    a_deleted_job_strands_no_finalizer: "deleted",
    evicted_pods_are_replaced_at_once: "evicted",
    pods_are_replaced_once_they_have_failed: "waiting",
    a_pod_that_is_no_longer_selected_is_released: "released",
    the_example_of_the_blog_ends_as_it_says: "blog",
    indexes_with_retries_of_their_own_all_complete: "persistent",
    with_a_failure_policy_only_failed_pods_are_replaced: "patient",
    pods_know_their_index: "numbered",
    indexes_that_fail_are_tried_again: "unlucky",
    the_parallelism_of_an_indexed_job_is_changed: "resized",
    an_elastic_job_is_grown: "grown",
    pods_that_terminate_are_told_of: "terminating",
    a_job_that_leaves_orphans_keeps_none_of_them: "orphaned",
    a_job_is_deleted_in_the_foreground: "foreground",
    an_orphan_that_was_there_before_is_adopted: "adopted",
}

#[test]
fn every_play_is_played() {
    let names: Vec<&str> = plays().iter().map(|play| play.name).collect();
    let mut played = PLAYED.to_vec();
    let mut all = names;
    played.sort_unstable();
    all.sort_unstable();
    assert_eq!(played, all);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_indexes_complete() {
    let cluster = Cluster::new(Driver::new(|_| Fate::succeeds())).await;
    let metrics = cluster.start();
    cluster
        .create("a", json!({"completionMode": "Indexed", "completions": 100, "parallelism": 10}))
        .await;
    let job = cluster.finish("a").await;
    assert_eq!(end(&job).as_deref(), Some("Complete CompletionsReached"));
    assert_eq!(counts(&job), (0, 100, 0));
    assert_eq!(job.status.expect("a status").completed_indexes.as_deref(), Some("0-99"));
    assert_eq!(cluster.history.of("a").len(), 100);
    check_all(&cluster).await;
    let text = metrics.text();
    for line in [
        r#"jobs_finished_total{completion_mode="Indexed",result="succeeded",reason="CompletionsReached"} 1"#,
        r#"job_finished_indexes_total{status="succeeded",backoffLimit="global"} 100"#,
        r#"job_pods_creation_total{reason="new",status="succeeded"} 100"#,
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

/// Whether Pods came as long after the ones before as they should: times of Pods are in whole
/// seconds, and statuses come when they come.
fn assert_delays(delays: &[Duration], expected: &[u64]) {
    let is_so = |(delay, expected): (&Duration, &u64)| {
        (expected.saturating_sub(1)..=expected + 2).contains(&delay.as_secs())
    };
    let is_so = delays.len() == expected.len() && delays.iter().zip(expected).all(is_so);
    assert!(is_so, "{delays:?} instead of {expected:?}");
}

#[tokio::test(start_paused = true)]
async fn a_job_waits_twice_as_long_after_each_failure() {
    let cluster = Cluster::new(Driver::new(|_| Fate::fails(1).after(2))).await;
    cluster.start();
    cluster.create("a", json!({"backoffLimit": 4})).await;
    let job = cluster.finish("a").await;
    assert_eq!(end(&job).as_deref(), Some("Failed BackoffLimitExceeded"));
    assert_delays(&cluster.history.delays("a", None), &[10, 20, 40, 80]);
    check_all(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn an_index_waits_twice_as_long_after_each_of_its_failures() {
    let fates = |who: &stint_kit::Who| match (who.index, who.attempt) {
        (Some(0), 0..4) | (Some(1), 0) => Fate::fails(1).after(2),
        (Some(2), 0) => Fate::fails(1).after(100),
        _ => Fate::succeeds(),
    };
    let cluster = Cluster::new(Driver::new(fates)).await;
    cluster.start();
    let spec = json!({
        "completionMode": "Indexed", "completions": 3, "parallelism": 3, "backoffLimitPerIndex": 4,
    });
    cluster.create("a", spec).await;
    let job = cluster.finish("a").await;
    assert_eq!(counts(&job), (0, 3, 6));
    // The first index's failures are nothing to the others.
    assert_delays(&cluster.history.delays("a", Some(0)), &[10, 20, 40, 80]);
    assert_delays(&cluster.history.delays("a", Some(1)), &[10]);
    assert_delays(&cluster.history.delays("a", Some(2)), &[10]);
    check_all(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn an_orphan_is_adopted_and_counted() {
    let cluster = Cluster::new(Driver::new(|_| Fate::succeeds().after(5))).await;
    let labels = json!({"app": "x"});
    let template = json!({
        "metadata": {"labels": labels},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]},
    });
    let mut pod = template.clone();
    pod["metadata"]["name"] = "orphan".into();
    pod["metadata"]["labels"]["job-name"] = "a".into();
    let pod = serde_json::from_value(pod).expect("a Pod");
    cluster.start();
    cluster.pods().create(&Default::default(), &pod).await.expect("a Pod");
    let spec = json!({
        "completions": 1, "manualSelector": true, "selector": {"matchLabels": labels},
        "template": template,
    });
    cluster.create("a", spec).await;
    let job = cluster.finish("a").await;
    assert_eq!(counts(&job), (0, 1, 0));
    let orphan = cluster.pods().get("orphan").await.expect("it stays");
    let owners = orphan.metadata.owner_references.expect("an owner");
    assert_eq!(Some(owners[0].uid.clone()), job.metadata.uid);
    check_all(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_job_of_another_controller_is_left_alone() {
    let cluster = Cluster::new(driver()).await;
    let metrics = cluster.start();
    cluster.create("theirs", json!({"managedBy": "example.com/other"})).await;
    cluster.create("ours", json!({})).await;
    cluster.finish("ours").await;
    assert!(cluster.history.of("theirs").is_empty());
    assert!(cluster.job("theirs").await.status.is_none_or(|status| status.start_time.is_none()));
    let line = r#"jobs_by_external_controller_total{controller_name="example.com/other"} 1"#;
    assert!(metrics.text().contains(line), "{}", metrics.text());
}

#[tokio::test(start_paused = true)]
async fn events_tell_what_happened() {
    let cluster = Cluster::new(driver()).await;
    cluster.start();
    play("limited").give(&cluster).await;
    play("indexed").give(&cluster).await;
    let expected = [
        ("indexed", ["Normal Completed", "Normal SuccessfulCreate"]),
        ("limited", ["Normal SuccessfulCreate", "Warning BackoffLimitExceeded"]),
    ];
    for (job, expected) in expected {
        // They are told after the fact.
        cluster.until("tells", async |it| reasons(it, job).await == expected).await;
    }
}

/// What was told of a Job, each once.
async fn reasons(stage: &Stage, job: &str) -> Vec<String> {
    let line = |event: &Event| {
        let (kind, reason) = (event.type_.as_deref(), event.reason.as_deref());
        format!("{} {}", kind.unwrap_or("?"), reason.unwrap_or("?"))
    };
    let mut reasons: Vec<String> = stage.events_of(job).await.iter().map(line).collect();
    reasons.sort_unstable();
    reasons.dedup();
    reasons
}
