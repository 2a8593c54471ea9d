//! What the status should say, and what came of writing it.

use k8s_openapi::api::batch::v1::{JobCondition, JobStatus, UncountedTerminatedPods};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use stint_api::closed_set::{ConditionStatus, JobConditionType};
use stint_api::condition;
use stint_api::feature_gates::Gate;
use stint_api::index_set::IndexSet;
use stint_api::names::{event, message, reason};
use stint_api::view::{Completion, JobView};

use super::adoption::Stranger;
use super::job::is_unbegun;
use super::{InFlight, JobLedger};
use crate::context::Course;
use crate::freshness::LookUp;
use crate::op::{Applied, JobEvent, Op, OpKind, Outcome, Refusal};
use crate::pods::Duty;

/// How many Pods that have ended are worth a status even if there are many Jobs: it is one call beside the
/// two of each. If a large Job did not let go of its Pods meanwhile, it would make others all the faster.
const WORTH_A_STATUS: usize = 16;

/// A status on its way.
#[derive(Clone, Debug)]
pub(super) struct StatusWrite {
    pub(super) status: Box<JobStatus>,
    /// Whether it says that the Job has come to its end.
    pub(super) has_end: bool,
    /// Whether it is the last one, with the terminal condition.
    pub(super) is_last: bool,
    /// What to say once it is there.
    pub(super) events: Vec<JobEvent>,
}

/// A status in the making.
struct Draft {
    status: JobStatus,
    events: Vec<JobEvent>,
}

impl JobLedger {
    pub(super) fn next_status(&mut self, now: Timestamp, ops: &mut Vec<Op>) {
        if !self.is_status_due() {
            return;
        }
        if self.status_interval.holds(now, self.interval()) && !self.is_status_urgent() {
            return;
        }
        self.is_dirty = false;
        let Some(job) = &self.job else {
            return;
        };
        let draft = self.draft(job, now);
        if draft.status == self.acknowledged(job) && job.status.is_canonical {
            return;
        }
        self.issue_status(draft, now, ops);
    }

    /// A Job that is being deleted counts nothing any more. But it may stay for long, as
    /// whoever put a finalizer on it likes, and those who wait for its Pods to end read how
    /// many there are.
    pub(super) fn next_farewell(&mut self, now: Timestamp, ops: &mut Vec<Op>) {
        let held = self.job.as_ref().filter(|job| {
            job.deleted.is_some() && !job.status.is_finished() && !is_unbegun(job) && !self.is_gone
        });
        let Some(job) = held.filter(|_| self.is_status_due()) else {
            return;
        };
        let known = self.acknowledged(job);
        let mut status = known.clone();
        self.draft_presence(&mut status);
        // A Job can be scaled as long as it is there.
        self.draft_indexes(job, &mut status);
        if status == known {
            self.is_dirty = false;
            return;
        }
        if !self.freshness.is_verified() {
            self.next_verification(now, ops);
            return;
        }
        if !self.freshness.is_current() {
            self.next_pods_look_up(now, ops);
            return;
        }
        if self.status_interval.holds(now, self.settings.status_interval) {
            return;
        }
        self.is_dirty = false;
        self.issue_status(Draft { status, events: Vec::new() }, now, ops);
    }

    /// How far apart statuses are that can wait.
    fn interval(&self) -> SignedDuration {
        let least = self.settings.status_interval;
        let sums = &self.pods.sums;
        match sums.to_write.len() + sums.index_successes.len() < WORTH_A_STATUS {
            true => least.max(self.crowd_interval),
            false => least,
        }
    }

    fn is_status_due(&self) -> bool {
        self.is_dirty
            && self.write.is_none()
            && self.job_look_up == LookUp::NotNeeded
            && !self.status_pace.is_paused()
    }

