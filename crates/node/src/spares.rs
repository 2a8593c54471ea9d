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
//! - Nothing that a Pod has left in its folder is found by another: what holds more than was made for the
//!   Pod, or a file that was changed in any way since, is removed. (Whoever was given an open file by a
//!   Pod that has ended may still write to it.)
//!
//! # Assumptions
//!
//! - Every change of a file, of its content, owner, mode, names or attributes, shows in its ctime. (Where
//!   that is coarse, one of its attributes within milliseconds may not.)

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use crate::begun;
use crate::removal::remove_folder;

/// How many folders are kept: Pods that end while others start, on a machine that starts some thousand in
/// a second.
const MOST: usize = 128;

/// The name of the hosts file of a Pod.
pub(crate) const HOSTS: &str = "hosts";

/// Folders that are no Pod's.
#[derive(Debug)]
pub(crate) struct Spares {
    /// Where they are.
    folder: PathBuf,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    free: Vec<PathBuf>,
    /// How many there were so far.
    count: u64,
    /// The files that were made for Pods, by their folders.
    seals: HashMap<PathBuf, Vec<(OsString, Seal)>>,
    /// Whether no more are kept.
    is_closed: bool,
}

/// How a file was when it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seal {
    inode: u64,
    bytes: u64,
    mode: u32,
    owner: (u32, u32),
    names: u64,
    changed: (i64, i64),
}

impl Seal {
    fn of(file: &Metadata) -> Self {
        Seal {
            inode: file.ino(),
            bytes: file.len(),
            mode: file.mode(),
            owner: (file.uid(), file.gid()),
            names: file.nlink(),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }
}

impl Spares {
    /// None yet. What an earlier process has left in this folder is removed by [`Spares::clear`].
    pub(crate) fn new(folder: PathBuf) -> Self {
        Spares { folder, kept: Mutex::default() }
    }

    /// Makes the folder of a Pod, if it has none yet.
    pub(crate) fn make(&self, folder: &Path) -> io::Result<()> {
        if folder.exists() {
            return Ok(());
        }
        let spare = self.kept().free.pop();
        if let Some(spare) = spare {
            if fs::rename(&spare, folder).is_ok() {
                return Ok(());
            }
            remove(&spare);
        }
        fs::create_dir_all(folder)
    }

    /// Notes how a file is that was just made for a Pod, in its folder: as long as it is so, it can be
    /// handed on.
    pub(crate) fn seal(&self, file: &Path) {
        let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { return };
        // Without a seal it is not handed on, which is all there is to it.
        let Ok(metadata) = fs::symlink_metadata(file) else { return };
        let mut kept = self.kept();
        let seals = kept.seals.entry(folder.to_owned()).or_default();
        seals.push((name.to_owned(), Seal::of(&metadata)));
    }

    /// Takes the folder of a Pod that has ended: keeps it, or removes it.
    pub(crate) fn take(&self, folder: &Path) {
        let (spare, seals) = {
            let mut kept = self.kept();
            let seals = kept.seals.remove(folder).unwrap_or_default();
            let has_room = kept.free.len() < MOST && !kept.is_closed;
            kept.count += 1;
            (has_room.then(|| self.folder.join(kept.count.to_string())), seals)
        };
        let Some(spare) = spare.filter(|spare| self.move_to(folder, spare).is_ok()) else {
            return remove(folder);
        };
        if is_as_made(&spare, &seals).is_ok_and(|is_as_made| is_as_made) {
            self.kept().free.push(spare);
        } else {
            remove(&spare);
        }
    }

    /// Removes the folder of a Pod that has ended, in whatever way.
    pub(crate) fn discard(&self, folder: &Path) {
        self.kept().seals.remove(folder);
        remove(folder);
    }

    /// Removes all of them, and what an earlier process has left.
    pub(crate) fn clear(&self) {
        self.kept().free.clear();
        remove(&self.folder);
    }

    /// The same, and keeps none from now on.
    pub(crate) fn close(&self) {
        self.kept().is_closed = true;
        self.clear();
    }

    fn move_to(&self, folder: &Path, spare: &Path) -> io::Result<()> {
        fs::rename(folder, spare).or_else(|_| {
            fs::create_dir_all(&self.folder)?;
            fs::rename(folder, spare)
        })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("nobody panics with it")
    }
}

/// Whether a folder holds nothing but what was made for its Pod, as it was made. The file of its run is
/// one of the next then.
fn is_as_made(spare: &Path, seals: &[(OsString, Seal)]) -> io::Result<bool> {
    let entries: Vec<DirEntry> = fs::read_dir(spare)?.collect::<io::Result<_>>()?;
    let mut runs = Vec::new();
    for entry in entries {
        let name = entry.file_name();
        let seal = seals.iter().rev().find(|(sealed, _)| *sealed == name);
        let is_as_made = seal.is_some_and(|(_, seal)| {
            entry.metadata().is_ok_and(|file| file.is_file() && Seal::of(&file) == *seal)
        });
        if !is_as_made {
            return Ok(false);
        }
        if name != OsStr::new(HOSTS) {
            runs.push(entry.path());
        }
    }
    match &runs[..] {
        [] => Ok(true),
        [run] => fs::rename(run, begun::spare(spare)).map(|()| true),
        _ => Ok(false),
    }
}

/// Removes a folder, if there is one.
pub(crate) fn remove(folder: &Path) {
    match remove_folder(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %folder.display(), %error, "cannot remove a Pod's folder");
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{OpenOptions, Permissions};
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
        let spares = Spares::new(temporary.path().join("spare"));
        Data { _temporary: temporary, pods, spares }
    }

