//! The state machine of one Job.
//!
//! ```text
//!   observe(event) ─┐                                ┌─▶ Create, Delete, Adopt, Release
//!   settle(op, …) ──┼─▶ records, sums, base ─next()──┼─▶ RemoveFinalizer
//!                   │                                └─▶ WriteStatus (one at a time)
//! ```
//!
//! # Guarantees
//!
//! 1. At most one WriteStatus is in flight. What happens meanwhile goes into the next one.
//! 2. RemoveFinalizer only for a Pod that the last acknowledged status accounts for.
//! 3. A uid leaves the uncounted list into a counter only when its finalizer is known to
//!    be gone.
//! 4. With backoffLimitPerIndex, a failed Pod's finalizer stays until its replacement
//!    exists or its index is failed.
//! 5. A terminal condition only after its interim condition is acknowledged and nothing
//!    is active, terminating, tracked or uncounted.
//! 6. A Pod's name is a function of (Job uid, index, attempt).
//! 7. An op in doubt is resolved by looking or by asking again what cannot be done twice.
//! 8. What is acknowledged is known at once; an older event cannot roll it back.
//!
//! # Assumptions
//!
//! Versions can be compared, across Jobs and Pods. A Pod that bears the finalizer is not
//! removed from the API. The caller tells of every Job and Pod with this Job's uid.

mod adoption;
mod creation;
mod deletion;
mod indexes;
mod status;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use k8s_openapi::jiff::Timestamp;
use stint_api::feature_gates::{FeatureGates, Gate};
use stint_api::index_set::IndexSet;
use stint_api::view::{Completion, JobView, ManagedBy};

use crate::backoff::{BackoffDelays, FailureStreak};
use crate::context::{Context, Course};
use crate::end_state::{self, EndState, Evidence};
use crate::event::Event;
use crate::graves::Graves;
use crate::op::{Applied, JobEvent, Op, OpId, OpKind, Outcome, PodRef, Refusal};
use crate::pod_facts::{Owner, PodFacts, PodPhase};
use crate::pod_failure_policy::{Verdict, judge};
use crate::pod_name::PodNames;
use crate::pods::{Duty, Pods, Record, Share, Slot};
use crate::removal::Standing;
use crate::success_policy::SuccessProgress;
use adoption::Stranger;
use creation::Creating;
use status::StatusWrite;

/// What is the same for all Jobs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The feature gates.
    pub gates: FeatureGates,
    /// The delays after failures.
    pub delays: BackoffDelays,
    /// Whose Jobs are ours.
    pub manages: ManagedBy,
    /// How many uids the status may list as uncounted: 500 of 36 characters are 20 KB.
    pub max_uncounted: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            gates: FeatureGates::default(),
            delays: BackoffDelays::default(),
            manages: ManagedBy::BuiltIn,
            max_uncounted: 500,
        }
    }
}

