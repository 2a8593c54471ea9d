//! What is counted for the metrics of job-semantics section 7, as values.
//!
//! Each is told once what it is about stands written: a crash in between loses a count
//! of a metric, never one of the Job.

use std::borrow::Cow;

use stint_api::closed_set::PodFailurePolicyAction;

/// Something to add to a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metric {
    /// The Job has finished: `jobs_finished_total`.
    JobFinished {
        /// Whether it is complete.
        is_success: bool,
        /// The reason of its condition.
        reason: Cow<'static, str>,
    },
    /// Pods were counted: `job_pods_finished_total`.
    PodsFinished {
        /// Whether they succeeded.
        is_success: bool,
        /// How many.
        count: u64,
    },
    /// Indexes were written down as finished: `job_finished_indexes_total`.
    IndexesFinished {
        /// Whether they succeeded.
        is_success: bool,
        /// Whether failures are limited per index.
        is_per_index: bool,
        /// How many.
        count: u64,
    },
    /// A rule of the Pod failure policy has decided about a failure:
    /// `pod_failures_handled_by_failure_policy_total`.
    FailureHandled(PodFailurePolicyAction),
    /// A Pod has ended with its finalizer: `terminated_pods_tracking_finalizer_total`,
    /// event `add`.
    FinalizerHeld,
    /// A Pod that has ended lost its finalizer: the same, event `delete`.
    FinalizerGone,
    /// A Pod was asked for: `job_pods_creation_total`.
    PodCreation {
        /// What for.
        reason: CreationReason,
        /// Whether it was created.
        is_success: bool,
    },
    /// The Job is another controller's: `jobs_by_external_controller_total`.
    External {
        /// Whose.
        controller: String,
    },
}

/// What a Pod was created for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreationReason {
    /// Nothing was there before.
    New,
    /// To replace a Pod that has failed or is being deleted.
    RecreateTerminatingOrFailed,
    /// To replace a Pod that has failed.
    RecreateFailed,
}
