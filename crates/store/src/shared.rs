//! Memory as readers, watchers and the committer share it: the lock, the readers that hold up
//! trimming, and the places of those that watch. It knows no disk.

use crate::commit::Commit;
use crate::memory::Memory;
use crate::place::{Place, Places};
use crate::{Revision, StoreError};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::watch;

/// Memory with its lock. Only the committer writes to it.
#[derive(Debug)]
pub(crate) struct Shared {
    memory: RwLock<Memory>,
    /// How many readers are at which revision. Taken after the lock of `memory`, if both are.
    readers: Mutex<BTreeMap<Revision, usize>>,
    /// Where watchers are. Taken after the lock of `memory`, if both are.
    places: Mutex<Places>,
    /// Whether there will be no newer revision.
    is_closed: AtomicBool,
    /// Why the disk refuses commits, while it does.
    refusal: watch::Sender<Option<StoreError>>,
}

/// A reader that is at a revision for longer than it holds the lock. While it exists, the
/// changes after its revision stay in memory.
#[derive(Debug)]
pub(crate) struct Reader<'s> {
    shared: &'s Shared,
    /// The revision it reads at.
    pub(crate) revision: Revision,
}

impl Shared {
    pub(crate) fn new(memory: Memory) -> Arc<Self> {
        Arc::new(Shared {
            memory: RwLock::new(memory),
            readers: Mutex::default(),
            places: Mutex::default(),
            is_closed: AtomicBool::new(false),
            refusal: watch::Sender::new(None),
        })
    }

    /// Memory as it is now. The guard must not be held for long: it keeps commits waiting.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Memory> {
        self.memory.read().expect("nothing panics while it changes memory")
    }

    /// Starts to read at `at`, or at the newest revision.
    pub(crate) fn reader(&self, at: Option<Revision>) -> Result<Reader<'_>, StoreError> {
        let memory = self.read();
        let revision = at.unwrap_or(memory.revision());
        memory.check(revision)?;
        // Still under the lock of memory: nothing can be trimmed in between.
        let mut readers = self.readers.lock().expect("nothing panics while it counts readers");
        *readers.entry(revision).or_default() += 1;
        Ok(Reader { shared: self, revision })
    }

    /// Makes a durable commit visible to everyone at once, and tells the watchers.
    pub(crate) fn publish(&self, commit: &Commit) {
        let touched = {
            let mut memory = self.memory.write().expect("nothing panics while it changes memory");
            let before = memory.revision();
            memory.publish(commit);
            let readers = self.readers.lock().expect("nothing panics while it counts readers");
            let oldest = readers.keys().next().copied();
            drop(readers);
            memory.trim(oldest.unwrap_or(commit.floor.revision).min(commit.floor.revision));
            // Readers need not wait while watchers are told apart. Nobody else commits meanwhile.
            let memory = RwLockWriteGuard::downgrade(memory);
            self.places().pass(&commit.changes, before, memory.revision())
        };
        touched.iter().for_each(|place| place.ring());
    }

    /// Tells the watchers that there will be no more changes.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.places().all().for_each(|place| place.ring());
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// A place for somebody who watches what is under a prefix, after a revision that is kept.
    pub(crate) fn register(&self, prefix: &str, after: Revision) -> Result<Arc<Place>, StoreError> {
        let memory = self.read();
        memory.check(after)?;
        // Still under the lock of memory: whoever commits next moves it on.
        Ok(self.places().add(prefix, after))
    }

    /// Nobody is at this place any more.
    pub(crate) fn unregister(&self, place: &Place) {
        self.places().remove(place);
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().expect("nothing panics while it moves places")
    }

    /// Notes why the disk refuses commits, or that it does not any more.
    pub(crate) fn note(&self, refusal: Option<&StoreError>) {
        self.refusal.send_if_modified(|last| {
            let is_news = last.is_some() != refusal.is_some();
            *last = refusal.cloned();
            is_news
        });
    }

    pub(crate) fn refusal(&self) -> watch::Receiver<Option<StoreError>> {
        self.refusal.subscribe()
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        let mut readers =
            self.shared.readers.lock().expect("nothing panics while it counts readers");
        let count = readers.get_mut(&self.revision).expect("this reader is counted");
        *count -= 1;
        if *count == 0 {
            readers.remove(&self.revision);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::Stage;
    use crate::{Options, Write};
    use std::ops::Bound;

    fn write(shared: &Shared, write: Write, compact_to: Option<Revision>) {
        let commit = {
            let memory = shared.read();
            let mut stage = Stage::new(&memory);
            stage.add(&[write]).expect("its condition holds");
            Commit::plan(&memory, stage.into_changes(), compact_to, &Options::default())
        };
        shared.publish(&commit);
    }

    fn values(shared: &Shared, revision: Revision) -> Vec<String> {
        let memory = shared.read();
        let text = |entry: &crate::Entry| String::from_utf8_lossy(&entry.value).into_owned();
        memory
            .scan(Bound::Unbounded, revision)
            .filter_map(|(_, entry)| entry.map(|entry| text(entry)))
            .collect()
    }

    #[test]
    fn a_reader_keeps_its_revision_through_a_compaction_and_nobody_else_gets_it() {
        let shared = Shared::new(Memory::new());
        write(&shared, Write::create("a", "1"), None);
        write(&shared, Write::create("b", "1"), None);
        let reader = shared.reader(None).expect("the newest");
        write(&shared, Write::put("a", crate::Condition::Any, "2"), None);
        write(&shared, Write::delete("b", crate::Condition::Any), None);
        let newest = shared.read().revision();
        write(&shared, Write::create("c", "2"), Some(newest));
        assert_eq!(shared.read().floor().revision, newest);
        assert_eq!(values(&shared, reader.revision), ["1", "1"]);
        shared.reader(Some(reader.revision)).expect_err("it is compacted");
        drop(reader);
        write(&shared, Write::create("d", "2"), None);
        assert_eq!(shared.read().changes_after(Revision::EMPTY).count(), 2, "it is forgotten");
        assert_eq!(values(&shared, newest), ["2"]);
    }
}