/// The ledger of one Job, from its uid.
#[derive(Clone, Debug)]
pub struct JobLedger {
    settings: Settings,
    job_uid: String,
    /// The Job at the highest version that is known: its spec, and the status that is
    /// acknowledged.
    job: Option<JobView>,
    version: u64,
    is_gone: bool,
    /// A Job that was seen while a status was being written; the answer may be newer.
    postponed: Option<Box<JobView>>,
    names: PodNames,
    pods: Pods,
    context: Context,
    /// What exists and is not known has been created after this version.
    pods_version: u64,
    /// Whether the Pods have been listed.
    is_listed: bool,
    graves: Graves,
    /// Indexes that succeeded, written down or not.
    completed: IndexSet,
    /// Indexes that failed, written down or not.
    failed: IndexSet,
    /// Indexes that need no Pod now: succeeded, failed, taken, or held back.
    occupied: IndexSet,
    /// Indexes that wait for their backoff.
    held_back: BTreeMap<u32, Timestamp>,
    /// The same, by time.
    alarms: BTreeSet<(Timestamp, u32)>,
    progress: Option<SuccessProgress>,
    fail_job: Option<String>,
    streak: FailureStreak,
    /// Pods that are being created, by name.
    creating: BTreeMap<String, Creating>,
    creating_indexes: BTreeSet<u32>,
    /// Those of them that nothing is on its way for.
    unasked: BTreeSet<String>,
    attempts: HashMap<Option<u32>, u32>,
    /// Nothing is created before this time: the API has refused.
    paused_until: Option<Timestamp>,
    refusals: u32,
    pause_is_due: bool,
    /// Uids of the uncounted list whose finalizer is known to be gone.
    settled: HashSet<String>,
    /// Indexes with more than one active Pod.
    crowded: BTreeSet<u32>,
    strangers: BTreeMap<String, Stranger>,
    write: Option<StatusWrite>,
    job_look_up: LookUp,
    end: Option<EndState>,
    in_flight: HashMap<OpId, InFlight>,
    last_op: u64,
    last_asked: Option<Timestamp>,
    events: Vec<JobEvent>,
    /// Whether a status might have to be written.
    is_dirty: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LookUp {
    #[default]
    NotNeeded,
    Needed,
    InFlight,
}

/// What an op was about.
#[derive(Clone, Debug)]
enum InFlight {
    Create(String),
    LookUpPod(String),
    Pod { uid: String },
    Stranger { uid: String },
    Status,
    LookUpJob,
}

impl JobLedger {
    /// The ledger of the Job with this name and uid, of which nothing is known yet.
    pub fn new(settings: Settings, job_name: &str, job_uid: &str) -> Self {
        Self {
            settings,
            job_uid: job_uid.to_owned(),
            job: None,
            version: 0,
            is_gone: false,
            postponed: None,
            names: PodNames::new(job_name, job_uid),
            pods: Pods::default(),
            context: Context::default(),
            pods_version: 0,
            is_listed: false,
            graves: Graves::default(),
            completed: IndexSet::new(),
            failed: IndexSet::new(),
            occupied: IndexSet::new(),
            held_back: BTreeMap::new(),
            alarms: BTreeSet::new(),
            progress: None,
            fail_job: None,
            streak: FailureStreak::default(),
            creating: BTreeMap::new(),
            creating_indexes: BTreeSet::new(),
            unasked: BTreeSet::new(),
            attempts: HashMap::new(),
            paused_until: None,
            refusals: 0,
            pause_is_due: false,
            settled: HashSet::new(),
            crowded: BTreeSet::new(),
            strangers: BTreeMap::new(),
            write: None,
            job_look_up: LookUp::NotNeeded,
            end: None,
            in_flight: HashMap::new(),
            last_op: 0,
            last_asked: None,
            events: Vec::new(),
            is_dirty: false,
        }
    }

    /// Takes note of something that was seen.
    pub fn observe(&mut self, event: Event) {
        match event {
            Event::JobSeen(job) if self.write.is_some() => {
                let is_newer = |held: &JobView| version_of(held) < version_of(&job);
                if self.postponed.as_deref().is_none_or(is_newer) {
                    self.postponed = Some(job);
                }
            }
            Event::JobSeen(job) => self.take_job(*job),
            Event::JobGone => {
                self.is_gone = true;
                self.rebuild();
            }
            Event::PodSeen { facts, is_selected } => {
                let version = facts.version;
                if !self.graves.is_buried(&facts.uid, version) {
                    self.see_pod(&facts, is_selected);
                }
                self.watch_reached(version);
            }
            Event::PodGone { uid } => {
                self.lose_pod(&uid);
                self.graves.forget(&uid);
            }
            Event::PodsCurrent { version } => {
                self.watch_reached(version);
                self.is_listed = true;
                self.is_dirty = true;
            }
        }
    }

    /// Takes note of what came of an op.
    pub fn settle(&mut self, id: OpId, outcome: Outcome) {
        let Some(about) = self.in_flight.remove(&id) else {
            return;
        };
        match about {
            InFlight::Create(name) => self.settle_create(name, outcome),
            InFlight::LookUpPod(name) => self.settle_look_up(name, outcome),
            InFlight::Pod { uid } => self.settle_pod(&uid, outcome),
            InFlight::Stranger { uid } => self.settle_stranger(&uid, outcome),
            InFlight::Status => self.settle_status(outcome),
            InFlight::LookUpJob => self.settle_job_look_up(outcome),
        }
    }

    /// The ops that are safe to start now.
    pub fn next(&mut self, now: Timestamp) -> Vec<Op> {
        self.last_asked = Some(now);
        let mut ops = Vec::new();
        for event in std::mem::take(&mut self.events) {
            self.issue(OpKind::EmitEvent(event), None, &mut ops);
        }
        if self.is_gone || (self.is_ours() && self.context.course == Course::Over) {
            self.next_removals(&mut ops);
            return ops;
        }
        if !self.is_ours() {
            return ops;
        }
        if self.job_look_up == LookUp::Needed {
            self.job_look_up = LookUp::InFlight;
            self.issue(OpKind::LookUpJob, Some(InFlight::LookUpJob), &mut ops);
        }
        if !self.is_listed {
            return ops;
        }
        self.let_go(now);
        self.next_strangers(&mut ops);
        if self.end.is_none() {
            self.end = self.decide(now);
            self.is_dirty |= self.end.is_some();
        }
        self.next_deletions(&mut ops);
        self.next_creations(now, &mut ops);
        self.next_removals(&mut ops);
        self.next_status(now, &mut ops);
        ops
    }

