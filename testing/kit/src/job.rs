//! Jobs of tests: how they are written, and what is read of them.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use crate::stage::NAMESPACE;

/// A Job of one plain container.
pub fn manifest(name: &str, mut spec: Value) -> Job {
    if spec["template"].is_null() {
        spec["template"] = json!({
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]},
        });
    }
    let job = json!({"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec});
    serde_json::from_value(job).expect("the test's own Job is a Job")
}

/// How a Job has ended: `Complete CompletionsReached`.
pub fn end(job: &Job) -> Option<String> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let is_end = |kind: &str| matches!(kind, "Complete" | "Failed");
    let end = conditions.iter().find(|it| is_end(&it.type_) && it.status == "True")?;
    Some(format!("{} {}", end.type_, end.reason.as_deref().unwrap_or("")))
}

/// A Job's counts: active, succeeded, failed.
pub fn counts(job: &Job) -> (i32, i32, i32) {
    let status = job.status.clone().unwrap_or_default();
    (status.active.unwrap_or(0), status.succeeded.unwrap_or(0), status.failed.unwrap_or(0))
}

/// Whether a Pod bears the finalizer: the built-in controller's, ours, or one of ours by another
/// name (`DOMAIN/PATH.job-tracking`).
pub fn is_tracked(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().flatten().any(|name| name.ends_with("job-tracking"))
}
