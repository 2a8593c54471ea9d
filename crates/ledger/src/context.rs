//! What a Pod's share is judged by: the Job and its acknowledged status.

use std::collections::BTreeSet;

use stint_api::closed_set::{JobConditionType, PodReplacementPolicy};
use stint_api::feature_gates::{FeatureGates, Gate};
use stint_api::index_set::IndexSet;
use stint_api::view::{BackoffPerIndex, Completion, Indexed, JobView};

use crate::pod_facts::PodPhase;
use crate::pods::{Duty, Record, Share};

/// What is to become of the Job's Pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Course {
    /// The Job runs.
    #[default]
    Running,
    /// It will fail: its Pods are deleted and count as failed.
    Failing,
    /// It will complete: its Pods are deleted and do not count.
    Completing,
    /// It is finished, deleted or gone: nothing counts any more.
    Over,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Context {
    pub(crate) course: Course,
    /// Whether the Job has finished, and is still there.
    pub(crate) is_finished: bool,
    /// One more than the highest index; none where Pods have no index.
    pub(crate) completions: Option<u32>,
    pub(crate) per_index: Option<BackoffPerIndex>,
    /// Whether a Pod that is being deleted keeps its place until it has ended.
    pub(crate) only_failed_are_replaced: bool,
    /// The indexes that the acknowledged status calls completed.
    pub(crate) written_completed: IndexSet,
    /// The indexes that it calls failed.
    pub(crate) written_failed: IndexSet,
    pub(crate) uncounted_succeeded: BTreeSet<String>,
    pub(crate) uncounted_failed: BTreeSet<String>,
}

impl Context {
    pub(crate) fn of(job: &JobView, gates: &FeatureGates) -> Self {
        let indexed = match &job.completion {
            Completion::Indexed(indexed) => Some(indexed),
            Completion::WorkQueue | Completion::Count(_) => None,
        };
        let replaces_failed = gates.enabled(Gate::JobPodReplacementPolicy)
            && job.replacement == PodReplacementPolicy::Failed;
        let per_index = indexed.and_then(|indexed| per_index(indexed, gates));
        // While no index can fail, those that had are tried again, and may succeed.
        let failed = job.status.failed_indexes.clone().filter(|_| per_index.is_some());
        Self {
            course: course(job),
            is_finished: job.status.is_finished() && job.deleted.is_none(),
            completions: indexed.map(|indexed| indexed.completions),
            per_index,
            only_failed_are_replaced: replaces_failed || job.failure_policy.is_some(),
            written_completed: job.status.completed_indexes.clone(),
            written_failed: failed.unwrap_or_default(),
            uncounted_succeeded: job.status.uncounted_succeeded.iter().cloned().collect(),
            uncounted_failed: job.status.uncounted_failed.iter().cloned().collect(),
        }
    }

    /// Whether the status lists this Pod as finished and not counted yet.
    pub(crate) fn is_uncounted(&self, uid: &str) -> bool {
        self.uncounted_failed.contains(uid) || self.uncounted_succeeded.contains(uid)
    }

    /// What a Pod adds to the sums.
    pub(crate) fn share(&self, record: &Record) -> Share {
        let is_finished = record.is_finished();
        let is_active = !is_finished && !record.is_deleted;
        let is_terminating = !is_finished && record.is_deleted;
        let keeps_place = is_active || (is_terminating && self.only_failed_are_replaced);
        let index = self.valid_index(record);
        let is_unwanted = is_active && (record.is_doomed || self.is_misplaced(index));
        Share {
            is_active,
            is_ready: is_active && record.standing.ready_since.is_some(),
            is_terminating,
            restarts: if is_finished { 0 } else { record.standing.restart_count },
            occupies: index.filter(|_| keeps_place),
            is_unwanted,
            is_to_delete: match self.course {
                // Nothing that we remove counts, so the finalizer goes first.
                Course::Running => is_unwanted && !record.is_tracked,
                // The end stands written: every Pod goes, and counts as the end says.
                Course::Failing | Course::Completing => is_active,
                // A Pod that was created although the Job had finished, by somebody who did
                // not know. The Pods of a Job that is being deleted are the collector's.
                Course::Over => is_active && !record.is_tracked && self.is_finished,
            },
            is_failure: record.is_tracked && self.is_failure(record, index),
            duty: if record.is_tracked { self.duty(record, index) } else { Duty::None },
        }
    }