    fn issue_status(&mut self, draft: Draft, now: Timestamp, ops: &mut Vec<Op>) {
        let status = Box::new(draft.status);
        self.write = Some(StatusWrite {
            status: status.clone(),
            has_end: self.end.is_some(),
            is_last: condition::is_finished(status.conditions.as_deref().unwrap_or_default()),
            events: draft.events,
        });
        self.doubtful = None;
        self.status_interval.made(now, self.settings.status_interval);
        let kind = OpKind::WriteStatus { version: self.version, status };
        self.issue(kind, Some(InFlight::Status), ops);
    }

    /// Whether the status has more to say than how many Pods there are: that the Job has
    /// begun, is held, or goes on; that it has come to its end; that it is over; that it has not an index
    /// any more which its lists have. And whether so many Pods have ended that the uncounted list would be full.
    fn is_status_urgent(&self) -> bool {
        let Some(job) = &self.job else {
            return false;
        };
        let status = &job.status;
        let has_begun = status.start_time.is_some() || job.suspended;
        let is_turned = job.suspended != status.is_true(JobConditionType::Suspended);
        let ends = self.end.as_ref().is_some_and(|end| {
            let interim = if end.is_success {
                JobConditionType::SuccessCriteriaMet
            } else {
                JobConditionType::FailureTarget
            };
            !status.is_true(interim) || self.is_at_rest()
        });
        let is_full = self.pods.sums.to_write.len() >= self.settings.max_uncounted;
        !has_begun || is_turned || ends || is_full || !status.is_canonical
    }

    pub(super) fn settle_status(&mut self, outcome: Outcome) {
        let write = self.write.take().expect("a status that is settled was being written");
        self.is_dirty = true;
        match outcome {
            Outcome::Applied(Applied::Job(job)) => {
                self.acknowledge(*job, write, true);
            }
            Outcome::Applied(Applied::NoJob) | Outcome::Refused(Refusal::NotFound) => {
                self.lose_job();
            }
            Outcome::Refused(
                Refusal::TryLater(_) | Refusal::AlreadyExists | Refusal::NamespaceGoes(_),
            ) => {}
            // Computed from a Job that has changed, or that the API judges otherwise.
            Outcome::Refused(Refusal::Conflict | Refusal::Rejected(_)) => self.ask_for_job(),
            Outcome::InDoubt
            | Outcome::Applied(Applied::Pod(_) | Applied::NoPod | Applied::Pods { .. }) => {
                self.doubtful = Some(write);
                self.ask_for_job();
            }
        }
        if let Some(job) = self.postponed.take() {
            self.take_job(*job);
        }
    }

    fn draft(&self, job: &JobView, now: Timestamp) -> Draft {
        // The API keeps whole seconds; what is written must be what is read back.
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        let mut draft = Draft { status: self.acknowledged(job), events: Vec::new() };
        self.draft_counts(job, &mut draft.status);
        self.draft_indexes(job, &mut draft.status);
        if self.end.is_none() && self.context.course == Course::Running {
            draft_suspension(job, now, &mut draft);
        }
        if draft.status.start_time.is_none() && !job.suspended {
            draft.status.start_time = Some(Time(now));
        }
        self.draft_end(job, now, &mut draft);
        draft
    }

    /// The acknowledged status in the form it is written in.
    fn acknowledged(&self, job: &JobView) -> JobStatus {
        let status = &job.status;
        let list = |uids: &Vec<String>| (!uids.is_empty()).then(|| uids.clone());
        let counts_terminating = self.settings.gates.enabled(Gate::JobPodReplacementPolicy);
        JobStatus {
            active: count(status.active as usize),
            ready: Some(status.ready as i32),
            terminating: counts_terminating.then_some(status.terminating as i32),
            succeeded: count(status.succeeded as usize),
            failed: count(status.failed as usize),
            completed_indexes: text(&status.completed_indexes),
            failed_indexes: status.failed_indexes.as_ref().map(ToString::to_string),
            uncounted_terminated_pods: Some(UncountedTerminatedPods {
                succeeded: list(&status.uncounted_succeeded),
                failed: list(&status.uncounted_failed),
            }),
            start_time: status.start_time.map(Time),
            completion_time: status.completion_time.map(Time),
            conditions: (!status.conditions.is_empty()).then(|| status.conditions.clone()),
        }
    }

