//! Pods to make ours, Pods to give up, and finalizers on Pods that are nobody's.

use super::{InFlight, JobLedger};
use crate::context::Course;
use crate::op::{Applied, Op, OpKind, Outcome, PodRef, Refusal};
use crate::pod_facts::{Owner, PodFacts};

/// A Pod that is about to become ours, or to stop being so.
#[derive(Clone, Debug)]
pub(super) struct Stranger {
    pod: PodRef,
    /// Whether it is nobody's, or somebody's to whom the finalizer means nothing.
    is_orphan: bool,
    /// Whose it is then.
    foreign_owner: Option<String>,
    is_selected: bool,
    is_deleted: bool,
    is_tracked: bool,
    /// Whether it has changed since it was seen, or may have by a request of ours. News of a Pod that is nobody's may go
    /// nowhere, so it is looked up.
    is_stale: bool,
}

impl Stranger {
    pub(super) fn version(&self) -> u64 {
        self.pod.version.unwrap_or(0)
    }

    pub(super) fn is_tracked(&self) -> bool {
        self.is_tracked && self.is_orphan
    }
}

impl JobLedger {
    pub(super) fn note_stranger(&mut self, facts: &PodFacts, is_mine: bool, is_selected: bool) {
        let foreign_owner = match &facts.owner {
            Owner::Foreign(uid) => Some(uid.clone()),
            Owner::Nobody | Owner::Controller(_) => None,
        };
        let is_orphan = facts.owner == Owner::Nobody || foreign_owner.is_some();
        let is_selected = is_selected && foreign_owner.is_none();
        let is_release = is_mine && !is_selected && !facts.is_deleted;
        // One that has ended without the finalizer may have been counted before somebody took
        // its owner away. Kubernetes adopts it, and counts it again.
        let may_be_counted = facts.is_finished() && !facts.is_tracked;
        let is_adoption = is_orphan && is_selected && !facts.is_deleted && !may_be_counted;
        let is_stranded = is_orphan && facts.is_tracked;
        if !is_release && !is_adoption && !is_stranded {
            self.forget_stranger(&facts.uid);
            return;
        }
        // What is known already says nothing of what has happened since.
        let is_stale = self
            .strangers
            .get(&facts.uid)
            .is_some_and(|known| known.is_stale && known.version() >= facts.version);
        let stranger = Stranger {
            // At its version: a request that comes late must not undo what others did since.
            pod: PodRef {
                name: facts.name.clone(),
                uid: facts.uid.clone(),
                version: Some(facts.version),
            },
            is_orphan,
            foreign_owner,
            is_selected,
            is_deleted: facts.is_deleted,
            is_tracked: facts.is_tracked,
            is_stale,
        };
        if self.strangers.insert(facts.uid.clone(), stranger).is_none() {
            self.idle_strangers.insert(facts.uid.clone());
        }
    }

    pub(super) fn next_strangers(&mut self, ops: &mut Vec<Op>) {
        let room = self.room();
        let idle: Vec<String> = self.idle_strangers.iter().take(room).cloned().collect();
        for uid in idle {
            let stranger = self.strangers.get(&uid).expect("an idle stranger is known");
            let Some(kind) = self.op_for(stranger) else {
                continue;
            };
            self.idle_strangers.remove(&uid);
            self.issue(kind, Some(InFlight::Stranger { uid }), ops);
        }
    }

    /// Whether no Pod is about to become ours or to stop being so. A request that is on its
    /// way was made when more was wanted than now.
    pub(super) fn knows_its_pods(&self) -> bool {
        self.idle_strangers.len() == self.strangers.len()
            && self.strangers.values().all(|stranger| self.op_for(stranger).is_none())
    }

    /// Whether a Pod of ours is about to be released.
    pub(super) fn is_leaving(&self, uid: &str) -> bool {
        let stranger = self.strangers.get(uid).filter(|stranger| !stranger.is_orphan);
        stranger.is_some_and(|stranger| self.op_for(stranger).is_some())
    }

    /// An orphan is adopted by a Job that runs and selects it. Otherwise nobody will ever
    /// take its finalizer off but us.
    fn op_for(&self, stranger: &Stranger) -> Option<OpKind> {
        let pod = stranger.pod.clone();
        if stranger.is_stale {
            return Some(OpKind::LookUpPod(pod.name));
        }
        // A Job whose last status is on its way takes nobody in any more.
        let is_ending = self.write.as_ref().is_some_and(|write| write.is_last);
        let is_over = self.is_gone || self.context.course == Course::Over || is_ending;
        if !stranger.is_orphan {
            return (!is_over).then_some(OpKind::ReleasePod(pod));
        }
        // Once the end is decided only what was ours is taken back, to be counted.
        let is_wanted = self.context.course == Course::Running || stranger.is_tracked;
        if stranger.is_selected && !stranger.is_deleted && !is_over && is_wanted {
            return Some(OpKind::AdoptPod(pod));
        }
        stranger.is_tracked.then_some(OpKind::RemoveFinalizer(pod))
    }

    pub(super) fn forget_stranger(&mut self, uid: &str) {
        self.is_dirty |= self.strangers.remove(uid).is_some();
        self.idle_strangers.remove(uid);
    }

    /// An answer tells nothing of labels, nor of who its owner is: whether the Pod is selected,
    /// and whether its owner is a stranger, is as it was.
    pub(super) fn see_answer(&mut self, facts: &PodFacts) {
        let known = self.strangers.get(&facts.uid);
        let is_selected = known.is_none_or(|known| known.is_selected);
        let foreign_owner = known.and_then(|known| known.foreign_owner.clone());
        match foreign_owner {
            Some(uid) if facts.owner == Owner::Controller(uid.clone()) => {
                self.see_pod(
                    &PodFacts { owner: Owner::Foreign(uid), ..facts.clone() },
                    is_selected,
                );
            }
            Some(_) | None => self.see_pod(facts, is_selected),
        }
    }

    pub(super) fn settle_stranger(&mut self, uid: &str, outcome: Outcome) {
        if !self.strangers.contains_key(uid) && self.pods.find(uid).is_none() {
            return;
        }
        if self.strangers.contains_key(uid) {
            self.idle_strangers.insert(uid.to_owned());
        }
        match outcome {
            Outcome::Applied(Applied::Pod(facts)) if facts.uid == uid => {
                let known = self.strangers.get_mut(uid);
                if let Some(known) = known.filter(|known| known.is_stale) {
                    known.is_stale = false;
                    if known.version() == facts.version {
                        // The API is at odds with itself for a moment.
                        self.write_pace.refused();
                    }
                }
                self.see_answer(&facts);
            }
            // The name has been given to another Pod.
            Outcome::Applied(Applied::Pod(_) | Applied::NoPod)
            | Outcome::Refused(Refusal::NotFound) => {
                self.lose_for_good(uid);
            }
            // It may be that the Job is gone or being deleted, and may not adopt any more.
            Outcome::Refused(Refusal::Rejected(_)) => self.ask_for_job(),
            Outcome::Refused(Refusal::Conflict) | Outcome::InDoubt => {
                if let Some(stranger) = self.strangers.get_mut(uid) {
                    stranger.is_stale = true;
                }
            }
            Outcome::Applied(Applied::Job(_) | Applied::NoJob | Applied::Pods { .. })
            | Outcome::Refused(
                Refusal::AlreadyExists | Refusal::TryLater(_) | Refusal::NamespaceGoes(_),
            ) => {}
        }
    }
}