    /// When to ask again if nothing happens; later than the last time it was asked.
    pub fn wake_at(&self) -> Option<Timestamp> {
        if !self.is_ours() || self.is_gone || self.context.course != Course::Running {
            return None;
        }
        let deadline = self.job.as_ref().and_then(end_state::deadline);
        let held_back = self.alarms.first().map(|&(at, _)| at);
        let backoff = self.streak.ready_at(&self.settings.delays);
        // What was due when the ledger was last asked has been dealt with.
        let is_ahead = |at: &Timestamp| self.last_asked.is_none_or(|asked| *at > asked);
        let times = [deadline, held_back, backoff, self.paused_until];
        times.into_iter().flatten().filter(is_ahead).min()
    }

    /// Whether nothing is left to do, ever: the Job is gone, and no Pod bears its mark.
    pub fn is_empty(&self) -> bool {
        self.is_gone && self.pods.sums.tracked == 0 && self.in_flight.is_empty()
    }

    fn is_ours(&self) -> bool {
        self.job.as_ref().is_some_and(|job| job.managed_by == self.settings.manages)
    }

    fn take_job(&mut self, job: JobView) {
        if job.uid != self.job_uid || (self.job.is_some() && version_of(&job) <= self.version) {
            return;
        }
        self.version = version_of(&job);
        self.job = Some(job);
        self.job_look_up = match self.job_look_up {
            LookUp::Needed => LookUp::NotNeeded,
            other => other,
        };
        self.rebuild();
    }

    /// Takes the answer to our own status. As long as it changes neither the spec nor the
    /// Job's course, only the Pods that waited to be written are judged anew.
    fn acknowledge(&mut self, job: JobView) {
        let context = Context::of(&job, &self.settings.gates);
        let is_plain = context.course == self.context.course
            && self.job.as_ref().is_some_and(|known| known.generation == job.generation);
        if !is_plain {
            self.end = None;
            return self.take_job(job);
        }
        self.version = version_of(&job);
        self.job = Some(job);
        self.context = context;
        self.settled.retain(|uid| self.context.is_uncounted(uid));
        if self.completed.first_common(&self.context.written_failed).is_some() {
            // A success came while the failure of its index was being written.
            return self.rebuild();
        }
        let written: Vec<Slot> = self.pods.sums.to_write.iter().copied().collect();
        for slot in written {
            let context = &self.context;
            self.pods.change(slot, |_| {}, |record| context.share(record));
        }
    }

    /// Brings everything up to date with a Job that has changed behind our back, or
    /// whose course has: every Pod is judged anew.
    fn rebuild(&mut self) {
        self.is_dirty = true;
        let Some(job) = &self.job else {
            self.context.course = Course::Over;
            return self.judge_all();
        };
        self.context = Context::of(job, &self.settings.gates);
        if self.is_gone {
            self.context.course = Course::Over;
        }
        self.completed = job.status.completed_indexes.clone();
        self.failed = match self.context.per_index {
            Some(_) => job.status.failed_indexes.clone().unwrap_or_default(),
            None => IndexSet::new(),
        };
        self.progress = self.success_progress(job);
        self.fail_job = None;
        self.settled.retain(|uid| self.context.is_uncounted(uid));
        self.held_back.clear();
        self.alarms.clear();
        self.crowded.clear();
        let finished = u64::from(job.status.succeeded) + u64::from(job.status.failed);
        let uncounted =
            self.context.uncounted_failed.len() + self.context.uncounted_succeeded.len();
        if self.context.completions.is_none() {
            let least = u32::try_from(finished + uncounted as u64).unwrap_or(u32::MAX);
            let attempt = self.attempts.entry(None).or_insert(0);
            *attempt = (*attempt).max(least);
        }
        // An end that was decided and not written is looked at again: the spec may differ.
        if self.write.is_none() {
            self.end = None;
        }
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
        for index in taken.into_iter().chain(waiting).chain(creating) {
            self.look_at_index(index);
        }
    }

