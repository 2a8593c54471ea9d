//! Commits on disk, with fjall. It knows neither memory nor who waits for a commit.
//!
//! ```text
//!            commit fails                 reopened, the commit is not there
//! open ───────────────────▶ in doubt ───────────────────────────────────────▶ open, refused
//!   ▲                          │ │        reopened, the commit is there
//!   │                          │ └──────────────────────────────────────────▶ open, carried out
//!   └──── a later write ◀──────┘ cannot be reopened: the writers are told that they are in doubt
//! ```
//!
//! Reopening rereads everything, so after a failure writes are refused for a while without
//! trying.

mod engine;
mod journal;
mod loading;
mod manifest;
mod os;

use crate::commit::Commit;
use crate::folder::Folder;
use crate::mark::Mark;
use crate::memory::Memory;
use crate::record::State;
use crate::{Options, StoreError};
use engine::{Engine, Failure};
pub(crate) use os::{Os, RealOs};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long nothing is tried after fjall was reopened for a failure that is not over. Reopening
/// reads all tables and up to 128 MiB of journal, which is bearable once a second, and a second
/// is not long to wait once there is room again.
const PAUSE: Duration = Duration::from_secs(1);

/// A store on disk.
///
/// # Guarantees
///
/// - A commit that is answered with `Ok` is on the disk, as far as the operating system can
///   tell, and all of it is there after any crash. Of one that is not, all or nothing is there.
/// - A commit that is answered with [`StoreError::Io`] was not carried out and never will be.
/// - A commit that is answered with [`StoreError::InDoubt`] is either carried out or not by the
///   time of the next successful commit, and [`Disk::ready`] says which.
/// - What was acknowledged is there when the store is opened, or opening it says that it is
///   [`StoreError::Corrupted`].
///
/// # Assumptions
///
/// - What is synced is on the disk. A disk that says so and then loses it in a power cut loses
///   writes; the mark notices that only if it was written out before.
/// - Nobody else writes into the folder.
#[derive(Debug)]
pub(crate) struct Disk {
    // Before the folder, whose lock must be the last to go.
    engine: Option<Engine>,
    mark: Mark,
    /// What is durable.
    state: State,
    /// A commit whose fate is not known.
    doubt: Option<Commit>,
    /// A commit that is durable, though its writers were told that they are in doubt.
    unpublished: Option<Commit>,
    /// When fjall was last reopened, or that was tried.
    reopened: Option<Instant>,
    /// How writes are refused while there is a pause: what the last one failed with.
    refusal: Option<StoreError>,
    os: Arc<dyn Os>,
    folder: Folder,
}

/// What became of a commit in doubt.
#[derive(Debug)]
enum Fate {
    Lost,
    Durable(Commit),
}

impl Disk {
    /// Opens the store in a folder, or makes one there.
    pub(crate) fn open(
        path: &Path,
        options: &Options,
        os: Arc<dyn Os>,
    ) -> Result<(Self, Memory), StoreError> {
        let folder = Folder::lock(path)?;
        folder.create(|data| Engine::create(data, options.write_buffer_bytes))?;
        folder.check_format()?;
        let mark = folder.mark()?;
        folder.close_to_others()?;
        let engine = Engine::open(&folder.data(), mark.revision(), os.clone())?;
        let (memory, state) = engine.load()?;
        if state.revision < mark.revision() {
            let (found, acknowledged) = (state.revision, mark.revision());
            let detail = format!(
                "writes up to {acknowledged} were acknowledged, according to {}, but only those \
                 up to {found} can be read",
                mark.path().display(),
            );
            return Err(damaged(&folder.data(), detail));
        }
        // What was found counts as acknowledged from now on: readers will see it. It may have
        // been written by a process that died before its sync, so it is synced again.
        engine.sync().map_err(StoreError::io("sync the store"))?;
        let engine = Some(engine);
        let mut disk = Disk {
            engine,
            mark,
            state,
            doubt: None,
            unpublished: None,
            reopened: None,
            refusal: None,
            os,
            folder,
        };
        disk.mark(state);
        Ok((disk, memory))
    }

    /// Gets ready for a commit. After a failure this reopens fjall, which refuses everything
    /// once a write has failed. Returns a commit whose fate was in doubt and that turns out to
    /// be durable: it must be published before anything else is decided.
    pub(crate) fn ready(&mut self) -> Result<Option<Commit>, StoreError> {
        if self.engine.is_none() {
            self.refuse_in_pause()?;
            match self.reopen() {
                Ok(Fate::Durable(commit)) => self.unpublished = Some(commit),
                Ok(Fate::Lost) => {}
                Err(error) => return Err(self.pause(error)),
            }
            self.refusal = None;
        }
        Ok(self.unpublished.take())
    }

    /// Makes a commit durable. [`Disk::ready`] comes first. Within [`PAUSE`] of a failure it is
    /// refused, with the same error, and nothing is tried.
    pub(crate) fn commit(&mut self, commit: &Commit) -> Result<(), StoreError> {
        self.refuse_in_pause()?;
        self.refusal = None;
        let outcome = match self.try_commit(commit) {
            Err(Failure::NotBegun(_)) => self.commit_anew(commit),
            other => self.settle(commit, other),
        };
        outcome.map_err(|error| self.pause(error))
    }

