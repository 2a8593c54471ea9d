//! Which Pods to create, and what came of creating them.

use k8s_openapi::jiff::Timestamp;
use stint_api::names::{event, message};
use stint_api::view::{Completion, JobView};

use super::{InFlight, JobLedger, OpId};
use crate::context::Course;
use crate::freshness::LookUp;
use crate::metric::{CreationReason, Metric};
use crate::op::{Applied, NewPod, Op, OpKind, Outcome, Refusal};
use crate::pod_facts::{Owner, PodFacts};
use crate::pod_failure_policy::Verdict;

/// A Pod on its way into the API.
#[derive(Clone, Debug)]
pub(super) struct Creating {
    pub(super) pod: NewPod,
    pub(super) step: Step,
    /// Whether a request for it may have been granted without our knowing.
    is_in_doubt: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// To be asked for, for the first time or again: the name makes that harmless.
    Ask,
    /// To be looked up: there is a Pod of this name.
    LookUp,
    /// A request to create it is on its way.
    Asked,
    /// A look at it is on its way.
    Looking,
}

/// What a Pod has inherited from those of its index before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Legacy {
    /// The Job's generation when the Pod was first seen.
    generation: i64,
    failure_count: u32,
    ignored_failure_count: u32,
    interruption_count: u32,
}

impl Legacy {
    /// Whether the Job is still what it was. If it was scaled down or suspended, whoever deletes
    /// a Pod for it lets the count of its index begin anew, as Kubernetes does.
    fn is_of(&self, job: &JobView) -> bool {
        self.generation == job.generation
    }

    fn sum(&self) -> u32 {
        let failures = self.failure_count.saturating_add(self.ignored_failure_count);
        failures.saturating_add(self.interruption_count)
    }
}

/// How many Pods may be asked for at once after a refusal: one, and twice as many each time
/// that so many were granted. A quota that is full, or a server in trouble, is not asked for
/// thousands each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    at_once: usize,
    /// How many were granted since it was doubled.
    granted: usize,
}

impl Probe {
    const FIRST: Self = Self { at_once: 1, granted: 0 };

    /// What follows once another one is granted; nothing if there is no need to probe on.
    fn granted(self, most: usize) -> Option<Self> {
        let granted = self.granted + 1;
        if granted < self.at_once {
            return Some(Self { granted, ..self });
        }
        let at_once = self.at_once * 2;
        (at_once < most).then_some(Self { at_once, granted: 0 })
    }
}

impl JobLedger {
    pub(super) fn next_creations(&mut self, now: Timestamp, ops: &mut Vec<Op>) {
        if self.creation_pace.is_paused() {
            return;
        }
        if self.may_create(now) {
            let places = self.places(now);
            if places.is_empty() || !self.freshness.is_job_behind(self.version) {
                places.into_iter().for_each(|place| self.begin(place));
            } else {
                // Only who would create a Pod has to know.
                self.ask_for_job();
                self.next_job_look_up(ops);
            }
        }
        let may_create = self.may_create(now);
        let mut surplus = self.surplus();
        for name in std::mem::take(&mut self.unasked) {
            if self.ask(name, may_create && surplus == 0, ops) {
                surplus = surplus.saturating_sub(1);
            }
        }
    }

    fn may_create(&self, now: Timestamp) -> bool {
        let Some(job) = &self.job else {
            return false;
        };
        // Too many, duplicate or invalid Pods go first.
        let is_crowded = !self.pods.sums.unwanted.is_empty() || !self.crowded.is_empty();
        let backs_off = self.context.per_index.is_none()
            && self.streak.ready_at(&self.settings.delays).is_some_and(|ready_at| now < ready_at);
        self.context.course == Course::Running
            && self.end.is_none()
            && !self.is_outdated()
            && self.knows_its_pods()
            && self.job_look_up == LookUp::NotNeeded
            && !job.suspended
            && !is_crowded
            && !backs_off
    }

    /// The places to fill: indexes, the lowest first, or as many without one.
    fn places(&self, now: Timestamp) -> Vec<Option<u32>> {
        let Some(job) = &self.job else {
            return Vec::new();
        };
        let terminating =
            if self.context.only_failed_are_replaced { self.pods.sums.terminating } else { 0 };
        let coming = self.creating.len() + self.strays.len();
        let present = self.pods.sums.active + terminating + coming;
        let room = self.wanted(job).saturating_sub(present);
        let most = self.settings.max_creating;
        let at_once = self.probe.map_or(most, |probe| probe.at_once).min(most);
        let room = room.min(at_once.saturating_sub(self.creating.len()));
        match self.context.completions {
            Some(completions) => {
                let mut indexes = self.occupied.first_missing(room, completions);
                let left = room - indexes.len();
                indexes.extend(self.rested(now).take(left));
                indexes.into_iter().map(Some).collect()
            }
            None => vec![None; room],
        }
    }

