//! Looks through fjall's journals before fjall does. It knows nothing of tables.
//!
//! fjall cuts a journal at the first thing it cannot read, whatever comes after it, and asks
//! for as much memory as a damaged length says. Here the same place is found without harm. If
//! everything acknowledged comes before it, it is the torn end of a commit that was not, and is
//! cut off. If not, the journal is damaged, and nothing in it is changed.
//!
//! ```text
//! batch:  1, number of items (4), sequence number (8)
//! item:   2, kind (1), compression (1), keyspace (8), lengths of key (2), value (4) and stored
//!         value (4), key, value
//! end:    3, xxh3 of the items (8), "FJL", 3
//! ```
//!
//! This is the format of fjall 3. Items are never compressed: the feature is off. A journal is
//! filled up with zeros.

use super::damaged;
use crate::record::{self, State};
use crate::{Revision, StoreError};
use std::fs::{self, File};
use std::hash::Hasher;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3Default;

const EXTENSION: &str = "jnl";
const BATCH: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const NOT_COMPRESSED: u8 = 0;
const END_MARK: [u8; 4] = *b"FJL\x03";

/// Cuts off what a commit that was never acknowledged has left, and refuses journals that are
/// damaged before that. `acknowledged` is what the mark says.
pub(super) fn settle(
    database: &Path,
    acknowledged: Revision,
    state_key: &str,
) -> Result<(), StoreError> {
    let journals = find(database).map_err(StoreError::io("look for the journals"))?;
    let mut newest = None;
    let mut torn: Option<(PathBuf, usize)> = None;
    for path in journals {
        let bytes = read(&path).map_err(StoreError::io("read a journal"))?;
        let found = scan(&bytes, state_key);
        let clean = is_zero(&bytes[found.end..]);
        if let Some((path, end)) = &torn
            && (found.end > 0 || !clean)
        {
            return Err(unreadable(path, *end, "and there is more in the next journal".to_owned()));
        }
        newest = newest.max(found.state.map(|state| state.revision));
        if !clean {
            torn = Some((path, found.end));
        }
    }
    let Some((path, end)) = torn else { return Ok(()) };
    match newest {
        Some(newest) if newest >= acknowledged => {
            cut(&path, end).map_err(StoreError::io("cut off the torn end of a journal"))
        }
        Some(newest) => {
            let why = format!(
                "what is before it goes up to {newest}, and writes up to {acknowledged} were \
                 acknowledged"
            );
            Err(unreadable(&path, end, why))
        }
        // The state is in tables, so it is not known here. fjall will cut the journal, and then
        // the mark is compared with what is left.
        None => Ok(()),
    }
}

fn unreadable(path: &Path, end: usize, why: String) -> StoreError {
    damaged(path, format!("what is at byte {end} cannot be read: {why}"))
}

/// The journals in order.
fn find(database: &Path) -> io::Result<Vec<PathBuf>> {
    let mut journals = Vec::new();
    for found in fs::read_dir(database)? {
        let path = found?.path();
        let number = path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
        if path.extension().is_some_and(|extension| extension == EXTENSION)
            && let Some(number) = number
        {
            journals.push((number, path));
        }
    }
    journals.sort();
    Ok(journals.into_iter().map(|(_, path)| path).collect())
}

