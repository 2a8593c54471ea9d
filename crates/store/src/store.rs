//! The store as its users see it. It knows nothing of how requests are carried out.

use crate::committer::{Answer, Committer, QUEUE_REQUESTS, Request};
use crate::disk::{Disk, RealOs};
use crate::list;
use crate::memory::Memory;
use crate::shared::Shared;
use crate::write::{MAX_TRANSACTION_BYTES, MAX_TRANSACTION_WRITES, limit};
use crate::{Change, Entry, Listing, Options, Page, Revision, StoreError, Watch, Write};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot, watch};

/// A revisioned key-value store. Clones are handles to the same store.
///
/// Reads are served from memory: they never wait for the disk and go on when it fails. When the
/// last handle is dropped, the requests under way are finished and the folder is let go of;
/// that may block for as long as a commit takes.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    writer: Writer,
}

/// Who carries out requests.
#[derive(Debug)]
enum Writer {
    /// A thread, which waits for the disk.
    Thread {
        /// Always there until the last handle is dropped.
        requests: Option<mpsc::Sender<Request>>,
        committer: Option<JoinHandle<()>>,
    },
    /// Whoever asks: there is no disk to wait for. None is left once the store is closed.
    Caller(Mutex<Option<Box<Committer>>>),
}

impl Store {
    /// Opens the store in a folder, or makes one there if the folder is empty or missing. This
    /// reads and verifies all that is stored, so it takes a while and blocks.
    ///
    /// # Errors
    ///
    /// [`StoreError::InUse`] if somebody else has it open, [`StoreError::NotAStore`] and
    /// [`StoreError::UnknownFormat`] if it is not ours, [`StoreError::Corrupted`] if it is
    /// damaged, and [`StoreError::Io`].
    pub fn open(folder: impl AsRef<Path>, options: Options) -> Result<Self, StoreError> {
        let (disk, memory) = Disk::open(folder.as_ref(), &options, Arc::new(RealOs))?;
        Self::start(memory, disk, options)
    }

    /// A store that is gone when its last handle is, for throw-away runs.
    pub fn in_memory(options: Options) -> Self {
        let shared = Shared::new(Memory::new());
        let committer =
            Committer { shared: shared.clone(), disk: None, options, refused_bytes: None };
        let writer = Writer::Caller(Mutex::new(Some(Box::new(committer))));
        Store { inner: Arc::new(Inner { shared, writer }) }
    }

    fn start(memory: Memory, disk: Disk, options: Options) -> Result<Self, StoreError> {
        let shared = Shared::new(memory);
        let (sender, requests) = mpsc::channel(QUEUE_REQUESTS);
        let (own, disk) = (shared.clone(), Some(disk));
        let committer = Committer { shared: own, disk, options, refused_bytes: None };
        let committer = std::thread::Builder::new()
            .name("store-committer".to_owned())
            .spawn(move || committer.run(requests))
            .map_err(StoreError::io("start the store's thread"))?;
        let writer = Writer::Thread { requests: Some(sender), committer: Some(committer) };
        Ok(Store { inner: Arc::new(Inner { shared, writer }) })
    }

    /// Carries out one write.
    ///
    /// # Guarantees
    ///
    /// - The answer comes after the commit: the change is durable, and every read and watch
    ///   from now on shows it.
    /// - The write has a revision of its own, greater than that of every write that was
    ///   answered before this one was made.
    /// - Any error but [`StoreError::InDoubt`] means that the write was not done and will not be.
    ///
    /// # Assumptions
    ///
    /// - If the future is dropped, the write may be carried out all the same.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if the condition does not hold, [`StoreError::TooLarge`],
    /// [`StoreError::Io`] and [`StoreError::InDoubt`] if the disk fails, and
    /// [`StoreError::Closed`].
    pub async fn write(&self, write: Write) -> Result<Arc<Change>, StoreError> {
        let mut changes = self.transact(vec![write]).await?;
        Ok(changes.pop().expect("a write makes a change"))
    }