    /// How many Pods should be active.
    pub(super) fn wanted(&self, job: &JobView) -> usize {
        let parallelism = u64::from(job.parallelism);
        let succeeded = self.succeeded(job);
        let remaining = match &job.completion {
            Completion::WorkQueue if succeeded > 0 => {
                (self.pods.sums.active + self.creating.len()) as u64
            }
            Completion::WorkQueue => parallelism,
            Completion::Count(completions) => {
                parallelism.min(u64::from(*completions).saturating_sub(succeeded))
            }
            Completion::Indexed(indexed) => {
                parallelism.min(u64::from(indexed.completions).saturating_sub(succeeded))
            }
        };
        usize::try_from(remaining).unwrap_or(usize::MAX)
    }

    fn begin(&mut self, index: Option<u32>) {
        let pod = self.inherit(index);
        let attempt = match index {
            Some(index) => self.take_attempt(index, &pod),
            None => self.take_lowest_attempt(),
        };
        let name = self.names.name(index, attempt);
        let pod = NewPod { name: name.clone(), ..pod };
        self.unasked.insert(name.clone());
        self.creating.insert(name, Creating { pod, step: Step::Ask, is_in_doubt: false });
        if let Some(index) = index {
            self.end_wait(index);
            self.creating_indexes.insert(index);
            self.occupied.insert(index);
        }
    }

    fn take_attempt(&mut self, index: u32, pod: &NewPod) -> u32 {
        let before = pod.failure_count.unwrap_or(0).saturating_add(pod.ignored_failure_count);
        let before = before.saturating_add(pod.interruption_count);
        let next = self.attempts.entry(index).or_insert(0);
        let attempt = (*next).max(before);
        *next = attempt.saturating_add(1);
        attempt
    }

    fn take_lowest_attempt(&mut self) -> u32 {
        let free = self.taken.first_missing(1, u32::MAX);
        let attempt = *free.first().expect("no Job has had as many Pods as there are numbers");
        self.taken.insert(attempt);
        attempt
    }

    /// What the new Pod of an index inherits from the one it replaces; it has no name yet.
    fn inherit(&self, index: Option<u32>) -> NewPod {
        let mut new = NewPod {
            name: String::new(),
            index,
            failure_count: self.context.per_index.and(index).map(|_| 0),
            ignored_failure_count: 0,
            interruption_count: 0,
        };
        let (Some(index), Some(_)) = (index, self.context.per_index) else {
            return new;
        };
        let Some(last) = self.last_failure(index).map(|slot| self.pods.get(slot)) else {
            // Its last Pod has not failed, and is not there any more. If the Job is as it was,
            // nobody has asked for that: another leader had made a Pod too many.
            let is_same = |it: &&Legacy| self.job.as_ref().is_some_and(|job| it.is_of(job));
            if let Some(legacy) = self.legacies.get(&index).filter(is_same) {
                new.failure_count = Some(legacy.failure_count);
                new.ignored_failure_count = legacy.ignored_failure_count;
                new.interruption_count = legacy.interruption_count;
            }
            return new;
        };
        let (mut failures, mut ignored) = (last.failure_count, last.ignored_failure_count);
        let mut interruptions = last.interruption_count;
        match last.verdict {
            Verdict::Ignore => ignored += 1,
            Verdict::Forgive => interruptions += 1,
            Verdict::Count { .. } | Verdict::FailIndex | Verdict::FailJob(_) => failures += 1,
        }
        new.failure_count = Some(failures);
        new.ignored_failure_count = ignored;
        new.interruption_count = interruptions;
        new
    }

    /// A Pod is seen for the first time.
    pub(super) fn note_legacy(&mut self, facts: &PodFacts) {
        let index = facts.index.filter(|_| self.context.per_index.is_some());
        let (Some(index), Some(job)) = (index, &self.job) else {
            return;
        };
        let legacy = Legacy {
            generation: job.generation,
            failure_count: facts.failure_count,
            ignored_failure_count: facts.ignored_failure_count,
            interruption_count: facts.interruption_count,
        };
        if legacy.sum() == 0 || self.completed.contains(index) || self.failed.contains(index) {
            return;
        }
        let is_more = |known: &Legacy| !known.is_of(job) || known.sum() < legacy.sum();
        if self.legacies.get(&index).is_none_or(is_more) {
            self.legacies.insert(index, legacy);
        }
    }

