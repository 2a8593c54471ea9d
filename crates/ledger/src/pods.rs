//! The Pods that still matter, and what they add up to.
//!
//! Every record has a [`Share`]: what it adds to the sums and sets below. A change takes
//! the old share out and puts the new one in, so an event costs the logarithm of the
//! number of Pods, and the sums can never drift from what is there.
//!
//! A Pod leaves when it has finished and is not tracked any more, or is gone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use crate::pod_facts::{PodFacts, PodPhase};
use crate::pod_failure_policy::Verdict;
use crate::removal::Standing;

/// Where a record is.
pub(crate) type Slot = usize;

/// A Pod that still matters.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) name: Box<str>,
    pub(crate) uid: Box<str>,
    pub(crate) version: u64,
    pub(crate) index: Option<u32>,
    pub(crate) failure_count: u32,
    pub(crate) ignored_failure_count: u32,
    pub(crate) interruption_count: u32,
    pub(crate) phase: PodPhase,
    pub(crate) is_deleted: bool,
    pub(crate) is_tracked: bool,
    pub(crate) standing: Standing,
    pub(crate) finished_at: k8s_openapi::jiff::Timestamp,
    /// What its failure means; as long as it has not failed, what it would mean.
    pub(crate) verdict: Verdict,
    /// Whether the ledger itself has chosen it for removal, which does not count.
    pub(crate) is_doomed: bool,
    /// Whether it had failed before its deletion was asked for.
    pub(crate) failed_by_itself: bool,
    /// Whether the status calls its index completed because of it.
    pub(crate) is_success_written: bool,
    /// Whether its finalizer goes, or has gone, for a success that counted for nothing when that
    /// was asked for: then it never will, although its index may be wanted again meanwhile.
    pub(crate) is_let_go: bool,
    /// Whether its failure has been taken into the Job's streak of failures.
    pub(crate) is_noted: bool,
    /// Whether its failure no longer waits for its index.
    pub(crate) is_released: bool,
    /// The version at which a write was refused because the Pod has changed: until the
    /// change is known there is no point in asking again.
    pub(crate) stale_version: Option<u64>,
    /// Whether a write for it is on its way.
    pub(crate) is_busy: bool,
    pub(crate) share: Share,
}

impl Record {
    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// Whether it has ended and its finalizer keeps it.
    pub(crate) fn is_held(&self) -> bool {
        self.is_finished() && self.is_tracked
    }

    /// The failures of its index before it that make the next Pod wait.
    pub(crate) fn failures_before(&self) -> u32 {
        self.failure_count.saturating_add(self.ignored_failure_count)
    }

    /// The Pods of its index before it, as far as its annotations tell.
    pub(crate) fn attempts_before(&self) -> u32 {
        self.failures_before().saturating_add(self.interruption_count)
    }

    /// What it is by what was seen. A success is final for whoever has seen it: it may be on
    /// its way into the status, and what depends on it may have begun.
    pub(crate) fn phase_by(&self, facts: &PodFacts) -> PodPhase {
        match (self.phase, facts.phase) {
            (PodPhase::Succeeded, PodPhase::Failed) => PodPhase::Succeeded,
            (_, seen) => seen,
        }
    }

    /// Takes over what was seen; what the ledger has decided stays.
    pub(crate) fn take(&mut self, facts: &PodFacts, verdict: Verdict) {
        self.failed_by_itself |= self.phase == PodPhase::Failed && !self.is_deleted;
        self.version = facts.version;
        self.index = facts.index;
        self.failure_count = facts.failure_count;
        self.ignored_failure_count = facts.ignored_failure_count;
        self.interruption_count = facts.interruption_count;
        self.is_deleted = facts.is_deleted;
        self.is_tracked = facts.is_tracked;
        self.standing = Standing::of(facts);
        if self.phase_by(facts) == facts.phase {
            self.phase = facts.phase;
            self.finished_at = facts.finished_at;
        }
        self.verdict = verdict;
    }
}

/// What a record adds to the sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) is_active: bool,
    pub(crate) is_ready: bool,
    pub(crate) is_terminating: bool,
    pub(crate) restarts: u32,
    /// The index it keeps from being given to another Pod.
    pub(crate) occupies: Option<u32>,
    /// An active Pod that must not be: no valid index, or chosen for removal.
    pub(crate) is_unwanted: bool,
    /// Whether it is to be deleted.
    pub(crate) is_to_delete: bool,
    /// Whether it is a failure, counting or ignored, written down or not.
    pub(crate) is_failure: bool,
    pub(crate) duty: Duty,
}

/// What is left to do for a tracked Pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Duty {
    /// Nothing yet: it runs.
    #[default]
    None,
    /// Its success is to be written down.
    Success,
    /// The success of its index is to be written down.
    IndexSuccess(u32),
    /// Its failure is to be written down.
    Failure,
    /// Its failure waits until the index has another Pod, or has failed.
    IndexFailure(u32),
    /// Its finalizer can go: the status accounts for it, or nothing needs to.
    Removal,
}

/// The table.
#[derive(Clone, Default)]
pub(crate) struct Pods {
    records: Vec<Option<Record>>,
    free: Vec<Slot>,
    by_uid: HashMap<Box<str>, Slot>,
    pub(crate) sums: Sums,
}

/// Only the records: everything else follows from them, and the order of a hash map must
/// not make two equal tables look different.
impl fmt::Debug for Pods {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.records.iter().flatten()).finish()
    }
}

