//! Commits that fail, and what is told of them.

use super::*;
use crate::Write;
use crate::stage::Stage;
use fjall::{Database, PersistMode};
use std::sync::Mutex;

/// An operating system whose syncs can be made to fail.
#[derive(Debug)]
struct TestOs {
    /// How the next syncs of each kind fail.
    failures: Mutex<Vec<(PersistMode, io::ErrorKind)>>,
    synced: Mutex<Vec<PersistMode>>,
    now: Mutex<Instant>,
}

impl TestOs {
    fn fail(&self, mode: PersistMode, kind: io::ErrorKind) {
        self.failures.lock().expect("no panic").push((mode, kind));
    }

    fn wait(&self, duration: Duration) {
        *self.now.lock().expect("no panic") += duration;
    }

    /// How often commits were synced, and how often fjall was opened.
    fn counts(&self) -> (usize, usize) {
        let synced = self.synced.lock().expect("no panic");
        let count = |wanted| synced.iter().filter(|mode| **mode == wanted).count();
        (count(PersistMode::SyncData), count(PersistMode::SyncAll))
    }
}

impl Os for TestOs {
    fn sync(&self, database: &Database, mode: PersistMode) -> fjall::Result<()> {
        let mut failures = self.failures.lock().expect("no panic");
        if let Some(at) = failures.iter().position(|(failing, _)| *failing == mode) {
            return Err(fjall::Error::Io(failures.remove(at).1.into()));
        }
        self.synced.lock().expect("no panic").push(mode);
        RealOs.sync(database, mode)
    }

    fn now(&self) -> Instant {
        *self.now.lock().expect("no panic")
    }
}

fn open(folder: &Path) -> (Disk, Memory) {
    open_on(folder).0
}

fn open_on(folder: &Path) -> ((Disk, Memory), Arc<TestOs>) {
    let os = Arc::new(TestOs {
        failures: Mutex::default(),
        synced: Mutex::default(),
        now: Mutex::new(Instant::now()),
    });
    let open = Disk::open(folder, &Options::default(), os.clone());
    (open.expect("it is whole"), os)
}

fn plan(memory: &Memory, key: &str) -> Commit {
    let mut stage = Stage::new(memory);
    stage.add(&[Write::create(key, "value")]).expect("nothing is in the way");
    Commit::plan(memory, stage.into_changes(), None, &Options::default())
}

/// What fjall would say.
fn failed(kind: io::ErrorKind) -> Result<(), Failure> {
    Err(Failure::Write(fjall::Error::Io(kind.into())))
}

#[test]
fn each_commit_is_synced_once_and_what_is_found_when_opening_is_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let ((mut disk, mut memory), os) = open_on(folder.path());
    assert_eq!(os.counts(), (0, 1));
    for number in 1..=3 {
        let commit = plan(&memory, &number.to_string());
        disk.commit(&commit).expect("there is room");
        memory.publish(&commit);
        assert_eq!(os.counts(), (number, 1));
    }
}

#[test]
fn a_commit_whose_sync_failed_is_in_doubt_whatever_the_reason() {
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::Other] {
        let folder = tempfile::tempdir().expect("a folder");
        let ((mut disk, memory), os) = open_on(folder.path());
        os.fail(PersistMode::SyncData, kind);
        let error = disk.commit(&plan(&memory, "doubtful")).expect_err("it is not synced");
        assert!(matches!(error, StoreError::InDoubt { .. }), "{error:?}");
        assert!(disk.ready().expect("it is open").is_some(), "it is there all the same");
    }
}

#[test]
fn nothing_counts_as_durable_before_reopening_has_synced_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let ((mut disk, memory), os) = open_on(folder.path());
    let commit = plan(&memory, "doubtful");
    disk.try_commit(&commit).expect("there is room");
    os.fail(PersistMode::SyncAll, io::ErrorKind::StorageFull);
    let outcome = disk.settle(&commit, failed(io::ErrorKind::StorageFull));
    assert!(matches!(outcome, Err(StoreError::InDoubt { .. })), "{outcome:?}");
    assert_eq!(disk.mark.revision(), memory.revision(), "it is not marked");
    assert!(disk.ready().expect("it can be synced now").is_some());
    assert_eq!(disk.mark.revision(), commit.revision);
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
        let ((mut disk, memory), os) = open_on(folder.path());
        let commit = plan(&memory, "doubtful");
        if durable {
            disk.try_commit(&commit).expect("there is room");
        }
        let (data, away) = (folder.path().join("data"), folder.path().join("away"));
        std::fs::rename(&data, &away).expect("it is there");
        let error = disk.settle(&commit, failed(io::ErrorKind::StorageFull));
        assert!(matches!(error, Err(StoreError::InDoubt { .. })), "{error:?}");
        os.wait(PAUSE);
        disk.ready().expect_err("it is not there");
        std::fs::rename(&away, &data).expect("it is there");
        os.wait(PAUSE);
        let found = disk.ready().expect("it can be opened");
        assert_eq!(found.is_some(), durable);
    }
}

#[test]
fn after_a_failure_writes_are_refused_for_a_while_without_rereading_everything() {
    let folder = tempfile::tempdir().expect("a folder");
    let ((mut disk, mut memory), os) = open_on(folder.path());
    for round in 1..=3 {
        os.fail(PersistMode::SyncData, io::ErrorKind::StorageFull);
        let commit = plan(&memory, &format!("doubtful {round}"));
        disk.commit(&commit).expect_err("it is not synced");
        let published = disk.ready().expect("it is open").expect("it is there");
        memory.publish(&published);
        for _ in 0..100 {
            os.fail(PersistMode::SyncData, io::ErrorKind::StorageFull);
            os.wait(PAUSE / 101);
            assert!(disk.ready().expect("it is open").is_none());
            let error = disk.commit(&plan(&memory, "refused")).expect_err("there is a pause");
            let StoreError::Io { source, .. } = error else { panic!("{error:?}") };
            assert_eq!(source.kind(), io::ErrorKind::StorageFull, "the same error");
        }
        assert_eq!(os.counts().1, 1 + round, "it was reopened once");
        os.failures.lock().expect("no panic").clear();
        os.wait(PAUSE);
    }
    let commit = plan(&memory, "accepted");
    disk.commit(&commit).expect("there is room again");
    memory.publish(&commit);
    disk.commit(&plan(&memory, "next")).expect("at once");
}

#[test]
fn a_folder_that_cannot_be_reopened_is_not_tried_all_the_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let ((mut disk, memory), os) = open_on(folder.path());
    os.fail(PersistMode::SyncData, io::ErrorKind::Other);
    os.fail(PersistMode::SyncAll, io::ErrorKind::Other);
    let error = disk.commit(&plan(&memory, "doubtful")).expect_err("it is not synced");
    assert!(matches!(error, StoreError::InDoubt { .. }), "{error:?}");
    for _ in 0..10 {
        let error = disk.ready().expect_err("there is a pause");
        assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
    }
    assert_eq!(os.counts().1, 1, "it was not opened again");
    os.wait(PAUSE);
    assert!(disk.ready().expect("it can be opened").is_some());
}
