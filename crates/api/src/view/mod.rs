//! A Job as everyone inside sees it: parsed once at the door, no `Option` for a
//! field that has a default, an enum for every closed set of values.
//!
//! The wire types stay at the door: they are what is read and written. A
//! [`JobView`] cannot say that a NonIndexed Job has a success policy, or that an
//! Indexed one has no completions.

mod pod_failure_policy;
mod status;
mod success_policy;
#[cfg(test)]
mod tests;

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::jiff::Timestamp;

use crate::closed_set::{CompletionMode, JobRestartPolicy, PodReplacementPolicy};
use crate::names::managed_by;

pub use pod_failure_policy::{
    ConditionPattern, ExitCodeRequirement, PodFailurePolicy, PodFailureRequirement, PodFailureRule,
};
pub use status::StatusView;
pub use success_policy::{SuccessPolicy, SuccessRule};

/// The backoff limit of a Job that sets none (job-semantics section 2).
pub const DEFAULT_BACKOFF_LIMIT: u32 = 6;
/// The backoff limit of a Job that limits each index instead.
pub const UNLIMITED_BACKOFF: u32 = i32::MAX as u32;

/// A Job, parsed.
#[derive(Clone, Debug)]
pub struct JobView {
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`.
    pub resource_version: String,
    /// `metadata.generation`: grows with every change of the spec.
    pub generation: i64,
    /// When it was created, as far as the API has said.
    pub created: Option<Timestamp>,
    /// When its deletion was asked for.
    pub deleted: Option<Timestamp>,
    /// Who runs it.
    pub managed_by: ManagedBy,
    /// How many Pods may run at once.
    pub parallelism: u32,
    /// What it takes to be complete.
    pub completion: Completion,
    /// How many failures the whole Job may have.
    pub backoff_limit: u32,
    /// How long it may be active, in seconds.
    pub active_deadline_seconds: Option<u64>,
    /// How long it is kept once it has finished.
    pub ttl_seconds_after_finished: Option<u32>,
    /// Whether it is held.
    pub suspended: bool,
    /// When its Pods are replaced.
    pub replacement: PodReplacementPolicy,
    /// What to do about particular failures.
    pub failure_policy: Option<PodFailurePolicy>,
    /// What its Pods do when their containers fail.
    pub restart_policy: JobRestartPolicy,
    /// Which Pods are its own.
    pub selector: LabelSelector,
    /// What its Pods are made from.
    pub template: PodTemplateSpec,
    /// How far it has come.
    pub status: StatusView,
}

/// Who runs a Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManagedBy {
    /// The controller that runs Jobs when nobody else is named.
    BuiltIn,
    /// The controller of this name; everyone else keeps hands off.
    External(String),
}

/// What it takes for a Job to be complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The Pods share a queue: the first success means that the work is done.
    WorkQueue,
    /// So many successes, no matter of which Pods.
    Count(u32),
    /// A success for each index.
    Indexed(Indexed),
}

/// The settings only an Indexed Job has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indexed {
    /// One more than the highest index.
    pub completions: u32,
    /// The limit of failures for each index.
    pub backoff_per_index: Option<BackoffPerIndex>,
    /// When some successes are enough.
    pub success_policy: Option<SuccessPolicy>,
}

/// The limits of a Job that lets its indexes fail one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffPerIndex {
    /// How many retries an index has.
    pub limit: u32,
    /// How many indexes may fail before the Job does.
    pub max_failed_indexes: Option<u32>,
}

/// Why a Job could not be parsed. The API server's validation lets none of these pass,
/// except for a completion mode from the future.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobViewError {
    /// A completion mode this version does not know; such a Job is left alone.
    #[error("unknown completion mode {0:?}")]
    UnknownCompletionMode(String),
    /// Another closed set of values with a value outside it.
    #[error("{field}: unknown value {value:?}")]
    UnknownValue {
        /// The field.
        field: &'static str,
        /// What it says.
        value: String,
    },
    /// A field that holds something else than it should.
    #[error("it is not of the form that batch/v1 gives it")]
    Malformed,
    /// A field without which there is no Job.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A count below zero.
    #[error("{field} is negative: {value}")]
    Negative {
        /// The field.
        field: &'static str,
        /// What it says.
        value: i64,
    },
}

impl JobView {
    /// Parses a Job as the API returns it: with its defaults set. A default that is
    /// missing all the same is filled in.
    pub fn parse(job: &Job) -> Result<Self, JobViewError> {
        let spec = job.spec.as_ref().ok_or(JobViewError::Missing("spec"))?;
        let completion = completion(spec)?;
        let completions = match &completion {
            Completion::Indexed(indexed) => Some(indexed.completions),
            Completion::WorkQueue | Completion::Count(_) => None,
        };
        let backoff_default = match spec.backoff_limit_per_index {
            Some(_) => UNLIMITED_BACKOFF,
            None => DEFAULT_BACKOFF_LIMIT,
        };
        let failure_policy =
            spec.pod_failure_policy.as_ref().map(PodFailurePolicy::parse).transpose()?;
        let meta = &job.metadata;
        Ok(Self {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().ok_or(JobViewError::Missing("metadata.name"))?,
            uid: meta.uid.clone().ok_or(JobViewError::Missing("metadata.uid"))?,
            resource_version: meta.resource_version.clone().unwrap_or_default(),
            generation: meta.generation.unwrap_or(1),
            created: meta.creation_timestamp.as_ref().map(|time| time.0),
            deleted: meta.deletion_timestamp.as_ref().map(|time| time.0),
            managed_by: ManagedBy::parse(spec.managed_by.as_deref()),
            parallelism: count("spec.parallelism", spec.parallelism)?.unwrap_or(1),
            completion,
            backoff_limit: count("spec.backoffLimit", spec.backoff_limit)?
                .unwrap_or(backoff_default),
            active_deadline_seconds: seconds(
                "spec.activeDeadlineSeconds",
                spec.active_deadline_seconds,
            )?,
            ttl_seconds_after_finished: count(
                "spec.ttlSecondsAfterFinished",
                spec.ttl_seconds_after_finished,
            )?,
            suspended: spec.suspend.unwrap_or(false),
            replacement: replacement(spec, failure_policy.is_some())?,
            failure_policy,
            restart_policy: restart_policy(&spec.template)?,
            selector: spec.selector.clone().ok_or(JobViewError::Missing("spec.selector"))?,
            template: spec.template.clone(),
            status: StatusView::parse(job.status.as_ref(), completions),
        })
    }
}

impl ManagedBy {
    /// Reads `spec.managedBy`.
    pub fn parse(value: Option<&str>) -> Self {
        match value {
            None | Some(managed_by::BUILT_IN) => ManagedBy::BuiltIn,
            Some(other) => ManagedBy::External(other.to_owned()),
        }
    }
}

fn completion(spec: &JobSpec) -> Result<Completion, JobViewError> {
    let mode = match spec.completion_mode.as_deref() {
        None => CompletionMode::NonIndexed,
        Some(text) => CompletionMode::parse(text)
            .ok_or_else(|| JobViewError::UnknownCompletionMode(text.to_owned()))?,
    };
    let completions = count("spec.completions", spec.completions)?;
    match (mode, completions) {
        (CompletionMode::NonIndexed, Some(completions)) => Ok(Completion::Count(completions)),
        // Both absent is a Job of one Pod (job-semantics section 2).
        (CompletionMode::NonIndexed, None) if spec.parallelism.is_none() => {
            Ok(Completion::Count(1))
        }
        (CompletionMode::NonIndexed, None) => Ok(Completion::WorkQueue),
        (CompletionMode::Indexed, None) => Err(JobViewError::Missing("spec.completions")),
        (CompletionMode::Indexed, Some(completions)) => Ok(Completion::Indexed(Indexed {
            completions,
            backoff_per_index: backoff_per_index(spec)?,
            success_policy: spec
                .success_policy
                .as_ref()
                .map(|policy| SuccessPolicy::parse(policy, completions))
                .transpose()?,
        })),
    }
}

fn backoff_per_index(spec: &JobSpec) -> Result<Option<BackoffPerIndex>, JobViewError> {
    let limit = count("spec.backoffLimitPerIndex", spec.backoff_limit_per_index)?;
    let max_failed_indexes = count("spec.maxFailedIndexes", spec.max_failed_indexes)?;
    Ok(limit.map(|limit| BackoffPerIndex { limit, max_failed_indexes }))
}

fn replacement(
    spec: &JobSpec,
    has_failure_policy: bool,
) -> Result<PodReplacementPolicy, JobViewError> {
    match spec.pod_replacement_policy.as_deref() {
        None if has_failure_policy => Ok(PodReplacementPolicy::Failed),
        None => Ok(PodReplacementPolicy::TerminatingOrFailed),
        Some(text) => known("spec.podReplacementPolicy", text, PodReplacementPolicy::parse),
    }
}

fn restart_policy(template: &PodTemplateSpec) -> Result<JobRestartPolicy, JobViewError> {
    const FIELD: &str = "spec.template.spec.restartPolicy";
    let text = template
        .spec
        .as_ref()
        .and_then(|spec| spec.restart_policy.as_deref())
        .ok_or(JobViewError::Missing(FIELD))?;
    known(FIELD, text, JobRestartPolicy::parse)
}

/// A value of a closed set.
fn known<T>(
    field: &'static str,
    text: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, JobViewError> {
    parse(text).ok_or_else(|| JobViewError::UnknownValue { field, value: text.to_owned() })
}

fn count(field: &'static str, value: Option<i32>) -> Result<Option<u32>, JobViewError> {
    let negative = |value: i32| JobViewError::Negative { field, value: i64::from(value) };
    value.map(|value| u32::try_from(value).map_err(|_| negative(value))).transpose()
}

fn seconds(field: &'static str, value: Option<i64>) -> Result<Option<u64>, JobViewError> {
    let negative = |value: i64| JobViewError::Negative { field, value };
    value.map(|value| u64::try_from(value).map_err(|_| negative(value))).transpose()
}
