//! What users and others do to the Jobs and Pods of the plays.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, PropagationPolicy};
use serde_json::json;

use crate::job::{counts, end};
use crate::stage::Stage;

/// Each Pod knows its index: by an annotation, a label, its environment and its hostname.
pub(crate) async fn read_numbers(stage: &Stage, name: &str) {
    let key = "batch.kubernetes.io/job-completion-index";
    stage.until_of(name, "has three Pods", async |it| it.pods_of(name).await.len() == 3).await;
    let mut indexes = Vec::new();
    for pod in stage.pods_of(name).await {
        let (meta, spec) = (pod.metadata, pod.spec.expect("a spec"));
        let index = meta.annotations.unwrap_or_default().get(key).cloned().expect("an annotation");
        assert_eq!(meta.labels.unwrap_or_default().get(key), Some(&index));
        assert_eq!(spec.hostname.as_deref(), Some(&*format!("{name}-{index}")));
        let pod_name = meta.name.expect("a name");
        assert!(pod_name.starts_with(&format!("{name}-{index}-")), "{pod_name}");
        let env = spec.containers[0].env.clone().unwrap_or_default();
        let env = env.iter().find(|it| it.name == "JOB_COMPLETION_INDEX").expect("a variable");
        let source = env.value_from.as_ref().and_then(|from| from.field_ref.as_ref());
        let path = source.map(|source| source.field_path.clone()).expect("a field");
        assert_eq!(path, format!("metadata.labels['{key}']"));
        indexes.push(index);
    }
    indexes.sort_unstable();
    assert_eq!(indexes, ["0", "1", "2"]);
}

pub(crate) async fn grow(stage: &Stage, name: &str) {
    stage.wait(name, "has a success", |job| counts(job) == (1, 1, 0)).await;
    stage.patch(name, json!({"spec": {"parallelism": 4, "completions": 4}})).await;
}

/// Pods that somebody deletes are terminating until they have ended.
pub(crate) async fn evict_and_count(stage: &Stage, name: &str) {
    evict(stage, name).await;
    let terminating = |job: &Job| job.status.as_ref().and_then(|status| status.terminating);
    stage.wait(name, "has two that terminate", |job| terminating(job) == Some(2)).await;
}

/// The Job goes, and its Pods stay: without an owner, and without what would keep them.
pub(crate) async fn orphan(stage: &Stage, name: &str) {
    stage.wait(name, "runs", |job| counts(job).0 == 3).await;
    be_seen_by_the_collector(stage, name).await;
    let orphan = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Orphan),
        ..DeleteParams::default()
    };
    stage.jobs().delete(name, &orphan).await.expect("it can be deleted");
    stage
        .until_of(name, "goes", async |it| {
            it.jobs().get_opt(name).await.expect("an answer").is_none()
        })
        .await;
    stage
        .until_of(name, "lets its Pods go", async |it| {
            let pods = it.pods_of(name).await;
            let is_free = |pod: &Pod| {
                let meta = &pod.metadata;
                meta.owner_references.as_ref().is_none_or(Vec::is_empty)
                    && meta.finalizers.as_ref().is_none_or(Vec::is_empty)
                    && meta.deletion_timestamp.is_none()
            };
            pods.len() == 3 && pods.iter().all(is_free)
        })
        .await;
}

/// Waits until the garbage collector has seen the Pods that are there. Those of an orphaning Job
/// that it has not seen it takes for dangling later, and deletes them: it follows Pods and Jobs by
/// watches of their own. A Pod of a Job that never was goes when it is seen, and it was created
/// last.
pub async fn be_seen_by_the_collector(stage: &Stage, name: &str) {
    let last = format!("{name}-last");
    let pod = json!({
        "metadata": {"name": last, "ownerReferences": [{
            "apiVersion": "batch/v1", "kind": "Job", "name": "never-was", "uid": last,
        }]},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]},
    });
    let pod = serde_json::from_value(pod).expect("a Pod");
    stage.pods().create(&Default::default(), &pod).await.expect("it can be made");
    stage
        .until_of(name, "is seen by the garbage collector", async |it| {
            it.pods().get_opt(&last).await.expect("an answer").is_none()
        })
        .await;
}

/// The Job goes last.
pub(crate) async fn delete_in_foreground(stage: &Stage, name: &str) {
    stage.wait(name, "runs", |job| counts(job).0 == 3).await;
    let params = DeleteParams::foreground();
    stage.jobs().delete(name, &params).await.expect("it can be deleted");
    stage
        .until_of(name, "goes", async |it| {
            it.jobs().get_opt(name).await.expect("an answer").is_none()
        })
        .await;
    stage.until_of(name, "is all gone", async |it| it.pods_of(name).await.is_empty()).await;
}

