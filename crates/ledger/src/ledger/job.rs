//! What is known of the Job itself.

use stint_api::closed_set::JobConditionType;
use stint_api::feature_gates::Gate;
use stint_api::index_set::IndexSet;
use stint_api::names::event;
use stint_api::view::{Completion, JobView, JobViewError, ManagedBy, StatusView};

use super::status::StatusWrite;
use super::{InFlight, JobLedger};
use crate::context::{Context, Course};
use crate::freshness::LookUp;
use crate::metric::Metric;
use crate::op::{Applied, Op, OpKind, Outcome, Refusal};
use crate::pods::{Duty, Slot};
use crate::success_policy::SuccessProgress;

/// Whatever a status says, so many attempts are left free: some billion.
const MOST_PAST_ATTEMPTS: u32 = 1 << 30;

impl JobLedger {
    pub(super) fn see_job(&mut self, job: Box<JobView>) {
        if self.write.is_none() {
            return self.take_job(*job);
        }
        let is_newer = |held: &JobView| version_of(held) < version_of(&job);
        if self.postponed.as_deref().is_none_or(is_newer) {
            self.postponed = Some(job);
        }
    }

    /// Whether it is known that the Job has changed in a way that matters, although the
    /// change cannot be taken in before the status on its way is answered.
    pub(super) fn is_outdated(&self) -> bool {
        let (Some(new), Some(known)) = (&self.postponed, &self.job) else {
            return false;
        };
        let status = &new.status;
        new.generation != known.generation
            || new.deleted.is_some()
            || status.is_finished()
            || status.is_true(JobConditionType::SuccessCriteriaMet)
            || status.is_true(JobConditionType::FailureTarget)
    }

    /// A Job from the future, or one that no API server would let pass: hands off.
    pub(super) fn cannot_read_job(&mut self, version: u64, error: JobViewError) {
        if version <= self.version || self.is_gone {
            return;
        }
        if self.unreadable.as_ref() != Some(&error) {
            let message = format!("Skipped the Job: {error}");
            self.say(true, event::UNKNOWN_COMPLETION_MODE, message);
        }
        self.version = version;
        self.unreadable = Some(error);
    }

    pub(super) fn miss_job(&mut self, version: u64) {
        match &self.job {
            Some(_) if self.version > version => {}
            Some(_) => self.lose_job(),
            // Whether it is gone or not seen yet only the API can tell.
            None => {
                if version >= self.version {
                    self.unreadable = None;
                }
                self.ask_for_job();
            }
        }
    }

    pub(super) fn lose_job(&mut self) {
        self.is_gone = true;
        self.unreadable = None;
        self.rebuild();
        self.judge_waiting();
    }

    pub(super) fn take_job(&mut self, job: JobView) {
        let is_old = self.version > 0 && version_of(&job) <= self.version;
        if self.is_gone || job.uid != self.job_uid || is_old {
            return;
        }
        self.job_look_up = match self.job_look_up {
            LookUp::Needed => LookUp::NotNeeded,
            other => other,
        };
        self.unreadable = None;
        if let Some(write) = self.doubtful.take()
            && job.status == StatusView::parse(Some(&write.status), self.context.completions)
        {
            // It was written after all, or somebody else has written the very same.
            return self.acknowledge(job, write, false);
        }
        let is_foreign = match &self.job {
            Some(known) => known.status != job.status,
            None => true,
        };
        // The status of a Job that nobody has begun counts nothing that could be counted twice.
        if is_foreign && !is_unbegun(&job) {
            self.freshness.foreign_status(version_of(&job));
        }
        if let (None, ManagedBy::External(controller)) = (&self.job, &job.managed_by)
            && self.settings.manages == ManagedBy::BuiltIn
            && self.settings.gates.enabled(Gate::JobManagedBy)
        {
            self.metrics.push(Metric::External { controller: controller.clone() });
        }
        if self.job.is_none() {
            self.taken.union(&past_attempts(&job.status));
        }
        self.note_change(&job);
        self.version = version_of(&job);
        self.job = Some(job);
        self.rebuild();
        self.judge_waiting();
    }

    /// A Job that was changed may have places that no Pod has left: they are as new as it is.
    fn note_change(&mut self, job: &JobView) {
        if self.job.as_ref().is_some_and(|known| known.generation != job.generation) {
            self.last_end = None;
        }
    }

