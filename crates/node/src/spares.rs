//! Folders of Pods that have ended, for those that come: the folder, the hosts file and the file of a run
//! are moved to the next Pod instead of being removed and made anew. Where files come and go by the
//! thousand that is what they cost: ext4 looks for a place past every one that was freed within the last
//! seconds. Everything here blocks.
//!
//! ```text
//!   pods/<uid> ──the Pod has ended──▶ spare/<number> ──another is made──▶ pods/<uid of that>
//! ```
//!
//! # Guarantees
//!
//! - A folder is a Pod's, or it is spare: it moves at once.
//! - Nothing that a Pod has written is found by another. What holds more than every Pod's folder does, or
//!   was changed in a way that cannot be undone, is removed.

use std::ffi::OsStr;
use std::fs::{self, DirEntry, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::begun;

/// How many folders are kept: Pods that end while others start, on a machine that starts some thousand in
/// a second.
const MOST: usize = 128;

/// The name of the hosts file of a Pod.
pub(crate) const HOSTS: &str = "hosts";

/// What every Pod's hosts file and every run's file may be for others.
const HOSTS_MODE: u32 = 0o644;

/// Folders that are no Pod's.
#[derive(Debug)]
pub(crate) struct Spares {
    /// Where they are.
    folder: PathBuf,
    own_user: u32,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    free: Vec<PathBuf>,
    /// How many there were so far.
    count: u64,
}

impl Spares {
    /// None yet. What an earlier process has left in this folder is removed by [`Spares::clear`].
    pub(crate) fn new(folder: PathBuf, own_user: u32) -> Self {
        Spares { folder, own_user, kept: Mutex::default() }
    }

    /// Makes the folder of a Pod, if it has none yet.
    pub(crate) fn make(&self, folder: &Path) -> io::Result<()> {
        if folder.exists() {
            return Ok(());
        }
        while let Some(spare) = self.kept().free.pop() {
            // It may have been removed by whoever tidies up here.
            if fs::rename(spare, folder).is_ok() {
                return Ok(());
            }
        }
        fs::create_dir_all(folder)
    }

    /// Takes the folder of a Pod that has ended; `false` if it is not one to be kept.
    pub(crate) fn take(&self, folder: &Path) -> bool {
        let spare = {
            let mut kept = self.kept();
            if kept.free.len() >= MOST {
                return false;
            }
            kept.count += 1;
            self.folder.join(kept.count.to_string())
        };
        let moved = fs::rename(folder, &spare).or_else(|_| {
            fs::create_dir_all(&self.folder)?;
            fs::rename(folder, &spare)
        });
        if moved.is_err() {
            return false;
        }
        if self.empty(&spare).is_ok_and(|is_empty| is_empty) {
            self.kept().free.push(spare);
        } else {
            remove(&spare);
        }
        true
    }

    /// Removes all of them, and what an earlier process has left.
    pub(crate) fn clear(&self) {
        self.kept().free.clear();
        remove(&self.folder);
    }

    /// Makes a folder as good as new; whether it is.
    fn empty(&self, spare: &Path) -> io::Result<bool> {
        let mut has_run = false;
        for entry in fs::read_dir(spare)? {
            let entry = entry?;
            let name = entry.file_name();
            let is_ours = if name == OsStr::new(HOSTS) {
                self.is_plain(&entry.metadata()?, HOSTS_MODE)
            } else if begun::is_file(&name) && !has_run {
                has_run = true;
                self.is_plain(&entry.metadata()?, begun::MODE) && empty_run(spare, &entry)?
            } else {
                false
            };
            if !is_ours {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a file is as it was made: nobody else's, under no other name, for nobody else to change.
    fn is_plain(&self, file: &Metadata, mode: u32) -> bool {
        let is_file = file.is_file() && file.nlink() == 1 && file.uid() == self.own_user;
        is_file && file.mode() & 0o7777 == mode
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().expect("nobody panics with it")
    }
}

/// Makes the file of a run one of the next.
fn empty_run(spare: &Path, entry: &DirEntry) -> io::Result<bool> {
    let path = entry.path();
    if entry.metadata()?.len() > 0 {
        let flags = libc::O_NOFOLLOW;
        OpenOptions::new().write(true).custom_flags(flags).open(&path)?.set_len(0)?;
    }
    fs::rename(path, begun::spare(spare))?;
    Ok(true)
}

/// Removes a folder, if there is one.
pub(crate) fn remove(folder: &Path) {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %folder.display(), %error, "cannot remove a Pod's folder");
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    struct Data {
        _temporary: tempfile::TempDir,
        pods: PathBuf,
        spares: Spares,
    }

    fn data() -> Data {
        let temporary = tempfile::tempdir().expect("a folder");
        let pods = temporary.path().join("pods");
        let own_user = rustix::process::getuid().as_raw();
        let spares = Spares::new(temporary.path().join("spare"), own_user);
        Data { _temporary: temporary, pods, spares }
    }

    impl Data {
        /// A Pod that has run, and what else is done to its folder.
        fn ended(&self, uid: &str, change: impl FnOnce(&Path)) -> PathBuf {
            let folder = self.pods.join(uid);
            self.spares.make(&folder).expect("a folder");
            let hosts = folder.join(HOSTS);
            fs::write(&hosts, "127.0.0.1 a").expect("a file");
            fs::set_permissions(&hosts, Permissions::from_mode(0o644)).expect("its mode");
            begun::note(&begun::file(&folder, "main", 0)).expect("a file");
            change(&folder);
            folder
        }

        fn spare_count(&self) -> usize {
            self.spares.kept().free.len()
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
        let mut names: Vec<_> =
            entries.map(|it| it.file_name().into_string().expect("a name")).collect();
        names.sort();
        names
    }

    #[test]
    fn the_files_of_a_pod_become_those_of_the_next() {
        let data = data();
        let first = data.ended("a", |folder| {
            fs::write(begun::file(folder, "main", 0), "last words").expect("its last words");
        });
        let inode = |path: &Path| fs::metadata(path).expect("it is there").ino();
        let before = [first.clone(), first.join(HOSTS), begun::file(&first, "main", 0)];
        let before = before.each_ref().map(|path| inode(path));
        assert!(data.spares.take(&first));
        assert!(!first.exists());
        let second = data.pods.join("b");
        data.spares.make(&second).expect("a folder");
        assert!(begun::containers(&second).is_empty(), "{:?}", names(&second));
        let run = begun::file(&second, "other", 3);
        begun::note(&run).expect("a file");
        assert_eq!(names(&second), ["hosts", "other.3.begun"]);
        assert_eq!(fs::read_to_string(&run).expect("it is there"), "");
        let after = [second.clone(), second.join(HOSTS), run].map(|path| inode(&path));
        assert_eq!(after, before);
    }

    #[test]
    fn what_is_not_as_every_pods_is_not_kept() {
        let own = |folder: &Path| begun::file(folder, "main", 0);
        let changes: [&dyn Fn(&Path); 6] = [
            &|folder| fs::create_dir(folder.join("volumes")).expect("a folder"),
            &|folder| begun::note(&begun::file(folder, "main", 1)).expect("a second run"),
            &|folder| fs::write(folder.join("more"), "").expect("a file"),
            &|folder| fs::hard_link(own(folder), folder.with_extension("link")).expect("a link"),
            &|folder| {
                fs::remove_file(own(folder)).expect("it was there");
                std::os::unix::fs::symlink("/etc/passwd", own(folder)).expect("a link");
            },
            &|folder| {
                let hosts = folder.join(HOSTS);
                fs::set_permissions(hosts, Permissions::from_mode(0o666)).expect("its mode");
            },
        ];
        for (at, change) in changes.into_iter().enumerate() {
            let data = data();
            let folder = data.ended("a", change);
            assert!(data.spares.take(&folder), "change {at}");
            assert!(!folder.exists(), "change {at}");
            assert_eq!(data.spare_count(), 0, "change {at}");
            assert_eq!(names(&data.spares.folder), [""; 0], "change {at}");
        }
    }

    #[test]
    fn no_more_are_kept_than_are_of_use_and_none_at_the_end() {
        let data = data();
        let folders: Vec<_> = (0..MOST + 2).map(|at| data.ended(&at.to_string(), |_| ())).collect();
        let taken = folders.iter().filter(|folder| data.spares.take(folder)).count();
        assert_eq!((taken, data.spare_count()), (MOST, MOST));
        data.spares.clear();
        assert!(!data.spares.folder.exists());
        data.spares.make(&data.pods.join("later")).expect("a folder without any");
    }

    #[test]
    fn a_folder_that_is_there_stays_and_a_spare_one_that_is_gone_is_no_trouble() {
        let data = data();
        let folder = data.ended("a", |_| ());
        assert!(data.spares.take(&folder));
        let other = data.pods.join("b");
        fs::create_dir(&other).expect("a folder");
        fs::write(other.join("mine"), "").expect("a file");
        data.spares.make(&other).expect("it is there");
        assert_eq!((names(&other), data.spare_count()), (vec!["mine".to_owned()], 1));
        fs::remove_dir_all(&data.spares.folder).expect("it was there");
        let third = data.pods.join("c");
        data.spares.make(&third).expect("a new one");
        assert_eq!(names(&third), [""; 0]);
    }
}
