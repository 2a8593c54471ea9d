//! fjall, open: batches in, everything out again. It knows nothing of failed commits and of
//! acknowledged ones; its parent does.

use super::loading::Loading;
use super::os::Os;
use super::{damaged, journal, manifest};
use crate::commit::Commit;
use crate::lock::Patience;
use crate::memory::Memory;
use crate::record::{self, State};
use crate::{Revision, StoreError};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use std::error::Error;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const CHANGES: &str = "changes";
const STATE: &str = "state";
const STATE_KEY: &str = "state";
/// The file by which fjall knows a database of its own.
const FJALL_VERSION: &str = "version";

/// How much fjall caches of its tables. They are read when the store is opened and when they
/// are merged, in order, so a cache helps nothing; fjall wants one all the same.
const CACHE_BYTES: u64 = 1024 * 1024;

/// How much journal there may be: two files of 64 MiB, fjall's fixed size, so that one can be
/// written while the other waits for its tables. A start reads all of it.
const JOURNAL_BYTES: u64 = 2 * 64 * 1024 * 1024;

/// One worker. With several, more than one memory table can be waiting to be written, and fjall
/// blocks for good if four do and the disk refuses them.
const WORKERS: usize = 1;

/// From how many waiting memory tables on a commit waits. fjall itself would wait from 4 on,
/// but without noticing that its worker has failed. One commit adds at most one.
const MAX_SEALED_TABLES: usize = 3;

/// From how many unmerged tables on a commit waits; fjall's own limit is 20, with the same
/// flaw. A table is written every 64 MiB, so few can be added while one commit is under way.
const MAX_UNMERGED_TABLES: usize = 16;

/// How often a waiting commit looks again: a merge takes hundreds of milliseconds.
const WAIT: Duration = Duration::from_millis(2);

/// fjall, open.
pub(super) struct Engine {
    changes: Keyspace,
    state: Keyspace,
    database: Database,
    path: PathBuf,
    os: Arc<dyn Os>,
}

