//! Where an embedded cluster keeps what it keeps: a data folder that is one process's at a time.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, thread};

use rustix::fs::{Mode, OFlags, fchmod, fstat, open};
use rustix::process::geteuid;
use stint_local::StartError;
use stint_store::{FileLock, LockError, StoreError};
use thiserror::Error;

/// The folder of the node within the data folder.
pub(crate) const PODS: &str = "node";

/// The folder of the store within the data folder.
pub(crate) const STORE: &str = "store";

/// The file by which clients find a cluster, within the data folder.
pub(crate) const KUBECONFIG: &str = "kubeconfig";

/// What the one node is called.
pub(crate) const NODE: &str = "stint";

/// The file that says whose folder it is, and who uses it.
pub(crate) const LOCK: &str = "stint.lock";

/// How many folders of Pods are removed at once.
const REMOVERS: usize = 8;

/// Why a folder cannot be used.
#[derive(Debug, Error)]
pub(crate) enum PlaceError {
    #[error("cannot use the folder {}: {source}; choose another with --data-dir", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("cannot make a temporary folder in {}: {source}; choose another place with TMPDIR", path.display())]
    Temporary { path: PathBuf, source: io::Error },
    #[error("cannot write in {}: {source}; make room there, or choose another place with {option}", path.display())]
    NoRoom { path: PathBuf, source: io::Error, option: &'static str },
    #[error("{} is in use by another stint{}; stop it, or choose another folder with --data-dir", path.display(), number(*by))]
    InUse { path: PathBuf, by: Option<u32> },
    #[error("{} holds files that are not stint's, and would be closed to everybody else: choose an empty folder with --data-dir", path.display())]
    Foreign { path: PathBuf },
    #[error("{} belongs to user {owner}, and this is user {user}: choose a folder of your own with --data-dir, or give it to {user} with chown -R", path.display())]
    Owner { path: PathBuf, owner: u32, user: u32 },
    #[error("{} is a symbolic link: name the folder that it leads to with --data-dir", path.display())]
    Link { path: PathBuf },
}

/// How much room there must be: for the files that one Pod has at its start.
const LEAST_ROOM_BYTES: usize = 64 << 10;

/// Sees to it that something can be written, before anything else would fail for that.
pub(crate) fn try_room(folder: &Path, option: &'static str) -> Result<(), PlaceError> {
    let written = tempfile::tempfile_in(folder)
        .and_then(|mut file| file.write_all(&[0; LEAST_ROOM_BYTES]).and_then(|()| file.flush()));
    written.map_err(|source| PlaceError::NoRoom { path: folder.to_owned(), source, option })
}

/// What a person can do if a folder takes nothing; other errors have a remedy of their own.
pub(crate) fn remedy(error: &StartError, is_temporary: bool) -> String {
    match error {
        StartError::Store(StoreError::Io { .. } | StoreError::InDoubt { .. })
        | StartError::Bootstrap(_) => format!("; {}", elsewhere(is_temporary)),
        StartError::Store(_) => String::new(),
    }
}

/// What a person can do about a folder that takes nothing.
pub(crate) fn elsewhere(is_temporary: bool) -> &'static str {
    match is_temporary {
        true => "make room there, or choose another place with TMPDIR",
        false => "make room there, or choose another folder with --data-dir",
    }
}

