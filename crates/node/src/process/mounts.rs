//! What a container sees where, in a mount namespace of its own. Nothing is made on the machine's
//! file systems: where a target does not exist, the folder that it would stand in is replaced,
//! for this container, by a mimic: a file system in memory with everything that is in the folder,
//! bound to where it is, and the target beside it. Nothing else can be made in a mimic, so that
//! what would be lost with the container is refused instead; but in a mimic of a folder for
//! temporary files it can, since losing them is what such a folder is for.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat, readlinkat, symlinkat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags, fsconfig_create, fsmount, fsopen, mount, mount_change, move_mount,
    open_tree, unmount,
};

use super::sys;
use super::wire::Failure;
use crate::runtime::Mount;

/// A mount that stands nowhere yet, with all that is mounted below.
const CLONE_ALL: OpenTreeFlags = OpenTreeFlags::OPEN_TREE_CLONE
    .union(OpenTreeFlags::OPEN_TREE_CLOEXEC)
    .union(OpenTreeFlags::AT_RECURSIVE);

/// Prepares the mount namespace that this process is alone in.
pub(super) fn begin() -> io::Result<()> {
    // What is mounted and unmounted on the machine is seen here, but not the other way round.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    Ok(())
}

/// Shows the processes of this pid namespace in /proc.
pub(super) fn mount_proc() -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None)?;
    Ok(())
}

/// Mounts all of it in this process's mount namespace, which [`begin`] has prepared.
pub(super) fn mount_all(mounts: &[Mount], folder: &Path) -> Result<(), Failure> {
    // All sources are taken before anything is covered.
    let sources: Vec<Source> = mounts.iter().map(Source::take).collect::<Result<_, _>>()?;
    let mut places = Places { folder, mimics: Vec::new(), placed: Vec::new() };
    for (mount, source) in mounts.iter().zip(&sources) {
        let target = places.find_or_make(mount, source.is_folder)?;
        move_mount(&source.tree, c"", CWD, &target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
            .map_err(|error| failed(mount, &error.into()))?;
        places.placed.push(Placed {
            target,
            source: mount.source.clone(),
            read_only: mount.read_only,
        });
    }
    places.seal()
}

/// Makes a folder that is missing where a container has mounted something it may write to, as
/// container runtimes make the working directory. Not on the machine's own file systems, where it
/// would stay. Who needs the folder says what is wrong if it is not there then.
pub(super) fn make_folder_within(mounts: &[Mount], folder: &Path) {
    let is_above = |mount: &&Mount| folder.starts_with(&mount.target);
    let above = mounts.iter().filter(is_above).max_by_key(|it| it.target.components().count());
    let make = |mount: &Mount| -> io::Result<()> {
        let (parent, missing) = nearest_folder(folder)?;
        // A link may lead out of the mount.
        if parent.starts_with(fs::canonicalize(&mount.target)?) {
            fs::create_dir_all(missing.iter().fold(parent, |path, name| path.join(name)))?;
        }
        Ok(())
    };
    if let Some(mount) = above.filter(|mount| !mount.read_only)
        && fs::metadata(folder).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    {
        let _ = make(mount);
    }
}

/// A target that is nowhere on the machine, and whether a folder is to stand there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Missing {
    pub(super) target: PathBuf,
    is_folder: bool,
}

/// The targets that the same mimics can hold for any container. Not those within what is mounted
/// by the container itself, nor those in mimics that containers write to.
pub(super) fn missing_targets(mounts: &[Mount]) -> Vec<Missing> {
    let within_another = |target: &Path| {
        mounts.iter().any(|mount| target != mount.target && target.starts_with(&mount.target))
    };
    let mut missing: Vec<Missing> = mounts
        .iter()
        .filter(|mount| mount.target.is_absolute() && !within_another(&mount.target))
        .filter(|mount| {
            fs::metadata(&mount.target).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        })
        .filter_map(|mount| {
            let is_folder = fs::metadata(&mount.source).ok()?.is_dir();
            Some(Missing { target: mount.target.clone(), is_folder })
        })
        .collect();
    missing.sort_unstable();
    missing.dedup();
    missing
}

/// The folders that mimics stand for if these targets are made; `None` if one of them would be
/// written to.
pub(super) fn mimicked_folders(missing: &[Missing]) -> Option<Vec<PathBuf>> {
    let folder_of = |missing: &Missing| {
        let (folder, _) = nearest_folder(&missing.target).ok()?;
        let mode = fs::metadata(&folder).ok()?.mode();
        (!is_for_temporary_files(mode)).then_some(folder)
    };
    missing.iter().map(folder_of).collect()
}

/// Makes the targets, empty, in this process's mount namespace, which [`begin`] has prepared.
pub(super) fn make_targets(missing: &[Missing], folder: &Path) -> Result<(), Failure> {
    let mut places = Places { folder, mimics: Vec::new(), placed: Vec::new() };
    for Missing { target, is_folder } in missing {
        let nothing = Mount { source: PathBuf::new(), target: target.clone(), read_only: false };
        places.find_or_make(&nothing, *is_folder)?;
    }
    places.seal()
}

