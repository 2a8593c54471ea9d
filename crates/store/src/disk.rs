//! Commits on disk, with fjall. It knows neither memory nor who waits for a commit.
//!
//! ```text
//!            commit fails                 reopened, the commit is not there
//! open ───────────────────▶ in doubt ───────────────────────────────────────▶ open, refused
//!   ▲                          │ │        reopened, the commit is there
//!   │                          │ └──────────────────────────────────────────▶ open, carried out
//!   └──── the next write ◀─────┘ cannot be reopened: the writers are told that they are in doubt
//! ```

mod engine;
mod journal;
mod loading;
mod manifest;

use crate::commit::Commit;
use crate::folder::Folder;
use crate::mark::Mark;
use crate::memory::Memory;
use crate::record::State;
use crate::{Options, StoreError};
use engine::Engine;
use std::io;
use std::path::Path;
use std::sync::Arc;

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
    pub(crate) fn open(path: &Path, options: &Options) -> Result<(Self, Memory), StoreError> {
        let folder = Folder::lock(path)?;
        folder.create(|data| Engine::create(data, options.write_buffer_bytes))?;
        folder.check_format()?;
        let mark = folder.mark()?;
        let engine = Engine::open(&folder.data(), mark.revision())?;
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
        let mut disk = Disk { engine, mark, state, doubt: None, unpublished: None, folder };
        disk.mark(state);
        Ok((disk, memory))
    }

    /// Gets ready for a commit. After a failure this reopens fjall, which refuses everything
    /// once a write has failed. Returns a commit whose fate was in doubt and that turns out to
    /// be durable: it must be published before anything else is decided.
    pub(crate) fn ready(&mut self) -> Result<Option<Commit>, StoreError> {
        if self.engine.is_none()
            && let Fate::Durable(commit) = self.reopen()?
        {
            self.unpublished = Some(commit);
        }
        Ok(self.unpublished.take())
    }

    /// Makes a commit durable. [`Disk::ready`] comes first.
    pub(crate) fn commit(&mut self, commit: &Commit) -> Result<(), StoreError> {
        match self.try_commit(commit) {
            // Nothing was written: a worker of fjall's had failed at something else, such as
            // writing a table to a full disk. It may go well now.
            Err(fjall::Error::Poisoned) => {
                self.engine = None;
                self.reopen()?;
                match self.try_commit(commit) {
                    Err(fjall::Error::Poisoned) => {
                        self.engine = None;
                        let error =
                            io::Error::other("fjall cannot write its tables; is the disk full?");
                        Err(StoreError::io("write")(error))
                    }
                    other => self.settle(commit, other),
                }
            }
            other => self.settle(commit, other),
        }
    }

    fn try_commit(&self, commit: &Commit) -> fjall::Result<()> {
        self.engine.as_ref().expect("a commit comes after ready").commit(commit)
    }

    fn settle(&mut self, commit: &Commit, outcome: fjall::Result<()>) -> Result<(), StoreError> {
        let Err(error) = outcome else {
            self.mark(state_after(commit));
            return Ok(());
        };
        // Dropping the engine may still write what was left in its buffer, so only what is
        // found afterwards counts.
        self.engine = None;
        self.doubt = Some(commit.clone());
        let error = engine::io_error(error);
        let no_room = matches!(
            error.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::FileTooLarge | io::ErrorKind::QuotaExceeded
        );
        let source = Arc::new(error);
        match self.reopen() {
            Ok(Fate::Lost) => Err(StoreError::Io { doing: "write", source }),
            Ok(Fate::Durable(_)) if no_room => Ok(()),
            // A disk that fails for another reason may show what it has not stored: after a
            // failed sync Linux keeps the pages but takes them for written. The writers are not
            // told that all is well.
            Ok(Fate::Durable(commit)) => {
                self.unpublished = Some(commit);
                Err(StoreError::InDoubt { source })
            }
            Err(_) => Err(StoreError::InDoubt { source }),
        }
    }

    /// Opens fjall again and finds out what became of the commit in doubt, if there is one.
    fn reopen(&mut self) -> Result<Fate, StoreError> {
        let engine = Engine::open(&self.folder.data(), self.state.revision)?;
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

fn damaged(path: &Path, detail: impl Into<String>) -> StoreError {
    StoreError::corrupted(path.display().to_string(), detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Write;
    use crate::stage::Stage;

    fn open(folder: &Path) -> (Disk, Memory) {
        Disk::open(folder, &Options::default()).expect("it is whole")
    }

    fn plan(memory: &Memory, key: &str) -> Commit {
        let mut stage = Stage::new(memory);
        stage.add(&[Write::create(key, "value")]).expect("nothing is in the way");
        Commit::plan(memory, stage.into_changes(), None, &Options::default())
    }

    /// What fjall would say.
    fn failed(kind: io::ErrorKind) -> fjall::Result<()> {
        Err(fjall::Error::Io(kind.into()))
    }

    #[test]
    fn a_commit_that_failed_and_is_not_there_was_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut disk, mut memory) = open(folder.path());
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::Other] {
            let commit = plan(&memory, "lost");
            let error = disk.settle(&commit, failed(kind)).expect_err("it is not there");
            assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
            assert!(disk.ready().expect("it can be opened").is_none());
        }
        let commit = plan(&memory, "found");
        disk.commit(&commit).expect("there is room");
        memory.publish(&commit);
        drop(disk);
        let (_, found) = open(folder.path());
        assert_eq!(found.revision(), memory.revision());
        assert!(found.get("found").is_some() && found.get("lost").is_none());
    }

    #[test]
    fn a_commit_for_which_there_was_no_room_at_first_and_that_is_there_was_done() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut disk, memory) = open(folder.path());
        let commit = plan(&memory, "found");
        disk.try_commit(&commit).expect("there is room");
        disk.settle(&commit, failed(io::ErrorKind::StorageFull)).expect("it is there");
        assert!(disk.ready().expect("it is open").is_none(), "its writers were told");
    }

    #[test]
    fn a_commit_that_is_there_after_another_failure_is_in_doubt_and_then_published() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut disk, mut memory) = open(folder.path());
        let commit = plan(&memory, "doubtful");
        disk.try_commit(&commit).expect("there is room");
        let error = disk.settle(&commit, failed(io::ErrorKind::Other)).expect_err("who knows");
        assert!(matches!(error, StoreError::InDoubt { .. }), "{error:?}");
        let published = disk.ready().expect("it is open").expect("it is there");
        memory.publish(&published);
        assert!(disk.ready().expect("it is open").is_none(), "once");
        let next = plan(&memory, "next");
        disk.commit(&next).expect("there is room");
        drop(disk);
        let (_, found) = open(folder.path());
        assert!(found.get("doubtful").is_some() && found.get("next").is_some());
    }

    #[test]
    fn a_commit_is_in_doubt_until_fjall_can_be_opened_again() {
        for durable in [true, false] {
            let folder = tempfile::tempdir().expect("a folder");
            let (mut disk, memory) = open(folder.path());
            let commit = plan(&memory, "doubtful");
            if durable {
                disk.try_commit(&commit).expect("there is room");
            }
            let (data, away) = (folder.path().join("data"), folder.path().join("away"));
            std::fs::rename(&data, &away).expect("it is there");
            let error = disk.settle(&commit, failed(io::ErrorKind::StorageFull));
            assert!(matches!(error, Err(StoreError::InDoubt { .. })), "{error:?}");
            disk.ready().expect_err("it is not there");
            std::fs::rename(&away, &data).expect("it is there");
            let found = disk.ready().expect("it can be opened");
            assert_eq!(found.is_some(), durable);
        }
    }
}
