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
//!    exists, its index is failed, or none can come any more as the namespace is being deleted.
//! 5. A terminal condition only after its interim condition is acknowledged and nothing
//!    is active, terminating, tracked or uncounted.
//! 6. A Pod's name is a function of (Job uid, index, attempt).
//! 7. An op in doubt is resolved by looking or by asking again what cannot be done twice.
//! 8. What is acknowledged is known at once; an older event cannot roll it back.
//! 9. No Pod is created while the Job may be older than what is known of its Pods, and the
//!    lowest attempt that is free is created first: two leaders that both create Pods ask
//!    for the same ones. Whether an index has waited long enough to be preferred to others
//!    is told by the end of the Pod whose place it takes, and not by the clock of a leader.
//!
//! # Assumptions
//!
//! Versions can be compared, across Jobs and Pods, as long as the API keeps both in one etcd; where it
//! does not, `is_torn` says so once that shows. A Pod that bears the finalizer is not
//! removed from the API. The caller tells of the Job, of the Pods that it controls, of
//! ownerless Pods that its selector matches, and of ownerless Pods that bear the finalizer
//! and the Job's uid as a label. Events may come late, twice, and in another order than
//! they happened: what is old by its version is passed over. A Job without a start time,
//! conditions and counts has no Pods but those that were listed: who runs a Job writes that
//! it has begun before its first Pod.

mod adoption;
mod creation;
mod deletion;
mod indexes;
mod job;
mod removals;
mod sight;
mod status;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use stint_api::feature_gates::{FeatureGates, Gate};
use stint_api::index_set::IndexSet;
use stint_api::view::{JobView, JobViewError, ManagedBy};

