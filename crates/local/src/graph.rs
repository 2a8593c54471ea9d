//! Who owns whom, and what is to be done about it: a data structure that is told what happens
//! to objects and answers with what to do. It knows no API, no clock and no task.
//!
//! ```text
//!   begin, see*, complete ─┐                           ┌─▶ Op ─▶ whoever carries it out
//!   see, gone ─────────────┼─▶ records, claims, queue ─┤
//!   settle(outcome) ───────┘                           └─▶ nothing, until the next news
//! ```
//!
//! A claim is what owner references take for an owner. It is known by everything that a
//! reference says, so that one that is wrong in anything (a uid that was used before, a name,
//! the namespace) is nobody's.
//!
//! # Guarantees
//!
//! - Nothing is asked for before every kind was listed, nor while one is listed anew: an object
//!   is never taken for one without dependents because they were not seen yet.
//! - An object is deleted only after each of its owners was looked up and not found, or is
//!   known to wait for its dependents.
//! - At most one op of an object is under way, and the next is judged by what came of it.
//! - News cost the logarithm of the number of objects, those of an owner's end the number of its
//!   dependents. Nothing is asked for twice because of old news.
//!
//! # Assumptions
//!
//! - The news of a kind come in order, and versions grow.
//! - A uid is never used again.

pub(crate) mod object;
pub(crate) mod op;
pub(crate) mod uid;

mod judge;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::queue::{Queue, Settled};
use object::{Facts, GraphKind, KindId, ObjectId, Phase, Propagation};
use op::{Item, Op, Outcome};
use uid::Uid;

/// Who owns whom.
#[derive(Debug)]
pub(crate) struct Graph {
    kinds: Vec<GraphKind>,
    lists: Vec<Listing>,
    objects: HashMap<Uid, Record>,
    claims: HashMap<Arc<ObjectId>, Claim>,
    queue: Queue<Item>,
}

/// How far the lists of a kind are.
#[derive(Clone, Copy, Debug, Default)]
struct Listing {
    /// Which list it is.
    round: u32,
    is_complete: bool,
}

/// An object.
#[derive(Debug)]
struct Record {
    id: Arc<ObjectId>,
    version: u64,
    phase: Phase,
    propagation: Propagation,
    /// In the order of their names.
    owners: Box<[Owner]>,
    /// Those that cannot be judged.
    foreign: Box<[Uid]>,
    /// The list, or the watch after it, that it was last seen on.
    round: u32,
    /// What was done about it is seen from this version on.
    settled: u64,
}

/// An owner of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Owner {
    id: Arc<ObjectId>,
    blocks: bool,
}

/// Those who refer to an owner.
#[derive(Debug)]
struct Claim {
    /// Never empty.
    dependents: BTreeSet<Uid>,
    /// How many of them block the owner's deletion.
    blocking: usize,
    /// Counts only as long as the owner is not known.
    verdict: Verdict,
}

/// Whether there is an owner that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// That is being looked up.
    Unknown,
    Absent,
}

impl Graph {
    /// An empty graph of these kinds.
    pub(crate) fn new(kinds: Vec<GraphKind>) -> Self {
        let lists = vec![Listing::default(); kinds.len()];
        let (objects, claims, queue) = Default::default();
        Graph { kinds, lists, objects, claims, queue }
    }

    /// The kinds of the graph.
    pub(crate) fn kinds(&self) -> &[GraphKind] {
        &self.kinds
    }

    /// A list of a kind begins.
    pub(crate) fn begin(&mut self, kind: KindId) {
        let list = &mut self.lists[kind.0];
        *list = Listing { round: list.round.wrapping_add(1), is_complete: false };
    }

    /// The list of a kind is complete: whatever was not on it is gone.
    pub(crate) fn complete(&mut self, kind: KindId) {
        let list = &mut self.lists[kind.0];
        list.is_complete = true;
        let round = list.round;
        let is_missing = |record: &&Record| record.id.kind == kind && record.round != round;
        let missing: Vec<Uid> =
            self.objects.values().filter(is_missing).map(|it| it.id.uid.clone()).collect();
        for uid in missing {
            self.remove(&uid);
        }
    }

    /// An object is there, or has changed.
    pub(crate) fn see(&mut self, kind: KindId, meta: &ObjectMeta) {
        let Facts { id, version, phase, propagation, owners } =
            Facts::read(&self.kinds, kind, meta);
        let round = self.lists[kind.0].round;
        let uid = id.uid.clone();
        let foreign = owners.foreign.into();
        let owners: Box<[Owner]> = owners
            .known
            .into_iter()
            .map(|(id, blocks)| Owner { id: self.share(id), blocks })
            .collect();
        let Some(record) = self.objects.get_mut(&uid) else {
            let id = self.share(id);
            let record =
                Record { id, version, phase, propagation, owners, foreign, round, settled: 0 };
            self.insert(record);
            return;
        };
        // Until what was done is seen, the object is not judged, whatever else is.
        let was_unsettled = record.version < record.settled && version >= record.settled;
        record.version = version;
        record.round = round;
        record.propagation = propagation;
        let was = std::mem::replace(&mut record.phase, phase);
        let is_same = record.owners == owners && record.foreign == foreign;
        record.foreign = foreign;
        let old = if is_same {
            Box::default()
        } else {
            std::mem::replace(&mut record.owners, owners.clone())
        };
        let id = record.id.clone();
        if !is_same {
            // The new ones first, so that a claim which stays is not forgotten in between.
            self.join(&uid, &owners);
            self.part(&uid, &old, &owners);
        }
        if !is_same || was != phase || was_unsettled {
            self.queue.add(Item::Object(uid));
        }
        if was != phase && phase.waits() {
            self.ask_dependents(&id);
        }
    }

