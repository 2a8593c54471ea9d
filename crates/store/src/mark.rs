//! The mark: a small file that says up to which revision writes were acknowledged. It knows
//! nothing of what was written.
//!
//! fjall takes the first thing in its journal that it cannot read for the torn end of a write
//! that was never acknowledged, cuts the journal there and goes on. Most of the time it is that.
//! If the journal is damaged in its middle, it is not, and what comes after is lost. The mark
//! tells the two apart: what is missing above it was never acknowledged, what is missing below
//! it was.
//!
//! It is written after the commit's sync and before the answers, without a sync of its own: that
//! costs two microseconds and survives the process. After a power cut the mark may be older than
//! the last commits, never newer. Two slots are written in turn, so that a torn one leaves the
//! other.

use crate::record::{seal, unseal};
use crate::{Revision, StoreError};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const SLOT_BYTES: usize = 16;
const SEED: u64 = u64::from_be_bytes(*b"the mark");

/// The file, open.
#[derive(Debug)]
pub(crate) struct Mark {
    file: File,
    path: PathBuf,
    revision: Revision,
    next_slot: u64,
}

impl Mark {
    /// Writes a first mark where none of worth was.
    pub(crate) fn create(path: &Path, revision: Revision) -> io::Result<()> {
        let file = File::create(path)?;
        file.write_all_at(&[slot(revision), slot(revision)].concat(), 0)?;
        file.sync_all()
    }

    /// Opens the mark of an existing store.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let damaged = |detail: &str| StoreError::corrupted(path.display().to_string(), detail);
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(damaged("it is missing"));
            }
            Err(error) => return Err(StoreError::io("read the mark")(error)),
        };
        let mut slots = bytes.chunks(SLOT_BYTES).map(read_slot);
        let (first, second) = (slots.next().flatten(), slots.next().flatten());
        let Some(revision) = first.max(second) else {
            return Err(damaged("neither of its two slots can be read"));
        };
        let file =
            OpenOptions::new().write(true).open(path).map_err(StoreError::io("open the mark"))?;
        // The slot with the newest mark is left alone until the other one is newer.
        let next_slot = u64::from(first == Some(revision));
        Ok(Mark { file, path: path.to_owned(), revision, next_slot })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The revision up to which everything must be there.
    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    /// Says that everything up to `revision` is about to be acknowledged.
    pub(crate) fn set(&mut self, revision: Revision) -> io::Result<()> {
        self.file.write_all_at(&slot(revision), self.next_slot * SLOT_BYTES as u64)?;
        self.next_slot = 1 - self.next_slot;
        self.revision = revision;
        Ok(())
    }

    /// Makes the mark durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

fn slot(revision: Revision) -> Vec<u8> {
    seal(revision.get().to_le_bytes().to_vec(), SEED)
}

fn read_slot(bytes: &[u8]) -> Option<Revision> {
    let number = unseal(bytes, SEED).ok()?.try_into().ok()?;
    Some(Revision::new(u64::from_le_bytes(number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_with_one_torn_slot_still_tells_the_one_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mark");
        Mark::create(&path, Revision::new(1)).expect("the folder is there");
        let mut mark = Mark::open(&path).expect("it was just made");
        for number in 2..6 {
            mark.set(Revision::new(number)).expect("there is room");
            let mut bytes = std::fs::read(&path).expect("it is there");
            let reopened = Mark::open(&path).expect("it is whole");
            assert_eq!(reopened.revision(), Revision::new(number));
            let newest = (1 - mark.next_slot) as usize * SLOT_BYTES;
            bytes[newest + 3] ^= 1;
            std::fs::write(&path, &bytes).expect("there is room");
            let reopened = Mark::open(&path).expect("one slot is whole");
            assert_eq!(reopened.revision(), Revision::new(number - 1));
            assert_eq!(reopened.next_slot, 1 - mark.next_slot, "the torn one is written next");
            bytes[newest + 3] ^= 1;
            std::fs::write(&path, &bytes).expect("there is room");
        }
    }

    #[test]
    fn a_mark_without_a_whole_slot_is_damaged() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mark");
        for bytes in [vec![], vec![0; 7], vec![0; 2 * SLOT_BYTES]] {
            std::fs::write(&path, bytes).expect("there is room");
            assert!(matches!(Mark::open(&path), Err(StoreError::Corrupted { .. })));
        }
        std::fs::remove_file(&path).expect("it is there");
        assert!(matches!(Mark::open(&path), Err(StoreError::Corrupted { .. })));
    }
}