    /// Takes the answer to our own status. As long as it changes neither the spec nor the
    /// Job's course, and nothing was judged anew by the status before it, only the Pods that waited to be written are judged anew.
    pub(super) fn acknowledge(&mut self, job: JobView, write: StatusWrite, is_certain: bool) {
        self.events.extend(write.events);
        if let Some(known) = &self.job {
            if is_unbegun(known) && is_certain {
                // Nobody creates Pods before this status, and it can be written but once.
                self.freshness.verify_pods();
            }
            let metrics = self.counted(&known.status, &job.status);
            self.metrics.extend(metrics);
        }
        self.freshness.verify_job();
        let context = Context::of(&job, &self.settings.gates);
        let is_plain = !std::mem::take(&mut self.was_rebuilt)
            && context.course == self.context.course
            && self.job.as_ref().is_some_and(|known| known.generation == job.generation);
        self.note_change(&job);
        self.version = version_of(&job);
        self.job = Some(job);
        if !is_plain {
            return self.rebuild();
        }
        self.context = context;
        self.settled.retain(|uid| self.context.is_uncounted(uid));
        // A success came while the failure of its index, or of its Pod, was being written:
        // that failure stands.
        let uncounted = &self.context.uncounted_failed;
        let successes = self.pods.sums.index_successes.iter().map(|&slot| self.pods.get(slot));
        let overtaken: Vec<(Option<u32>, Box<str>)> = successes
            .filter(|record| uncounted.contains(&*record.uid))
            .map(|record| (record.index, record.name.clone()))
            .collect();
        if !overtaken.is_empty()
            || self.completed.first_common(&self.context.written_failed).is_some()
        {
            self.rebuild();
            // Its index needs another Pod, and that another name.
            for (index, name) in overtaken {
                self.note_attempt(index, &name);
            }
            return;
        }
        // Every uid of the lists, not only the new ones: a Pod may have left and come back
        // while they were being written.
        let context = &self.context;
        let uids = context.uncounted_failed.iter().chain(&context.uncounted_succeeded);
        let uids = uids.filter_map(|uid| self.pods.find(uid));
        let indexes = self.pods.sums.index_successes.iter().copied();
        let written: Vec<Slot> = indexes.chain(uids).collect();
        for slot in written {
            let context = &self.context;
            let is_written = match self.pods.get(slot).share.duty {
                Duty::IndexSuccess(index) => context.written_completed.contains(index),
                Duty::None
                | Duty::Success
                | Duty::Failure
                | Duty::IndexFailure(_)
                | Duty::Removal => false,
            };
            self.pods.change(
                slot,
                |record| record.is_success_written |= is_written,
                |record| context.share(record),
            );
        }
    }

    /// What a status of ours has added to the counters.
    fn counted(&self, before: &StatusView, after: &StatusView) -> Vec<Metric> {
        let is_per_index = self.context.per_index.is_some();
        let failed_indexes =
            |status: &StatusView| status.failed_indexes.as_ref().map_or(0, IndexSet::count);
        let indexes = |is_success: bool, before: u64, after: u64| {
            let count = after.saturating_sub(before);
            Metric::IndexesFinished { is_success, is_per_index, count }
        };
        let pods = |is_success: bool, before: u32, after: u32| Metric::PodsFinished {
            is_success,
            count: u64::from(after.saturating_sub(before)),
        };
        let (old, new) = (before.completed_indexes.count(), after.completed_indexes.count());
        let mut metrics = vec![
            pods(true, before.succeeded, after.succeeded),
            pods(false, before.failed, after.failed),
            indexes(true, old, new),
            indexes(false, failed_indexes(before), failed_indexes(after)),
        ];
        metrics.retain(|metric| match metric {
            Metric::PodsFinished { count, .. } | Metric::IndexesFinished { count, .. } => {
                *count > 0
            }
            Metric::JobFinished { .. }
            | Metric::FailureHandled(_)
            | Metric::FinalizerHeld
            | Metric::FinalizerGone
            | Metric::PodCreation { .. }
            | Metric::External { .. } => true,
        });
        if !before.is_finished()
            && after.is_finished()
            && let Some(end) = &self.end
        {
            let reason = end.reason.clone().into();
            metrics.push(Metric::JobFinished { is_success: end.is_success, reason });
        }
        metrics
    }

    /// Brings everything up to date with a Job that has changed behind our back, or
    /// whose course has: every Pod is judged anew.
    pub(super) fn rebuild(&mut self) {
        self.is_dirty = true;
        self.was_rebuilt = self.write.is_some() || self.doubtful.is_some();
        let Some(job) = &self.job else {
            self.context.course = if self.is_gone { Course::Over } else { Course::Running };
            return self.judge_all();
        };
        self.context = Context::of(job, &self.settings.gates);
        if self.is_gone {
            self.context.course = Course::Over;
            self.context.is_finished = false;
        }
        self.completed = job.status.completed_indexes.clone();
        self.failed = match self.context.per_index {
            Some(_) => {
                // Somebody else may have written an index into both lists.
                let failed = job.status.failed_indexes.iter().flat_map(IndexSet::iter);
                failed.filter(|&index| !self.completed.contains(index)).collect()
            }
            None => IndexSet::new(),
        };
        self.progress = self.success_progress(job);
        self.fail_job = None;
        self.settled.retain(|uid| self.context.is_uncounted(uid));
        self.held_back.clear();
        self.alarms.clear();
        self.crowded.clear();
        self.judge_all();
    }