    /// How many Pods there are now.
    fn draft_presence(&self, status: &mut JobStatus) {
        let sums = &self.pods.sums;
        status.active = count(sums.active);
        status.ready = Some(count(sums.ready).unwrap_or(0));
        status.terminating = self
            .settings
            .gates
            .enabled(Gate::JobPodReplacementPolicy)
            .then(|| count(sums.terminating).unwrap_or(0));
    }

    fn draft_counts(&self, job: &JobView, status: &mut JobStatus) {
        self.draft_presence(status);
        let sums = &self.pods.sums;
        let (succeeded, settled_succeeded) = self.divide(&job.status.uncounted_succeeded);
        let (failed, settled_failed) = self.divide(&job.status.uncounted_failed);
        let (mut succeeded, mut failed) = (succeeded, failed);
        let room = self.settings.max_uncounted.saturating_sub(succeeded.len() + failed.len());
        for &slot in sums.to_write.iter().take(room) {
            let record = self.pods.get(slot);
            match record.share.duty {
                Duty::Success => succeeded.push(record.uid.to_string()),
                Duty::Failure => failed.push(record.uid.to_string()),
                Duty::None | Duty::IndexSuccess(_) | Duty::IndexFailure(_) | Duty::Removal => {}
            }
        }
        if self.context.completions.is_none() {
            status.succeeded = count(job.status.succeeded as usize + settled_succeeded);
        }
        status.failed = count(job.status.failed as usize + settled_failed);
        status.uncounted_terminated_pods = Some(UncountedTerminatedPods {
            succeeded: (!succeeded.is_empty()).then_some(succeeded),
            failed: (!failed.is_empty()).then_some(failed),
        });
    }

    /// Divides uncounted uids into those that stay, and the number of those whose
    /// finalizer is known to be gone.
    fn divide(&self, uids: &[String]) -> (Vec<String>, usize) {
        let stay: Vec<String> = uids.iter().filter(|uid| !self.is_settled(uid)).cloned().collect();
        let settled = uids.len() - stay.len();
        (stay, settled)
    }

    fn is_settled(&self, uid: &str) -> bool {
        match self.pods.find(uid) {
            Some(slot) => !self.pods.get(slot).is_tracked,
            // What is not known is gone only if everything that existed when the status
            // was written is known.
            None if self.strangers.get(uid).is_some_and(Stranger::is_tracked) => false,
            None => self.settled.contains(uid) || self.freshness.pods_version() >= self.version,
        }
    }

    fn draft_indexes(&self, job: &JobView, status: &mut JobStatus) {
        let Some(completions) = self.context.completions else {
            return;
        };
        status.completed_indexes = text(&self.completed);
        let succeeded = self.completed.count() as usize;
        // Only a Job that is scaled may go back; the API refuses any other, and would
        // never let a Job go on whose list of indexes somebody has spoilt.
        let may_go_back = job.parallelism == completions;
        let least = if may_go_back { 0 } else { job.status.succeeded as usize };
        status.succeeded = count(succeeded.max(least));
        // As in Kubernetes, what had failed is forgotten while failures per index are
        // turned off: such an index is tried again.
        status.failed_indexes = self.context.per_index.map(|_| self.failed.to_string());
    }