/// At which step a commit failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// Nothing was written: a worker of fjall's had failed at something else.
    NotBegun(fjall::Error),
    /// Not all of it was written.
    Write(fjall::Error),
    /// It was written, and may or may not be on the disk.
    Sync(fjall::Error),
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Engine {
    /// Makes a database that holds the state of an empty store.
    pub(super) fn create(path: &Path, write_buffer_bytes: u64) -> Result<(), StoreError> {
        let create = || {
            let database = open(path)?;
            let options = || KeyspaceCreateOptions::default().max_memtable_size(write_buffer_bytes);
            database.keyspace(CHANGES, options)?;
            let state = database.keyspace(STATE, options)?;
            let mut batch = database.batch().durability(Some(PersistMode::SyncAll));
            batch.insert(&state, STATE_KEY, record::encode_state(&State::EMPTY));
            batch.commit()
        };
        create().map_err(|error| StoreError::io("create the store")(io_error(error)))
    }

    /// Opens a database that is there, in which writes were acknowledged up to a revision.
    pub(super) fn open(
        path: &Path,
        acknowledged: Revision,
        os: Arc<dyn Os>,
    ) -> Result<Self, StoreError> {
        // Without this file fjall would make a new database over what is there.
        let version = path.join(FJALL_VERSION);
        if !version.try_exists().map_err(StoreError::io("open the store"))? {
            return Err(damaged(&version, "it is missing"));
        }
        manifest::verify(path)?;
        journal::settle(path, acknowledged, STATE_KEY)?;
        guarded(path, || {
            let database = open(path).map_err(|error| judge(path, error))?;
            let keyspace = |name: &str| {
                if !database.keyspace_exists(name) {
                    return Err(damaged(path, format!("the keyspace {name:?} is missing")));
                }
                let existing = database.keyspace(name, KeyspaceCreateOptions::default);
                existing.map_err(|error| judge(path, error))
            };
            let (changes, state) = (keyspace(CHANGES)?, keyspace(STATE)?);
            Ok(Engine { changes, state, database, path: path.to_owned(), os })
        })
    }

    /// Makes sure that everything found in the journal is on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.os.sync(&self.database, PersistMode::SyncAll).map_err(io_error)
    }

    /// What the database is at.
    pub(super) fn state(&self) -> Result<State, StoreError> {
        let state = self.state.get(STATE_KEY).map_err(|error| judge(&self.path, error))?;
        let state = state.ok_or_else(|| self.damaged("the state is missing"))?;
        record::decode_state(&state).map_err(|detail| self.damaged(detail))
    }

    /// Reads and verifies everything.
    pub(super) fn load(&self) -> Result<(Memory, State), StoreError> {
        guarded(&self.path, || {
            let state = self.state()?;
            let mut loading = Loading::new(&self.path, state);
            for item in self.changes.iter() {
                let (key, value) = item.into_inner().map_err(|error| judge(&self.path, error))?;
                loading.add(&key, &value)?;
            }
            Ok((loading.finish()?, state))
        })
    }

    /// Writes and syncs one batch: the changes, what they make superfluous, and the state.
    ///
    /// The two are separate steps, because what a failure means depends on which of them it was.
    pub(super) fn commit(&self, commit: &Commit) -> Result<(), Failure> {
        self.wait_for_worker().map_err(Failure::NotBegun)?;
        let mut batch = self.database.batch().durability(Some(PersistMode::Buffer));
        for change in &commit.changes {
            let key = record::record_key(change.revision);
            batch.insert(&self.changes, key, record::encode_record(change));
        }
        for superseded in &commit.superseded {
            batch.remove(&self.changes, record::record_key(*superseded));
        }
        let state = super::state_after(commit);
        batch.insert(&self.state, STATE_KEY, record::encode_state(&state));
        batch.commit().map_err(|error| match error {
            // fjall looks for that before it writes.
            fjall::Error::Poisoned => Failure::NotBegun(error),
            _ => Failure::Write(error),
        })?;
        self.os.sync(&self.database, PersistMode::SyncData).map_err(Failure::Sync)
    }

    /// Waits until fjall's worker keeps up, or has failed.
    fn wait_for_worker(&self) -> fjall::Result<()> {
        let behind = |keyspace: &Keyspace| {
            keyspace.sealed_memtable_count() >= MAX_SEALED_TABLES
                || keyspace.l0_table_count() >= MAX_UNMERGED_TABLES
        };
        while behind(&self.changes) || behind(&self.state) {
            // Flushes nothing, but tells whether the worker has failed.
            self.database.persist(PersistMode::Buffer)?;
            // There is nothing to wait on: fjall tells nobody when a table is written.
            std::thread::sleep(WAIT);
        }
        Ok(())
    }

    fn damaged(&self, detail: impl Into<String>) -> StoreError {
        damaged(&self.path, detail)
    }
}

fn open(path: &Path) -> fjall::Result<Database> {
    let mut patience = Patience::default();
    loop {
        let opened = Database::builder(path)
            .cache_size(CACHE_BYTES)
            .max_journaling_size(JOURNAL_BYTES)
            .worker_threads(WORKERS)
            .open();
        match opened {
            // Of a process that ends the store's own lock may be gone before fjall's is.
            Err(fjall::Error::Locked) if patience.pause() => {}
            opened => return opened,
        }
    }
}

/// Runs what reads fjall's files. fjall has `expect`s and assertions about what it reads, so on
/// damaged files it may panic where it should fail.
fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        Err(damaged(path, format!("fjall cannot read it: {said}")))
    })
}