    fn see_pod(&mut self, facts: &PodFacts, is_selected: bool) {
        let is_mine = facts.owner == Owner::Controller(self.job_uid.clone());
        self.note_stranger(facts, is_mine, is_selected);
        if !is_mine {
            self.lose_pod(&facts.uid);
            return;
        }
        self.note_attempt(facts);
        self.is_created(facts);
        let verdict = self.verdict(facts);
        let context = &self.context;
        let slot = match self.pods.find(&facts.uid) {
            Some(slot) if self.pods.get(slot).version > facts.version => return,
            Some(slot) => {
                let went_back =
                    self.pods.get(slot).is_finished() && self.pods.get(slot).phase != facts.phase;
                self.pods.change(
                    slot,
                    |record| record.take(facts, verdict),
                    |record| context.share(record),
                );
                if went_back {
                    // A Pod that changes its mind may have failed its index; start over.
                    return self.rebuild();
                }
                slot
            }
            None => {
                let mut record = new_record(facts, verdict);
                record.share = context.share(&record);
                self.pods.insert(record)
            }
        };
        self.after_change(slot);
    }

    fn after_change(&mut self, slot: Slot) {
        self.is_dirty = true;
        self.learn(slot);
        let record = self.pods.get(slot);
        let index = record.index;
        let is_over = !record.is_tracked && (record.is_finished());
        if !record.is_tracked && self.context.is_uncounted(&record.uid) {
            self.settled.insert(record.uid.to_string());
        }
        if is_over {
            let record = self.pods.remove(slot);
            self.graves.bury(&record.uid, record.version, self.pods_version);
        }
        self.look_at(index);
    }

    /// The watch of Pods has come to this version: nothing older is on its way.
    fn watch_reached(&mut self, version: u64) {
        if version > self.pods_version {
            self.pods_version = version;
            self.graves.clear_up_to(version);
            // Uids that could not be told to be gone may be so now.
            self.is_dirty |= !self.context.uncounted_failed.is_empty()
                || !self.context.uncounted_succeeded.is_empty();
        }
    }

    fn lose_pod(&mut self, uid: &str) {
        if self.context.is_uncounted(uid) {
            self.settled.insert(uid.to_owned());
        }
        self.strangers.remove(uid);
        self.is_dirty = true;
        if let Some(slot) = self.pods.find(uid) {
            let record = self.pods.remove(slot);
            self.look_at(record.index);
        }
    }

    fn note_attempt(&mut self, facts: &PodFacts) {
        let index = facts.index.filter(|_| self.context.completions.is_some());
        if let Some(attempt) = self.names.attempt(index, &facts.name) {
            let next = self.attempts.entry(index).or_insert(0);
            *next = (*next).max(attempt.saturating_add(1));
        }
    }

    fn verdict(&self, facts: &PodFacts) -> Verdict {
        let Some(job) = &self.job else {
            return Verdict::Count { by_rule: false };
        };
        match &job.failure_policy {
            Some(policy) => judge(policy, &job.namespace, facts, self.context.per_index.is_some()),
            None => Verdict::Count { by_rule: false },
        }
    }

    /// Draws the conclusions of a Pod's end that outlast the Pod.
    fn learn(&mut self, slot: Slot) {
        let record = self.pods.get(slot);
        match record.share.duty {
            Duty::IndexSuccess(index) => {
                self.streak.succeeded(record.finished_at);
                // A Pod that was given up has succeeded before its failure was written.
                self.failed.remove(index);
                if self.completed.insert(index) {
                    self.attempts.remove(&Some(index));
                    if let Some(progress) = &mut self.progress {
                        progress.insert(index);
                    }
                }
            }
            Duty::Success => self.streak.succeeded(record.finished_at),
            Duty::Failure | Duty::IndexFailure(_) => self.learn_failure(slot),
            Duty::None | Duty::Removal => {}
        }
    }

    fn learn_failure(&mut self, slot: Slot) {
        let record = self.pods.get(slot);
        let (counts, at) = (record.verdict.counts(), record.finished_at);
        if let Verdict::FailJob(message) = &record.verdict
            && self.fail_job.is_none()
            && record.phase == PodPhase::Failed
        {
            self.fail_job = Some(message.clone());
        }
        if let (Duty::IndexFailure(index), Some(per_index)) =
            (record.share.duty, self.context.per_index)
        {
            let is_over = record.verdict == Verdict::FailIndex
                || (counts && record.failure_count >= per_index.limit);
            if is_over && !self.completed.contains(index) {
                self.failed.insert(index);
            }
        } else if !record.is_noted {
            self.streak.failed(at);
        }
        let context = &self.context;
        self.pods.change(slot, |record| record.is_noted = true, |record| context.share(record));
    }

    fn decide(&self, now: Timestamp) -> Option<EndState> {
        let job = self.job.as_ref()?;
        end_state::decide(
            &Evidence {
                job,
                failed: u64::from(job.status.failed)
                    + self.context.uncounted_failed.len() as u64
                    + self.pods.sums.new_failures as u64,
                succeeded: self.succeeded(job),
                failed_indexes: self.failed.count(),
                active: self.pods.sums.active + self.creating.len(),
                restarts: self.pods.sums.restarts,
                fail_job: self.fail_job.as_deref(),
                success_rule: self.progress.as_ref().and_then(SuccessProgress::met),
                per_index: self.context.per_index.is_some(),
            },
            now,
        )
    }

