//! What is wrong with a change to a Job's status (job-semantics section 3, "Status
//! updates are guarded too").
//!
//! Any controller may write a status, so clients are protected from transitions that
//! make no sense. A rule applies only when a field it speaks of changes: a status that
//! is odd already must not stand in the way of an unrelated update.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::{Job, JobCondition, JobSpec, JobStatus};

use super::job::is_indexed;
use super::object_meta::validate_object_meta_update;
use super::{items, text, validate_non_negative};
use crate::closed_set::{ConditionStatus, JobConditionType};
use crate::condition;
use crate::feature_gates::{FeatureGates, Gate};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::index_set::IndexSet;

/// Validates a changed status, prepared for the update, against the stored Job.
pub fn validate_job_status_update(new: &Job, old: &Job, gates: &FeatureGates) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let metadata = Path::field("metadata");
    validate_object_meta_update(&new.metadata, &old.metadata, &metadata, &mut errors);
    let (no_spec, no_status) = (JobSpec::default(), JobStatus::default());
    let update = StatusUpdate {
        spec: new.spec.as_ref().unwrap_or(&no_spec),
        new: Snapshot::of(new.status.as_ref().unwrap_or(&no_status)),
        old: Snapshot::of(old.status.as_ref().unwrap_or(&no_status)),
    };
    update.validate(gates, &Path::field("status"), &mut errors);
    errors
}

/// A status with the conditions it has.
struct Snapshot<'a> {
    status: &'a JobStatus,
    conditions: &'a [JobCondition],
    complete: bool,
    failed: bool,
    success_criteria_met: bool,
    failure_target: bool,
}

impl<'a> Snapshot<'a> {
    fn of(status: &'a JobStatus) -> Self {
        let conditions = status.conditions.as_deref().unwrap_or_default();
        let is_true = |kind| condition::is_true(conditions, kind);
        Self {
            status,
            conditions,
            complete: is_true(JobConditionType::Complete),
            failed: is_true(JobConditionType::Failed),
            success_criteria_met: is_true(JobConditionType::SuccessCriteriaMet),
            failure_target: is_true(JobConditionType::FailureTarget),
        }
    }

    fn finished(&self) -> bool {
        self.complete || self.failed
    }

    fn active(&self) -> i32 {
        self.status.active.unwrap_or(0)
    }

    fn completed_indexes(&self) -> &str {
        text(&self.status.completed_indexes)
    }
}

/// Both sides of an update.
struct StatusUpdate<'a> {
    spec: &'a JobSpec,
    new: Snapshot<'a>,
    old: Snapshot<'a>,
}