    fn valid_index(&self, record: &Record) -> Option<u32> {
        record.index.filter(|&index| self.completions.is_some_and(|limit| index < limit))
    }

    /// An Indexed Job has no use for a Pod without a valid index.
    fn is_misplaced(&self, index: Option<u32>) -> bool {
        self.completions.is_some() && index.is_none()
    }

    fn duty(&self, record: &Record, index: Option<u32>) -> Duty {
        if self.course == Course::Over {
            return Duty::Removal;
        }
        // What has been written down stays so, whatever the Pod says later.
        if self.is_uncounted(&record.uid) || record.is_success_written || record.is_let_go {
            return Duty::Removal;
        }
        if record.phase == PodPhase::Succeeded {
            return self.success(index);
        }
        // Deleted because the Job has succeeded: whatever becomes of it.
        let is_lingering =
            self.course == Course::Completing && record.is_deleted && !record.failed_by_itself;
        if is_lingering {
            return Duty::Removal;
        }
        if self.has_failed(record) {
            return self.failure(record, index);
        }
        // Chosen for removal by us: the finalizer goes first, and nothing counts. Once the
        // Job fails, or somebody else deletes the Pod, that choice is overtaken.
        let is_removed = self.is_misplaced(index) || (record.is_doomed && !record.is_deleted);
        if is_removed && self.course == Course::Running { Duty::Removal } else { Duty::None }
    }

    fn success(&self, index: Option<u32>) -> Duty {
        match (self.completions, index) {
            (Some(_), Some(index)) if self.written_completed.contains(index) => Duty::Removal,
            // Written down as failed while its Pod was ending: that stands.
            (Some(_), Some(index)) if self.written_failed.contains(index) => Duty::Removal,
            (Some(_), Some(index)) => Duty::IndexSuccess(index),
            // A Pod without a valid index never counts.
            (Some(_), None) => Duty::Removal,
            (None, _) => Duty::Success,
        }
    }

    /// Job-semantics section 4: what counts as failed. When the Job fails, every Pod that
    /// is deleted for it does.
    fn has_failed(&self, record: &Record) -> bool {
        let ended_badly = match record.phase {
            PodPhase::Failed => true,
            PodPhase::Succeeded | PodPhase::Pending | PodPhase::Running => false,
        };
        let given_up = record.is_deleted
            && !record.is_finished()
            && match self.course {
                Course::Running => !self.only_failed_are_replaced,
                Course::Failing => true,
                Course::Completing | Course::Over => false,
            };
        ended_badly || given_up
    }

    fn is_failure(&self, record: &Record, index: Option<u32>) -> bool {
        self.course == Course::Running && self.has_failed(record) && !self.is_misplaced(index)
    }

    fn failure(&self, record: &Record, index: Option<u32>) -> Duty {
        if self.is_misplaced(index) {
            return Duty::Removal;
        }
        let waits =
            self.per_index.is_some() && self.course == Course::Running && !record.is_released;
        if let Some(index) = index.filter(|_| waits) {
            return Duty::IndexFailure(index);
        }
        if record.verdict.counts() { Duty::Failure } else { Duty::Removal }
    }
}

fn course(job: &JobView) -> Course {
    let status = &job.status;
    if job.deleted.is_some() || status.is_finished() {
        Course::Over
    } else if status.is_true(JobConditionType::SuccessCriteriaMet) {
        Course::Completing
    } else if status.is_true(JobConditionType::FailureTarget) {
        Course::Failing
    } else {
        Course::Running
    }
}

fn per_index(indexed: &Indexed, gates: &FeatureGates) -> Option<BackoffPerIndex> {
    indexed.backoff_per_index.filter(|_| gates.enabled(Gate::JobBackoffLimitPerIndex))
}
