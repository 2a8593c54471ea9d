//! Pods to make ours, and Pods to give up.

use super::{InFlight, JobLedger};
use crate::op::{Applied, Op, OpKind, Outcome, PodRef, Refusal};
use crate::pod_facts::{Owner, PodFacts};

/// A Pod to adopt, or one to give up.
#[derive(Clone, Debug)]
pub(super) struct Stranger {
    pod: PodRef,
    is_adoption: bool,
    is_busy: bool,
}

impl JobLedger {
    pub(super) fn note_stranger(&mut self, facts: &PodFacts, is_mine: bool, is_selected: bool) {
        let is_orphan = facts.owner == Owner::Nobody;
        let is_adoption = is_orphan && is_selected && !facts.is_deleted;
        let is_release = is_mine && !is_selected && !facts.is_deleted;
        if !is_adoption && !is_release {
            self.strangers.remove(&facts.uid);
            return;
        }
        let pod = PodRef { name: facts.name.clone(), uid: facts.uid.clone(), version: None };
        let stranger = Stranger { pod, is_adoption, is_busy: false };
        self.strangers.entry(facts.uid.clone()).or_insert(stranger);
    }

    pub(super) fn next_strangers(&mut self, ops: &mut Vec<Op>) {
        let idle: Vec<Stranger> =
            self.strangers.values().filter(|stranger| !stranger.is_busy).cloned().collect();
        for stranger in idle {
            let uid = stranger.pod.uid.clone();
            let kind = if stranger.is_adoption { OpKind::AdoptPod } else { OpKind::ReleasePod };
            if let Some(stranger) = self.strangers.get_mut(&uid) {
                stranger.is_busy = true;
            }
            self.issue(kind(stranger.pod), Some(InFlight::Stranger { uid }), ops);
        }
    }

    pub(super) fn settle_stranger(&mut self, uid: &str, outcome: Outcome) {
        if let Some(stranger) = self.strangers.get_mut(uid) {
            stranger.is_busy = false;
        }
        match outcome {
            Outcome::Applied(Applied::Pod(facts)) => {
                let is_mine = facts.owner == Owner::Controller(self.job_uid.clone());
                self.strangers.remove(uid);
                self.see_pod(&facts, is_mine);
            }
            Outcome::Applied(Applied::NoPod) | Outcome::Refused(Refusal::NotFound) => {
                self.lose_pod(uid);
            }
            // The Job is gone or being deleted: adopting for it would strand the Pod.
            Outcome::Applied(Applied::Job(_) | Applied::NoJob)
            | Outcome::Refused(Refusal::Rejected) => {
                self.strangers.remove(uid);
            }
            Outcome::Refused(Refusal::AlreadyExists | Refusal::Conflict | Refusal::TryLater)
            | Outcome::InDoubt => {}
        }
    }
}