    /// Carries out several writes, all of them or none. Each has a revision of its own, one
    /// after the other, and sees the ones before it. The newest state never shows a part of
    /// them, whatever happens; who asks for a revision in their midst gets the store as of it.
    ///
    /// # Errors
    ///
    /// As for [`Store::write`]; a conflict names the first write whose condition does not hold.
    pub async fn transact(&self, writes: Vec<Write>) -> Result<Vec<Arc<Change>>, StoreError> {
        limit("a transaction", writes.len(), MAX_TRANSACTION_WRITES)?;
        let bytes = writes.iter().map(Write::bytes).sum();
        limit("the size of a transaction", bytes, MAX_TRANSACTION_BYTES)?;
        writes.iter().try_for_each(Write::check_size)?;
        self.ask(|answer| Request::Write(writes, answer)).await
    }

    /// What is stored under a key.
    pub fn get(&self, key: &str) -> Option<Arc<Entry>> {
        self.inner.shared.read().get(key).cloned()
    }

    /// What was stored under a key as of a revision.
    ///
    /// # Errors
    ///
    /// [`StoreError::Compacted`] and [`StoreError::Future`].
    pub fn get_at(&self, key: &str, revision: Revision) -> Result<Option<Arc<Entry>>, StoreError> {
        let memory = self.inner.shared.read();
        memory.check(revision)?;
        Ok(memory.get_at(key, revision).cloned())
    }

    /// The entries whose keys start with `prefix`, as of one revision. However long the list
    /// is, writers do not wait for it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Compacted`] and [`StoreError::Future`].
    pub fn list(&self, prefix: &str, page: Page) -> Result<Listing, StoreError> {
        list::list(&self.inner.shared, prefix, page)
    }

    /// How many keys start with `prefix`, as of `at` or now.
    ///
    /// # Errors
    ///
    /// [`StoreError::Compacted`] and [`StoreError::Future`].
    pub fn count(&self, prefix: &str, at: Option<Revision>) -> Result<usize, StoreError> {
        list::count(&self.inner.shared, prefix, at)
    }