fn is_for_temporary_files(mode: u32) -> bool {
    mode & 0o1002 == 0o1002
}

fn failed(mount: &Mount, error: &io::Error) -> Failure {
    let (source, target) = (mount.source.display(), mount.target.display());
    let message = format!("mounting {source} at {target}: {error}");
    match error.raw_os_error() {
        // These pass: no memory, no room for more mounts.
        Some(libc::ENOMEM | libc::ENOSPC | libc::EMFILE | libc::ENFILE) => {
            Failure::machine(format!("mounting {source} at {target}"), error)
        }
        _ => Failure::cannot_run(message),
    }
}

/// A mount that stands nowhere yet.
struct Source {
    tree: OwnedFd,
    is_folder: bool,
}

impl Source {
    fn take(mount: &Mount) -> Result<Source, Failure> {
        let take = || -> io::Result<Source> {
            let tree = open_tree(CWD, &mount.source, CLONE_ALL)?;
            let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&tree)?.st_mode);
            if mount.read_only {
                sys::make_read_only(tree.as_fd(), None)?;
            }
            Ok(Source { tree, is_folder: kind.is_dir() })
        };
        take().map_err(|error| failed(mount, &error))
    }
}

struct Placed {
    target: PathBuf,
    source: PathBuf,
    read_only: bool,
}

struct Mimic {
    folder: PathBuf,
    device: u64,
    for_temporary_files: bool,
}

struct Places<'a> {
    folder: &'a Path,
    mimics: Vec<Mimic>,
    placed: Vec<Placed>,
}

impl Places<'_> {
    /// Where exactly a target is. If it is nowhere yet, it is after this.
    fn find_or_make(&mut self, mount: &Mount, is_folder: bool) -> Result<PathBuf, Failure> {
        let wrong = |error| failed(mount, &error);
        let text = mount.target.display();
        let plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
        if !mount.target.is_absolute() || !mount.target.components().all(plain) {
            return Err(Failure::cannot_run(format!(
                "mounting at {text}: write an absolute path without \"..\""
            )));
        }
        match fs::canonicalize(&mount.target) {
            Ok(target) if target == Path::new("/") => {
                Err(Failure::cannot_run("mounting at /: the machine's root stays where it is"))
            }
            Ok(target) => {
                let there = fs::metadata(&target).map_err(wrong)?.is_dir();
                if there == is_folder {
                    return Ok(target);
                }
                let (wanted, found) =
                    if is_folder { ("a folder", "a file") } else { ("a file", "a folder") };
                let source = mount.source.display();
                Err(Failure::cannot_run(format!(
                    "mounting {source} at {text}: the source is {wanted}, but {found} is there"
                )))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.make(&mount.target, is_folder).map_err(wrong)
            }
            Err(error) => Err(wrong(error)),
        }
    }

    fn make(&mut self, target: &Path, is_folder: bool) -> io::Result<PathBuf> {
        let (parent, missing) = nearest_folder(target)?;
        let first = missing.first().expect("the target does not exist");
        if !self.may_make_in(&parent)? {
            let mimic = self.mimic(&parent, first)?;
            self.mimics.push(mimic);
        } else if fs::symlink_metadata(parent.join(first)).is_ok() {
            // A link that leads nowhere, in a mimic that was made for another target.
            fs::remove_file(parent.join(first))?;
        }
        let target = missing.iter().fold(parent, |path, name| path.join(name));
        if is_folder {
            fs::create_dir_all(&target)?;
        } else {
            fs::create_dir_all(target.parent().expect("it has a name"))?;
            fs::File::create(&target)?;
        }
        Ok(target)
    }

    /// In mimics, and in the node's own volumes, as Kubernetes does for a mount within another.
    fn may_make_in(&self, folder: &Path) -> io::Result<bool> {
        let device = fs::metadata(folder)?.dev();
        if self.mimics.iter().any(|mimic| mimic.device == device) {
            return Ok(true);
        }
        let covering = self
            .placed
            .iter()
            .rev()
            .filter(|placed| folder.starts_with(&placed.target))
            .max_by_key(|placed| placed.target.components().count());
        Ok(covering
            .is_some_and(|placed| !placed.read_only && placed.source.starts_with(self.folder)))
    }

    /// Puts a mimic in a folder's place, without the entry of this name.
    fn mimic(&self, folder: &Path, without: &OsStr) -> io::Result<Mimic> {
        // Still the folder itself when the mimic stands before it.
        let original = File::open(folder)?;
        let entries: Vec<fs::DirEntry> = fs::read_dir(folder)?.collect::<io::Result<_>>()?;
        let mimic = new_file_system()?;
        let is_root = folder == Path::new("/");
        move_mount(&mimic, c"", CWD, folder, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
        if is_root {
            rustix::process::fchdir(&mimic)?;
            sys::pivot_here()?;
        }
        for entry in &entries {
            let name = entry.file_name();
            if name != without && !is_virtual_console(folder, &name) {
                mirror(entry, &original, &mimic);
            }
        }
        let like = original.metadata()?;
        if is_root {
            drop(original);
            unmount(".", UnmountFlags::DETACH)?;
            rustix::process::chdir("/")?;
        }
        // Whose the folder is can be copied only where other users are known.
        let _ = std::os::unix::fs::chown(folder, Some(like.uid()), Some(like.gid()));
        let mode = like.mode() & 0o7777;
        fs::set_permissions(folder, fs::Permissions::from_mode(mode))?;
        Ok(Mimic {
            folder: folder.to_owned(),
            device: fs::metadata(folder)?.dev(),
            for_temporary_files: is_for_temporary_files(mode),
        })
    }

    /// Has nothing more be made in the mimics.
    fn seal(&self) -> Result<(), Failure> {
        for mimic in self.mimics.iter().filter(|mimic| !mimic.for_temporary_files) {
            let path = CString::new(mimic.folder.as_os_str().as_bytes())
                .expect("a path that was used has no null");
            sys::make_read_only(CWD, Some(&path)).map_err(|error| {
                let folder = mimic.folder.display();
                Failure::machine(format!("making {folder} read-only"), &error)
            })?;
        }
        Ok(())
    }
}

