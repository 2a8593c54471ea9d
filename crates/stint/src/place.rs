//! Where an embedded cluster keeps what it keeps: a data folder that is one process's at a time,
//! or a temporary one.

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use thiserror::Error;

/// The folder of the node within the data folder.
pub(crate) const PODS: &str = "node";

/// The folder of the store within the data folder.
pub(crate) const STORE: &str = "store";

/// What the one node is called.
pub(crate) const NODE: &str = "stint";

/// The file that says whose folder it is, and who uses it.
const LOCK: &str = "stint.lock";

/// Why a folder cannot be used.
#[derive(Debug, Error)]
pub(crate) enum PlaceError {
    #[error("cannot use the folder {}: {source}; choose another with --data-dir", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("{} is in use by another stint; stop it, or choose another folder with --data-dir", path.display())]
    InUse { path: PathBuf },
    #[error("{} holds files that are not stint's, and would be closed to everybody else: choose an empty folder with --data-dir", path.display())]
    Foreign { path: PathBuf },
}

/// Makes the data folder, or takes one that is empty or ours, for this process and its owner
/// alone.
pub(crate) fn take_folder(path: &Path) -> Result<File, PlaceError> {
    let failed = |source| PlaceError::Folder { path: path.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
    let lock = path.join(LOCK);
    let is_empty = fs::read_dir(path).map_err(failed)?.next().is_none();
    if !is_empty && !lock.exists() {
        return Err(PlaceError::Foreign { path: path.to_owned() });
    }
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&lock);
    let file = file.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(PlaceError::InUse { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => return Err(failed(source)),
    }
    fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(failed)?;
    Ok(file)
}

/// A folder of a name that nobody can guess, which is gone at the end.
pub(crate) fn temporary_folder() -> Result<TempDir, PlaceError> {
    let owner_only = Permissions::from_mode(0o700);
    let made = tempfile::Builder::new().prefix("stint-").permissions(owner_only).tempdir();
    made.map_err(|source| PlaceError::Folder { path: env::temp_dir(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_folder_is_for_its_owner_only() {
        let folder = temporary_folder().expect("it can be made");
        let mode = fs::metadata(folder.path()).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
