//! Controllers that are stopped, and started again with other features, in fair weather and in
//! bad.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use serde_json::json;
use stint_api::feature_gates::{FeatureGates, Gate};

use stint_kit::job::{counts, end};
use stint_kit::{Driver, Fate, Who};

use crate::cluster::{Cluster, check_all};
use crate::faults::{Sky, in_bad_weather};

/// Long enough for everything in bad weather to have come to pass.
const LONG: u64 = 7_200;

/// Puts a controller with or without a feature in place of the one that runs.
fn restart(cluster: &Cluster, sky: &Sky, gate: Gate, is_on: bool) {
    let mut config = cluster.config();
    config.gates = FeatureGates::default().with(gate, is_on);
    sky.start(cluster, config);
}

/// JobSuccessPolicy on, off, and on again.
async fn success_policy(sky: &Sky) {
    let fates = |who: &Who| match who.index {
        Some(0) => Fate::succeeds().after(LONG),
        _ => Fate::runs(),
    };
    let cluster = Cluster::new(Driver::new(fates)).await;
    restart(&cluster, sky, Gate::JobSuccessPolicy, true);
    let spec = json!({
        "completionMode": "Indexed", "completions": 3, "parallelism": 3,
        "successPolicy": {"rules": [{"succeededIndexes": "0"}]},
    });
    cluster.create("a", spec).await;
    cluster.wait("a", "runs", |job| counts(job) == (3, 0, 0)).await;
    restart(&cluster, sky, Gate::JobSuccessPolicy, false);
    cluster.wait("a", "has a success", |job| counts(job) == (2, 1, 0)).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(counts(&cluster.job("a").await), (2, 1, 0), "the policy was evaluated");
    restart(&cluster, sky, Gate::JobSuccessPolicy, true);
    let job = cluster.finish("a").await;
    assert_eq!(end(&job).as_deref(), Some("Complete SuccessPolicy"));
    assert_eq!(counts(&job), (0, 1, 0));
    check_all(&cluster).await;
}

/// JobBackoffLimitPerIndex on, off, and on again.
async fn limits_on_again(sky: &Sky) {
    let fates = |who: &Who| match (who.index, who.attempt) {
        (Some(0), 0) => Fate::fails(1).after(5),
        (Some(0), _) => Fate::fails(1).after(LONG),
        _ => Fate::runs(),
    };
    let cluster = Cluster::new(Driver::new(fates)).await;
    restart(&cluster, sky, Gate::JobBackoffLimitPerIndex, true);
    let spec = json!({
        "completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimitPerIndex": 0,
    });
    cluster.create("a", spec).await;
    let failed = |job: &Job| job.status.clone().unwrap_or_default().failed_indexes;
    let is_failed = |job: &Job| failed(job).as_deref() == Some("0");
    cluster.wait("a", "has a failed index", |job| is_failed(job) && counts(job) == (1, 0, 1)).await;
    restart(&cluster, sky, Gate::JobBackoffLimitPerIndex, false);
    let is_tried = |job: &Job| failed(job).is_none() && counts(job).0 == 2;
    cluster.wait("a", "tries it again", is_tried).await;
    assert_eq!(cluster.history.of("a").len(), 3);
    restart(&cluster, sky, Gate::JobBackoffLimitPerIndex, true);
    cluster.wait("a", "has a failed index again", is_failed).await;
    assert_eq!(counts(&cluster.job("a").await).0, 1);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(cluster.history.of("a").len(), 3, "a failed index was tried again");
}

/// With JobBackoffLimitPerIndex off the limit of the whole Job is all there is, and FailIndex
/// matches nothing.
async fn limits_off(sky: &Sky) {
    let fates = |who: &Who| match who.index {
        Some(0) => Fate::fails(42).after(5),
        _ => Fate::runs(),
    };
    let fail_index = json!({"rules": [
        {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}},
    ]});
    for (is_on, ends) in
        [(true, "Failed MaxFailedIndexesExceeded"), (false, "Failed BackoffLimitExceeded")]
    {
        for policy in [None, Some(&fail_index)] {
            let cluster = Cluster::new(Driver::new(fates)).await;
            restart(&cluster, sky, Gate::JobBackoffLimitPerIndex, is_on);
            let mut spec = json!({
                "completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimit": 2,
                "backoffLimitPerIndex": if policy.is_some() { 1 } else { 0 },
                "maxFailedIndexes": 0,
            });
            if let Some(policy) = policy {
                spec["podFailurePolicy"] = policy.clone();
            }
            cluster.create("a", spec).await;
            let job = cluster.finish("a").await;
            assert_eq!(end(&job).as_deref(), Some(ends), "{policy:?}");
            let tries = cluster.history.of("a").iter().filter(|it| it.index == Some(0)).count();
            assert_eq!(tries, if is_on { 1 } else { 3 }, "{policy:?}");
            check_all(&cluster).await;
        }
    }
}

/// Both policies are met while no controller looks (KEP-3998): failing comes first.
async fn both_policies(sky: &Sky) {
    let fates = |who: &Who| match who.index {
        Some(0) => Fate::succeeds().after(LONG),
        Some(1) => Fate::fails(42).after(LONG),
        _ => Fate::runs(),
    };
    let cluster = Cluster::new(Driver::new(fates)).await;
    sky.start(&cluster, cluster.config());
    let spec = json!({
        "completionMode": "Indexed", "completions": 3, "parallelism": 3,
        "successPolicy": {"rules": [{"succeededIndexes": "0"}]},
        "podFailurePolicy": {"rules": [
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
        ]},
    });
    cluster.create("a", spec).await;
    cluster.wait("a", "runs", |job| counts(job).0 == 3).await;
    cluster.kill();
    cluster
        .until("has ended Pods", async |it| {
            it.history.of("a").iter().filter(|life| life.ended.is_some()).count() == 2
        })
        .await;
    sky.start(&cluster, cluster.config());
    let job = cluster.finish("a").await;
    assert_eq!(end(&job).as_deref(), Some("Failed PodFailurePolicy"));
    check_all(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_success_policy_that_is_turned_on_again_is_evaluated_again() {
    success_policy(&Sky::fair()).await;
}

#[tokio::test(start_paused = true)]
async fn limits_of_indexes_that_are_turned_on_again_hold_again() {
    limits_on_again(&Sky::fair()).await;
}

#[tokio::test(start_paused = true)]
async fn limits_of_indexes_are_passed_over_without_their_feature() {
    limits_off(&Sky::fair()).await;
}

#[tokio::test(start_paused = true)]
async fn a_job_fails_if_it_meets_a_success_policy_and_fails_at_once() {
    both_policies(&Sky::fair()).await;
}

#[test]
fn faults_of_all_of_them() {
    in_bad_weather(async |sky| {
        success_policy(&sky).await;
        limits_on_again(&sky).await;
        limits_off(&sky).await;
        both_policies(&sky).await;
    });
}
