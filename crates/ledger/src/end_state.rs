//! Whether the Job has come to its end, and which.
//!
//! The order in which ends are looked for is the contract (job-semantics section 5.2),
//! and stands in [`decide`], once.

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use stint_api::closed_set::{JobConditionType, JobRestartPolicy};
use stint_api::names::{message, reason};
use stint_api::view::{Completion, JobView};

/// How a Job ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndState {
    /// Whether it is a success.
    pub is_success: bool,
    /// The reason of its conditions.
    pub reason: String,
    /// The message of its conditions.
    pub message: String,
}

/// What the end is judged by.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The Job.
    pub job: &'a JobView,
    /// Pods that failed, counted or not, those ignored left out.
    pub failed: u64,
    /// Pods that succeeded, or indexes.
    pub succeeded: u64,
    /// Indexes that failed.
    pub failed_indexes: u64,
    /// Pods that run or will, those being created included.
    pub active: usize,
    /// Restarts in pending and running Pods.
    pub restarts: u64,
    /// What a FailJob rule said.
    pub fail_job: Option<&'a str>,
    /// The success rule that is met.
    pub success_rule: Option<usize>,
    /// Whether failures are counted per index.
    pub per_index: bool,
}

/// The end of a Job, if it has come.
pub fn decide(evidence: &Evidence<'_>, now: Timestamp) -> Option<EndState> {
    let steps: [&dyn Fn() -> Option<EndState>; 9] = [
        &|| standing(evidence.job, JobConditionType::SuccessCriteriaMet),
        &|| standing(evidence.job, JobConditionType::FailureTarget),
        &|| by_failure_policy(evidence),
        &|| by_backoff_limit(evidence),
        &|| by_deadline(evidence, now),
        &|| by_max_failed_indexes(evidence),
        &|| by_failed_indexes(evidence),
        &|| by_success_policy(evidence),
        &|| by_completions(evidence),
    ];
    steps.iter().find_map(|step| step())
}

/// When the deadline passes, if there is one and the Job runs.
pub fn deadline(job: &JobView) -> Option<Timestamp> {
    let seconds = i64::try_from(job.active_deadline_seconds?).unwrap_or(i64::MAX);
    let start = job.status.start_time.filter(|_| !job.suspended)?;
    Some(start.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX))
}

/// What an earlier look has found stands.
fn standing(job: &JobView, kind: JobConditionType) -> Option<EndState> {
    if !job.status.is_true(kind) {
        return None;
    }
    let condition = stint_api::condition::find(&job.status.conditions, kind)?;
    Some(EndState {
        is_success: kind == JobConditionType::SuccessCriteriaMet,
        reason: condition.reason.clone().unwrap_or_default(),
        message: condition.message.clone().unwrap_or_default(),
    })
}

fn by_failure_policy(evidence: &Evidence<'_>) -> Option<EndState> {
    evidence.fail_job.map(|message| failure(reason::POD_FAILURE_POLICY, message))
}

fn by_backoff_limit(evidence: &Evidence<'_>) -> Option<EndState> {
    let limit = u64::from(evidence.job.backoff_limit);
    let too_many_restarts = match evidence.job.restart_policy {
        JobRestartPolicy::Never => false,
        JobRestartPolicy::OnFailure if limit == 0 => evidence.restarts > 0,
        JobRestartPolicy::OnFailure => evidence.restarts >= limit,
    };
    (evidence.failed > limit || too_many_restarts)
        .then(|| failure(reason::BACKOFF_LIMIT_EXCEEDED, message::BACKOFF_LIMIT_EXCEEDED))
}

fn by_deadline(evidence: &Evidence<'_>, now: Timestamp) -> Option<EndState> {
    deadline(evidence.job)
        .filter(|&deadline| now >= deadline)
        .map(|_| failure(reason::DEADLINE_EXCEEDED, message::DEADLINE_EXCEEDED))
}

fn by_max_failed_indexes(evidence: &Evidence<'_>) -> Option<EndState> {
    let Completion::Indexed(indexed) = &evidence.job.completion else {
        return None;
    };
    let max = indexed.backoff_per_index?.max_failed_indexes?;
    (evidence.per_index && evidence.failed_indexes > u64::from(max))
        .then(|| failure(reason::MAX_FAILED_INDEXES_EXCEEDED, message::MAX_FAILED_INDEXES_EXCEEDED))
}

fn by_failed_indexes(evidence: &Evidence<'_>) -> Option<EndState> {
    let Completion::Indexed(indexed) = &evidence.job.completion else {
        return None;
    };
    let finished = evidence.failed_indexes + evidence.succeeded;
    let all_finished = finished >= u64::from(indexed.completions);
    (evidence.per_index && evidence.failed_indexes > 0 && all_finished)
        .then(|| failure(reason::FAILED_INDEXES, message::FAILED_INDEXES))
}

fn by_success_policy(evidence: &Evidence<'_>) -> Option<EndState> {
    evidence
        .success_rule
        .map(|rule| success(reason::SUCCESS_POLICY, &message::success_policy(rule)))
}

fn by_completions(evidence: &Evidence<'_>) -> Option<EndState> {
    let is_reached = match &evidence.job.completion {
        Completion::WorkQueue => evidence.succeeded > 0,
        Completion::Count(completions) => evidence.succeeded >= u64::from(*completions),
        Completion::Indexed(indexed) => evidence.succeeded >= u64::from(indexed.completions),
    };
    (is_reached && evidence.active == 0)
        .then(|| success(reason::COMPLETIONS_REACHED, message::COMPLETIONS_REACHED))
}

fn failure(reason: &str, message: &str) -> EndState {
    EndState { is_success: false, reason: reason.to_owned(), message: message.to_owned() }
}

fn success(reason: &str, message: &str) -> EndState {
    EndState { is_success: true, ..failure(reason, message) }
}