/// What all records add up to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) active: usize,
    pub(crate) ready: usize,
    pub(crate) terminating: usize,
    pub(crate) restarts: u64,
    /// Failures that count and are not in the status yet.
    pub(crate) new_failures: usize,
    pub(crate) new_successes: usize,
    /// Pods by the index they occupy.
    pub(crate) by_index: BTreeMap<u32, BTreeSet<Slot>>,
    /// Pods whose uid is to be written.
    pub(crate) to_write: BTreeSet<Slot>,
    /// Pods whose index is to be written.
    pub(crate) index_successes: BTreeSet<Slot>,
    /// Finalizers that can go and are not on their way.
    pub(crate) to_remove: BTreeSet<Slot>,
    /// Pods to delete, nothing being on its way for them.
    pub(crate) to_delete: BTreeSet<Slot>,
    /// Failures that wait for their replacement, by index.
    pub(crate) waiting: BTreeMap<u32, BTreeSet<Slot>>,
    pub(crate) active_slots: BTreeSet<Slot>,
    pub(crate) unwanted: BTreeSet<Slot>,
    pub(crate) tracked: usize,
}

impl Pods {
    pub(crate) fn get(&self, slot: Slot) -> &Record {
        self.records[slot].as_ref().expect("a slot that is handed out holds a record")
    }

    pub(crate) fn find(&self, uid: &str) -> Option<Slot> {
        self.by_uid.get(uid).copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_uid.is_empty()
    }

    pub(crate) fn uids(&self) -> impl Iterator<Item = String> + '_ {
        self.records.iter().flatten().map(|record| record.uid.to_string())
    }

    pub(crate) fn slots(&self) -> Vec<Slot> {
        let is_used = |slot: &Slot| self.records[*slot].is_some();
        (0..self.records.len()).filter(is_used).collect()
    }

    pub(crate) fn insert(&mut self, record: Record) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.records.push(None);
            self.records.len() - 1
        });
        self.by_uid.insert(record.uid.clone(), slot);
        self.sums.add(slot, &record);
        self.records[slot] = Some(record);
        slot
    }

    /// Changes a record; its share is brought up to date by `judge`.
    pub(crate) fn change(
        &mut self,
        slot: Slot,
        change: impl FnOnce(&mut Record),
        judge: impl FnOnce(&Record) -> Share,
    ) {
        let record = self.records[slot].as_mut().expect("a slot that is handed out holds a record");
        self.sums.take(slot, record);
        change(record);
        record.share = judge(record);
        self.sums.add(slot, record);
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Record {
        let record = self.records[slot].take().expect("a slot that is handed out holds a record");
        self.sums.take(slot, &record);
        self.by_uid.remove(&record.uid);
        self.free.push(slot);
        record
    }
}

impl Sums {
    fn add(&mut self, slot: Slot, record: &Record) {
        let share = record.share;
        self.active += usize::from(share.is_active);
        self.ready += usize::from(share.is_ready);
        self.terminating += usize::from(share.is_terminating);
        self.restarts += u64::from(share.restarts);
        self.tracked += usize::from(record.is_tracked);
        if let Some(index) = share.occupies {
            self.by_index.entry(index).or_default().insert(slot);
        }
        if share.is_active {
            self.active_slots.insert(slot);
        }
        if share.is_unwanted {
            self.unwanted.insert(slot);
        }
        if share.is_to_delete && !record.is_busy {
            self.to_delete.insert(slot);
        }
        match share.duty {
            Duty::None => {}
            Duty::Success => {
                self.new_successes += 1;
                self.to_write.insert(slot);
            }
            Duty::IndexSuccess(_) => {
                self.index_successes.insert(slot);
            }
            Duty::Failure => {
                self.new_failures += 1;
                self.to_write.insert(slot);
            }
            Duty::IndexFailure(index) => {
                self.new_failures += usize::from(record.verdict.counts());
                self.waiting.entry(index).or_default().insert(slot);
            }
            Duty::Removal => {
                if !record.is_busy {
                    self.to_remove.insert(slot);
                }
            }
        }
    }

    fn take(&mut self, slot: Slot, record: &Record) {
        let share = record.share;
        self.active -= usize::from(share.is_active);
        self.ready -= usize::from(share.is_ready);
        self.terminating -= usize::from(share.is_terminating);
        self.restarts -= u64::from(share.restarts);
        self.tracked -= usize::from(record.is_tracked);
        if let Some(index) = share.occupies {
            take_from(&mut self.by_index, index, slot);
        }
        if share.is_active {
            self.active_slots.remove(&slot);
        }
        if share.is_unwanted {
            self.unwanted.remove(&slot);
        }
        if share.is_to_delete {
            self.to_delete.remove(&slot);
        }
        match share.duty {
            Duty::None => {}
            Duty::IndexSuccess(_) => {
                self.index_successes.remove(&slot);
            }
            Duty::Removal => {
                self.to_remove.remove(&slot);
            }
            Duty::Success => {
                self.new_successes -= 1;
                self.to_write.remove(&slot);
            }
            Duty::Failure => {
                self.new_failures -= 1;
                self.to_write.remove(&slot);
            }
            Duty::IndexFailure(index) => {
                self.new_failures -= usize::from(record.verdict.counts());
                take_from(&mut self.waiting, index, slot);
            }
        }
    }
}

fn take_from(map: &mut BTreeMap<u32, BTreeSet<Slot>>, index: u32, slot: Slot) {
    if let Some(slots) = map.get_mut(&index) {
        slots.remove(&slot);
        if slots.is_empty() {
            map.remove(&index);
        }
    }
}