    fn succeeded(&self, job: &JobView) -> u64 {
        match self.context.completions {
            Some(_) => self.completed.count(),
            None => {
                u64::from(job.status.succeeded)
                    + self.context.uncounted_succeeded.len() as u64
                    + self.pods.sums.new_successes as u64
            }
        }
    }

    fn next_removals(&mut self, ops: &mut Vec<Op>) {
        let slots: Vec<Slot> = self.pods.sums.to_remove.iter().copied().collect();
        for slot in slots {
            self.issue_for(slot, OpKind::RemoveFinalizer, ops);
        }
    }

    /// Issues an op for a Pod, unless one is on its way.
    fn issue_for(&mut self, slot: Slot, kind: fn(PodRef) -> OpKind, ops: &mut Vec<Op>) -> bool {
        let record = self.pods.get(slot);
        if record.is_busy || record.stale_version == Some(record.version) {
            return false;
        }
        // What has not ended may do so at any moment, and would count then.
        let pod = PodRef {
            name: record.name.to_string(),
            uid: record.uid.to_string(),
            version: (!record.is_finished() && self.context.course != Course::Over)
                .then_some(record.version),
        };
        let about = InFlight::Pod { uid: pod.uid.clone() };
        self.set_busy(slot, true);
        self.issue(kind(pod), Some(about), ops);
        true
    }

    fn set_busy(&mut self, slot: Slot, is_busy: bool) {
        let context = &self.context;
        self.pods.change(slot, |record| record.is_busy = is_busy, |record| context.share(record));
    }

    fn issue(&mut self, kind: OpKind, about: Option<InFlight>, ops: &mut Vec<Op>) {
        self.last_op += 1;
        let id = OpId(self.last_op);
        if let Some(about) = about {
            self.in_flight.insert(id, about);
        }
        ops.push(Op { id, kind });
    }

    fn settle_pod(&mut self, uid: &str, outcome: Outcome) {
        if let Some(slot) = self.pods.find(uid) {
            self.set_busy(slot, false);
        }
        match outcome {
            Outcome::Applied(Applied::Pod(facts)) => self.see_pod(&facts, true),
            Outcome::Applied(Applied::NoPod) | Outcome::Refused(Refusal::NotFound) => {
                self.lose_pod(uid);
                self.graves.bury_for_good(uid);
            }
            Outcome::Refused(Refusal::Conflict) => {
                if let Some(slot) = self.pods.find(uid) {
                    let context = &self.context;
                    self.pods.change(
                        slot,
                        |record| record.stale_version = Some(record.version),
                        |record| context.share(record),
                    );
                }
            }
            // Asking again is harmless: what is gone cannot be taken off twice.
            Outcome::Applied(Applied::Job(_) | Applied::NoJob)
            | Outcome::Refused(Refusal::AlreadyExists | Refusal::TryLater | Refusal::Rejected)
            | Outcome::InDoubt => {}
        }
    }

    fn settle_job_look_up(&mut self, outcome: Outcome) {
        self.job_look_up = LookUp::NotNeeded;
        match outcome {
            Outcome::Applied(Applied::Job(job)) => self.observe(Event::JobSeen(job)),
            Outcome::Applied(Applied::NoJob) | Outcome::Refused(Refusal::NotFound) => {
                self.observe(Event::JobGone);
            }
            Outcome::Applied(Applied::Pod(_) | Applied::NoPod)
            | Outcome::Refused(_)
            | Outcome::InDoubt => self.job_look_up = LookUp::Needed,
        }
    }
}

fn version_of(job: &JobView) -> u64 {
    job.resource_version.parse().unwrap_or(0)
}

fn new_record(facts: &PodFacts, verdict: Verdict) -> Record {
    Record {
        name: facts.name.as_str().into(),
        uid: facts.uid.as_str().into(),
        version: facts.version,
        index: facts.index,
        failure_count: facts.failure_count,
        ignored_failure_count: facts.ignored_failure_count,
        phase: facts.phase,
        is_deleted: facts.is_deleted,
        is_tracked: facts.is_tracked,
        standing: Standing::of(facts),
        finished_at: facts.finished_at,
        verdict,
        is_doomed: false,
        is_released: false,
        is_noted: false,
        stale_version: None,
        is_busy: false,
        share: Share::default(),
    }
}