/// What is in a journal, but for zeros at its end that are not on the disk: fjall asks for the
/// whole length of one at its beginning, and that takes longer to read than all the rest.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = written(&file)?;
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Where the last part of a file ends that is on the disk.
#[cfg(target_os = "linux")]
fn written(file: &File) -> io::Result<u64> {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;

    let mut end = 0;
    loop {
        match seek(file, SeekFrom::Data(end)) {
            Ok(data) => end = seek(file, SeekFrom::Hole(data))?,
            Err(Errno::NXIO) => return Ok(end),
            // A file system that does not tell.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(file.metadata()?.len()),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn written(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.len())
}

fn cut(path: &Path, length: usize) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    file.set_len(length as u64)?;
    file.sync_all()
}

fn is_zero(bytes: &[u8]) -> bool {
    const ZEROS: [u8; 4096] = [0; 4096];
    bytes.chunks(ZEROS.len()).all(|chunk| *chunk == ZEROS[..chunk.len()])
}

/// What can be read of a journal.
#[derive(Debug, PartialEq, Eq)]
struct Scan {
    /// Where the last whole batch ends.
    end: usize,
    /// The newest state in what is before that.
    state: Option<State>,
}

fn scan(bytes: &[u8], state_key: &str) -> Scan {
    let mut found = Scan { end: 0, state: None };
    let mut rest = bytes;
    while let Some(state) = read_batch(&mut rest, state_key) {
        found.end = bytes.len() - rest.len();
        found.state = state.or(found.state);
    }
    found
}

/// Reads a whole batch, and answers the state that it leads to, if it says so.
fn read_batch(bytes: &mut &[u8], state_key: &str) -> Option<Option<State>> {
    let [BATCH] = take(bytes)? else { return None };
    let items = u32::from_le_bytes(take(bytes)?);
    let _sequence_number: [u8; 8] = take(bytes)?;
    let mut hasher = Xxh3Default::new();
    let mut state = None;
    for _ in 0..items {
        let item = *bytes;
        let [ITEM, _kind, NOT_COMPRESSED] = take(bytes)? else { return None };
        let _keyspace: [u8; 8] = take(bytes)?;
        let key_length = usize::from(u16::from_le_bytes(take(bytes)?));
        let value_length = u32::from_le_bytes(take(bytes)?);
        if value_length != u32::from_le_bytes(take(bytes)?) {
            return None;
        }
        let key = take_slice(bytes, key_length)?;
        let value = take_slice(bytes, value_length as usize)?;
        hasher.update(&item[..item.len() - bytes.len()]);
        if key == state_key.as_bytes() {
            state = record::decode_state(value).ok().or(state);
        }
    }
    let [END] = take(bytes)? else { return None };
    let checksum = u64::from_le_bytes(take(bytes)?);
    (take(bytes)? == END_MARK && hasher.finish() == checksum).then_some(state)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    take_slice(bytes, N)?.try_into().ok()
}

fn take_slice<'b>(bytes: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floor::Floor;

    const KEY: &str = "state";

    /// A batch as fjall writes it, which leads to a revision.
    fn batch(revision: u64) -> Vec<u8> {
        let state = State { revision: Revision::new(revision), floor: Floor::EMPTY };
        let value = record::encode_state(&state);
        let length = u32::try_from(value.len()).expect("it is short").to_le_bytes();
        let mut item = vec![ITEM, 0, NOT_COMPRESSED];
        item.extend(2_u64.to_le_bytes());
        item.extend(5_u16.to_le_bytes());
        item.extend([length, length].concat());
        item.extend(KEY.as_bytes());
        item.extend(value);
        let mut hasher = Xxh3Default::new();
        hasher.update(&item);
        let mut batch = vec![BATCH, 1, 0, 0, 0];
        batch.extend(revision.to_le_bytes());
        batch.extend(item);
        batch.push(END);
        batch.extend(hasher.finish().to_le_bytes());
        batch.extend(END_MARK);
        batch
    }

    /// What becomes of journals when writes were acknowledged up to a revision.
    fn settled(journals: &[Vec<u8>], acknowledged: u64) -> Result<Vec<Vec<u8>>, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |number: usize| folder.path().join(format!("{number}.jnl"));
        for (number, bytes) in journals.iter().enumerate() {
            fs::write(path(number), bytes).expect("there is room");
        }
        let outcome = settle(folder.path(), Revision::new(acknowledged), KEY);
        let read = |number| fs::read(path(number)).expect("it is there");
        let left: Vec<_> = (0..journals.len()).map(read).collect();
        match outcome {
            Ok(()) => Ok(left),
            Err(error) => {
                assert_eq!(left, journals, "a damaged journal is left alone");
                Err(error.to_string())
            }
        }
    }

    #[test]
    fn a_whole_journal_is_left_alone_with_the_zeros_after_it() {
        let journal = [batch(2), batch(3), vec![0; 10_000]].concat();
        assert_eq!(settled(std::slice::from_ref(&journal), 3), Ok(vec![journal]));
    }

    #[test]
    fn only_what_is_on_the_disk_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("0.jnl");
        fs::write(&path, batch(2)).expect("there is room");
        let file = File::options().write(true).open(&path).expect("it is there");
        file.set_len(64 << 20).expect("it takes no room");
        let bytes = read(&path).expect("it is there");
        assert!(bytes.len() < 1 << 20, "{} bytes were read", bytes.len());
        assert!(bytes.starts_with(&batch(2)) && is_zero(&bytes[batch(2).len()..]));
        // What comes after a hole is read, too.
        std::os::unix::fs::FileExt::write_at(&file, b"torn", 32 << 20).expect("there is room");
        let bytes = read(&path).expect("it is there");
        assert!(!is_zero(&bytes[batch(2).len()..]));
    }

    #[test]
    fn what_comes_after_everything_acknowledged_is_cut_off() {
        let (whole, torn) = ([batch(2), batch(3)].concat(), batch(4));
        for length in 1..torn.len() {
            let journal = [&whole, &torn[..length], &[0; 100]].concat();
            assert_eq!(settled(&[journal], 3), Ok(vec![whole.clone()]), "{length}");
        }
    }

    #[test]
    fn a_journal_that_cannot_be_read_up_to_what_was_acknowledged_is_damaged() {
        let whole = [batch(2), batch(3), batch(4)].concat();
        let second = batch(2).len()..batch(2).len() + batch(3).len();
        for at in second {
            // The sequence number is nothing that this file could judge.
            if (5..13).contains(&(at - batch(2).len())) {
                continue;
            }
            let mut journal = whole.clone();
            journal[at] ^= 0x40;
            let error = settled(&[journal], 4).expect_err("the second batch is damaged");
            assert!(
                error.contains("what is before it goes up to 2, and writes up to 4"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_torn_end_is_not_followed_by_another_journal_that_holds_something() {
        let torn = [&batch(2)[..], &batch(3)[..20]].concat();
        let error = settled(&[torn.clone(), batch(4)], 4).expect_err("it is in the middle");
        assert!(error.contains("and there is more in the next journal"), "{error}");
        let cut = settled(&[torn, vec![0; 100]], 2).expect("the next one is empty");
        assert_eq!(cut, [batch(2), vec![0; 100]]);
    }
}
