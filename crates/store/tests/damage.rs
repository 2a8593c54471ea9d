//! Damaged files: opening the store either says so, or gives back every acknowledged write. A
//! torn end that was never acknowledged is cut off.
//!
//! The damage comes from a seed, which is printed; `STINT_STORE_SEED` repeats it.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stint_store::{Change, Condition, Entry, Options, Page, Revision, Store, StoreError, Write};

const CASES: usize = 300;

#[tokio::test]
async fn a_damaged_store_says_so_or_gives_everything_back() {
    let seed = std::env::var("STINT_STORE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed =
        seed.unwrap_or_else(|| std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0));
    println!("STINT_STORE_SEED={seed}");
    let mut random = Random(seed);
    let mut refused = 0;
    for options in [journal_only(), with_tables()] {
        let original = tempfile::tempdir().expect("a folder");
        write_history(original.path(), &options).await;
        let truth = Contents::of(original.path(), &options).expect("it is whole");
        for case in 0..CASES {
            let copy = tempfile::tempdir().expect("a folder");
            copy_folder(original.path(), copy.path());
            let damage = damage_something(copy.path(), &mut random);
            match Contents::of(copy.path(), &options) {
                Ok(found) => assert_eq!(found, truth, "case {case}, silently: {damage}"),
                Err(StoreError::Corrupted { place, .. }) => {
                    let folder = copy.path().canonicalize().expect("it is there");
                    let folder = folder.to_str().expect("a name of plain text");
                    assert!(place.starts_with(folder), "case {case}, {damage}: {place} is named");
                    refused += 1;
                }
                Err(StoreError::UnknownFormat { .. }) => refused += 1,
                Err(other) => panic!("case {case}, {damage}: {other:?}"),
            }
        }
    }
    assert!(refused > CASES / 4, "most damage is noticed, not harmless: {refused}");
}

#[tokio::test]
async fn a_torn_end_that_was_never_acknowledged_is_cut_off() {
    let original = tempfile::tempdir().expect("a folder");
    write_history(original.path(), &journal_only()).await;
    let before = Contents::of(original.path(), &journal_only()).expect("it is whole");
    let longer = tempfile::tempdir().expect("a folder");
    copy_folder(original.path(), longer.path());
    write_one_more(longer.path()).await;
    let after = Contents::of(longer.path(), &journal_only()).expect("it is whole");
    let first = fs::read(journal(original.path())).expect("a journal").len();
    let bytes = fs::read(journal(longer.path())).expect("a journal");
    assert!(bytes.len() > first, "a write makes the journal longer");
    for cut in first..=bytes.len() {
        let torn = tempfile::tempdir().expect("a folder");
        copy_folder(original.path(), torn.path());
        fs::write(journal(torn.path()), &bytes[..cut]).expect("there is room");
        let found = Contents::of(torn.path(), &journal_only()).expect("only the end is torn");
        let expected = if cut == bytes.len() { &after } else { &before };
        assert_eq!(&found, expected, "cut at {cut}");
        // It can be written to again, and what is written then is found behind the cut.
        if cut % 16 == 0 {
            write_one_more(torn.path()).await;
            let rewritten = Contents::of(torn.path(), &journal_only()).expect("it is whole");
            assert_eq!(rewritten, after, "cut at {cut}");
        }
    }
}

#[tokio::test]
async fn a_journal_that_ends_before_the_mark_is_not_taken_for_torn() {
    let original = tempfile::tempdir().expect("a folder");
    write_history(original.path(), &journal_only()).await;
    Contents::of(original.path(), &journal_only()).expect("it is whole");
    let bytes = fs::read(journal(original.path())).expect("a journal");
    for lost in [1, 10, 100, bytes.len() / 2] {
        let copy = tempfile::tempdir().expect("a folder");
        copy_folder(original.path(), copy.path());
        fs::write(journal(copy.path()), &bytes[..bytes.len() - lost]).expect("there is room");
        let error = Contents::of(copy.path(), &journal_only()).expect_err("the end is missing");
        assert!(error.to_string().contains("were acknowledged"), "{error}");
        let again = Contents::of(copy.path(), &journal_only()).expect_err("nor is it later");
        assert_eq!(again.to_string(), error.to_string());
    }
}

