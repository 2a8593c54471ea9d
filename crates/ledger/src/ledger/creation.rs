//! Which Pods to create, and what came of creating them.

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use stint_api::names::{event, message};
use stint_api::view::{Completion, JobView};

use super::{InFlight, JobLedger};
use crate::context::Course;
use crate::op::{Applied, JobEvent, NewPod, Op, OpKind, Outcome, Refusal};
use crate::pod_facts::{Owner, PodFacts};

/// How many refusals in a row lengthen the pause.
const MAX_DOUBLINGS: u32 = 8;
/// The pause after the first refusal; doubled up to 25.6 s, which is about as long as a
/// quota or a terminating namespace takes to change.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_millis(100);

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
    /// An op is on its way.
    Wait,
}

/// When to try again after so many refusals in a row.
pub(super) fn pause_until(now: Timestamp, refusals: u32) -> Timestamp {
    let doublings = refusals.saturating_sub(1).min(MAX_DOUBLINGS);
    let pause = FIRST_PAUSE.saturating_mul(1 << doublings);
    now.checked_add(pause).unwrap_or(Timestamp::MAX)
}

impl JobLedger {
    pub(super) fn next_creations(&mut self, now: Timestamp, ops: &mut Vec<Op>) {
        if self.may_create(now) {
            for index in self.places() {
                self.begin(index);
            }
        }
        for name in std::mem::take(&mut self.unasked) {
            self.ask(name, now, ops);
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
            && !job.suspended
            && !is_crowded
            && !backs_off
            && self.paused_until.is_none()
    }

    /// The places to fill: indexes, the lowest first, or as many without one.
    fn places(&self) -> Vec<Option<u32>> {
        let Some(job) = &self.job else {
            return Vec::new();
        };
        let terminating =
            if self.context.only_failed_are_replaced { self.pods.sums.terminating } else { 0 };
        let present = self.pods.sums.active + terminating + self.creating.len();
        let room = self.wanted(job).saturating_sub(present);
        match self.context.completions {
            Some(completions) => {
                self.occupied.first_missing(room, completions).into_iter().map(Some).collect()
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
        let (failure_count, ignored_failure_count) = self.failure_counts(index);
        let attempt = self.attempts.entry(index).or_insert(0);
        *attempt = (*attempt).max(failure_count.unwrap_or(0) + ignored_failure_count);
        let name = self.names.name(index, *attempt);
        *attempt = attempt.saturating_add(1);
        let pod = NewPod { name: name.clone(), index, failure_count, ignored_failure_count };
        self.unasked.insert(name.clone());
        self.creating.insert(name, Creating { pod, step: Step::Ask, is_in_doubt: false });
        if let Some(index) = index {
            self.creating_indexes.insert(index);
            self.occupied.insert(index);
        }
    }

    /// What the new Pod of an index inherits from the one it replaces.
    fn failure_counts(&self, index: Option<u32>) -> (Option<u32>, u32) {
        let (Some(index), Some(_)) = (index, self.context.per_index) else {
            return (None, 0);
        };
        let Some(last) = self.last_failure(index) else {
            return (Some(0), 0);
        };
        let last = self.pods.get(last);
        if last.verdict.counts() {
            (Some(last.failure_count + 1), last.ignored_failure_count)
        } else {
            (Some(last.failure_count), last.ignored_failure_count + 1)
        }
    }

    fn ask(&mut self, name: String, now: Timestamp, ops: &mut Vec<Op>) {
        let may_create = self.may_create(now);
        let Some(new) = self.creating.get_mut(&name) else {
            return;
        };
        match new.step {
            Step::LookUp => {
                new.step = Step::Wait;
                let about = InFlight::LookUpPod(name.clone());
                self.issue(OpKind::LookUpPod(name), Some(about), ops);
            }
            // In doubt and no longer wanted: whether it exists must be known all the same.
            Step::Ask if !may_create && new.is_in_doubt => {
                new.step = Step::Wait;
                let about = InFlight::LookUpPod(name.clone());
                self.issue(OpKind::LookUpPod(name), Some(about), ops);
            }
            Step::Ask if !may_create => self.give_up(&name),
            Step::Ask => {
                new.step = Step::Wait;
                let pod = new.pod.clone();
                self.issue(OpKind::CreatePod(pod), Some(InFlight::Create(name)), ops);
            }
            Step::Wait => {}
        }
    }

    pub(super) fn settle_create(&mut self, name: String, outcome: Outcome) {
        match outcome {
            Outcome::Applied(Applied::Pod(facts)) => {
                self.refusals = 0;
                self.give_up(&name);
                self.say(false, event::SUCCESSFUL_CREATE, message::created_pod(&name));
                self.see_pod(&facts, true);
            }
            Outcome::Refused(Refusal::AlreadyExists) => self.set_step(&name, Step::LookUp),
            Outcome::InDoubt => {
                if let Some(new) = self.creating.get_mut(&name) {
                    new.is_in_doubt = true;
                    new.step = Step::Ask;
                    self.unasked.insert(name);
                }
            }
            Outcome::Refused(refusal) => {
                self.refusals = self.refusals.saturating_add(1);
                self.pause_is_due = true;
                if refusal == Refusal::Rejected {
                    self.say(true, event::FAILED_CREATE, format!("Error creating: pod {name}"));
                }
                // This request was refused; an earlier one may not have been.
                if self.creating.get(&name).is_some_and(|new| new.is_in_doubt) {
                    self.set_step(&name, Step::LookUp);
                } else {
                    self.give_back(&name);
                }
            }
            Outcome::Applied(Applied::NoPod | Applied::Job(_) | Applied::NoJob) => {
                self.set_step(&name, Step::LookUp);
            }
        }
    }

    /// There is a Pod of the name we wanted, or there is none after all.
    pub(super) fn settle_look_up(&mut self, name: String, outcome: Outcome) {
        match outcome {
            Outcome::Applied(Applied::Pod(facts)) => {
                let is_mine = facts.owner == Owner::Controller(self.job_uid.clone());
                self.give_up(&name);
                if is_mine {
                    // The fact that the attempt exists, or has been and ended, is adopted.
                    self.see_pod(&facts, true);
                }
            }
            Outcome::Applied(Applied::NoPod) | Outcome::Refused(Refusal::NotFound) => {
                self.give_back(&name);
            }
            Outcome::Applied(Applied::Job(_) | Applied::NoJob)
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
        if let Some(attempt) = self.names.attempt(index, name) {
            let next = self.attempts.entry(index).or_insert(0);
            if *next == attempt + 1 {
                *next = attempt;
            }
        }
        self.give_up(name);
    }

    pub(super) fn say(&mut self, is_warning: bool, reason: &'static str, message: String) {
        self.events.push(JobEvent { is_warning, reason, message });
    }

    /// A Pod that is being created has been seen.
    pub(super) fn is_created(&mut self, facts: &PodFacts) {
        self.give_up(&facts.name);
    }
}