/// What it means that fjall cannot open or read its files.
fn judge(path: &Path, error: fjall::Error) -> StoreError {
    if let fjall::Error::Locked = error {
        return StoreError::InUse { folder: path.to_owned(), by: None };
    }
    let said = error.to_string();
    let error = io_error(error);
    match error.kind() {
        // Files that end early, are missing, or say what cannot be.
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::InvalidData
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::NotFound
        | io::ErrorKind::Other => damaged(path, format!("fjall cannot read it: {said}")),
        _ => StoreError::io("open the store")(error),
    }
}

/// The operating system's error beneath fjall's, or one that wraps it.
pub(super) fn io_error(error: fjall::Error) -> io::Error {
    match error {
        fjall::Error::Io(error) => error,
        fjall::Error::Storage(fjall::LsmError::Io(error)) => error,
        other => match other.source().and_then(|source| source.downcast_ref::<io::Error>()) {
            Some(source) => io::Error::new(source.kind(), other.to_string()),
            None => io::Error::other(other),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::os::RealOs;
    use crate::stage::Stage;
    use crate::{Change, Condition, Options, Write};

    /// A database with ten keys written twice, of which the first fifteen writes are compacted.
    fn filled(path: &Path) -> Engine {
        Engine::create(path, 1 << 20).expect("an empty folder");
        let engine =
            Engine::open(path, Revision::EMPTY, Arc::new(RealOs)).expect("it was just made");
        let mut memory = Memory::new();
        for number in 0..20 {
            let mut stage = Stage::new(&memory);
            let write = Write::put(format!("/{}", number % 10), Condition::Any, vec![number; 9]);
            stage.add(&[write]).expect("nothing is in the way");
            let changes = stage.into_changes();
            let floor = (number == 19).then_some(Revision::new(16));
            let commit = Commit::plan(&memory, changes, floor, &Options::default());
            engine.commit(&commit).expect("there is room");
            memory.publish(&commit);
        }
        assert_eq!(engine.load().expect("it is whole").0.revision(), Revision::new(21));
        engine
    }

    fn detail(engine: &Engine) -> String {
        engine.load().expect_err("something is wrong").to_string()
    }

    #[test]
    fn a_record_that_is_missing_anywhere_is_noticed() {
        for revision in 7..=21 {
            let folder = tempfile::tempdir().expect("a folder");
            let engine = filled(&folder.path().join("data"));
            let key = record::record_key(Revision::new(revision));
            assert!(engine.changes.contains_key(key).expect("it can be read"), "{revision}");
            engine.changes.remove(key).expect("there is room");
            let expected = match revision {
                7..=16 => "the 9 entries as of revision 16 are not the 10".to_owned(),
                17..=20 => format!("it comes where {revision} is missing"),
                _ => "the changes from 20 to 21 are missing".to_owned(),
            };
            assert!(detail(&engine).contains(&expected), "{}", detail(&engine));
        }
    }

    #[test]
    fn a_record_that_should_be_gone_or_is_not_what_was_written_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let engine = filled(&folder.path().join("data"));
        let key = |number| record::record_key(Revision::new(number));
        let kept = engine.changes.get(key(7)).expect("it can be read").expect("it is there");
        engine.changes.insert(key(6), kept.clone()).expect("there is room");
        assert!(detail(&engine).contains("the record of revision 6: a checksum does not match"));
        let gone = Change {
            key: "/4".into(),
            revision: Revision::new(6),
            before: None,
            after: Some(Arc::new(crate::Entry {
                key: "/4".into(),
                value: vec![4; 9].into(),
                created: Revision::new(6),
                modified: Revision::new(6),
            })),
        };
        engine.changes.insert(key(6), record::encode_record(&gone)).expect("there is room");
        assert!(detail(&engine).contains("the 11 entries as of revision 16 are not the 10"));
        engine.changes.insert("\0", "not eight bytes").expect("there is room");
        assert!(detail(&engine).contains("a record's key is not a revision"));
    }

    #[test]
    fn a_missing_state_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let engine = filled(&folder.path().join("data"));
        engine.state.remove(STATE_KEY).expect("there is room");
        assert!(detail(&engine).contains("the state is missing"));
    }
}