#[tokio::test]
async fn a_damaged_journal_is_named_with_the_place_and_left_as_it_is() {
    let original = tempfile::tempdir().expect("a folder");
    write_history(original.path(), &journal_only()).await;
    Contents::of(original.path(), &journal_only()).expect("it is whole");
    let bytes = fs::read(journal(original.path())).expect("a journal");
    let copy = tempfile::tempdir().expect("a folder");
    copy_folder(original.path(), copy.path());
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 1;
    fs::write(journal(copy.path()), &damaged).expect("there is room");
    let error = Contents::of(copy.path(), &journal_only()).expect_err("it is damaged");
    assert!(error.to_string().contains("data/0.jnl is damaged: what is at byte "), "{error}");
    assert_eq!(fs::read(journal(copy.path())).expect("a journal"), damaged, "nothing is cut off");
    // So the damage can be undone.
    fs::write(journal(copy.path()), &bytes).expect("there is room");
    Contents::of(copy.path(), &journal_only()).expect("it is whole");
}

#[tokio::test]
async fn damage_to_an_older_journal_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options { write_buffer_bytes: 1024 * 1024, ..journal_only() };
    let store = Store::open(folder.path(), options.clone()).expect("an empty folder");
    let first = folder.path().join("data/0.jnl");
    let second = folder.path().join("data/1.jnl");
    // fjall starts a new journal at 64 MB, and keeps the old one until all of it is in tables.
    while !second.exists() {
        let write = Write::put("/large", Condition::Any, vec![7; 500_000]);
        store.write(write).await.expect("nothing is in the way");
    }
    store.write(Write::create("/last", "in the second journal")).await.expect("there is no last");
    store.close().await.expect("it was open");
    assert!(first.exists(), "the old journal is kept, or this test shows nothing");
    let length = fs::metadata(&first).expect("it is there").len();
    for part in 1..4 {
        let copy = tempfile::tempdir().expect("a folder");
        copy_folder(folder.path(), copy.path());
        let journal = copy.path().join("data/0.jnl");
        flip(&journal, length * part / 4);
        let error = Contents::of(copy.path(), &options).expect_err("it is damaged");
        assert!(error.to_string().contains("data/0.jnl is damaged"), "{error}");
        flip(&journal, length * part / 4);
        Contents::of(copy.path(), &options).expect("it is whole again");
    }
}

/// Flips a bit of a file, or flips it back.
fn flip(path: &Path, at: u64) {
    let file = fs::File::options().read(true).write(true).open(path).expect("it is there");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("it is long enough");
    file.write_all_at(&[byte[0] ^ 1], at).expect("there is room");
}

#[tokio::test]
async fn a_lost_mark_format_or_data_folder_is_noticed() {
    let original = tempfile::tempdir().expect("a folder");
    write_history(original.path(), &journal_only()).await;
    for name in ["mark", "format", "data"] {
        let copy = tempfile::tempdir().expect("a folder");
        copy_folder(original.path(), copy.path());
        let lost = copy.path().join(name);
        if lost.is_dir() { fs::remove_dir_all(&lost) } else { fs::remove_file(&lost) }
            .expect("it is there");
        let error = Contents::of(copy.path(), &journal_only()).expect_err("it is not there");
        assert!(matches!(error, StoreError::Corrupted { .. }), "{name}: {error}");
        assert!(error.to_string().contains("is missing"), "{name}: {error}");
    }
}

fn journal_only() -> Options {
    Options { window_changes: 40, ..Options::default() }
}

/// Buffers so small that most of the store ends up in tables.
fn with_tables() -> Options {
    Options { write_buffer_bytes: 2 * 1024, ..journal_only() }
}

