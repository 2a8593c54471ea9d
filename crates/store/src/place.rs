//! Where a watcher is: how far it has got, and the bell that wakes it. It knows neither memory nor
//! commits.
//!
//! ```text
//!   a commit touches the prefix ──▶ the place stays, the bell rings, the watcher takes what there is
//!   a commit does not ────────────▶ a place that was at the newest revision is at the new one
//! ```
//!
//! So a watcher of something quiet sleeps through everything else, and never falls out of the window
//! by it.

use crate::{Change, Revision};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Notify;

/// The place of one watcher. It is moved only under the lock of memory: by the watcher, which reads,
/// or by whoever commits.
#[derive(Debug)]
pub(crate) struct Place {
    id: u64,
    prefix: Box<str>,
    seen: AtomicU64,
    bell: Notify,
}

impl Place {
    /// The revision up to which every change under the prefix was taken.
    pub(crate) fn seen(&self) -> Revision {
        Revision::new(self.seen.load(Ordering::Acquire))
    }

    /// Moves on to a revision.
    pub(crate) fn reach(&self, revision: Revision) {
        self.seen.store(revision.get(), Ordering::Release);
    }

    /// Whether a change is under the prefix.
    pub(crate) fn is_touched_by(&self, change: &Change) -> bool {
        change.key.starts_with(&*self.prefix)
    }

    /// Waits for the bell. One that has rung meanwhile counts.
    pub(crate) async fn touched(&self) {
        self.bell.notified().await;
    }

    /// Wakes the watcher, or the next time it waits.
    pub(crate) fn ring(&self) {
        self.bell.notify_one();
    }
}

/// The places of all watchers.
#[derive(Debug, Default)]
pub(crate) struct Places {
    next_id: u64,
    places: HashMap<u64, Arc<Place>>,
}

impl Places {
    /// A new one.
    pub(crate) fn add(&mut self, prefix: &str, seen: Revision) -> Arc<Place> {
        let id = self.next_id;
        self.next_id += 1;
        let seen = AtomicU64::new(seen.get());
        let place = Arc::new(Place { id, prefix: prefix.into(), seen, bell: Notify::new() });
        self.places.insert(id, place.clone());
        place
    }

    /// One that nobody is at any more.
    pub(crate) fn remove(&mut self, place: &Place) {
        self.places.remove(&place.id);
    }

    /// Moves on those that have nothing to see between two revisions, and tells the others.
    pub(crate) fn pass(
        &self,
        changes: &[Arc<Change>],
        before: Revision,
        after: Revision,
    ) -> Vec<Arc<Place>> {
        let mut touched = Vec::new();
        for place in self.places.values() {
            if changes.iter().any(|change| place.is_touched_by(change)) {
                touched.push(place.clone());
            } else if place.seen() == before {
                place.reach(after);
            }
        }
        touched
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Place>> {
        self.places.values()
    }
}