    /// Tries a commit again of which nothing was written, because a worker had failed at
    /// something else, such as writing a table to a full disk. It may go well now, unless it
    /// has just been tried.
    fn commit_anew(&mut self, commit: &Commit) -> Result<(), StoreError> {
        self.engine = None;
        if self.is_just_reopened() {
            return Err(worker_failed());
        }
        self.reopen()?;
        match self.try_commit(commit) {
            Err(Failure::NotBegun(_)) => {
                self.engine = None;
                Err(worker_failed())
            }
            other => self.settle(commit, other),
        }
    }

    fn refuse_in_pause(&self) -> Result<(), StoreError> {
        match &self.refusal {
            Some(refusal) if self.is_just_reopened() => Err(refusal.clone()),
            Some(_) | None => Ok(()),
        }
    }

    fn is_just_reopened(&self) -> bool {
        self.reopened.is_some_and(|reopened| self.os.now().duration_since(reopened) < PAUSE)
    }

    /// Refuses what comes within the pause as this one was. What is not tried is not in doubt.
    fn pause(&mut self, error: StoreError) -> StoreError {
        self.refusal = Some(match &error {
            StoreError::InDoubt { source } => {
                StoreError::Io { doing: "write", source: source.clone() }
            }
            other => other.clone(),
        });
        error
    }

    fn try_commit(&self, commit: &Commit) -> Result<(), Failure> {
        self.engine.as_ref().expect("a commit comes after ready").commit(commit)
    }

    fn settle(&mut self, commit: &Commit, outcome: Result<(), Failure>) -> Result<(), StoreError> {
        let Err(failure) = outcome else {
            self.mark(state_after(commit));
            return Ok(());
        };
        // Dropping the engine may still write what was left in its buffer, so only what is
        // found afterwards counts.
        self.engine = None;
        self.doubt = Some(commit.clone());
        let (error, may_be_done) = match failure {
            Failure::NotBegun(error) | Failure::Write(error) => {
                let error = engine::io_error(error);
                let no_room = is_no_room(&error);
                (error, no_room)
            }
            // After a failed sync, for whatever reason, Linux keeps the pages but takes them for
            // written: that they can be read and synced again means nothing.
            Failure::Sync(error) => (engine::io_error(error), false),
        };
        let source = Arc::new(self.placed(&error));
        match self.reopen() {
            Ok(Fate::Lost) => Err(StoreError::Io { doing: "write", source }),
            // There was room in the end, and reopening has synced it.
            Ok(Fate::Durable(_)) if may_be_done => Ok(()),
            // A disk that fails for another reason may show what it has not stored. The writers
            // are not told that all is well.
            Ok(Fate::Durable(commit)) => {
                self.unpublished = Some(commit);
                Err(StoreError::InDoubt { source })
            }
            Err(_) => Err(StoreError::InDoubt { source }),
        }
    }

    /// An error with the folder that it is of: whoever is told of it may have to make room there.
    fn placed(&self, error: &io::Error) -> io::Error {
        let folder = self.folder.path().display();
        io::Error::new(error.kind(), format!("{folder}: {error}"))
    }

    /// Opens fjall again and finds out what became of the commit in doubt, if there is one.
    fn reopen(&mut self) -> Result<Fate, StoreError> {
        self.reopened = Some(self.os.now());
        let engine = Engine::open(&self.folder.data(), self.state.revision, self.os.clone())?;
        // What is found may never have been synced, and must not be believed before it is.
        engine.sync().map_err(StoreError::io("sync the store"))?;
        let found = engine.state()?;
        let fate = match &self.doubt {
            _ if found == self.state => Fate::Lost,
            Some(commit) if found == state_after(commit) => Fate::Durable(commit.clone()),
            Some(_) | None => {
                let detail = format!(
                    "it is at revision {}, but should be at {}",
                    found.revision, self.state.revision
                );
                return Err(damaged(&self.folder.data(), detail));
            }
        };
        self.doubt = None;
        self.engine = Some(engine);
        self.mark(found);
        Ok(fate)
    }

    /// Notes that everything up to `state` is durable.
    fn mark(&mut self, state: State) {
        self.state = state;
        // A mark that cannot be written stays where it is: less damage would be noticed, and
        // nothing is lost. That is no reason to refuse a write that is durable.
        let _ = self.mark.set(state.revision);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.engine = None;
        // As in `mark`: at worst, less is noticed after a power cut.
        let _ = self.mark.sync();
    }
}

/// What the store is at after a commit.
fn state_after(commit: &Commit) -> State {
    State { revision: commit.revision, floor: commit.floor }
}

/// Whether an error says that the disk is full, or as good as.
fn is_no_room(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::FileTooLarge | io::ErrorKind::QuotaExceeded
    )
}

fn worker_failed() -> StoreError {
    let error = io::Error::other("fjall cannot write its tables; is the disk full?");
    StoreError::io("write")(error)
}

fn damaged(path: &Path, detail: impl Into<String>) -> StoreError {
    StoreError::corrupted(path.display().to_string(), detail)
}

#[cfg(test)]
mod tests;
