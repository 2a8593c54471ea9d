//! A folder for as long as a process lives, and the end of those whose process was killed.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{env, io, thread};

use rustix::process::geteuid;
use stint_store::{FileLock, LockError};
use tempfile::TempDir;

use crate::place::{Holder, LOCK, PlaceError, hold_folder, remove_folder, tell_left};

/// How every one is called at first; the rest nobody can guess.
const PREFIX: &str = "stint-";

/// How long ago a folder must have been made before it can be one that was left behind: its
/// process may not have got around to locking it.
const AGE: Duration = Duration::from_secs(60);

/// A folder of a name that nobody can guess. As long as it is locked, somebody uses it; one that
/// has a lock which nobody holds was left behind; one without a lock is there to stay.
#[derive(Debug)]
pub(crate) struct Temporary {
    folder: TempDir,
    _lock: FileLock,
}

impl Temporary {
    /// Makes one. Those of processes that were killed are removed, beside whatever else is done.
    pub(crate) fn new() -> Result<Self, PlaceError> {
        let parent = env::temp_dir();
        let made = Self::within(&parent);
        // Without it they are left to the next one.
        let _ =
            thread::Builder::new().spawn(move || remove_left_behind(&parent, SystemTime::now()));
        made
    }

    fn within(parent: &Path) -> Result<Self, PlaceError> {
        let failed = |source| PlaceError::Temporary { path: parent.to_owned(), source };
        let owner_only = Permissions::from_mode(0o700);
        let made =
            tempfile::Builder::new().prefix(PREFIX).permissions(owner_only).tempdir_in(parent);
        let folder = made.map_err(failed)?;
        let lock = FileLock::take(&folder.path().join(LOCK)).map_err(|error| match error {
            LockError::Io(source) => failed(source),
            LockError::Held { .. } => failed(io::Error::other("somebody else uses it")),
        })?;
        Ok(Temporary { folder, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Leaves it there for people to look at.
    pub(crate) fn keep(self) -> PathBuf {
        let folder = self.folder.keep();
        // If it stays, so does the folder, for a while.
        let _ = fs::remove_file(folder.join(LOCK));
        folder
    }

    /// Removes it with all that is in it.
    pub(crate) fn remove(self) {
        let folder = self.folder.keep();
        if let Err(error) = remove_folder(&folder) {
            tell_left(&folder, &error);
        }
    }
}

/// Removes the folders of this user whose process is gone.
fn remove_left_behind(parent: &Path, now: SystemTime) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        let folder = entry.path();
        let is_own =
            |of: &Path| fs::symlink_metadata(of).ok().filter(|it| it.uid() == geteuid().as_raw());
        let is_folder = is_own(&folder).is_some_and(|it| it.is_dir());
        let locked = is_own(&folder.join(LOCK)).and_then(|it| it.modified().ok());
        let is_old = |since: SystemTime| now.duration_since(since).is_ok_and(|age| age >= AGE);
        if is_folder
            && locked.is_some_and(is_old)
            && let Ok(Holder::This(_held)) = hold_folder(&folder)
        {
            let _ = remove_folder(&folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_for_its_owner_only() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = Temporary::within(parent.path()).expect("it can be made");
        let mode = fs::metadata(folder.path()).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn what_was_left_behind_is_removed_and_nothing_else() {
        let parent = tempfile::tempdir().expect("a folder");
        let new = || Temporary::within(parent.path()).expect("it can be made");
        let (used, kept, left) = (new(), new().keep(), new());
        let Temporary { folder, _lock: lock } = left;
        drop(lock);
        let left = folder.keep();
        fs::create_dir_all(left.join("node/logs")).expect("it is ours");
        let foreign = parent.path().join("stint-of-somebody");
        fs::create_dir(&foreign).expect("it is ours");
        let other = parent.path().join("other");
        fs::create_dir(&other).expect("it is ours");
        fs::write(other.join(LOCK), "").expect("it is ours");
        let later = SystemTime::now() + 2 * AGE;

        remove_left_behind(parent.path(), SystemTime::now());
        assert!(left.exists(), "it may be about to be locked");
        remove_left_behind(parent.path(), later);
        assert!(!left.exists());
        assert!(used.path().exists() && kept.exists() && foreign.exists() && other.exists());
    }
}
