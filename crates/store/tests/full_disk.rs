//! A full disk fails writes, not reads, and writes go on when there is room again.
//!
//! The test starts itself as a child that limits the size of its own files: the operating
//! system then refuses to let them grow, as it does on a full disk, and needs no privileges for
//! it. The signal that goes with it is ignored by way of a shell, which hands that down.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use stint_store::{Condition, Options, Page, Store, StoreError, Write};

const FOLDER: &str = "STINT_STORE_FULL_FOLDER";
const FULL_BYTES: u64 = 300 * 1024;
/// Far longer than the store's pause after a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs one of the functions below, by the name of the test that calls this, in a child.
fn in_child(test: &str) -> Option<String> {
    if let Ok(folder) = std::env::var(FOLDER) {
        return Some(folder);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().expect("a test has a file"))
        .args(["--exact", test, "--nocapture"])
        .env(FOLDER, folder.path())
        .output()
        .expect("there is a shell");
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{failed}");
    assert!(said.contains("1 passed"), "{said}");
    None
}

#[test]
fn a_full_disk_fails_writes_and_not_reads_and_recovers_when_there_is_room() {
    let test = "a_full_disk_fails_writes_and_not_reads_and_recovers_when_there_is_room";
    let Some(folder) = in_child(test) else { return };
    // The first is refused by the journal, the second by tables, too.
    for write_buffer_bytes in [64 * 1024 * 1024, 16 * 1024] {
        let folder = Path::new(&folder).join(write_buffer_bytes.to_string());
        run(fill_and_recover(&folder, Options { write_buffer_bytes, ..Options::default() }));
    }
}

async fn fill_and_recover(folder: &Path, options: Options) {
    let mut expected = BTreeMap::new();
    let store = Store::open(folder, options.clone()).expect("an empty folder");
    let refusal = store.refusal();
    for step in 0..10 {
        assert!(write(&store, &mut expected, step).await.is_ok(), "there is room");
    }
    for round in 0..3 {
        let room = limit(Resource::Fsize, Some(FULL_BYTES));
        let mut refused = 0;
        let mut step = 100 * (round + 1);
        while refused < 5 {
            step += 1;
            assert!(step < 100 * (round + 1) + 1000, "some time there is no room");
            match write(&store, &mut expected, step).await {
                Ok(()) => {}
                Err(StoreError::Io { .. }) => refused += 1,
                Err(other) => panic!("a full disk refuses, clearly: {other:?}"),
            }
            assert_eq!(contents(&store), expected, "reads go on, and show what was accepted");
        }
        let why = refusal.borrow().clone();
        assert!(matches!(why, Some(StoreError::Io { .. })), "{why:?}");
        // What is small may still find a place, but that is no room.
        for step in 0..50 {
            let small = Write::put(format!("/small/{step}"), Condition::Any, "x");
            if store.write(small).await.is_ok() {
                expected.insert(format!("/small/{step}"), b"x".to_vec());
            }
        }
        assert!(refusal.borrow().is_some());
        limit(Resource::Fsize, room);
        write_when_accepted(&store, &mut expected, step + 1).await;
        assert_eq!(contents(&store), expected);
        assert!(refusal.borrow().is_none(), "there is room");
    }
    let revision = store.revision();
    store.close().await.expect("it was open");
    let store = Store::open(folder, options).expect("it is whole");
    assert_eq!(contents(&store), expected, "what was refused does not come back");
    assert_eq!(store.revision(), revision);
}

#[test]
fn a_write_whose_fate_cannot_be_looked_up_is_in_doubt_until_it_can() {
    let test = "a_write_whose_fate_cannot_be_looked_up_is_in_doubt_until_it_can";
    let Some(folder) = in_child(test) else { return };
    run(async {
        let mut expected = BTreeMap::new();
        let store = Store::open(&folder, Options::default()).expect("an empty folder");
        assert!(write(&store, &mut expected, 1).await.is_ok(), "there is room");
        // The journal cannot grow, and no file can be opened to see what became of the write.
        let room = limit(Resource::Fsize, Some(1024));
        let files = limit(Resource::Nofile, Some(3));
        let doubtful = write(&store, &mut expected, 2).await.expect_err("there is no room");
        assert!(matches!(doubtful, StoreError::InDoubt { .. }), "{doubtful:?}");
        let refused = write(&store, &mut expected, 3).await.expect_err("nor is there now");
        assert!(matches!(refused, StoreError::Io { .. }), "{refused:?}");
        assert_eq!(contents(&store), expected, "reads go on");
        limit(Resource::Fsize, room);
        limit(Resource::Nofile, files);
        write_when_accepted(&store, &mut expected, 4).await;
        // The one in doubt is there or not, but the same after a restart.
        let found = contents(&store);
        if found.contains_key("/key/2") {
            expected.insert("/key/2".to_owned(), value(2));
        }
        assert_eq!(found, expected);
        drop(store);
        let store = Store::open(&folder, Options::default()).expect("it is whole");
        assert_eq!(contents(&store), expected);
    });
}

fn run(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(work);
}

/// Writes something, and expects it from then on if it was accepted.
async fn write(
    store: &Store,
    expected: &mut BTreeMap<String, Vec<u8>>,
    step: usize,
) -> Result<(), StoreError> {
    let key = format!("/key/{step}");
    store.write(Write::put(key.as_str(), Condition::Any, value(step))).await?;
    expected.insert(key, value(step));
    Ok(())
}

/// Writes something now that there is room again. The store tries anew after a pause.
async fn write_when_accepted(store: &Store, expected: &mut BTreeMap<String, Vec<u8>>, step: usize) {
    let start = Instant::now();
    while let Err(error) = write(store, expected, step).await {
        assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
        assert!(start.elapsed() < PATIENCE, "there is room again: {error:?}");
    }
}

fn value(step: usize) -> Vec<u8> {
    vec![step as u8; 3000 + step]
}

fn contents(store: &Store) -> BTreeMap<String, Vec<u8>> {
    let listing = store.list("", Page::default()).expect("the newest can be listed");
    let pair =
        |entry: &std::sync::Arc<stint_store::Entry>| (entry.key.to_string(), entry.value.to_vec());
    listing.entries.iter().map(pair).collect()
}

/// Sets a soft limit of this process, and answers what it was.
fn limit(resource: Resource, current: Option<u64>) -> Option<u64> {
    let was = getrlimit(resource);
    let now = Rlimit { current, maximum: was.maximum };
    setrlimit(resource, now).expect("a soft limit can be changed");
    was.current
}
