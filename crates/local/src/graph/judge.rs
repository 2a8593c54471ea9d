//! What is to be done about one object, as upstream's garbage collector decides it.
//!
//! | the object | its owners | what to do |
//! |---|---|---|
//! | any | one lets its dependents go | take that reference off |
//! | lets its dependents go | | when none is left, take its finalizer off |
//! | waits for its dependents | | when none is left that blocks, take its finalizer off |
//! | is being deleted otherwise | | nothing |
//! | has no owners | | nothing |
//! | | it is not known whether one is there | look, and wait for the answer |
//! | | one lives | take the references to those who are gone or wait off |
//! | has dependents | none lives, one waits | delete it in the foreground |
//! | | none lives | delete it, as its finalizers say |
//!
//! An owner that waits for its dependents does not count as living, one that is deleted
//! otherwise does until it is gone. Owners that cannot be judged live.

use stint_api::names::finalizer::{FOREGROUND_DELETION, ORPHAN};

use super::object::{Owners, Phase, Propagation};
use super::op::Op;
use super::uid::Uid;
use super::{Graph, Record, Verdict};

/// How an owner is, to its dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Living,
    /// It lets its dependents go.
    Orphaning,
    /// It waits for its dependents.
    Waiting,
    Absent,
    /// That must be looked up.
    Unknown,
}

impl Graph {
    /// What is to be done about an object now.
    pub(super) fn judge(&self, record: &Record) -> Option<Op> {
        let id = &record.id;
        if record.version < record.settled {
            // What was done has not been seen yet.
            return None;
        }
        let orphaned = self.owners_that(record, |standing| standing == Standing::Orphaning);
        if !orphaned.is_empty() {
            return Some(Op::DropOwners { id: id.clone(), owners: orphaned });
        }
        let claim = self.claims.get(id);
        let release = |finalizer| Some(Op::Release { id: id.clone(), finalizer });
        match record.phase {
            Phase::Orphaning if claim.is_none() => release(ORPHAN),
            Phase::Foreground if claim.is_none_or(|claim| claim.blocking == 0) => {
                release(FOREGROUND_DELETION)
            }
            Phase::Orphaning | Phase::Foreground | Phase::Ending => None,
            Phase::Alive => self.judge_living(record),
        }
    }

    fn judge_living(&self, record: &Record) -> Option<Op> {
        let id = record.id.clone();
        if record.owners.is_empty() {
            return None;
        }
        let is_any = |wanted| record.owners.iter().any(|owner| self.standing(owner) == wanted);
        if is_any(Standing::Unknown) {
            return None;
        }
        if !record.foreign.is_empty() || is_any(Standing::Living) {
            let living = self.owners_that(record, |standing| standing == Standing::Living);
            let mut owners = self.owners_that(record, |standing| standing != Standing::Living);
            // Two references may differ in all but the uid, by which they are taken off.
            owners
                .retain(|uid| living.binary_search(uid).is_err() && !record.foreign.contains(uid));
            return (!owners.is_empty()).then_some(Op::DropOwners { id, owners });
        }
        let mut propagation = record.propagation;
        if is_any(Standing::Waiting) && self.claims.contains_key(&record.id) {
            if let Some(owners) = self.circle(record) {
                return Some(Op::Unblock { id, owners });
            }
            propagation = Propagation::Foreground;
        }
        let owners = Owners {
            known: record
                .owners
                .iter()
                .map(|owner| (owner.id.as_ref().clone(), owner.blocks))
                .collect(),
            foreign: record.foreign.to_vec(),
        };
        Some(Op::Delete { id, version: record.version, owners, propagation })
    }

    /// The owners that an object blocks, if it seems to wait for itself: it has dependents that
    /// wait for theirs. As upstream, that is found too often rather than too rarely.
    fn circle(&self, record: &Record) -> Option<Vec<Uid>> {
        let blocked: Vec<Uid> = record
            .owners
            .iter()
            .filter(|owner| owner.blocks)
            .map(|owner| owner.id.uid.clone())
            .collect();
        let waits = |uid| self.objects.get(uid).is_some_and(|it| it.phase == Phase::Foreground);
        let is_circle = !blocked.is_empty() && self.claims[&record.id].dependents.iter().any(waits);
        is_circle.then_some(blocked)
    }

    /// The uids of some of an object's owners, in order.
    fn owners_that(&self, record: &Record, are: impl Fn(Standing) -> bool) -> Vec<Uid> {
        let owners = record.owners.iter().filter(|owner| are(self.standing(owner)));
        let mut uids: Vec<Uid> = owners.map(|owner| owner.id.uid.clone()).collect();
        uids.dedup();
        uids
    }

    fn standing(&self, owner: &super::Owner) -> Standing {
        if let Some(record) = self.object(&owner.id) {
            return match record.phase {
                Phase::Alive | Phase::Ending => Standing::Living,
                Phase::Orphaning => Standing::Orphaning,
                Phase::Foreground => Standing::Waiting,
            };
        }
        match self.claims[&owner.id].verdict {
            Verdict::Unknown => Standing::Unknown,
            Verdict::Absent => Standing::Absent,
        }
    }
}
