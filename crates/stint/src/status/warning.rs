//! What was last said against a Job: why its Pods cannot be made, for one.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use serde::Deserialize;

use crate::calls::Calls;
use crate::job_text;
use crate::pod_sight::PodSight;
use crate::printable::{MAX_MESSAGE_CHARS, printable};
use crate::words;

/// The latest Event about a Job that is a warning. None if Events may not be read: they are
/// no part of the Job.
pub(crate) async fn latest_warning(calls: &Calls, job: &Job) -> Option<Warning> {
    let namespace = job.metadata.namespace.as_deref()?;
    let uid = job.metadata.uid.as_deref()?;
    let path = format!(
        "/api/v1/namespaces/{namespace}/events\
         ?fieldSelector=involvedObject.uid={uid},type=Warning"
    );
    let warnings: Vec<Warning> = calls.list(&path).await.ok()?;
    warnings.into_iter().max_by_key(Warning::time)
}

/// An Event, and of it what is shown.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Warning {
    reason: String,
    message: String,
    last_timestamp: Option<Time>,
    event_time: Option<MicroTime>,
}

impl Warning {
    fn time(&self) -> Option<Timestamp> {
        let said = self.last_timestamp.as_ref().map(|time| time.0);
        said.or_else(|| self.event_time.as_ref().map(|time| time.0))
    }

    /// Whether no Pod has come since: then it may be why none does.
    pub(crate) fn is_current(&self, pods: &[PodSight]) -> bool {
        self.time() >= pods.iter().filter_map(PodSight::created).max()
    }

    /// As a row of a page.
    pub(crate) fn row(&self, now: Timestamp) -> String {
        let Warning { reason, message, .. } = self;
        let age = self.time().map(|time| words::age(now.duration_since(time)));
        let when = age.map(|age| format!("{age} ago: ")).unwrap_or_default();
        let text = format!("{when}{reason}: {message}");
        job_text::row("warning", &printable(&text, MAX_MESSAGE_CHARS))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_warning_is_of_today_until_a_pod_has_come_since() {
        let warning: Warning = serde_json::from_value(json!({
            "reason": "FailedCreate", "message": "exceeded quota",
            "lastTimestamp": "2026-01-01T00:00:10Z"}))
        .expect("it is an Event");
        let pod = |second: u32| -> PodSight {
            let time = format!("2026-01-01T00:00:{second:02}Z");
            serde_json::from_value(json!({"metadata": {"creationTimestamp": time}})).expect("a Pod")
        };
        assert!(warning.is_current(&[]));
        assert!(warning.is_current(&[pod(5), pod(10)]));
        assert!(!warning.is_current(&[pod(5), pod(11)]));
        let undated: Warning = serde_json::from_value(json!({"reason": "X"})).expect("an Event");
        assert!(undated.is_current(&[]) && !undated.is_current(&[pod(1)]));
    }
}