    /// Follows the changes after a revision to keys that start with `prefix`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Compacted`] and [`StoreError::Future`].
    pub fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        Watch::new(self.inner.shared.clone(), prefix, after)
    }

    /// Forgets what happened before a revision: reads and watches from before it are answered
    /// with [`StoreError::Compacted`]. Answers the oldest revision that is kept now, which is
    /// later if the window had moved on already.
    ///
    /// # Errors
    ///
    /// [`StoreError::Future`], [`StoreError::Io`], [`StoreError::InDoubt`] and
    /// [`StoreError::Closed`].
    pub async fn compact(&self, revision: Revision) -> Result<Revision, StoreError> {
        self.ask(|answer| Request::Compact(revision, answer)).await
    }

    /// The newest revision.
    pub fn revision(&self) -> Revision {
        self.inner.shared.read().revision()
    }

    /// The oldest revision that can be read and watched from.
    pub fn oldest(&self) -> Revision {
        self.inner.shared.read().floor().revision
    }

    /// Whether no write can be taken any more: the store was closed, or whoever wrote has panicked.
    /// Reads go on. For health checks; a full disk does not close a store.
    pub fn is_closed(&self) -> bool {
        match &self.inner.writer {
            Writer::Thread { requests, .. } => {
                requests.as_ref().is_none_or(mpsc::Sender::is_closed)
            }
            Writer::Caller(committer) => committer.lock().map_or(true, |it| it.is_none()),
        }
    }

    /// Why the disk refused a commit, from then on until it takes one that is as large. Most
    /// often it is full. Readers of this are told when it begins and when it is over.
    pub fn refusal(&self) -> watch::Receiver<Option<StoreError>> {
        self.inner.shared.refusal()
    }

    /// Finishes the writes under way, refuses later ones, and lets go of the folder, so that it
    /// can be opened again. Watches deliver what they have, then end. Reads go on.
    ///
    /// # Errors
    ///
    /// None if the store was closed before; [`StoreError::InDoubt`] if it is not known.
    pub async fn close(&self) -> Result<(), StoreError> {
        match self.ask(Request::Close).await {
            Err(StoreError::Closed) => Ok(()),
            other => other,
        }
    }

    async fn ask<T>(&self, request: impl FnOnce(Answer<T>) -> Request) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        match &self.inner.writer {
            Writer::Thread { requests, .. } => {
                let requests = requests.as_ref().expect("a handle is left");
                requests.send(request(answer)).await.map_err(|_| StoreError::Closed)?;
            }
            Writer::Caller(committer) => {
                // Poisoned: somebody has panicked with it, and it is not known how far it came.
                let mut place = committer.lock().map_err(|_| StoreError::Closed)?;
                let committer = place.take().ok_or(StoreError::Closed)?;
                *place = committer.serve(request(answer));
            }
        }
        answered.await.unwrap_or_else(|_| {
            let source = Arc::new(io::Error::other("whoever carries out writes has ended"));
            Err(StoreError::InDoubt { source })
        })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let Writer::Thread { requests, committer } = &mut self.writer else { return };
        // Without a sender the committer finishes what it has and ends.
        *requests = None;
        if let Some(committer) = committer.take() {
            // A panic of the thread was reported by the thread.
            let _ = committer.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Os;
    use fjall::{Database, PersistMode};
    use std::pin::Pin;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::task::{Context, Poll, Waker};

    /// An operating system that says when a commit is about to be synced, and does so when it
    /// is told to.
    #[derive(Debug)]
    struct HeldOs {
        begun: Mutex<Sender<()>>,
        released: Mutex<Receiver<()>>,
    }

    impl Os for HeldOs {
        fn sync(&self, database: &Database, mode: PersistMode) -> fjall::Result<()> {
            if mode == PersistMode::SyncData {
                self.begun.lock().expect("no panic").send(()).expect("the test listens");
                let released = self.released.lock().expect("no panic").recv();
                released.expect("the test wants it to be synced");
            }
            RealOs.sync(database, mode)
        }

        fn now(&self) -> std::time::Instant {
            RealOs.now()
        }
    }

    /// A store, the news that a commit is written and not yet synced, and what lets it go on.
    fn held(folder: &Path) -> (Store, Receiver<()>, Sender<()>) {
        let ((begun, has_begun), (release, released)) = (channel(), channel());
        let os = HeldOs { begun: Mutex::new(begun), released: Mutex::new(released) };
        let options = Options::default();
        let (disk, memory) = Disk::open(folder, &options, Arc::new(os)).expect("an empty folder");
        let store = Store::start(memory, disk, options).expect("a thread can be started");
        (store, has_begun, release)
    }

    fn poll<F: Future>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
        future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    #[tokio::test]
    async fn nothing_is_acknowledged_or_read_before_its_sync_and_a_group_has_one_sync() {
        const GROUP: usize = 50;
        let folder = tempfile::tempdir().expect("a folder");
        let (store, has_begun, release) = held(folder.path());
        let mut watch = store.watch("", Revision::EMPTY).expect("nothing happened yet");
        let mut first = Box::pin(store.write(Write::create("/first", "x")));
        assert!(poll(&mut first).is_pending());
        has_begun.recv().expect("it is written");
        // These arrive while the first one is under way, so they make one group.
        let write = |number| Box::pin(store.write(Write::create(format!("/{number}"), "x")));
        let mut group: Vec<_> = (0..GROUP).map(write).collect();
        for write in &mut group {
            assert!(poll(write).is_pending());
        }
        assert!(poll(&mut first).is_pending(), "it is not synced");
        assert!(store.get("/first").is_none());
        assert!(watch.take().expect("it is kept").is_empty());

        release.send(()).expect("it waits");
        first.await.expect("it is synced");
        has_begun.recv().expect("the group is written");
        assert!(group.iter_mut().all(|write| poll(write).is_pending()), "it is not synced");
        assert_eq!(store.count("", None).expect("the newest"), 1);
        release.send(()).expect("it waits");
        for write in group {
            write.await.expect("it is synced");
        }
        assert_eq!(watch.take().expect("it is kept").len(), 1 + GROUP);
        assert!(has_begun.try_recv().is_err(), "there was one sync for all of them");
    }

    #[tokio::test]
    async fn a_store_whose_thread_has_ended_is_closed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, _has_begun, release) = held(folder.path());
        assert!(!store.is_closed());
        // The sync panics without anybody to wait for.
        drop(release);
        let error = store.write(Write::create("/a", "x")).await.expect_err("it was under way");
        assert!(matches!(error, StoreError::InDoubt { .. }), "{error:?}");
        let Writer::Thread { requests, .. } = &store.inner.writer else { panic!("it has a disk") };
        requests.as_ref().expect("a handle is left").closed().await;
        assert!(store.is_closed());
        let error = store.write(Write::create("/b", "x")).await.expect_err("nobody carries it out");
        assert!(matches!(error, StoreError::Closed), "{error:?}");
    }
}
