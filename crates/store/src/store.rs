//! The store as its users see it. It knows nothing of how requests are carried out.

use crate::committer::{Answer, Committer, QUEUE_REQUESTS, Request};
use crate::disk::Disk;
use crate::list;
use crate::memory::Memory;
use crate::shared::Shared;
use crate::write::{MAX_TRANSACTION_BYTES, MAX_TRANSACTION_WRITES, limit};
use crate::{Change, Entry, Listing, Options, Page, Revision, StoreError, Watch, Write};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot};

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
    /// Always there until the last handle is dropped.
    requests: Option<mpsc::Sender<Request>>,
    committer: Option<JoinHandle<()>>,
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
        let (disk, memory) = Disk::open(folder.as_ref(), &options)?;
        Self::start(memory, Some(disk), options)
    }

    /// A store that is gone when its last handle is, for throw-away runs.
    pub fn in_memory(options: Options) -> Self {
        Self::start(Memory::new(), None, options).expect("a thread can be started")
    }

    fn start(memory: Memory, disk: Option<Disk>, options: Options) -> Result<Self, StoreError> {
        let shared = Shared::new(memory);
        let (sender, requests) = mpsc::channel(QUEUE_REQUESTS);
        let committer = Committer { requests, shared: shared.clone(), disk, options };
        let committer = std::thread::Builder::new()
            .name("store-committer".to_owned())
            .spawn(move || committer.run())
            .map_err(StoreError::io("start the store's thread"))?;
        let inner = Inner { shared, requests: Some(sender), committer: Some(committer) };
        Ok(Store { inner: Arc::new(inner) })
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
        let requests = self.inner.requests.as_ref().expect("a handle is left");
        requests.send(request(answer)).await.map_err(|_| StoreError::Closed)?;
        answered.await.unwrap_or_else(|_| {
            let source = Arc::new(io::Error::other("the store's thread has ended"));
            Err(StoreError::InDoubt { source })
        })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Without a sender the committer finishes what it has and ends.
        self.requests = None;
        if let Some(committer) = self.committer.take() {
            // A panic of the thread was reported by the thread.
            let _ = committer.join();
        }
    }
}