    impl Data {
        /// A Pod that has run, and what else is done to its folder.
        fn ended(&self, uid: &str, change: impl FnOnce(&Path)) -> PathBuf {
            let folder = self.pods.join(uid);
            self.spares.make(&folder).expect("a folder");
            let (hosts, run) = (folder.join(HOSTS), begun::file(&folder, "main", 0));
            fs::write(&hosts, "127.0.0.1 a").expect("a file");
            begun::note(&run).expect("a file");
            self.spares.seal(&hosts);
            self.spares.seal(&run);
            change(&folder);
            folder
        }

        fn spare_count(&self) -> usize {
            self.spares.kept().free.len()
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries =
            fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("an entry"));
        let mut names: Vec<_> =
            entries.map(|it| it.file_name().into_string().expect("a name")).collect();
        names.sort();
        names
    }

    #[test]
    fn the_files_of_a_pod_become_those_of_the_next() {
        let data = data();
        let first = data.ended("a", |_| ());
        let inode = |path: &Path| fs::metadata(path).expect("it is there").ino();
        let before = [first.clone(), first.join(HOSTS), begun::file(&first, "main", 0)];
        let before = before.each_ref().map(|path| inode(path));
        data.spares.take(&first);
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
    fn what_is_not_as_it_was_made_is_not_handed_on() {
        let own = |folder: &Path| begun::file(folder, "main", 0);
        let hosts = |folder: &Path| folder.join(HOSTS);
        let changes: [&dyn Fn(&Path); 9] = [
            &|folder| fs::create_dir(folder.join("volumes")).expect("a folder"),
            &|folder| begun::note(&begun::file(folder, "main", 1)).expect("a second run"),
            &|folder| fs::write(folder.join("more"), "").expect("a file"),
            &|folder| fs::write(own(folder), "last words").expect("its last words"),
            &|folder| fs::hard_link(own(folder), folder.with_extension("link")).expect("a link"),
            &|folder| {
                fs::remove_file(own(folder)).expect("it was there");
                std::os::unix::fs::symlink("/etc/passwd", own(folder)).expect("a link");
            },
            &|folder| {
                fs::set_permissions(hosts(folder), Permissions::from_mode(0o600))
                    .expect("its mode");
            },
            // Sparse, and as large as a file can be: nobody may read it whole.
            &|folder| {
                let file = OpenOptions::new().write(true).open(hosts(folder)).expect("it is there");
                file.set_len(1 << 40).expect("it has holes");
            },
            // Changed, and changed back: where time is coarse, until it shows.
            &|folder| {
                let changed = || Seal::of(&fs::metadata(own(folder)).expect("it is there")).changed;
                let before = changed();
                while changed() == before {
                    for mode in [0o600, 0o666] {
                        let mode = Permissions::from_mode(mode);
                        fs::set_permissions(own(folder), mode).expect("its mode");
                    }
                }
            },
        ];
        for (at, change) in changes.into_iter().enumerate() {
            let data = data();
            let folder = data.ended("a", change);
            data.spares.take(&folder);
            assert!(!folder.exists(), "change {at}");
            assert_eq!(data.spare_count(), 0, "change {at}");
            assert_eq!(names(&data.spares.folder), [""; 0], "change {at}");
        }
    }

    #[test]
    fn no_more_are_kept_than_are_of_use_and_none_at_the_end() {
        let data = data();
        let folders: Vec<_> = (0..MOST + 2).map(|at| data.ended(&at.to_string(), |_| ())).collect();
        folders.iter().for_each(|folder| data.spares.take(folder));
        assert_eq!((data.spare_count(), names(&data.pods).len()), (MOST, 0));
        data.spares.close();
        assert!(!data.spares.folder.exists());
        let later = data.ended("later", |_| ());
        data.spares.take(&later);
        assert!(!later.exists() && !data.spares.folder.exists());
        assert!(data.spares.kept().seals.is_empty());
    }

    #[test]
    fn a_folder_that_is_there_stays_and_a_spare_one_that_is_gone_is_no_trouble() {
        let data = data();
        let folder = data.ended("a", |_| ());
        data.spares.take(&folder);
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