use crate::backoff::{BackoffDelays, FailureStreak};
use crate::context::{Context, Course};
use crate::end_state::{self, EndState, Evidence};
use crate::event::Event;
use crate::freshness::{Freshness, LookUp};
use crate::graves::Graves;
use crate::metric::Metric;
use crate::op::{JobEvent, Op, OpId, OpKind, Outcome, Refusal};
use crate::pace::{Interval, Pace};
use crate::pod_facts::PodFacts;
use crate::pod_name::PodNames;
use crate::pods::Pods;
use crate::success_policy::SuccessProgress;
use adoption::Stranger;
use creation::{Creating, Legacy, Probe};
use job::is_unbegun;
use removals::PodOp;
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
    /// How many Pods of one Job are asked for at once: more than an API server works on at a
    /// time, and few enough that removals find room beside them. Requests that wait are sent
    /// although the Job is suspended or scaled down meanwhile, so a caller that sends few at a
    /// time says so here.
    pub max_creating: usize,
    /// The shortest time between two statuses that say nothing but new counts. Everything
    /// else is written at once.
    pub status_interval: SignedDuration,
    /// Whether a Pod that its node ended, or that went down with it, is replaced as if it had
    /// never been, unless a rule of the Job says something else of it. Kubernetes counts it.
    pub forgives_nodes: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            gates: FeatureGates::default(),
            delays: BackoffDelays::default(),
            manages: ManagedBy::BuiltIn,
            max_uncounted: 500,
            max_creating: 2_048,
            status_interval: SignedDuration::ZERO,
            forgives_nodes: false,
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
    /// Why the Job at this version cannot be read, if so.
    unreadable: Option<JobViewError>,
    /// A Job that was seen while a status was being written; the answer may be newer.
    postponed: Option<Box<JobView>>,
    names: PodNames,
    pods: Pods,
    context: Context,
    /// Pods that were seen before the Job, with whether it selects them.
    unjudged: BTreeMap<String, (PodFacts, bool)>,
    /// The version as of which all Pods were known before the Job was.
    unjudged_version: Option<u64>,
    freshness: Freshness,
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
    /// When the last Pod ended, by what the API has told of it; everybody is told the same.
    /// Nothing if that is as good as now: the ledger has just begun, or the Job has changed.
    last_end: Option<Timestamp>,
    progress: Option<SuccessProgress>,
    fail_job: Option<String>,
    streak: FailureStreak,
    /// Pods that are being created, by name.
    creating: BTreeMap<String, Creating>,
    creating_indexes: BTreeSet<u32>,
    /// Those of them that nothing is on its way for.
    unasked: BTreeSet<String>,
    /// Requests for Pods without an answer, by name, where a Pod of that name has been seen.
    unanswered: BTreeMap<String, Option<u32>>,
    /// Those of them whose Pod has ended or left. If somebody else had made it, our own
    /// request may still make another: its place is kept until the answer comes.
    strays: BTreeMap<String, Option<u32>>,
    stray_indexes: BTreeSet<u32>,
    /// The next attempt at each index.
    attempts: BTreeMap<u32, u32>,
    /// What the last Pod of an index had inherited, where that is anything.
    legacies: BTreeMap<u32, Legacy>,
    /// The attempts without an index that are taken: their Pods are there, have been, or are
    /// being created. The lowest that is free is next, so that two leaders who miss one Pod
    /// ask for the same one.
    taken: IndexSet,
    creation_pace: Pace,
    /// Whether the namespace is being deleted, so that no Pod can come any more.
    is_barren: bool,
    /// There once creations were refused, until enough of them are granted again.
    probe: Option<Probe>,
    /// The last op when creations were last to slow down: what was asked for up to it was
    /// asked for without knowing why.
    asked_in_vain: OpId,
    status_pace: Pace,
    status_interval: Interval,
    /// How far apart statuses are that count but a few Pods, if longer than the settings say.
    crowd_interval: SignedDuration,
    write_pace: Pace,
    /// Uids of the uncounted list whose finalizer is known to be gone.
    settled: BTreeSet<String>,
    /// Indexes with more than one active Pod.
    crowded: BTreeSet<u32>,
    strangers: BTreeMap<String, Stranger>,
    /// Those of them that nothing is on its way for.
    idle_strangers: BTreeSet<String>,
    write: Option<StatusWrite>,
    /// Whether all Pods were judged anew since it was sent.
    was_rebuilt: bool,
    /// A status of ours that may have been written.
    doubtful: Option<StatusWrite>,
    job_look_up: LookUp,
    end: Option<EndState>,
    in_flight: BTreeMap<OpId, InFlight>,
    last_op: u64,
    last_asked: Option<Timestamp>,
    events: Vec<JobEvent>,
    metrics: Vec<Metric>,
    /// Whether a status might have to be written.
    is_dirty: bool,
}

