//! Every name, reason and message of the Job and Pod API that a client may rely on.
//!
//! They are written down here once (job-semantics section 1) so that no two places
//! can disagree on a spelling.

/// The group and version of Jobs.
pub const BATCH_V1: &str = "batch/v1";
/// The kind of a Job.
pub const JOB_KIND: &str = "Job";
/// The kind of a list of Jobs.
pub const JOB_LIST_KIND: &str = "JobList";
/// The kind of a Pod.
pub const POD_KIND: &str = "Pod";
/// The kind of a list of Pods.
pub const POD_LIST_KIND: &str = "PodList";
/// The kind as error messages name it.
pub const JOB_QUALIFIED_KIND: &str = "Job.batch";

/// Finalizers.
pub mod finalizer {
    /// Keeps an object until its dependents have lost it as their owner.
    pub const ORPHAN: &str = "orphan";

    /// Keeps an object until the dependents that block its deletion are gone.
    pub const FOREGROUND_DELETION: &str = "foregroundDeletion";

    /// Keeps a Pod until its Job has accounted for it.
    pub const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";
    /// The same for Jobs under our own managedBy: the built-in controller may strip the
    /// reserved one from a Pod whose Job its cache does not know yet.
    pub const STINT_JOB_TRACKING: &str = "stint.dev/job-tracking";
}

/// Labels on Pods and Pod templates.
pub mod label {
    /// The uid of the Job.
    pub const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
    /// The name of the Job.
    pub const JOB_NAME: &str = "batch.kubernetes.io/job-name";
    /// The uid of the Job, under its older name.
    pub const LEGACY_CONTROLLER_UID: &str = "controller-uid";
    /// The name of the Job, under its older name.
    pub const LEGACY_JOB_NAME: &str = "job-name";
    /// The completion index of an Indexed Job's Pod; label and annotation alike.
    pub const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
}

/// Annotations on Pods.
pub mod annotation {
    /// The completion index of an Indexed Job's Pod; label and annotation alike.
    pub const COMPLETION_INDEX: &str = super::label::COMPLETION_INDEX;
    /// How many Pods of this index failed before this one.
    pub const INDEX_FAILURE_COUNT: &str = "batch.kubernetes.io/job-index-failure-count";
    /// How many failures of this index were ignored; only there when above 0.
    pub const INDEX_IGNORED_FAILURE_COUNT: &str =
        "batch.kubernetes.io/job-index-ignored-failure-count";
    /// How many Pods of this index were ended by a node that was stopped or crashed, where those
    /// are forgiven (ours); only there when above 0. They tell attempts apart, and make nothing
    /// wait.
    pub const INDEX_INTERRUPTION_COUNT: &str = "stint.dev/job-index-interruption-count";
    /// Of a Pod that its node runs without having been asked to.
    pub const MIRROR: &str = "kubernetes.io/config.mirror";
    /// What the AppArmor profile of a container used to be written to, before its name.
    pub const APP_ARMOR_PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
}

/// Conditions of a Pod that an API server sets.
pub mod pod_condition {
    /// Whether the Pod has a node.
    pub const SCHEDULED: &str = "PodScheduled";
    /// Something else than the Pod itself ends it.
    pub const DISRUPTION_TARGET: &str = "DisruptionTarget";
    /// Its reason where the node ends the Pod, or went down with it.
    pub const TERMINATION_BY_KUBELET: &str = "TerminationByKubelet";
    /// Why it has none yet: it has scheduling gates.
    pub const SCHEDULING_GATED: &str = "SchedulingGated";
    /// The message that goes with [`SCHEDULING_GATED`].
    pub const SCHEDULING_GATED_MESSAGE: &str =
        "Scheduling is blocked due to non-empty scheduling gates";
}

/// Environment variables of containers.
pub mod env {
    /// The completion index, in every container that has no variable of that name.
    pub const COMPLETION_INDEX: &str = "JOB_COMPLETION_INDEX";
    /// The field that its value is taken from.
    pub const COMPLETION_INDEX_FIELD_PATH: &str =
        "metadata.labels['batch.kubernetes.io/job-completion-index']";
}

/// Values of `spec.managedBy`.
pub mod managed_by {
    /// The built-in controller; the same as no value at all.
    pub const BUILT_IN: &str = "kubernetes.io/job-controller";
    /// Ours, on a cluster whose own Job controller stays.
    pub const STINT: &str = "stint.dev/job-controller";
}

/// Reasons of Job conditions.
pub mod reason {
    /// Enough Pods or all indexes succeeded.
    pub const COMPLETIONS_REACHED: &str = "CompletionsReached";
    /// A rule of the success policy matched.
    pub const SUCCESS_POLICY: &str = "SuccessPolicy";
    /// More failures than backoffLimit allows.
    pub const BACKOFF_LIMIT_EXCEEDED: &str = "BackoffLimitExceeded";
    /// Active for longer than activeDeadlineSeconds.
    pub const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
    /// A FailJob rule of the Pod failure policy matched.
    pub const POD_FAILURE_POLICY: &str = "PodFailurePolicy";
    /// All indexes finished and some failed.
    pub const FAILED_INDEXES: &str = "FailedIndexes";
    /// More failed indexes than maxFailedIndexes allows.
    pub const MAX_FAILED_INDEXES_EXCEEDED: &str = "MaxFailedIndexesExceeded";
    /// The Job was suspended.
    pub const JOB_SUSPENDED: &str = "JobSuspended";
    /// The Job was resumed.
    pub const JOB_RESUMED: &str = "JobResumed";
}