impl StatusUpdate<'_> {
    /// The order is the order in which the API server reports.
    fn validate(&self, gates: &FeatureGates, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        let guarded = gates.enabled(Gate::JobManagedBy);
        self.validate_counters(path, errors);
        self.validate_uncounted(path, errors);
        if guarded {
            self.validate_opposite_ends(path, errors);
            self.validate_completion_time(path, errors);
            self.validate_interim_conditions(path, errors);
            self.validate_finished(path, errors);
            self.validate_indexes(path, errors);
            self.validate_finished_terminating(path, errors);
            self.validate_ready(path, errors);
        }
        self.validate_success_criteria(gates, path, errors);
        if guarded {
            self.validate_transitions(path, errors);
        }
        self.validate_success_criteria_transitions(path, errors);
    }

    fn validate_counters(&self, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        let status = self.new.status;
        for (name, count) in [
            ("active", status.active),
            ("succeeded", status.succeeded),
            ("failed", status.failed),
            ("ready", status.ready),
            ("terminating", status.terminating),
        ] {
            validate_non_negative(i64::from(count.unwrap_or(0)), &path.child(name), errors);
        }
    }

    fn validate_uncounted(&self, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        let Some(uncounted) = &self.new.status.uncounted_terminated_pods else {
            return;
        };
        let path = path.child("uncountedTerminatedPods");
        let mut seen = BTreeSet::new();
        for (name, uids) in [("succeeded", &uncounted.succeeded), ("failed", &uncounted.failed)] {
            let list = path.child(name);
            for (index, uid) in items(uids).iter().enumerate() {
                let here = list.index(index);
                if uid.is_empty() {
                    errors.push(FieldError::invalid(&here, uid, "must not be empty"));
                } else if !seen.insert(uid) {
                    errors.push(FieldError::duplicate(&here, uid));
                }
            }
        }
    }

    fn validate_opposite_ends(&self, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        let Self { new, old, .. } = self;
        let complete_changed = new.complete != old.complete;
        if (complete_changed || new.failed != old.failed) && new.complete && new.failed {
            push_conditions(path, "cannot set Complete=True and Failed=true conditions", errors);
        }
        if (complete_changed || new.failure_target != old.failure_target)
            && new.complete
            && new.failure_target
        {
            let detail = "cannot set Complete=True and FailureTarget=true conditions";
            push_conditions(path, detail, errors);
        }
    }

    fn validate_completion_time(&self, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        let Self { new, old, .. } = self;
        let here = path.child("completionTime");
        let time = &new.status.completion_time;
        let time_changed = *time != old.status.completion_time;
        if time_changed || new.complete != old.complete {
            if time.is_some() && !new.complete {
                let detail = "cannot set completionTime when there is no Complete=True condition";
                errors.push(FieldError::invalid(&here, time, detail));
            }
            if time.is_none() && new.complete {
                let detail = "completionTime is required for Complete jobs";
                errors.push(FieldError::required(&here, detail));
            }
        }
        if (time_changed || self.start_time_changed())
            && let (Some(start), Some(end)) = (&new.status.start_time, time)
            && end < start
        {
            let detail = "must be equal to or after `startTime`";
            errors.push(FieldError::invalid(&here, time, detail));
        }
    }

    fn validate_interim_conditions(&self, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        let Self { new, old, .. } = self;
        let failed_changed = new.failed != old.failed || self.failed_indexes_changed();
        if failed_changed && new.failed && !new.failure_target {
            let detail =
                "cannot set Failed=True condition without the FailureTarget=true condition";
            push_conditions(path, detail, errors);
        }
        let complete_changed =
            new.complete != old.complete || new.success_criteria_met != old.success_criteria_met;
        if complete_changed && new.complete && !new.success_criteria_met {
            let detail =
                "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
            push_conditions(path, detail, errors);
        }
    }

    fn validate_finished(&self, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        let Self { new, old, .. } = self;
        if !new.finished() {
            return;
        }
        let finished_changed = !old.finished();
        let active = new.active();
        if (finished_changed || active != old.active()) && active > 0 {
            let detail = "active>0 is invalid for finished job";
            errors.push(FieldError::invalid(&path.child("active"), active, detail));
        }
        // A suspended Job that has nothing to do ends without ever having started.
        let nothing_to_do = self.spec.suspend == Some(true) && self.spec.completions == Some(0);
        if (finished_changed || self.start_time_changed())
            && !nothing_to_do
            && new.status.start_time.is_none()
        {
            let detail = "startTime is required for finished job";
            errors.push(FieldError::required(&path.child("startTime"), detail));
        }
        let uncounted = &new.status.uncounted_terminated_pods;
        let uncounted_changed = *uncounted != old.status.uncounted_terminated_pods;
        let some_uncounted = uncounted.as_ref().is_some_and(|pods| {
            !items(&pods.succeeded).is_empty() || !items(&pods.failed).is_empty()
        });
        if (finished_changed || uncounted_changed) && some_uncounted {
            let here = path.child("uncountedTerminatedPods");
            let detail = "must be empty for finished job";
            errors.push(FieldError::invalid(&here, uncounted, detail));
        }
    }

    fn validate_indexes(&self, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        let completed_path = path.child("completedIndexes");
        let failed_path = path.child("failedIndexes");
        let completed = self.new.completed_indexes();
        let failed = self.new.status.failed_indexes.as_deref();
        let completed_changed = completed != self.old.completed_indexes();
        let failed_changed = self.failed_indexes_changed();
        let limit = self.spec.completions.map(|count| u32::try_from(count).unwrap_or(0));
        let per_index = self.spec.backoff_limit_per_index.is_some();
        if let (true, Some(limit)) = (completed_changed, limit) {
            validate_format("completedIndexes", completed, limit, &completed_path, errors);
        }
        if let (true, true, Some(limit), Some(failed)) = (failed_changed, per_index, limit, failed)
        {
            validate_format("failedIndexes", failed, limit, &failed_path, errors);
        }
        if completed_changed && !completed.is_empty() && !is_indexed(self.spec) {
            let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
            errors.push(FieldError::invalid(&completed_path, completed, detail));
        }
        if let (true, false, Some(failed)) = (failed_changed, per_index, failed) {
            let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
            errors.push(FieldError::invalid(&failed_path, failed, detail));
        }
        if let (true, Some(limit), Some(failed)) =
            (completed_changed || failed_changed, limit, failed)
        {
            let both =
                (IndexSet::parse_lenient(completed, limit), IndexSet::parse_lenient(failed, limit));
            if let Some(index) = both.0.first_common(&both.1) {
                let detail =
                    format!("failedIndexes and completedIndexes overlap at index: {index}");
                errors.push(FieldError::invalid(&failed_path, failed, detail));
            }
        }
    }

    fn validate_finished_terminating(&self, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        let Self { new, old, .. } = self;
        let changed =
            new.finished() != old.finished() || new.status.terminating != old.status.terminating;
        let terminating = new.status.terminating.unwrap_or(0);
        if changed && new.finished() && terminating > 0 {
            let detail = "terminating>0 is invalid for finished job";
            errors.push(FieldError::invalid(&path.child("terminating"), terminating, detail));
        }
    }

    fn validate_ready(&self, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        let Self { new, old, .. } = self;
        let changed = new.status.ready != old.status.ready || new.active() != old.active();
        if let Some(ready) = new.status.ready.filter(|&ready| changed && ready > new.active()) {
            let detail = "cannot set more ready pods than active";
            errors.push(FieldError::invalid(&path.child("ready"), ready, detail));
        }
    }

    fn validate_success_criteria(
        &self,
        gates: &FeatureGates,
        path: &Path<'_>,
        errors: &mut Vec<FieldError>,
    ) {
        let new = &self.new;
        // SuccessCriteriaMet came with success policies alone; it has been the interim
        // condition of every Job since podReplacementPolicy needed one.
        let for_every_job = gates.enabled(Gate::JobManagedBy)
            || gates.enabled(Gate::JobPodReplacementPolicy)
            || self.old.success_criteria_met;
        if new.success_criteria_met && !for_every_job && !is_indexed(self.spec) {
            push_conditions(path, "cannot set SuccessCriteriaMet to NonIndexed Job", errors);
        }
        if new.success_criteria_met && new.failed {
            let detail = "cannot set SuccessCriteriaMet=True and Failed=true conditions";
            push_conditions(path, detail, errors);
        }
        if new.success_criteria_met && new.failure_target {
            let detail = "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions";
            push_conditions(path, detail, errors);
        }
        let has_policy = self.spec.success_policy.is_some();
        if new.success_criteria_met && !for_every_job && !has_policy {
            let detail = "cannot set SuccessCriteriaMet=True for Job without SuccessPolicy";
            push_conditions(path, detail, errors);
        }
        if has_policy && new.complete && !new.success_criteria_met {
            let detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
            push_conditions(path, detail, errors);
        }
    }

    fn validate_transitions(&self, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        let Self { new, old, spec } = self;
        for (kind, before, after) in [
            (JobConditionType::Failed, old.failed, new.failed),
            (JobConditionType::Complete, old.complete, new.complete),
            (JobConditionType::FailureTarget, old.failure_target, new.failure_target),
        ] {
            if before && !after {
                let detail = format!("cannot disable the terminal {kind}=True condition");
                push_conditions(path, &detail, errors);
            }
        }
        let failed = new.status.failed.unwrap_or(0);
        if failed < old.status.failed.unwrap_or(0) {
            let detail = "cannot decrease the failed counter";
            errors.push(FieldError::invalid(&path.child("failed"), failed, detail));
        }
        // An elastic Job may be scaled down below what has succeeded.
        let elastic = is_indexed(spec) && spec.completions == spec.parallelism;
        let succeeded = new.status.succeeded.unwrap_or(0);
        if !elastic && succeeded < old.status.succeeded.unwrap_or(0) {
            let detail = "cannot decrease the succeeded counter";
            errors.push(FieldError::invalid(&path.child("succeeded"), succeeded, detail));
        }
        let (time, old_time) = (&new.status.completion_time, &old.status.completion_time);
        if time.is_some() && old_time.is_some() && time != old_time {
            let here = path.child("completionTime");
            errors.push(FieldError::invalid(&here, time, "field is immutable"));
        }
        self.validate_start_time(path, errors);
    }

    fn validate_start_time(&self, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        let Self { new, old, spec } = self;
        let suspended = JobConditionType::Suspended;
        let resuming = condition::is_true(old.conditions, suspended)
            && condition::has(new.conditions, suspended, ConditionStatus::False);
        if self.start_time_changed()
            && old.status.start_time.is_some()
            && !resuming
            && spec.suspend != Some(true)
        {
            let detail = "field is immutable for unsuspended job once set";
            let here = path.child("startTime");
            errors.push(FieldError::invalid(&here, &new.status.start_time, detail));
        }
    }

    fn validate_success_criteria_transitions(&self, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        let Self { new, old, .. } = self;
        if old.success_criteria_met && !new.success_criteria_met {
            push_conditions(path, "cannot disable the SuccessCriteriaMet=True condition", errors);
        }
        if old.complete && !old.success_criteria_met && new.success_criteria_met {
            let detail =
                "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
            push_conditions(path, detail, errors);
        }
    }

    fn start_time_changed(&self) -> bool {
        self.new.status.start_time != self.old.status.start_time
    }

    fn failed_indexes_changed(&self) -> bool {
        self.new.status.failed_indexes != self.old.status.failed_indexes
    }
}

fn validate_format(
    name: &str,
    indexes: &str,
    completions: u32,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if let Err(error) = IndexSet::parse_strict(indexes, completions) {
        let detail = format!("error parsing {name}: {error}");
        errors.push(FieldError::invalid(path, indexes, detail));
    }
}

fn push_conditions(path: &Path<'_>, detail: &str, errors: &mut Vec<FieldError>) {
    errors.push(FieldError::invalid_without_value(&path.child("conditions"), detail));
}
