//! The oldest revision that is kept, with a sum over everything that is stored as of it. It
//! knows neither memory nor disk.
//!
//! Below the floor only live entries are on disk, and their revisions have gaps. The sum is how
//! a start notices that one of them is missing, or that one is there which should be gone.

use crate::{Change, Entry, Revision};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The oldest kept revision and a sum over what is stored as of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Floor {
    /// The oldest revision that can be read and watched from.
    pub(crate) revision: Revision,
    /// How many entries are stored as of it.
    pub(crate) live: u64,
    /// The sum of their hashes. A sum does not depend on the order.
    pub(crate) digest: u64,
}

impl Floor {
    /// The floor of a store that was never written to.
    pub(crate) const EMPTY: Floor = Floor { revision: Revision::EMPTY, live: 0, digest: 0 };

    /// Raises the floor over the change that follows it. What the change superseded is then
    /// needed by nobody: its revisions are pushed to `superseded`.
    pub(crate) fn raise(&mut self, change: &Change, superseded: &mut Vec<Revision>) {
        self.revision = change.revision;
        if let Some(before) = &change.before {
            self.live -= 1;
            self.digest = self.digest.wrapping_sub(hash(before));
            superseded.push(before.modified);
        }
        match &change.after {
            Some(after) => self.add(after),
            None => superseded.push(change.revision),
        }
    }

    /// Counts an entry that is stored as of the floor.
    pub(crate) fn add(&mut self, entry: &Arc<Entry>) {
        self.live += 1;
        self.digest = self.digest.wrapping_add(hash(entry));
    }
}

/// A revision belongs to one write only, so it stands for the value, too; the value has a
/// checksum of its own.
fn hash(entry: &Entry) -> u64 {
    xxh3_64_with_seed(entry.key.as_bytes(), entry.modified.get())
}
