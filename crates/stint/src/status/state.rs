//! How far a Job is by what it says of itself, without a look at its Pods. Values in, values out.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};
use stint_api::index_set::IndexSet;

use crate::color::Style;
use crate::progress::completions;
use crate::words::{Counted, Counts};

/// Where a Job is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Complete,
    Failed,
    /// It is being removed.
    Deleting,
    /// It has failed, and its Pods are being ended.
    Failing,
    /// It has succeeded, and its Pods are being ended.
    Completing,
    Suspended,
    Running,
    /// No Pod of it runs: it was not begun, or its Pods wait.
    Waiting,
}

impl State {
    /// That of a Job.
    pub(crate) fn of(job: &Job) -> Self {
        let has = |kind| condition(job, kind).is_some();
        let spec = job.spec.as_ref();
        if has("Complete") {
            State::Complete
        } else if has("Failed") {
            State::Failed
        } else if job.metadata.deletion_timestamp.is_some() {
            State::Deleting
        } else if has("FailureTarget") {
            State::Failing
        } else if has("SuccessCriteriaMet") {
            State::Completing
        } else if has("Suspended") || spec.and_then(|spec| spec.suspend) == Some(true) {
            State::Suspended
        } else if running(job) > 0 {
            State::Running
        } else {
            State::Waiting
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            State::Complete => "Complete",
            State::Failed => "Failed",
            State::Deleting => "Deleting",
            State::Failing => "Failing",
            State::Completing => "Completing",
            State::Suspended => "Suspended",
            State::Running => "Running",
            State::Waiting => "Waiting",
        }
    }

    pub(crate) fn style(self) -> Style {
        match self {
            State::Failed | State::Failing => Style::Error,
            State::Suspended | State::Waiting | State::Deleting => Style::Warning,
            State::Complete | State::Completing => Style::Frame,
            State::Running => Style::Message,
        }
    }

    /// Whether it is the last.
    pub(crate) fn is_end(self) -> bool {
        matches!(self, State::Complete | State::Failed)
    }
}

/// The Job as it is where nobody runs its cluster: its status says what was so when that was left.
pub(crate) fn at_rest(mut job: Job) -> Job {
    if let Some(status) = job.status.as_mut() {
        status.ready = Some(0);
    }
    job
}

/// The reason that is worth a word beside the state.
pub(crate) fn reason(job: &Job) -> Option<&str> {
    let kind = match State::of(job) {
        State::Failed => "Failed",
        State::Failing => "FailureTarget",
        // That all was completed is what the word says.
        State::Complete if condition(job, "SuccessCriteriaMet").is_none() => return None,
        State::Complete | State::Completing => "SuccessCriteriaMet",
        State::Deleting | State::Suspended | State::Running | State::Waiting => return None,
    };
    let reason = condition(job, kind)?.reason.as_deref();
    reason.filter(|reason| !matches!(*reason, "" | "CompletionsReached"))
}

/// What there is to count.
pub(crate) fn counts(job: &Job) -> Counts {
    let spec = job.spec.as_ref();
    let status = job.status.as_ref();
    let total = spec.and_then(|spec| spec.completions).map(|_| u64::from(completions(job)));
    let done = count(status.and_then(|status| status.succeeded));
    let by_index = spec.is_some_and(|spec| spec.backoff_limit_per_index.is_some());
    let counted = if by_index { Counted::Indexes } else { Counted::Pods };
    let failed = match counted {
        Counted::Indexes => {
            let text = status.and_then(|status| status.failed_indexes.as_deref());
            IndexSet::parse_lenient(text.unwrap_or(""), completions(job)).count()
        }
        Counted::Pods => count(status.and_then(|status| status.failed)),
    };
    if State::of(job).is_end() {
        return Counts { total, done, failed, counted, running: 0, waiting: None };
    }
    let running = running(job);
    let given_up = if by_index { failed } else { 0 };
    let waiting = match total {
        Some(total) => total.saturating_sub(done + running + given_up),
        None => count(status.and_then(|status| status.active)).saturating_sub(running),
    };
    Counts { total, done, failed, counted, running, waiting: Some(waiting) }
}

/// How long it took, or has taken so far.
pub(crate) fn duration(job: &Job, now: Timestamp) -> Option<SignedDuration> {
    let status = job.status.as_ref()?;
    let begun = status.start_time.as_ref()?.0;
    let failed = || condition(job, "Failed")?.last_transition_time.as_ref().map(|time| time.0);
    let ended = status.completion_time.as_ref().map(|time| time.0).or_else(failed);
    Some(ended.unwrap_or(now).duration_since(begun))
}