/// Writes, overwrites and removes, and closes.
async fn write_history(folder: &Path, options: &Options) {
    let store = Store::open(folder, options.clone()).expect("an empty folder");
    let mut random = Random(7);
    for step in 0..150 {
        let key = format!("/key/{}", random.below(30));
        let stored = store.get(&key).is_some();
        let write = if stored && random.below(3) == 0 {
            Write::delete(key, Condition::Any)
        } else {
            Write::put(key, Condition::Any, format!("{step} ").repeat(20))
        };
        store.write(write).await.expect("nothing is in the way");
    }
    store.close().await.expect("it was open");
}

async fn write_one_more(folder: &Path) {
    let store = Store::open(folder, journal_only()).expect("it is whole");
    let write = Write::put("/key/new", Condition::Any, "one more ".repeat(20));
    store.write(write).await.expect("nothing is in the way");
    store.close().await.expect("it was open");
}

/// Everything that can be read from a store.
#[derive(Debug, PartialEq, Eq)]
struct Contents {
    revision: Revision,
    oldest: Revision,
    entries: Vec<Arc<Entry>>,
    changes: Vec<Arc<Change>>,
}

impl Contents {
    fn of(folder: &Path, options: &Options) -> Result<Self, StoreError> {
        let store = Store::open(folder, options.clone())?;
        let oldest = store.oldest();
        Ok(Contents {
            revision: store.revision(),
            oldest,
            entries: store.list("", Page::default())?.entries,
            changes: store.watch("", oldest)?.take()?,
        })
    }
}

/// Copies a folder without the zeros at the ends of files, of which fjall writes ahead 64 MiB.
fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("there is room");
    for found in fs::read_dir(from).expect("it is a folder") {
        let path = found.expect("it can be read").path();
        let target = to.join(path.file_name().expect("it has a name"));
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            let bytes = fs::read(&path).expect("it can be read");
            let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            let mut file = fs::File::create(target).expect("there is room");
            file.write_all(&bytes[..end]).expect("there is room");
            file.set_len(bytes.len() as u64).expect("there is room");
        }
    }
}

/// Damages one file of a store, and says how.
fn damage_something(folder: &Path, random: &mut Random) -> String {
    let mut files = Vec::new();
    find_files(folder, &mut files);
    files.retain(|path| fs::metadata(path).expect("it is there").len() > 0);
    files.sort();
    let path = &files[random.below(files.len() as u64) as usize];
    let mut bytes = fs::read(path).expect("it can be read");
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
    let at = random.below(used as u64) as usize;
    let length = (random.below(64) as usize + 1).min(used - at);
    let what = match random.below(6) {
        0 | 1 => {
            let bit = random.below(8);
            bytes[at] ^= 1 << bit;
            format!("bit {bit} of byte {at} flipped")
        }
        2 => {
            bytes[at..at + length].fill(0);
            format!("{length} zeros at {at}")
        }
        3 => {
            bytes[at..at + length].fill_with(|| random.below(256) as u8);
            format!("{length} random bytes at {at}")
        }
        4 => {
            bytes.truncate(at);
            format!("cut off at {at}")
        }
        _ => {
            fs::remove_file(path).expect("it is there");
            return format!("{} removed", path.display());
        }
    };
    fs::write(path, bytes).expect("there is room");
    format!("{}: {what}", path.display())
}

fn find_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for found in fs::read_dir(folder).expect("it is a folder") {
        let path = found.expect("it can be read").path();
        if path.is_dir() {
            find_files(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// fjall's newest journal.
fn journal(folder: &Path) -> PathBuf {
    let mut files = Vec::new();
    find_files(&folder.join("data"), &mut files);
    files.retain(|path| path.extension().is_some_and(|extension| extension == "jnl"));
    files.sort();
    files.pop().expect("there is always one")
}

/// Splitmix64: enough to choose damage.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }
}