/// Makes the data folder, or takes one that is empty or ours, for this process and its owner
/// alone.
pub(crate) fn take_folder(path: &Path) -> Result<FileLock, PlaceError> {
    let failed = |source| PlaceError::Folder { path: path.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
    let folder = own_folder(path)?;
    let is_empty = fs::read_dir(path).map_err(failed)?.next().is_none();
    if !is_empty && fs::symlink_metadata(path.join(LOCK)).is_err() {
        return Err(PlaceError::Foreign { path: path.to_owned() });
    }
    let lock = FileLock::take(&path.join(LOCK)).map_err(|error| match error {
        LockError::Held { by } => PlaceError::InUse { path: path.to_owned(), by },
        LockError::Io(source) => failed(source),
    })?;
    fchmod(&folder, Mode::RWXU).map_err(|error| failed(error.into()))?;
    Ok(lock)
}

fn number(process: Option<u32>) -> String {
    process.map_or(String::new(), |number| format!(" (process {number})"))
}

/// Who has a data folder.
#[derive(Debug)]
pub(crate) enum Holder {
    /// There is none, or it is not stint's.
    Absent,
    /// Another process uses it.
    Other,
    /// It was nobody's, and is this process's as long as the file is held.
    This(File),
}

/// Takes a data folder that is there and free, and changes nothing in it.
pub(crate) fn hold_folder(path: &Path) -> Result<Holder, PlaceError> {
    let failed = |source| PlaceError::Folder { path: path.to_owned(), source };
    let file = match OpenOptions::new().write(true).open(path.join(LOCK)) {
        Ok(file) => file,
        Err(error) if is_absence(&error) => return Ok(Holder::Absent),
        Err(error) => return Err(failed(error)),
    };
    match file.try_lock() {
        Ok(()) => Ok(Holder::This(file)),
        Err(TryLockError::WouldBlock) => Ok(Holder::Other),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The data folder of whoever names none.
pub(crate) fn default_folder() -> Option<PathBuf> {
    let folder =
        |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("STINT_DATA_DIR")
        .or_else(|| folder("XDG_DATA_HOME").map(|data| data.join("stint")))
        .or_else(|| folder("HOME").map(|home| home.join(".local/share/stint")))
}

/// The folder, if it is one of this user's. Whoever else owns it could change what is in it at any
/// time, and whoever owns a link could change where it leads.
fn own_folder(path: &Path) -> Result<OwnedFd, PlaceError> {
    // Without a slash at its end, which would lead through a link.
    let path: PathBuf = path.components().collect();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let failed = |error: rustix::io::Errno| {
        if fs::symlink_metadata(&path).is_ok_and(|it| it.file_type().is_symlink()) {
            return PlaceError::Link { path: path.clone() };
        }
        PlaceError::Folder { path: path.clone(), source: error.into() }
    };
    let folder = open(&path, flags, Mode::empty()).map_err(failed)?;
    let (owner, user) = (fstat(&folder).map_err(failed)?.st_uid, geteuid().as_raw());
    if owner != user {
        return Err(PlaceError::Owner { path: path.clone(), owner, user });
    }
    Ok(folder)
}

/// Removes a folder that an embedded cluster has kept things in. Most of it are the folders of
/// Pods, thousands perhaps, and each removal waits for the disk: so several are under way at once.
pub(crate) fn remove_folder(path: &Path) -> io::Result<()> {
    let folders = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        // A link is none, wherever it leads.
        let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        entries.filter(is_folder).map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let of_pods: Vec<PathBuf> =
        folders(&path.join(PODS)).iter().flat_map(|part| folders(part)).collect();
    let next = AtomicUsize::new(0);
    let remove_some = || {
        while let Some(folder) = of_pods.get(next.fetch_add(1, Ordering::Relaxed)) {
            // What is left is met again below.
            let _ = stint_node::remove_folder(folder);
        }
    };
    thread::scope(|scope| {
        for _ in 1..REMOVERS.min(of_pods.len()) {
            // With fewer threads it takes longer.
            let _ = thread::Builder::new().spawn_scoped(scope, remove_some);
        }
        remove_some();
    });
    stint_node::remove_folder(path)
}

/// Says that something is left of a folder that was to be removed. If that fails there is nowhere
/// left to say so.
pub(crate) fn tell_left(folder: &Path, error: &io::Error) {
    let text = format!("note: {} cannot be removed, and stays: {error}\n", folder.display());
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_removed_with_all_that_is_in_it_and_nothing_else() {
        let outside = tempfile::tempdir().expect("a folder");
        fs::write(outside.path().join("thesis.txt"), "mine").expect("it is ours");
        let folder = tempfile::tempdir().expect("it can be made").keep();
        for number in 0..20 {
            let pod = folder.join(PODS).join("logs").join(number.to_string());
            fs::create_dir_all(pod.join("main")).expect("it is ours");
            fs::write(pod.join("main/0.0.log"), "text").expect("it is ours");
            std::os::unix::fs::symlink(outside.path(), pod.join("link")).expect("it is ours");
        }
        std::os::unix::fs::symlink(outside.path(), folder.join(PODS).join("link")).expect("ours");
        remove_folder(&folder).expect("it is ours");
        assert!(!folder.exists() && outside.path().join("thesis.txt").exists());
    }

    #[test]
    fn a_folder_is_held_by_one_at_a_time_and_never_made() {
        let folder = tempfile::tempdir().expect("it can be made");
        let data = folder.path().join("data");
        assert!(matches!(hold_folder(&data), Ok(Holder::Absent)));
        assert!(!data.exists());
        let taken = take_folder(&data).expect("it is free");
        assert!(matches!(hold_folder(&data), Ok(Holder::Other)));
        drop(taken);
        assert!(matches!(hold_folder(&data), Ok(Holder::This(_))));
    }

    #[test]
    fn a_folder_of_another_user_is_refused_with_the_name_of_its_owner() {
        let mine = tempfile::tempdir().expect("a folder");
        let (path, owner) = match geteuid().is_root() {
            true => {
                std::os::unix::fs::chown(mine.path(), Some(54321), None).expect("root can");
                (mine.path(), 54321)
            }
            // The machine's own.
            false => (Path::new("/usr"), 0),
        };
        let error = take_folder(path).expect_err("it is not ours");
        assert!(matches!(error, PlaceError::Owner { owner: of, .. } if of == owner), "{error}");
        assert!(error.to_string().contains("--data-dir"), "{error}");
    }

    #[test]
    fn a_symbolic_link_is_refused() {
        let mine = tempfile::tempdir().expect("a folder");
        let (real, link) = (mine.path().join("real"), mine.path().join("link"));
        fs::create_dir(&real).expect("it is ours");
        std::os::unix::fs::symlink(&real, &link).expect("it is ours");
        for path in [link.clone(), link.join("")] {
            let error = take_folder(&path).expect_err("it may lead elsewhere soon");
            assert!(matches!(error, PlaceError::Link { .. }), "{error}");
        }
        take_folder(&real).expect("it is ours");
    }
}