/// What an op was about.
#[derive(Clone, Debug)]
enum InFlight {
    Create(String),
    LookUpPod(String),
    Pod { uid: String, op: PodOp, version: u64 },
    Stranger { uid: String },
    Status,
    LookUpJob,
    LookUpPods,
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
            unreadable: None,
            postponed: None,
            names: PodNames::new(job_name, job_uid),
            pods: Pods::default(),
            context: Context::default(),
            unjudged: BTreeMap::new(),
            unjudged_version: None,
            freshness: Freshness::default(),
            graves: Graves::default(),
            completed: IndexSet::new(),
            failed: IndexSet::new(),
            occupied: IndexSet::new(),
            held_back: BTreeMap::new(),
            alarms: BTreeSet::new(),
            last_end: None,
            progress: None,
            fail_job: None,
            streak: FailureStreak::default(),
            creating: BTreeMap::new(),
            creating_indexes: BTreeSet::new(),
            unasked: BTreeSet::new(),
            unanswered: BTreeMap::new(),
            strays: BTreeMap::new(),
            stray_indexes: BTreeSet::new(),
            attempts: BTreeMap::new(),
            legacies: BTreeMap::new(),
            taken: IndexSet::new(),
            creation_pace: Pace::default(),
            is_barren: false,
            probe: None,
            asked_in_vain: OpId(0),
            status_pace: Pace::default(),
            status_interval: Interval::default(),
            crowd_interval: SignedDuration::ZERO,
            write_pace: Pace::default(),
            settled: BTreeSet::new(),
            crowded: BTreeSet::new(),
            strangers: BTreeMap::new(),
            idle_strangers: BTreeSet::new(),
            write: None,
            was_rebuilt: false,
            doubtful: None,
            job_look_up: LookUp::NotNeeded,
            end: None,
            in_flight: BTreeMap::new(),
            last_op: 0,
            last_asked: None,
            events: Vec::new(),
            metrics: Vec::new(),
            is_dirty: false,
        }
    }

    /// Takes note of something that was seen.
    pub fn observe(&mut self, event: Event) {
        match event {
            Event::JobSeen(job) => self.see_job(job),
            Event::JobUnreadable { version, error } => self.cannot_read_job(version, error),
            Event::JobGone { version } => self.miss_job(version),
            Event::PodSeen { facts, is_selected } => self.see_pod(&facts, is_selected),
            Event::PodGone { uid, version } => self.miss_pod(&uid, version),
            Event::PodsCurrent { version } => self.pods_known_at(version),
        }
    }

    /// Takes note of what came of an op.
    pub fn settle(&mut self, id: OpId, outcome: Outcome) {
        let Some(about) = self.in_flight.remove(&id) else {
            return;
        };
        self.note_weather(&about, &outcome);
        match about {
            InFlight::Create(name) => self.settle_create(id, name, outcome),
            InFlight::LookUpPod(name) => self.settle_look_up(id, name, outcome),
            InFlight::Pod { uid, op, version } => self.settle_pod(&uid, op, version, outcome),
            InFlight::Stranger { uid } => self.settle_stranger(&uid, outcome),
            InFlight::Status => self.settle_status(outcome),
            InFlight::LookUpJob => self.settle_job_look_up(outcome),
            InFlight::LookUpPods => self.settle_pods_look_up(outcome),
        }
    }

    /// Whether a Pod is still to be created that was asked for and has not been sent yet: a
    /// Job may have been suspended, deleted or scaled down meanwhile. One that is not is
    /// withdrawn.
    pub fn wants(&self, id: OpId, now: Timestamp) -> bool {
        match self.in_flight.get(&id) {
            Some(InFlight::Create(name)) => self.wants_pod(name, now),
            Some(_) => true,
            None => false,
        }
    }

    /// A Pod that was asked for was not sent, and never will be.
    pub fn withdraw(&mut self, id: OpId) {
        if let Some(InFlight::Create(name)) = self.in_flight.get(&id) {
            let name = name.clone();
            self.in_flight.remove(&id);
            self.withdraw_pod(&name);
        }
    }

    /// Slows down after a refusal. That a question was answered says nothing of writes.
    fn note_weather(&mut self, about: &InFlight, outcome: &Outcome) {
        let is_refused = match outcome {
            Outcome::Refused(
                Refusal::TryLater(_) | Refusal::Rejected(_) | Refusal::NamespaceGoes(_),
            )
            | Outcome::InDoubt => true,
            Outcome::Applied(_)
            | Outcome::Refused(Refusal::AlreadyExists | Refusal::Conflict | Refusal::NotFound) => {
                false
            }
        };
        let is_applied = matches!(outcome, Outcome::Applied(_));
        match about {
            // Creations have a way of their own to speed up again.
            InFlight::Create(_) if is_refused => self.create_later(),
            InFlight::Status if is_refused => self.status_pace.refused(),
            InFlight::Status if is_applied => self.status_pace.granted(),
            InFlight::LookUpPod(_) | InFlight::Pod { op: PodOp::LookUp, .. } if is_refused => {
                // Whoever asked first, the other must not ask the same at once.
                self.write_pace.refused();
                self.create_later();
            }
            InFlight::Stranger { .. } if is_refused => {
                self.write_pace.refused();
                self.create_later();
            }
            InFlight::Pod { op: PodOp::Delete | PodOp::RemoveFinalizer, .. }
            | InFlight::LookUpJob
            | InFlight::LookUpPods
                if is_refused =>
            {
                self.write_pace.refused();
            }
            InFlight::Pod { op: PodOp::Delete | PodOp::RemoveFinalizer, .. }
            | InFlight::Stranger { .. }
                if is_applied =>
            {
                self.write_pace.granted();
            }
            InFlight::Create(_)
            | InFlight::Status
            | InFlight::LookUpPod(_)
            | InFlight::Pod { .. }
            | InFlight::Stranger { .. }
            | InFlight::LookUpJob
            | InFlight::LookUpPods => {}
        }
    }

    /// The ops that are safe to start now.
    pub fn next(&mut self, now: Timestamp) -> Vec<Op> {
        self.last_asked = Some(now);
        self.creation_pace.tick(now);
        self.status_pace.tick(now);
        self.write_pace.tick(now);
        let mut ops = Vec::new();
        self.next_ops(now, &mut ops);
        let events = std::mem::take(&mut self.events).into_iter().map(OpKind::EmitEvent);
        let metrics = std::mem::take(&mut self.metrics).into_iter().map(OpKind::Record);
        for kind in events.chain(metrics) {
            self.issue(kind, None, &mut ops);
        }
        ops
    }

    fn next_ops(&mut self, now: Timestamp, ops: &mut Vec<Op>) {
        self.next_job_look_up(ops);
        if self.is_gone || (self.is_ours() && self.context.course == Course::Over) {
            self.next_strangers(ops);
            self.next_deletions(ops);
            self.next_removals(ops);
            self.next_farewell(now, ops);
            return;
        }
        if !self.is_ours() {
            return;
        }
        let is_unbegun = self.job.as_ref().is_some_and(is_unbegun) && self.pods.is_empty();
        if !is_unbegun && !self.freshness.is_verified() {
            self.next_verification(now, ops);
            return;
        }
        if !self.freshness.is_current() {
            self.next_pods_look_up(now, ops);
            return;
        }
        self.let_go(now);
        self.next_strangers(ops);
        // An end stands once it is written; until then it is looked at again each time.
        let sent = self.write.as_ref().or(self.doubtful.as_ref());
        if !sent.is_some_and(|write| write.has_end) {
            let end = self.decide(now);
            self.is_dirty |= end != self.end;
            self.end = end;
        }
        // The first status says that the Job has been begun, and by whom.
        if self.freshness.is_verified() {
            self.next_deletions(ops);
            self.next_creations(now, ops);
            self.next_removals(ops);
        }
        self.next_status(now, ops);
    }

    /// When to ask again if nothing happens; later than the last time it was asked.
    pub fn wake_at(&self) -> Option<Timestamp> {
        let is_running = self.is_ours() && !self.is_gone && self.context.course == Course::Running;
        let job = self.job.as_ref().filter(|_| is_running);
        let times = [
            self.write_pace.until(),
            self.creation_pace.until(),
            self.status_pace.until(),
            self.status_interval.until(),
            self.freshness.look_up_at(),
            job.and_then(end_state::deadline),
            job.and_then(|_| self.next_alarm()),
            job.and_then(|_| self.streak.ready_at(&self.settings.delays)),
        ];
        // What was due when the ledger was last asked has been dealt with.
        let is_ahead = |at: &Timestamp| self.last_asked.is_none_or(|asked| *at > asked);
        times.into_iter().flatten().filter(is_ahead).min()
    }

    /// The uids of the Pods that are known, some of them by answers only. Whoever lists all
    /// Pods anew says `PodGone` of those that are not in the list: the watch will not.
    pub fn pod_uids(&self) -> Vec<String> {
        let strangers = self.strangers.keys().chain(self.unjudged.keys()).cloned();
        self.pods.uids().chain(strangers).collect()
    }

    /// Whether versions of Jobs and of Pods cannot be compared, as this needs: the API keeps them in
    /// different stores. Then it may wait for ever.
    pub fn is_torn(&self) -> bool {
        self.freshness.is_torn()
    }

    /// Whether it waits until the Pods are told as of a newer version.
    pub fn awaits_pods(&self) -> bool {
        // A Pod that is known, or known to be gone, needs no news of others.
        let is_missing =
            |uid: &String| !self.settled.contains(uid) && self.pods.find(uid).is_none();
        let uncounted =
            self.context.uncounted_failed.iter().chain(&self.context.uncounted_succeeded);
        let awaits = || !self.freshness.is_current() || uncounted.into_iter().any(is_missing);
        self.job.is_some() && !self.is_gone && awaits()
    }

    /// Spaces the statuses that say nothing but a few new counts so far apart from now on: whoever
    /// runs many Jobs at once has something better to ask of the API.
    pub fn space_statuses(&mut self, interval: SignedDuration) {
        self.crowd_interval = interval;
    }

    /// Whether the Job is there and has finished, and nothing is left to do for it unless
    /// something is seen of it or its Pods that is news. A new ledger does as well then.
    pub fn is_done(&self) -> bool {
        self.job.is_some()
            && !self.is_gone
            && self.context.is_finished
            && self.pods.sums.tracked == 0
            && self.in_flight.is_empty()
            && self.unjudged.is_empty()
            && self.unreadable.is_none()
            && self.events.is_empty()
            && self.metrics.is_empty()
            && self.job_look_up == LookUp::NotNeeded
            && !self.strangers.values().any(Stranger::is_tracked)
            && self.wake_at().is_none()
    }

    /// Whether nothing is left to do, ever: the Job is gone, and no Pod bears its mark.
    pub fn is_empty(&self) -> bool {
        self.is_gone
            && self.pods.sums.tracked == 0
            && self.in_flight.is_empty()
            && self.unjudged.is_empty()
            && !self.strangers.values().any(Stranger::is_tracked)
    }

    /// Looks the Job and its Pods up, past every cache, before a Job that somebody else has
    /// begun is taken over.
    fn next_verification(&mut self, now: Timestamp, ops: &mut Vec<Op>) {
        if !self.freshness.is_job_verified() {
            self.ask_for_job();
            self.next_job_look_up(ops);
        }
        self.next_pods_look_up(now, ops);
    }

    /// With the gate off nobody but the built-in controller exists.
    fn is_ours(&self) -> bool {
        let by_field = self.settings.gates.enabled(Gate::JobManagedBy);
        let is_meant = |job: &JobView| match &self.settings.manages {
            ManagedBy::BuiltIn => !by_field || job.managed_by == ManagedBy::BuiltIn,
            ManagedBy::External(_) => by_field && job.managed_by == self.settings.manages,
        };
        self.unreadable.is_none() && self.job.as_ref().is_some_and(is_meant)
    }

    fn decide(&self, now: Timestamp) -> Option<EndState> {
        let job = self.job.as_ref()?;
        end_state::decide(
            &Evidence {
                job,
                failed: self.failures(job),
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

    /// Pods that failed, counted or not, those ignored left out.
    fn failures(&self, job: &JobView) -> u64 {
        u64::from(job.status.failed)
            + self.context.uncounted_failed.len() as u64
            + self.pods.sums.new_failures as u64
    }

    /// Pods that succeeded, or indexes, counted or not.
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

    fn issue(&mut self, kind: OpKind, about: Option<InFlight>, ops: &mut Vec<Op>) {
        self.last_op += 1;
        let id = OpId(self.last_op);
        if let Some(about) = about {
            self.in_flight.insert(id, about);
        }
        ops.push(Op { id, kind });
    }

    fn say(&mut self, is_warning: bool, reason: &'static str, message: String) {
        self.events.push(JobEvent { is_warning, reason: reason.into(), message });
    }
}
