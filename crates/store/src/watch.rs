//! Following the changes of a prefix. It knows no disk and no commits, only what memory keeps.

use crate::place::Place;
use crate::shared::Shared;
use crate::{Change, Revision, StoreError};
use std::sync::Arc;

/// The most changes that are looked at under one hold of the lock, and so the most that are
/// returned at once. Comparing a prefix takes some 20 ns, so commits wait about 5 µs.
const STEP_CHANGES: usize = 256;

/// The changes of a prefix after a revision.
///
/// # Guarantees
///
/// - Every change under the prefix is delivered once, in the order of revisions, without gaps:
///   either all changes up to a revision were delivered, or an error says that they are not
///   kept any more.
/// - Only durable changes are delivered, and not before a read would show them.
/// - A watch can go on where another one ended, also after a restart of the store, if that
///   revision is still in the kept window.
/// - A watcher costs a place in the shared window. Changes are never copied for it, and it
///   never holds up writers: one that falls out of the window gets [`StoreError::Compacted`].
/// - [`Watch::next`] can be dropped at any time without losing a change.
///
/// # Assumptions
///
/// - Batches are cut by number: a transaction may end up in two of them.
/// - A commit compares the prefix of each watcher with its keys, some 20 ns for each. Only those
///   are woken whose prefix it touches; the others are moved on where they stand.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    place: Arc<Place>,
}

impl Watch {
    pub(crate) fn new(
        shared: Arc<Shared>,
        prefix: &str,
        after: Revision,
    ) -> Result<Self, StoreError> {
        let place = shared.register(prefix, after)?;
        Ok(Watch { shared, place })
    }

    /// The next changes, at least one, as soon as there are some.
    ///
    /// # Errors
    ///
    /// [`StoreError::Compacted`] if the watch fell out of the kept window, and
    /// [`StoreError::Closed`] once the store is closed and everything was delivered.
    pub async fn next(&mut self) -> Result<Vec<Arc<Change>>, StoreError> {
        loop {
            // Looked at before the changes are taken: nothing comes after it was closed.
            let is_closed = self.shared.is_closed();
            let changes = self.take()?;
            if !changes.is_empty() {
                return Ok(changes);
            }
            if is_closed {
                return Err(StoreError::Closed);
            }
            // Whatever came since then has left a sign.
            self.place.touched().await;
        }
    }

    /// The next changes that are there already, the first of them if they are many; none if
    /// everything under the prefix was delivered.
    ///
    /// # Errors
    ///
    /// [`StoreError::Compacted`] if the watch fell out of the kept window.
    pub fn take(&mut self) -> Result<Vec<Arc<Change>>, StoreError> {
        let mut taken = Vec::new();
        loop {
            let memory = self.shared.read();
            let mut seen = self.place.seen();
            memory.check(seen)?;
            for change in memory.changes_after(seen).take(STEP_CHANGES) {
                seen = change.revision;
                if self.place.is_touched_by(change) {
                    taken.push(change.clone());
                }
            }
            // Still under the lock of memory: whoever commits moves places, too.
            self.place.reach(seen);
            if seen == memory.revision() || !taken.is_empty() {
                return Ok(taken);
            }
        }
    }

    /// The revision up to which every change under the prefix was delivered. It goes on while
    /// [`Watch::next`] waits, also if nothing happens under the prefix; a new watch can start
    /// from it.
    pub fn seen(&self) -> Revision {
        self.place.seen()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.unregister(&self.place);
    }
}