/// A Pod that a Job to come will select.
pub(crate) async fn abandon(stage: &Stage, name: &str) {
    let pod = json!({
        "metadata": {"name": format!("{name}-orphan"), "labels": {"app": name, "job-name": name}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]},
    });
    let pod = serde_json::from_value(pod).expect("a Pod");
    stage.pods().create(&Default::default(), &pod).await.expect("it can be made");
}

pub(crate) async fn see_adoption(stage: &Stage, name: &str) {
    stage
        .until_of(name, "adopts the orphan", async |it| {
            let pod = it.pods().get_opt(&format!("{name}-orphan")).await.expect("an answer");
            // One that came beside a Pod which the Job had made already is one too many, and one
            // that is not seen in time is not needed.
            let has_ended = end(&it.job(name).await).is_some();
            has_ended
                || pod.is_none_or(|pod| {
                    pod.metadata.owner_references.is_some_and(|all| !all.is_empty())
                })
        })
        .await;
}

/// A Job that begins suspended, is resumed, suspended again, and resumed.
pub(crate) async fn suspend(stage: &Stage, name: &str) {
    let is_held = |job: &Job, has_start_time: bool| {
        let status = job.status.clone().unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let is_held = conditions.iter().any(|it| it.type_ == "Suspended" && it.status == "True");
        is_held && status.active.unwrap_or(0) == 0 && status.start_time.is_some() == has_start_time
    };
    stage.wait(name, "is held", |job| is_held(job, false)).await;
    assert!(stage.history.of(name).is_empty(), "a suspended Job has no Pods");
    stage.driver.hold(name, true);
    stage.patch(name, json!({"spec": {"suspend": false}})).await;
    stage.wait(name, "runs", |job| counts(job).0 == 3).await;
    stage.patch(name, json!({"spec": {"suspend": true}})).await;
    stage.wait(name, "is held again", |job| is_held(job, stage.keeps_start_time)).await;
    stage.try_template(name).await;
    stage.until_of(name, "has no Pods", async |it| it.pods_of(name).await.is_empty()).await;
    stage.driver.hold(name, false);
    stage.patch(name, json!({"spec": {"suspend": false}})).await;
}

pub(crate) async fn scale(stage: &Stage, name: &str) {
    for parallelism in [1, 3, 2] {
        stage.patch(name, json!({"spec": {"parallelism": parallelism}})).await;
        let is_so = |job: &Job| counts(job).0 == parallelism || end(job).is_some();
        stage.wait(name, "is scaled", is_so).await;
    }
}

pub(crate) async fn shrink(stage: &Stage, name: &str) {
    stage.wait(name, "runs", |job| counts(job).0 == 5 || counts(job).1 > 0).await;
    stage.patch(name, json!({"spec": {"parallelism": 3, "completions": 3}})).await;
}

pub(crate) async fn delete_job(stage: &Stage, name: &str) {
    stage.wait(name, "runs", |job| counts(job).0 == 4).await;
    stage.delete(name).await;
    stage.until_of(name, "is all gone", async |it| it.pods_of(name).await.is_empty()).await;
}

/// Somebody deletes the Pods, which take their time to end.
pub(crate) async fn evict(stage: &Stage, name: &str) {
    stage
        .until_of(name, "has two Pods on a node", async |it| {
            let pods = it.pods_of(name).await;
            let is_bound =
                |pod: &&Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
            pods.iter().filter(is_bound).count() == 2
        })
        .await;
    for pod in stage.pods_of(name).await {
        let pod = pod.metadata.name.expect("a name");
        stage.pods().delete(&pod, &DeleteParams::default()).await.expect("it can be deleted");
    }
}

/// As long as a Pod has not ended, nothing takes its place.
pub(crate) async fn evict_and_watch(stage: &Stage, name: &str) {
    evict(stage, name).await;
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(stage.history.of(name).len(), 2, "they were replaced before they had ended");
    }
}

/// A Pod stops being one that its Job selects.
pub(crate) async fn relabel(stage: &Stage, name: &str) {
    stage.wait(name, "runs", |job| counts(job).0 == 1).await;
    let pods = stage.pods_of(name).await;
    let pod = pods[0].metadata.name.as_deref().expect("a name");
    let labels = json!({"metadata": {"labels": {
        "batch.kubernetes.io/controller-uid": "other", "controller-uid": "other",
    }}});
    let patch = Patch::Merge(labels);
    stage.pods().patch(pod, &PatchParams::default(), &patch).await.expect("it can be changed");
    stage
        .until_of(name, "lets go of its Pod", async |it| {
            let pod = it.pods().get(pod).await.expect("it runs on");
            pod.metadata.owner_references.is_none_or(|owners| owners.is_empty())
        })
        .await;
}