/// How long it has been there.
pub(crate) fn age(job: &Job, now: Timestamp) -> Option<SignedDuration> {
    job.metadata.creation_timestamp.as_ref().map(|time| now.duration_since(time.0))
}

/// A condition that holds.
fn condition<'j>(job: &'j Job, kind: &str) -> Option<&'j JobCondition> {
    let conditions = job.status.as_ref()?.conditions.as_deref()?;
    conditions.iter().find(|it| it.type_ == kind && it.status == "True")
}

/// The Pods that run. Those who do not say how many are ready say how many are there.
fn running(job: &Job) -> u64 {
    let of = |status: &JobStatus| status.ready.or(status.active);
    count(job.status.as_ref().and_then(of))
}

fn count(count: Option<i32>) -> u64 {
    u64::try_from(count.unwrap_or(0)).unwrap_or(0)
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

    fn with(kind: &str, reason: &str) -> Value {
        json!({"conditions": [{"type": kind, "status": "True", "reason": reason}]})
    }

    #[test]
    fn every_state_has_its_word_and_the_reason_that_matters() {
        let rows = [
            (json!({}), json!({}), "Waiting", None),
            (json!({}), json!({"active": 2, "ready": 0}), "Waiting", None),
            (json!({}), json!({"active": 2, "ready": 1}), "Running", None),
            (json!({}), json!({"active": 2}), "Running", None),
            (json!({"suspend": true}), json!({}), "Suspended", None),
            (json!({}), with("Suspended", "JobSuspended"), "Suspended", None),
            (json!({}), with("Complete", "CompletionsReached"), "Complete", None),
            (json!({}), with("Failed", "FailedIndexes"), "Failed", Some("FailedIndexes")),
            (
                json!({}),
                with("FailureTarget", "DeadlineExceeded"),
                "Failing",
                Some("DeadlineExceeded"),
            ),
            (
                json!({}),
                with("SuccessCriteriaMet", "SuccessPolicy"),
                "Completing",
                Some("SuccessPolicy"),
            ),
            (json!({}), with("SuccessCriteriaMet", "CompletionsReached"), "Completing", None),
        ];
        for (spec, status, word, why) in rows {
            let job = job(spec, status.clone());
            assert_eq!((State::of(&job).word(), reason(&job)), (word, why), "{status}");
        }
        let over = json!({"conditions": [
            {"type": "SuccessCriteriaMet", "status": "True", "reason": "SuccessPolicy"},
            {"type": "Complete", "status": "True", "reason": "SuccessPolicy"}]});
        assert_eq!(reason(&job(json!({}), over)), Some("SuccessPolicy"));
    }

    #[test]
    fn what_waits_is_what_is_neither_done_nor_running_nor_given_up() {
        let plain = job(
            json!({"completions": 8}),
            json!({"succeeded": 3, "failed": 2, "active": 2, "ready": 1}),
        );
        let expected = Counts {
            total: Some(8),
            done: 3,
            failed: 2,
            counted: Counted::Pods,
            running: 1,
            waiting: Some(4),
        };
        assert_eq!(counts(&plain), expected);
        let by_index = job(
            json!({"completions": 8, "backoffLimitPerIndex": 1}),
            json!({"succeeded": 3, "failed": 5, "failedIndexes": "1,2", "active": 2, "ready": 1}),
        );
        let expected = Counts { counted: Counted::Indexes, waiting: Some(2), ..expected };
        assert_eq!(counts(&by_index), expected);
        let left = counts(&at_rest(by_index.clone()));
        assert_eq!((left.running, left.waiting), (0, Some(3)), "nobody runs it");
        let queue = job(json!({"parallelism": 4}), json!({"active": 4, "ready": 1}));
        assert_eq!((counts(&queue).total, counts(&queue).waiting), (None, Some(3)));
    }

    #[test]
    fn time_stops_at_the_end() {
        let now: Timestamp = "2026-01-01T01:00:00Z".parse().expect("a time");
        let running = job(json!({}), json!({"startTime": "2026-01-01T00:59:00Z"}));
        assert_eq!(duration(&running, now), Some(SignedDuration::from_secs(60)));
        let failed = job(
            json!({}),
            json!({"startTime": "2026-01-01T00:00:00Z", "conditions": [
            {"type": "Failed", "status": "True", "lastTransitionTime": "2026-01-01T00:00:05Z"}]}),
        );
        assert_eq!(duration(&failed, now), Some(SignedDuration::from_secs(5)));
        assert_eq!(duration(&job(json!({}), json!({})), now), None);
    }
}