    /// The interim condition first; the terminal one when that stands written and nothing
    /// is left.
    fn draft_end(&self, job: &JobView, now: Timestamp, draft: &mut Draft) {
        let Some(end) = &self.end else {
            return;
        };
        let (interim, terminal) = if end.is_success {
            (JobConditionType::SuccessCriteriaMet, JobConditionType::Complete)
        } else {
            (JobConditionType::FailureTarget, JobConditionType::Failed)
        };
        let status = &mut draft.status;
        if !job.status.is_true(interim) {
            set_condition(status, interim, ConditionStatus::True, &end.reason, &end.message, now);
            if end.is_success && self.has_too_many(job) {
                draft.events.push(JobEvent {
                    is_warning: true,
                    reason: event::TOO_MANY_SUCCEEDED_PODS.into(),
                    message: message::TOO_MANY_SUCCEEDED_PODS.to_owned(),
                });
            }
            return;
        }
        let uncounted = status.uncounted_terminated_pods.as_ref();
        let is_counted =
            uncounted.is_none_or(|pods| pods.succeeded.is_none() && pods.failed.is_none());
        if !is_counted || !self.is_at_rest() {
            return;
        }
        set_condition(status, terminal, ConditionStatus::True, &end.reason, &end.message, now);
        if !end.is_success {
            draft.events.push(JobEvent {
                is_warning: true,
                reason: end.reason.clone().into(),
                message: end.message.clone(),
            });
        }
        let has_nothing_to_do = job.suspended && self.wanted_nothing(job);
        if status.start_time.is_none() && !has_nothing_to_do {
            status.start_time = Some(Time(now));
        }
        if end.is_success {
            let start = status.start_time.as_ref().map_or(now, |time| time.0);
            status.completion_time = Some(Time(now.max(start)));
            draft.events.push(JobEvent {
                is_warning: false,
                reason: event::COMPLETED.into(),
                message: message::JOB_COMPLETED.to_owned(),
            });
        }
    }

    /// Whether more Pods have succeeded than were asked for.
    fn has_too_many(&self, job: &JobView) -> bool {
        match &job.completion {
            Completion::Count(completions) => self.succeeded(job) > u64::from(*completions),
            Completion::Indexed(_) | Completion::WorkQueue => false,
        }
    }

    fn wanted_nothing(&self, job: &JobView) -> bool {
        match &job.completion {
            Completion::Count(completions) => *completions == 0,
            Completion::Indexed(indexed) => indexed.completions == 0,
            Completion::WorkQueue => false,
        }
    }

    /// Whether no Pod runs, ends, is being created, or bears the finalizer.
    fn is_at_rest(&self) -> bool {
        let sums = &self.pods.sums;
        sums.active == 0
            && sums.terminating == 0
            && sums.tracked == 0
            && self.creating.is_empty()
            && self.unanswered.is_empty()
            && self.strays.is_empty()
            && self.knows_its_pods()
    }
}

fn draft_suspension(job: &JobView, now: Timestamp, draft: &mut Draft) {
    let kind = JobConditionType::Suspended;
    let is_suspended = job.status.is_true(kind);
    let mut say = |reason: &'static str, message: &str| {
        let message = message.to_owned();
        draft.events.push(JobEvent { is_warning: false, reason: reason.into(), message });
    };
    if job.suspended && !is_suspended {
        say(event::SUSPENDED, message::JOB_SUSPENDED);
        let status = &mut draft.status;
        status.start_time = None;
        let (why, what) = (reason::JOB_SUSPENDED, message::JOB_SUSPENDED);
        set_condition(status, kind, ConditionStatus::True, why, what, now);
    } else if !job.suspended && is_suspended {
        say(event::RESUMED, message::JOB_RESUMED);
        let status = &mut draft.status;
        status.start_time = Some(Time(now));
        let (why, what) = (reason::JOB_RESUMED, message::JOB_RESUMED);
        set_condition(status, kind, ConditionStatus::False, why, what, now);
    }
}

fn set_condition(
    status: &mut JobStatus,
    kind: JobConditionType,
    value: ConditionStatus,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let conditions = status.conditions.get_or_insert_default();
    let condition = JobCondition {
        type_: kind.to_string(),
        status: value.to_string(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    };
    match conditions.iter_mut().find(|condition| condition.type_ == kind.as_str()) {
        Some(old) => *old = condition,
        None => conditions.push(condition),
    }
    debug_assert!(condition::has(conditions, kind, value));
}

fn text(indexes: &IndexSet) -> Option<String> {
    (!indexes.is_empty()).then(|| indexes.to_string())
}

fn count(number: usize) -> Option<i32> {
    (number > 0).then(|| i32::try_from(number).unwrap_or(i32::MAX))
}
