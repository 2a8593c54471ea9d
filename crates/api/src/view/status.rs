//! How far a Job has come, parsed.

use k8s_openapi::api::batch::v1::{JobCondition, JobStatus};
use k8s_openapi::jiff::Timestamp;

use crate::closed_set::JobConditionType;
use crate::condition;
use crate::index_set::IndexSet;

/// A Job's status. Anyone with the right may have written it, so parsing cannot fail:
/// what makes no sense counts as nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatusView {
    /// Pods that run or will.
    pub active: u32,
    /// Active Pods that are ready.
    pub ready: u32,
    /// Pods that are being deleted and have not finished.
    pub terminating: u32,
    /// Pods, or indexes, that succeeded.
    pub succeeded: u32,
    /// Pods that failed.
    pub failed: u32,
    /// The indexes that succeeded.
    pub completed_indexes: IndexSet,
    /// The indexes that failed; there once the Job counts failures per index.
    pub failed_indexes: Option<IndexSet>,
    /// UIDs of Pods that succeeded and are not in the counter yet.
    pub uncounted_succeeded: Vec<String>,
    /// UIDs of Pods that failed and are not in the counter yet.
    pub uncounted_failed: Vec<String>,
    /// When the Job was started or last resumed.
    pub start_time: Option<Timestamp>,
    /// When it completed.
    pub completion_time: Option<Timestamp>,
    /// Its conditions, as they are: others may have added theirs.
    pub conditions: Vec<JobCondition>,
    /// Whether its lists of indexes stand as they would be written: not spoilt, and with no
    /// index that the Job no longer has.
    pub is_canonical: bool,
}

impl StatusView {
    /// Parses a status; `completions` is there for an Indexed Job only.
    pub fn parse(status: Option<&JobStatus>, completions: Option<u32>) -> Self {
        let Some(status) = status else {
            return Self { is_canonical: true, ..Self::default() };
        };
        let indexes = |text: Option<&str>| match (text, completions) {
            (Some(text), Some(completions)) => IndexSet::parse_lenient(text, completions),
            _ => IndexSet::new(),
        };
        let uncounted = status.uncounted_terminated_pods.as_ref();
        let completed_text = status.completed_indexes.as_deref();
        let failed_text = status.failed_indexes.as_deref();
        let completed_indexes = indexes(completed_text);
        let failed_indexes = failed_text.map(|text| indexes(Some(text)));
        let is_canonical = completed_indexes.to_string() == completed_text.unwrap_or_default()
            && failed_indexes.as_ref().map(ToString::to_string).as_deref() == failed_text;
        Self {
            active: at_least_zero(status.active),
            ready: at_least_zero(status.ready),
            terminating: at_least_zero(status.terminating),
            succeeded: at_least_zero(status.succeeded),
            failed: at_least_zero(status.failed),
            completed_indexes,
            failed_indexes,
            uncounted_succeeded: uncounted
                .and_then(|pods| pods.succeeded.clone())
                .unwrap_or_default(),
            uncounted_failed: uncounted.and_then(|pods| pods.failed.clone()).unwrap_or_default(),
            start_time: status.start_time.as_ref().map(|time| time.0),
            completion_time: status.completion_time.as_ref().map(|time| time.0),
            conditions: status.conditions.clone().unwrap_or_default(),
            is_canonical,
        }
    }

    /// Whether a condition of this type is true.
    pub fn is_true(&self, kind: JobConditionType) -> bool {
        condition::is_true(&self.conditions, kind)
    }

    /// Whether the Job has completed or failed.
    pub fn is_finished(&self) -> bool {
        condition::is_finished(&self.conditions)
    }
}

fn at_least_zero(count: Option<i32>) -> u32 {
    count.and_then(|count| u32::try_from(count).ok()).unwrap_or(0)
}