    /// How many of the Pods that are being created are no longer wanted.
    fn surplus(&self) -> usize {
        let Some(job) = &self.job else {
            return 0;
        };
        // The first success of a work queue means that no more Pods are needed.
        if job.completion == Completion::WorkQueue && self.succeeded(job) > 0 {
            return self.creating.len();
        }
        let present = self.pods.sums.active + self.creating.len();
        present.saturating_sub(self.wanted(job))
    }

    pub(super) fn wants_pod(&self, name: &str, now: Timestamp) -> bool {
        let Some(new) = self.creating.get(name) else {
            return false;
        };
        // If they are too many the lowest indexes stay.
        let place = |new: &Creating| (new.pod.index, new.pod.name.clone());
        let is_before = |other: &&Creating| place(other) < place(new);
        let fits = || match self.surplus() {
            0 => true,
            surplus => {
                let before = self.creating.values().filter(is_before).count();
                before + surplus < self.creating.len()
            }
        };
        new.step == Step::Asked && self.may_create(now) && self.is_valid(&new.pod) && fits()
    }

    pub(super) fn withdraw_pod(&mut self, name: &str) {
        self.was_answered(name);
        self.came_to_nothing(name);
    }

    /// A Job may have been scaled down to less than its index.
    fn is_valid(&self, pod: &NewPod) -> bool {
        let completions = self.context.completions;
        pod.index.is_none_or(|index| completions.is_some_and(|completions| index < completions))
    }

    /// Asks for a Pod that is to be created; whether that was given up.
    fn ask(&mut self, name: String, may_create: bool, ops: &mut Vec<Op>) -> bool {
        let Some(new) = self.creating.get(&name) else {
            return false;
        };
        let may_create = may_create && self.is_valid(&new.pod);
        let new = self.creating.get_mut(&name).expect("it was just there");
        let is_given_up = new.step == Step::Ask && !may_create && !new.is_in_doubt;
        match new.step {
            Step::Ask if may_create => {
                new.step = Step::Asked;
                let pod = new.pod.clone();
                self.issue(OpKind::CreatePod(pod), Some(InFlight::Create(name)), ops);
            }
            Step::Ask if !new.is_in_doubt => self.give_back(&name),
            // In doubt and no longer wanted: whether it exists must be known all the same.
            Step::Ask | Step::LookUp => {
                new.step = Step::Looking;
                let about = InFlight::LookUpPod(name.clone());
                self.issue(OpKind::LookUpPod(name), Some(about), ops);
            }
            Step::Asked | Step::Looking => {}
        }
        is_given_up
    }

    pub(super) fn settle_create(&mut self, id: OpId, name: String, outcome: Outcome) {
        self.was_answered(&name);
        match outcome {
            Outcome::Applied(Applied::Pod(facts)) => {
                self.was_created(id, &name);
                self.give_up(&name);
                self.see_pod(&facts, true);
            }
            Outcome::Refused(Refusal::AlreadyExists) => self.set_step(&name, Step::LookUp),
            Outcome::InDoubt => match self.creating.get_mut(&name) {
                Some(new) => {
                    new.is_in_doubt = true;
                    new.step = Step::Ask;
                    self.unasked.insert(name);
                }
                // It has been seen: it was created.
                None => self.was_created(id, &name),
            },
            Outcome::Refused(
                refusal @ (Refusal::Conflict
                | Refusal::NotFound
                | Refusal::TryLater(_)
                | Refusal::Rejected(_)
                | Refusal::NamespaceGoes(_)),
            ) => self.was_refused(&name, &refusal),
            Outcome::Applied(
                Applied::NoPod | Applied::Job(_) | Applied::NoJob | Applied::Pods { .. },
            ) => {
                self.set_step(&name, Step::LookUp);
            }
        }
    }

    /// Creations wait a while: one was refused or its answer was lost, or a look at one was.
    pub(super) fn create_later(&mut self) {
        self.creation_pace.refused();
        self.asked_in_vain = OpId(self.last_op);
    }

    /// A creation was granted, as the answer to this op told. What was asked for before a
    /// refusal was known says nothing of what will be granted after it.
    fn create_sooner(&mut self, id: OpId) {
        if id > self.asked_in_vain {
            self.creation_pace.granted();
            let most = self.settings.max_creating;
            self.probe = self.probe.and_then(|probe| probe.granted(most));
        }
    }

    /// The answer to a request for a Pod has come, or never will.
    fn was_answered(&mut self, name: &str) {
        self.is_dirty = true;
        if let Some(new) = self.creating.get_mut(name) {
            new.step = Step::Ask;
        }
        self.unanswered.remove(name);
        if let Some(index) = self.strays.remove(name) {
            if let Some(index) = index {
                self.stray_indexes.remove(&index);
            }
            self.look_at(index);
        }
    }