/// Messages of Job conditions.
pub mod message {
    /// For [`COMPLETIONS_REACHED`](super::reason::COMPLETIONS_REACHED).
    pub const COMPLETIONS_REACHED: &str = "Reached expected number of succeeded pods";
    /// For [`BACKOFF_LIMIT_EXCEEDED`](super::reason::BACKOFF_LIMIT_EXCEEDED).
    pub const BACKOFF_LIMIT_EXCEEDED: &str = "Job has reached the specified backoff limit";
    /// For [`DEADLINE_EXCEEDED`](super::reason::DEADLINE_EXCEEDED).
    pub const DEADLINE_EXCEEDED: &str = "Job was active longer than specified deadline";
    /// For [`FAILED_INDEXES`](super::reason::FAILED_INDEXES).
    pub const FAILED_INDEXES: &str = "Job has failed indexes";
    /// For [`MAX_FAILED_INDEXES_EXCEEDED`](super::reason::MAX_FAILED_INDEXES_EXCEEDED).
    pub const MAX_FAILED_INDEXES_EXCEEDED: &str =
        "Job has exceeded the specified maximal number of failed indexes";
    /// For [`JOB_SUSPENDED`](super::reason::JOB_SUSPENDED).
    pub const JOB_SUSPENDED: &str = "Job suspended";
    /// For [`JOB_RESUMED`](super::reason::JOB_RESUMED).
    pub const JOB_RESUMED: &str = "Job resumed";
    /// Of the Completed event.
    pub const JOB_COMPLETED: &str = "Job completed";

    /// For [`SUCCESS_POLICY`](super::reason::SUCCESS_POLICY).
    pub fn success_policy(rule_index: usize) -> String {
        format!("Matched rules at index {rule_index}")
    }

    /// For [`POD_FAILURE_POLICY`](super::reason::POD_FAILURE_POLICY), by exit code.
    pub fn failed_by_exit_code(
        container: &str,
        namespace: &str,
        pod: &str,
        exit_code: i32,
        rule_index: usize,
    ) -> String {
        format!(
            "Container {container} for pod {namespace}/{pod} failed with exit code {exit_code} matching FailJob rule at index {rule_index}"
        )
    }

    /// For [`POD_FAILURE_POLICY`](super::reason::POD_FAILURE_POLICY), by Pod condition.
    pub fn failed_by_condition(
        namespace: &str,
        pod: &str,
        condition_type: &str,
        rule_index: usize,
    ) -> String {
        format!(
            "Pod {namespace}/{pod} has condition {condition_type} matching FailJob rule at index {rule_index}"
        )
    }

    /// Of the TooManySucceededPods event.
    pub const TOO_MANY_SUCCEEDED_PODS: &str =
        "Too many succeeded pods running after completion count reached";

    /// Of the SuccessfulCreate event.
    pub fn created_pod(pod: &str) -> String {
        format!("Created pod: {pod}")
    }

    /// Of the SuccessfulDelete event.
    pub fn deleted_pod(pod: &str) -> String {
        format!("Deleted pod: {pod}")
    }
}

/// Reasons of events on a Job, and who they come from.
pub mod event {
    /// The reporting component.
    pub const COMPONENT: &str = "job-controller";
    /// A Pod was created.
    pub const SUCCESSFUL_CREATE: &str = "SuccessfulCreate";
    /// A Pod was deleted.
    pub const SUCCESSFUL_DELETE: &str = "SuccessfulDelete";
    /// A Pod could not be created (Warning).
    pub const FAILED_CREATE: &str = "FailedCreate";
    /// A Pod could not be deleted (Warning).
    pub const FAILED_DELETE: &str = "FailedDelete";
    /// The Job was suspended.
    pub const SUSPENDED: &str = "Suspended";
    /// The Job was resumed.
    pub const RESUMED: &str = "Resumed";
    /// The Job completed.
    pub const COMPLETED: &str = "Completed";
    /// More Pods succeeded than completions asked for (Warning).
    pub const TOO_MANY_SUCCEEDED_PODS: &str = "TooManySucceededPods";
    /// The completion mode is not one this controller knows (Warning).
    pub const UNKNOWN_COMPLETION_MODE: &str = "UnknownCompletionMode";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_with_parts_read_as_clients_expect() {
        assert_eq!(message::success_policy(2), "Matched rules at index 2");
        assert_eq!(
            message::failed_by_exit_code("main", "ns", "p", 42, 1),
            "Container main for pod ns/p failed with exit code 42 matching FailJob rule at index 1"
        );
        assert_eq!(
            message::failed_by_condition("ns", "p", "DisruptionTarget", 0),
            "Pod ns/p has condition DisruptionTarget matching FailJob rule at index 0"
        );
    }

    #[test]
    fn the_index_field_path_names_the_index_label() {
        assert!(env::COMPLETION_INDEX_FIELD_PATH.contains(label::COMPLETION_INDEX));
    }
}
