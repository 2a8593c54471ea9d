//! Verifies fjall's manifests and tables before fjall reads them. It knows nothing of what is
//! stored.
//!
//! A manifest says which tables a keyspace has, with a checksum of each. fjall writes these
//! checksums, and one of the manifest, but looks at none of them when it opens. What it does
//! with damaged files is the worst: it removes tables, or the whole keyspace, that the manifest
//! does not name; it panics in a way that ends the process; it asks for as much memory as the
//! damaged bytes say. So nothing of that must reach it.
//!
//! ```text
//! keyspaces/1/current    number of the manifest, its checksum (xxh3, 128 bits), a zero byte
//! keyspaces/1/v7         manifest 7: an archive; its section "tables" has the number of levels
//!                        (1 byte), of runs in each (1), of tables in each (4), and of each table
//!                        its number (8), a zero byte, its checksum (16) and a sequence number (8)
//! keyspaces/1/tables/3   table 3
//! ```
//!
//! This is the format of lsm-tree 3, on which fjall 3 stands. If it changes, every test that
//! opens a store fails.

use super::damaged;
use crate::StoreError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_128;

const KEYSPACES: &str = "keyspaces";
const CURRENT: &str = "current";
const TABLES: &str = "tables";
/// A number, its checksum, and how that was made.
const CURRENT_BYTES: usize = 8 + 16 + 1;
/// xxh3, the only way there is.
const CHECKSUM_KIND: u8 = 0;
/// fjall's own keyspace of names and options, and the two of the store.
const KEYSPACE_COUNT: usize = 3;

/// Refuses a database whose manifests are not what fjall wrote.
pub(super) fn verify(database: &Path) -> Result<(), StoreError> {
    let folder = database.join(KEYSPACES);
    let list = || -> io::Result<Vec<PathBuf>> {
        fs::read_dir(&folder)?.map(|found| Ok(found?.path())).collect()
    };
    let paths = list().map_err(|error| unreadable(&folder, error))?;
    let keyspaces: Vec<&PathBuf> = paths.iter().filter(|path| path.is_dir()).collect();
    // All are made before the store gets its name, and none is added or removed later.
    if keyspaces.len() != KEYSPACE_COUNT {
        let detail = format!("there are {} keyspaces, not {KEYSPACE_COUNT}", keyspaces.len());
        return Err(damaged(&folder, detail));
    }
    keyspaces.into_iter().try_for_each(|keyspace| verify_keyspace(keyspace))
}

fn verify_keyspace(keyspace: &Path) -> Result<(), StoreError> {
    let current = keyspace.join(CURRENT);
    let bytes = fs::read(&current).map_err(|error| unreadable(&current, error))?;
    let bytes: &[u8; CURRENT_BYTES] =
        bytes.as_slice().try_into().map_err(|_| damaged(&current, "it has a wrong length"))?;
    let [number @ .., _] = bytes;
    let (number, checksum) = number.split_first_chunk::<8>().expect("24 is more than 8");
    let checksum = checksum.try_into().expect("16 are left of 24");
    if bytes[CURRENT_BYTES - 1] != CHECKSUM_KIND {
        return Err(damaged(&current, "it names an unknown checksum"));
    }
    let manifest = keyspace.join(format!("v{}", u64::from_le_bytes(*number)));
    let bytes = fs::read(&manifest).map_err(|error| unreadable(&manifest, error))?;
    if xxh3_128(&bytes) != u128::from_le_bytes(checksum) {
        return Err(damaged(&manifest, "its checksum does not match"));
    }
    let tables = read_tables(&bytes)
        .ok_or_else(|| damaged(&manifest, "it is of a kind that this program does not know"))?;
    tables.into_iter().try_for_each(|(number, checksum)| {
        let table = keyspace.join(TABLES).join(number.to_string());
        let bytes = fs::read(&table).map_err(|error| unreadable(&table, error))?;
        if xxh3_128(&bytes) == checksum {
            return Ok(());
        }
        Err(damaged(&table, "its checksum does not match"))
    })
}

/// The number and the checksum of each table that a manifest names.
fn read_tables(manifest: &[u8]) -> Option<Vec<(u64, u128)>> {
    let archive = sfa::Reader::from_reader(&mut io::Cursor::new(manifest)).ok()?;
    let section = archive.toc().section(TABLES.as_bytes())?;
    let (start, length) =
        (usize::try_from(section.pos()).ok()?, usize::try_from(section.len()).ok()?);
    let mut bytes = manifest.get(start..start.checked_add(length)?)?;
    let mut tables = Vec::new();
    let [levels] = take(&mut bytes)?;
    for _ in 0..levels {
        let [runs] = take(&mut bytes)?;
        for _ in 0..runs {
            for _ in 0..u32::from_le_bytes(take(&mut bytes)?) {
                let number = u64::from_le_bytes(take(&mut bytes)?);
                let [CHECKSUM_KIND] = take(&mut bytes)? else { return None };
                tables.push((number, u128::from_le_bytes(take(&mut bytes)?)));
                let _sequence_number: [u8; 8] = take(&mut bytes)?;
            }
        }
    }
    bytes.is_empty().then_some(tables)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}

fn unreadable(path: &Path, error: io::Error) -> StoreError {
    if error.kind() == io::ErrorKind::NotFound {
        return damaged(path, "it is missing");
    }
    StoreError::io("read the store's manifests")(error)
}