    /// A Pod has ended or left. A request under its name may be without an answer.
    pub(super) fn note_stray(&mut self, name: &str) {
        if let Some(index) = self.unanswered.remove(name) {
            self.stray_indexes.extend(index);
            self.strays.insert(name.to_owned(), index);
        }
    }

    fn was_created(&mut self, id: OpId, name: &str) {
        // The refusal was of a namespace before this one, by a server that had not heard of it.
        self.is_barren = false;
        self.create_sooner(id);
        self.count_creation(true);
        self.say(false, event::SUCCESSFUL_CREATE, message::created_pod(name));
    }

    fn was_refused(&mut self, name: &str, refusal: &Refusal) {
        self.count_creation(false);
        // Many that are refused together are refused for one reason.
        let is_first = self.probe != Some(Probe::FIRST);
        self.probe = Some(Probe::FIRST);
        self.create_later();
        if matches!(refusal, Refusal::NamespaceGoes(_)) {
            self.has_no_future();
        }
        if let Refusal::TryLater(reason)
        | Refusal::Rejected(reason)
        | Refusal::NamespaceGoes(reason) = refusal
            && (is_first || self.creating.len() == 1)
        {
            self.say(true, event::FAILED_CREATE, format!("Error creating: {reason}"));
        }
        self.came_to_nothing(name);
    }

    /// This request came to nothing; an earlier one may not have.
    fn came_to_nothing(&mut self, name: &str) {
        if self.creating.get(name).is_some_and(|new| new.is_in_doubt) {
            self.set_step(name, Step::LookUp);
        } else {
            self.give_back(name);
        }
    }

    /// The labels that Kubernetes gives: what the Job has been through, not this Pod.
    fn count_creation(&mut self, is_success: bool) {
        let has_failed = self.job.as_ref().is_some_and(|job| self.failures(job) > 0);
        let only_failed = self.context.only_failed_are_replaced;
        let reason = if has_failed && only_failed {
            CreationReason::RecreateFailed
        } else if has_failed || self.pods.sums.terminating > 0 {
            CreationReason::RecreateTerminatingOrFailed
        } else {
            CreationReason::New
        };
        self.metrics.push(Metric::PodCreation { reason, is_success });
    }

    /// There is a Pod of the name we wanted, or there is none after all.
    pub(super) fn settle_look_up(&mut self, id: OpId, name: String, outcome: Outcome) {
        match outcome {
            Outcome::Applied(Applied::Pod(facts)) => {
                let is_mine = facts.owner == Owner::Controller(self.job_uid.clone());
                if is_mine && self.creating.get(&name).is_some_and(|new| new.is_in_doubt) {
                    self.was_created(id, &name);
                }
                self.give_up(&name);
                if is_mine {
                    // The fact that the attempt exists, or has been and ended, is adopted.
                    self.see_answer(&facts);
                }
            }
            Outcome::Applied(Applied::NoPod) | Outcome::Refused(Refusal::NotFound) => {
                self.give_back(&name);
            }
            Outcome::Applied(Applied::Job(_) | Applied::NoJob | Applied::Pods { .. })
            | Outcome::Refused(_)
            | Outcome::InDoubt => self.set_step(&name, Step::LookUp),
        }
    }

    fn set_step(&mut self, name: &str, step: Step) {
        if let Some(new) = self.creating.get_mut(name) {
            new.step = step;
            self.unasked.insert(name.to_owned());
        }
    }

    /// Forgets a Pod that was to be created; its attempt is used up.
    pub(super) fn give_up(&mut self, name: &str) {
        self.unasked.remove(name);
        if let Some(new) = self.creating.remove(name) {
            if new.step == Step::Asked {
                self.unanswered.insert(name.to_owned(), new.pod.index);
            }
            if let Some(index) = new.pod.index {
                self.creating_indexes.remove(&index);
            }
            self.is_dirty = true;
            self.look_at(new.pod.index);
        }
    }

    /// Forgets a Pod that was never created; its attempt is still to be had.
    fn give_back(&mut self, name: &str) {
        let Some(new) = self.creating.get(name) else {
            return;
        };
        let index = new.pod.index;
        match (self.names.attempt(index, name), index) {
            (Some(attempt), Some(index)) => {
                let next = self.attempts.entry(index).or_insert(0);
                if *next == attempt + 1 {
                    *next = attempt;
                }
            }
            (Some(attempt), None) => {
                self.taken.remove(attempt);
            }
            (None, _) => {}
        }
        self.give_up(name);
    }
}