    /// An object is gone.
    pub(crate) fn gone(&mut self, meta: &ObjectMeta) {
        self.remove(&object::uid(meta));
    }

    /// Something to be done now, if there is anything. Whatever comes of it must be told.
    pub(crate) fn next(&mut self, now: Instant) -> Option<Op> {
        if !self.lists.iter().all(|list| list.is_complete) {
            return None;
        }
        while let Some(item) = self.queue.take(now) {
            let op = match &item {
                Item::Object(uid) => self.objects.get(uid).and_then(|record| self.judge(record)),
                Item::Owner(id) => {
                    let is_open =
                        self.claims.get(id).is_some_and(|it| it.verdict == Verdict::Unknown);
                    (is_open && self.object(id).is_none()).then(|| Op::Ask(id.clone()))
                }
            };
            if op.is_some() {
                return op;
            }
            self.queue.settle(item, Settled::Done, now);
        }
        None
    }

    /// When there may be something to be done, if nothing happens.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.queue.due_at()
    }

    /// Says what came of an op.
    pub(crate) fn settle(&mut self, item: Item, outcome: Outcome, now: Instant) {
        let seen_from = match outcome {
            Outcome::Done(version) => Some(version),
            Outcome::Gone => Some(u64::MAX),
            Outcome::Absent | Outcome::Present | Outcome::Refused => None,
        };
        if let (Item::Object(uid), Some(version)) = (&item, seen_from)
            && let Some(record) = self.objects.get_mut(uid)
        {
            record.settled = version;
        }
        if let (Item::Owner(id), Outcome::Absent) = (&item, outcome)
            && let Some(claim) = self.claims.get_mut(id)
        {
            claim.verdict = Verdict::Absent;
            self.ask_dependents(&id.clone());
        }
        let settled = match outcome {
            Outcome::Done(_) | Outcome::Gone => Settled::Again,
            Outcome::Absent => Settled::Done,
            // One that is there and was not seen yet may have come and gone meanwhile.
            Outcome::Present | Outcome::Refused => Settled::Failed,
        };
        self.queue.settle(item, settled, now);
    }

    /// The object that a reference means, if it is known.
    fn object(&self, id: &ObjectId) -> Option<&Record> {
        self.objects.get(&id.uid).filter(|record| *record.id == *id)
    }

    /// The one copy of a name that the graph has.
    fn share(&self, id: ObjectId) -> Arc<ObjectId> {
        if let Some(record) = self.object(&id) {
            return record.id.clone();
        }
        self.claims.get_key_value(&id).map_or_else(|| Arc::new(id.clone()), |(id, _)| id.clone())
    }

    fn insert(&mut self, record: Record) {
        let (id, owners) = (record.id.clone(), record.owners.clone());
        let waits = record.phase.waits();
        self.objects.insert(id.uid.clone(), record);
        self.join(&id.uid, &owners);
        if waits || !owners.is_empty() {
            self.queue.add(Item::Object(id.uid.clone()));
        }
        // They may have waited to know whether it is there.
        self.ask_dependents(&id);
    }

    fn remove(&mut self, uid: &Uid) {
        let Some(record) = self.objects.remove(uid) else { return };
        self.part(uid, &record.owners, &[]);
        if let Some(claim) = self.claims.get_mut(&record.id) {
            claim.verdict = Verdict::Unknown;
            self.queue.add(Item::Owner(record.id));
        }
    }

    /// Notes an object among the dependents of its owners.
    fn join(&mut self, uid: &Uid, owners: &[Owner]) {
        for owner in owners {
            let is_known = self.object(&owner.id).is_some();
            let claim = self.claims.entry(owner.id.clone()).or_insert_with(|| {
                if !is_known {
                    self.queue.add(Item::Owner(owner.id.clone()));
                }
                Claim { dependents: BTreeSet::new(), blocking: 0, verdict: Verdict::Unknown }
            });
            // An owner that stays is counted once, and its blocking anew.
            claim.dependents.insert(uid.clone());
            claim.blocking += usize::from(owner.blocks);
        }
    }

    /// Takes an object off the dependents of the owners it had, unless it has them still, and
    /// looks at those that may have waited for that.
    fn part(&mut self, uid: &Uid, had: &[Owner], has: &[Owner]) {
        for owner in had {
            let claim = self.claims.get_mut(&owner.id).expect("whoever is owned has claimed it");
            claim.blocking -= usize::from(owner.blocks);
            if has.binary_search_by(|other| other.id.cmp(&owner.id)).is_err() {
                claim.dependents.remove(uid);
                if claim.dependents.is_empty() {
                    self.claims.remove(&owner.id);
                }
            }
            if self.object(&owner.id).is_some_and(|record| record.phase.waits()) {
                self.queue.add(Item::Object(owner.id.uid.clone()));
            }
        }
    }

    /// Has every dependent of an owner looked at.
    fn ask_dependents(&mut self, id: &Arc<ObjectId>) {
        if let Some(claim) = self.claims.get(id) {
            for uid in &claim.dependents {
                self.queue.add(Item::Object(uid.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests;
