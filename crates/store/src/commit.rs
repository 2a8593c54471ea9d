//! What one group of writers comes to: the changes, the floor after them, and what is no longer
//! needed. It knows neither where they are kept nor who waits for them.

use crate::floor::Floor;
use crate::memory::Memory;
use crate::{Change, Options, Revision};
use std::sync::Arc;

/// One atomic step of the store.
#[derive(Clone, Debug)]
pub(crate) struct Commit {
    /// The changes in order; the first follows the newest change so far.
    pub(crate) changes: Vec<Arc<Change>>,
    /// The revision after them.
    pub(crate) revision: Revision,
    /// The floor after them.
    pub(crate) floor: Floor,
    /// The revisions whose records are no longer needed.
    pub(crate) superseded: Vec<Revision>,
}

impl Commit {
    /// The step that makes `changes`, keeps to the window of `options`, and raises the floor to
    /// `compact_to` if that was asked for.
    ///
    /// The floor never rises over the new changes themselves: a record that one batch both puts
    /// and removes would have no defined fate.
    pub(crate) fn plan(
        memory: &Memory,
        changes: Vec<Arc<Change>>,
        compact_to: Option<Revision>,
        options: &Options,
    ) -> Self {
        let revision = changes.last().map_or(memory.revision(), |change| change.revision);
        let mut kept_changes =
            (memory.revision().get() - memory.floor().revision.get()) as usize + changes.len();
        let mut kept_bytes =
            memory.window_bytes() + changes.iter().map(|change| change.bytes()).sum::<usize>();
        let mut floor = memory.floor();
        let mut superseded = Vec::new();
        for change in memory.changes_after(floor.revision) {
            let asked = compact_to.is_some_and(|revision| change.revision <= revision);
            let over = kept_changes > options.window_changes || kept_bytes > options.window_bytes;
            if !asked && !over {
                break;
            }
            floor.raise(change, &mut superseded);
            kept_changes -= 1;
            kept_bytes -= change.bytes();
        }
        Commit { changes, revision, floor, superseded }
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self, memory: &Memory) -> bool {
        self.changes.is_empty() && self.floor == memory.floor()
    }
}