/// The screens of this machine, of which there are often more than of all other devices together,
/// and which no container has any use for: each would cost every container a mount.
fn is_virtual_console(folder: &Path, name: &OsStr) -> bool {
    let name = name.to_str().unwrap_or_default();
    let numbered = |prefix| {
        name.strip_prefix(prefix)
            .is_some_and(|rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    folder == Path::new("/dev")
        && name != "tty"
        && ["tty", "vcs", "vcsa", "vcsu"].into_iter().any(numbered)
}

/// A file system in memory that stands nowhere yet.
fn new_file_system() -> io::Result<OwnedFd> {
    let making = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&making)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    Ok(fsmount(&making, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Makes an entry of a folder appear in its mimic. One that vanishes meanwhile, or that this user
/// may not even name, is left out: the container could not use it either.
fn mirror(entry: &fs::DirEntry, original: &File, mimic: &OwnedFd) {
    let name = entry.file_name();
    let bind = || -> io::Result<()> {
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            let link = readlinkat(original, &name, Vec::new())?;
            return Ok(symlinkat(link, mimic, &name)?);
        }
        let tree = open_tree(original, &name, CLONE_ALL)?;
        if kind.is_dir() {
            mkdirat(mimic, &name, Mode::RWXU)?;
        } else {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            openat(mimic, &name, flags, Mode::RUSR)?;
        }
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        Ok(move_mount(&tree, c"", mimic, &name, flags)?)
    };
    let _ = bind();
}

/// The nearest folder above a target that exists, all links followed, and the names that are
/// missing below it.
fn nearest_folder(target: &Path) -> io::Result<(PathBuf, Vec<OsString>)> {
    let mut missing = Vec::new();
    let mut path = target;
    loop {
        let (Some(name), Some(parent)) = (path.file_name(), path.parent()) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        missing.insert(0, name.to_owned());
        path = parent;
        match fs::canonicalize(path) {
            Ok(folder) if fs::metadata(&folder)?.is_dir() => return Ok((folder, missing)),
            Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_screens_are_left_out() {
        let left_out = |name: &str| is_virtual_console(Path::new("/dev"), OsStr::new(name));
        for name in ["tty0", "tty63", "vcs", "vcs1", "vcsa", "vcsa7", "vcsu1"] {
            assert!(left_out(name), "{name}");
        }
        for name in ["tty", "ttyS0", "ttyUSB0", "null", "vcsx", "ttyprintk", "pts"] {
            assert!(!left_out(name), "{name}");
        }
        assert!(!is_virtual_console(Path::new("/etc"), OsStr::new("tty1")));
    }

    #[test]
    fn missing_targets_are_those_that_any_container_can_share() {
        let here = tempfile::tempdir().unwrap();
        let file = here.path().join("file");
        fs::write(&file, "").unwrap();
        let mount = |source: &Path, target: &str| Mount {
            source: source.to_owned(),
            target: target.into(),
            read_only: false,
        };
        let missing = missing_targets(&[
            mount(here.path(), "/stint-b"),
            mount(here.path(), "/stint-b/within"),
            mount(&file, "/stint-a"),
            mount(&file, "/etc/passwd"),
            mount(Path::new("/no/source"), "/stint-c"),
            mount(here.path(), "/stint-b"),
        ]);
        let row = |target: &str, is_folder| Missing { target: target.into(), is_folder };
        assert_eq!(missing, [row("/stint-a", false), row("/stint-b", true)]);
        assert_eq!(mimicked_folders(&missing), Some(vec!["/".into(), "/".into()]));
        assert_eq!(mimicked_folders(&[row("/tmp/stint-missing", true)]), None);
    }
}
