//! Everything that is stored, and the kept window of changes, in memory. It knows no disk, no
//! locks and no waiting.
//!
//! A key's slot holds its newest entry and the kept changes of that key. Each change knows what
//! was there before it, so the state as of an older revision is what the first later change
//! found:
//!
//! ```text
//! slot: live ── entry 9          as of 9: live
//!       past ── change 5 ── 9    as of 7: what change 9 found; as of 4: what change 5 found
//! ```

use crate::commit::Commit;
use crate::floor::Floor;
use crate::{Change, Entry, Revision, StoreError};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

/// Everything that is stored, and the kept window of changes.
#[derive(Debug)]
pub(crate) struct Memory {
    slots: BTreeMap<Arc<str>, Slot>,
    revision: Revision,
    floor: Floor,
    /// The kept changes in order, without gaps, up to the newest. While a list is under way at
    /// an older revision there may be some below the floor, too.
    changes: VecDeque<Arc<Change>>,
    /// The bytes that the changes above the floor hold on to: themselves, and every value that
    /// was put or superseded by one of them, once.
    window_bytes: usize,
}

#[derive(Debug, Default)]
struct Slot {
    live: Option<Arc<Entry>>,
    past: VecDeque<Arc<Change>>,
}

impl Memory {
    /// A store that was never written to.
    pub(crate) fn new() -> Self {
        Self::at_floor(Floor::EMPTY, Vec::new())
    }

    /// A store that holds `entries` as of its floor, and nothing newer.
    pub(crate) fn at_floor(floor: Floor, entries: Vec<Arc<Entry>>) -> Self {
        let slot = |entry: Arc<Entry>| {
            (entry.key.clone(), Slot { live: Some(entry), past: VecDeque::new() })
        };
        Memory {
            slots: entries.into_iter().map(slot).collect(),
            revision: floor.revision,
            floor,
            changes: VecDeque::new(),
            window_bytes: 0,
        }
    }

    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    pub(crate) fn floor(&self) -> Floor {
        self.floor
    }

    pub(crate) fn window_bytes(&self) -> usize {
        self.window_bytes
    }

    /// What is stored under a key now.
    pub(crate) fn get(&self, key: &str) -> Option<&Arc<Entry>> {
        self.slots.get(key)?.live.as_ref()
    }

    /// What was stored under a key as of a revision that [`Memory::check`] accepts.
    pub(crate) fn get_at(&self, key: &str, revision: Revision) -> Option<&Arc<Entry>> {
        self.slots.get(key)?.at(revision)
    }

    /// Whether the store as of `revision` can still, or already, be told.
    pub(crate) fn check(&self, revision: Revision) -> Result<(), StoreError> {
        if revision < self.floor.revision {
            Err(StoreError::Compacted { asked: revision, oldest: self.floor.revision })
        } else if revision > self.revision {
            Err(StoreError::Future { asked: revision, newest: self.revision })
        } else {
            Ok(())
        }
    }

    /// The keys from `start` on in order, each with what was stored under it as of `revision`.
    pub(crate) fn scan(
        &self,
        start: Bound<&str>,
        revision: Revision,
    ) -> impl Iterator<Item = (&Arc<str>, Option<&Arc<Entry>>)> {
        self.slots
            .range::<str, _>((start, Bound::Unbounded))
            .map(move |(key, slot)| (key, slot.at(revision)))
    }

    /// The changes after `revision`, in order.
    pub(crate) fn changes_after(&self, revision: Revision) -> impl Iterator<Item = &Arc<Change>> {
        let first = self.changes.front().map_or(self.revision.next(), |change| change.revision);
        let skipped = (revision.get() + 1).saturating_sub(first.get());
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX).min(self.changes.len());
        self.changes.range(skipped..)
    }

    /// Takes in what a commit has made durable. Changes below the new floor stay until
    /// [`Memory::trim`].
    pub(crate) fn publish(&mut self, commit: &Commit) {
        for change in &commit.changes {
            self.apply(change.clone());
        }
        self.window_bytes = commit.window_bytes;
        self.floor = commit.floor;
    }

    /// Takes in the change that follows the newest one.
    pub(crate) fn apply(&mut self, change: Arc<Change>) {
        assert_eq!(change.revision, self.revision.next(), "revisions have no gaps");
        self.revision = change.revision;
        self.window_bytes += change.added_bytes(self.floor.revision);
        let slot = self.slots.entry(change.key.clone()).or_default();
        slot.live = change.after.clone();
        slot.past.push_back(change.clone());
        self.changes.push_back(change);
    }

    /// Forgets the changes up to `revision`, which no reader is at.
    pub(crate) fn trim(&mut self, revision: Revision) {
        while let Some(change) = self.changes.pop_front_if(|change| change.revision <= revision) {
            let slot = self.slots.get_mut(&change.key).expect("a kept change has a slot");
            let first = slot.past.pop_front().expect("a kept change is in its key's past");
            assert_eq!(first.revision, change.revision, "a key's past is in order");
            if slot.past.is_empty() {
                slot.past = VecDeque::new();
                if slot.live.is_none() {
                    self.slots.remove(&change.key);
                }
            }
        }
    }
}

impl Slot {
    fn at(&self, revision: Revision) -> Option<&Arc<Entry>> {
        if self.past.back().is_none_or(|newest| newest.revision <= revision) {
            return self.live.as_ref();
        }
        let later = self.past.partition_point(|change| change.revision <= revision);
        self.past[later].before.as_ref()
    }
}
