//! What is true of a Job that was stopped. Whoever counts its Pods has stopped before they ended, so
//! that its status is of the time before.

use k8s_openapi::api::batch::v1::{Job, JobStatus};
use serde_json::{Value, json};

use crate::calls::{Calls, JOB_PODS};
use crate::pod_sight::PodSight;

/// The Job with what is left of its Pods, in the API too. What is `kept` for another run are the Pods
/// that have not begun, which it starts; else nothing is left.
pub(crate) async fn taken(calls: &Calls, job: &Job, is_kept: bool) -> Job {
    let meta = &job.metadata;
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    let name = meta.name.as_deref().unwrap_or_default();
    let uid = meta.uid.as_deref().unwrap_or_default();
    let left = match is_kept {
        true => calls.list(&format!("{JOB_PODS}%3D{uid}")).await.unwrap_or_default(),
        false => Vec::<PodSight>::new(),
    };
    let left = left.iter().filter(|pod| pod.is_under_way()).count();
    let path = format!("/apis/batch/v1/namespaces/{namespace}/jobs/{name}/status");
    let status = job.status.clone().unwrap_or_default();
    let written = match counts(&status, left) {
        Value::Null => None,
        counts => calls.merge(&path, &json!({"status": counts})).await.ok(),
    };
    // If it cannot be written any more, it is true all the same.
    let written = written.and_then(|written| serde_json::from_value(written).ok());
    written.unwrap_or_else(|| Job { status: Some(settled(status, left)), ..job.clone() })
}

/// What is to be written of a status; null if it has not begun.
fn counts(status: &JobStatus, left: usize) -> Value {
    if *status == JobStatus::default() {
        return Value::Null;
    }
    let JobStatus { active, ready, terminating, .. } = settled(status.clone(), left);
    json!({"active": active, "ready": ready, "terminating": terminating})
}

/// Nothing runs any more.
fn settled(status: JobStatus, left: usize) -> JobStatus {
    let none = |count: Option<i32>| count.map(|_| 0);
    JobStatus {
        active: i32::try_from(left).ok().filter(|left| *left > 0),
        ready: none(status.ready),
        terminating: none(status.terminating),
        ..status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_active_that_has_ended() {
        let status = JobStatus {
            active: Some(3),
            ready: Some(2),
            succeeded: Some(1),
            ..JobStatus::default()
        };
        let expected = json!({"active": null, "ready": 0, "terminating": null});
        assert_eq!(counts(&status, 0), expected);
        assert_eq!(counts(&status, 1)["active"], 1);
        assert_eq!(counts(&JobStatus::default(), 1), Value::Null);
        assert_eq!(settled(status, 0).succeeded, Some(1));
    }
}
