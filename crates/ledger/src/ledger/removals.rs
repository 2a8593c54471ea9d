//! Ops for one Pod at a time: its finalizer, its deletion, a look at it.

use stint_api::names::{event, message};

use super::{InFlight, JobLedger};
use crate::context::Course;
use crate::op::{Applied, Op, OpKind, Outcome, PodRef, Refusal};
use crate::pod_facts::PodPhase;
use crate::pods::{Record, Slot};

/// How many ops of one Job are on their way at once. No API server runs that many
/// requests at a time for one client; beyond it ops would only wait in memory, at some 200
/// bytes each, and keep what comes later from going first.
const MAX_IN_FLIGHT: usize = 4_096;

/// What is done to a Pod of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodOp {
    RemoveFinalizer,
    Delete,
    LookUp,
}

impl JobLedger {
    pub(super) fn next_removals(&mut self, ops: &mut Vec<Op>) {
        let room = self.room();
        let slots: Vec<Slot> = self.pods.sums.to_remove.iter().copied().take(room).collect();
        for slot in slots {
            self.issue_for(slot, PodOp::RemoveFinalizer, ops);
        }
    }

    /// How many more ops for Pods may be on their way. None while the API refuses.
    pub(super) fn room(&self) -> usize {
        if self.write_pace.is_paused() {
            return 0;
        }
        MAX_IN_FLIGHT.saturating_sub(self.in_flight.len())
    }

    /// Issues an op for a Pod, unless one is on its way. A Pod that has changed under an
    /// earlier op is looked at first.
    pub(super) fn issue_for(&mut self, slot: Slot, op: PodOp, ops: &mut Vec<Op>) {
        let record = self.pods.get(slot);
        if record.is_busy {
            return;
        }
        let op = if record.stale_version == Some(record.version) { PodOp::LookUp } else { op };
        // What is not accounted for may end otherwise at any moment, and would count then.
        let is_guarded = op == PodOp::RemoveFinalizer
            && record.phase != PodPhase::Succeeded
            && !self.context.is_uncounted(&record.uid)
            && self.context.course != Course::Over;
        let is_let_go = record.is_let_go || (op == PodOp::RemoveFinalizer && !is_guarded);
        let (uid, version) = (record.uid.to_string(), record.version);
        let pod = PodRef {
            name: record.name.to_string(),
            uid: uid.clone(),
            version: is_guarded.then_some(version),
        };
        self.set_busy(slot, true, is_let_go);
        let kind = match op {
            PodOp::RemoveFinalizer => OpKind::RemoveFinalizer(pod),
            PodOp::Delete => OpKind::DeletePod(pod),
            PodOp::LookUp => OpKind::LookUpPod(pod.name),
        };
        self.issue(kind, Some(InFlight::Pod { uid, op, version }), ops);
    }

    fn set_busy(&mut self, slot: Slot, is_busy: bool, is_let_go: bool) {
        let context = &self.context;
        let change = |record: &mut Record| {
            record.is_busy = is_busy;
            record.is_let_go = is_let_go;
        };
        self.pods.change(slot, change, |record| context.share(record));
    }

    /// Takes note of what came of an op for a Pod that was at `version` when it was issued.
    pub(super) fn settle_pod(&mut self, uid: &str, op: PodOp, version: u64, outcome: Outcome) {
        let Some(slot) = self.pods.find(uid) else {
            return;
        };
        let record = self.pods.get(slot);
        let name = record.name.to_string();
        // Where it is not known what came of it, it may be gone.
        let is_known = op == PodOp::RemoveFinalizer && !matches!(outcome, Outcome::InDoubt);
        let is_let_go = record.is_let_go && !is_known;
        let is_held_after_all = record.is_let_go && !is_let_go;
        self.set_busy(slot, false, is_let_go);
        match outcome {
            Outcome::Applied(Applied::Pod(facts)) if facts.uid == uid => {
                self.note_answer(slot, op, facts.version);
                self.see_answer(&facts);
            }
            // The name has been given to another Pod.
            Outcome::Applied(Applied::Pod(_) | Applied::NoPod)
            | Outcome::Refused(Refusal::NotFound) => {
                self.lose_for_good(uid);
            }
            Outcome::Refused(Refusal::Conflict) => {
                let context = &self.context;
                self.pods.change(
                    slot,
                    |record| record.stale_version = Some(version),
                    |record| context.share(record),
                );
                return;
            }
            Outcome::Refused(
                Refusal::TryLater(reason)
                | Refusal::Rejected(reason)
                | Refusal::NamespaceGoes(reason),
            ) => {
                if op == PodOp::Delete {
                    let message = format!("Error deleting: {reason}");
                    self.say(true, event::FAILED_DELETE, message);
                }
                // Its index may be wanted again since: then its success counts.
                if is_held_after_all {
                    self.after_change(slot);
                }
                return;
            }
            // Asking again is harmless: what is gone cannot be taken off twice.
            Outcome::Applied(Applied::Job(_) | Applied::NoJob | Applied::Pods { .. })
            | Outcome::Refused(Refusal::AlreadyExists)
            | Outcome::InDoubt => return,
        }
        if op == PodOp::Delete {
            self.say(false, event::SUCCESSFUL_DELETE, message::deleted_pod(&name));
        }
    }

    /// A look at a Pod that was said to have changed and has not: the API is at odds with
    /// itself for a moment.
    fn note_answer(&mut self, slot: Slot, op: PodOp, version: u64) {
        if op == PodOp::LookUp {
            if self.pods.get(slot).version == version {
                self.write_pace.refused();
            }
            let context = &self.context;
            self.pods.change(
                slot,
                |record| record.stale_version = None,
                |record| context.share(record),
            );
        }
    }
}