    fn success_progress(&self, job: &JobView) -> Option<SuccessProgress> {
        let Completion::Indexed(indexed) = &job.completion else {
            return None;
        };
        let policy = indexed.success_policy.as_ref()?;
        self.settings
            .gates
            .enabled(Gate::JobSuccessPolicy)
            .then(|| SuccessProgress::new(policy, &self.completed))
    }

    fn judge_all(&mut self) {
        for slot in self.pods.slots() {
            let context = &self.context;
            self.pods.change(
                slot,
                |record| record.is_released = false,
                |record| context.share(record),
            );
        }
        for slot in self.pods.slots() {
            self.learn(slot);
        }
        let mut occupied = self.completed.clone();
        occupied.union(&self.failed);
        self.occupied = occupied;
        let taken: Vec<u32> = self.pods.sums.by_index.keys().copied().collect();
        let waiting: Vec<u32> = self.pods.sums.waiting.keys().copied().collect();
        let creating: Vec<u32> = self.creating_indexes.iter().copied().collect();
        let strays: Vec<u32> = self.stray_indexes.iter().copied().collect();
        for index in taken.into_iter().chain(waiting).chain(creating).chain(strays) {
            self.look_at_index(index);
        }
    }

    /// Looks the Job up where that is needed: after a status that was refused or is in
    /// doubt, and for Pods of a Job that has never been seen.
    pub(super) fn next_job_look_up(&mut self, ops: &mut Vec<Op>) {
        let is_unknown = self.job.is_none() && !self.is_gone && self.unreadable.is_none();
        if is_unknown && !self.unjudged.is_empty() {
            self.ask_for_job();
        }
        let is_known_to_be_odd = self.is_gone || self.unreadable.is_some();
        let is_needed = self.job_look_up == LookUp::Needed && !is_known_to_be_odd;
        if is_needed && !self.write_pace.is_paused() {
            self.job_look_up = LookUp::InFlight;
            self.freshness.job_is_asked_for();
            self.issue(OpKind::LookUpJob, Some(InFlight::LookUpJob), ops);
        }
    }

    /// Asks for the Job past every cache, unless that is under way.
    pub(super) fn ask_for_job(&mut self) {
        if self.job_look_up == LookUp::NotNeeded {
            self.job_look_up = LookUp::Needed;
        }
    }

    pub(super) fn settle_job_look_up(&mut self, outcome: Outcome) {
        self.job_look_up = LookUp::NotNeeded;
        match outcome {
            // The name has been given to another Job.
            Outcome::Applied(Applied::Job(job)) if job.uid != self.job_uid => self.lose_job(),
            Outcome::Applied(Applied::Job(job)) => {
                self.freshness.verify_job();
                let is_known = version_of(&job) <= self.version;
                if version_of(&job) == self.version {
                    // What was in doubt was not written.
                    self.doubtful = None;
                }
                // While a status is on its way, what is new is only put aside.
                if is_known || self.write.is_none() {
                    self.freshness.job_is_answered();
                }
                self.see_job(job);
            }
            Outcome::Applied(Applied::NoJob) | Outcome::Refused(Refusal::NotFound) => {
                self.lose_job();
            }
            Outcome::Applied(Applied::Pod(_) | Applied::NoPod | Applied::Pods { .. })
            | Outcome::Refused(_)
            | Outcome::InDoubt => self.job_look_up = LookUp::Needed,
        }
    }
}

/// Whether nobody has done anything for the Job yet: what is done first is its status.
pub(super) fn is_unbegun(job: &JobView) -> bool {
    let status = &job.status;
    status.start_time.is_none()
        && status.conditions.is_empty()
        && status.succeeded == 0
        && status.failed == 0
        && status.uncounted_succeeded.is_empty()
        && status.uncounted_failed.is_empty()
}

/// The attempts of Pods without an index that have been, by a status that a new ledger begins
/// with: they may have left the API since, and their names are not to be given again.
fn past_attempts(status: &StatusView) -> IndexSet {
    let finished = u64::from(status.succeeded) + u64::from(status.failed);
    let uncounted = status.uncounted_succeeded.len() + status.uncounted_failed.len();
    let past = u32::try_from(finished + uncounted as u64).unwrap_or(u32::MAX);
    IndexSet::below(past.min(MOST_PAST_ATTEMPTS))
}

pub(super) fn version_of(job: &JobView) -> u64 {
    job.resource_version.parse().unwrap_or(0)
}
