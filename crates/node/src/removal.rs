//! The removal of folders into which Pods have written. It must not know what they hold.
//!
//! Programs leave folders that nobody may write to (Go's module cache is one). Whoever is not root
//! has to open them up before what is in them can go.

use std::path::Path;
use std::{fs, io};

/// How deep folders are opened up within each other, each with a descriptor: deeper than any path
/// that a program can name at once.
#[cfg(target_os = "linux")]
const MAX_DEPTH: usize = 2048;

/// Removes a folder with all that is in it, also out of folders of this user that he may not write
/// to. No link is followed.
///
/// # Errors
///
/// That of the system. What could be removed is gone.
pub fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        #[cfg(target_os = "linux")]
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            // What cannot be opened up shows in the removal.
            let _ = open_up(rustix::fs::CWD, folder, MAX_DEPTH);
            fs::remove_dir_all(folder)
        }
        removed => removed,
    }
}

/// Lets the user do everything in a folder of his, and in those within it.
#[cfg(target_os = "linux")]
fn open_up(
    parent: std::os::fd::BorrowedFd<'_>,
    name: impl rustix::path::Arg,
    depth: usize,
) -> io::Result<()> {
    use std::os::fd::{AsFd, AsRawFd};

    use rustix::fs::{Dir, FileType, Mode, OFlags, fstat, openat};

    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // One that may not be read can be held, and changed by the name that it has as an open file:
    // whatever somebody puts in its place meanwhile is not it.
    let held = openat(parent, name, flags | OFlags::PATH, Mode::empty())?;
    let by_number = format!("/proc/self/fd/{}", held.as_raw_fd());
    let mode = Mode::from_raw_mode(fstat(&held)?.st_mode);
    if !mode.contains(Mode::RWXU) {
        rustix::fs::chmod(&by_number, mode | Mode::RWXU)?;
    }
    let opened = openat(&held, ".", flags | OFlags::RDONLY, Mode::empty())?;
    drop(held);
    let Some(depth) = depth.checked_sub(1) else { return Ok(()) };
    for entry in Dir::read_from(&opened)? {
        let entry = entry?;
        let is_within = ![&b"."[..], b".."].contains(&entry.file_name().to_bytes());
        // Not every file system tells what its entries are; what is no folder is not opened.
        let may_be_folder = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
        if is_within && may_be_folder {
            // Another may still be.
            let _ = open_up(opened.as_fd(), entry.file_name(), depth);
        }
    }
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::thread;

    use rustix::process::{Uid, geteuid};
    use rustix::thread::set_thread_res_uid;

    use super::*;

    /// Somebody whom permissions bind: the user, or else a thread that is nobody's.
    fn as_ordinary_user(act: impl FnOnce(&Path) + Send + 'static) {
        let folder = tempfile::tempdir().expect("a folder");
        let is_root = geteuid().is_root();
        let nobody = Uid::from_raw(65534);
        if is_root {
            chown(folder.path(), Some(nobody.as_raw()), None).expect("root can");
        }
        let done = thread::spawn(move || {
            if is_root {
                set_thread_res_uid(nobody, nobody, nobody).expect("root can");
            }
            act(folder.path());
            folder
        });
        drop(done.join().expect("it does what it should"));
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
    }

    #[test]
    fn folders_that_nobody_may_write_to_are_removed_and_nothing_else_is_touched() {
        as_ordinary_user(|home| {
            let (cache, outside) = (home.join("cache"), home.join("outside"));
            fs::create_dir_all(outside.join("sealed")).expect("it is ours");
            fs::write(outside.join("sealed/file"), "mine").expect("it is ours");
            for (name, mode) in [("read", 0o555), ("closed", 0o000), ("listed", 0o444)] {
                let deep = cache.join(name).join("module/deeper");
                fs::create_dir_all(&deep).expect("it is ours");
                fs::write(deep.join("file"), "text").expect("it is ours");
                symlink(outside.join("sealed"), deep.join("link")).expect("it is ours");
                set_mode(&deep, mode);
                set_mode(&cache.join(name), mode);
            }
            set_mode(&outside.join("sealed"), 0o555);
            set_mode(&cache, 0o555);
            remove_folder(&cache).expect("it is ours");
            assert!(!cache.exists());
            let sealed = fs::metadata(outside.join("sealed")).expect("it is there");
            assert_eq!(sealed.permissions().mode() & 0o777, 0o555);
            assert!(outside.join("sealed/file").exists());
            set_mode(&outside.join("sealed"), 0o755);
        });
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = remove_folder(&folder.path().join("none")).expect_err("there is none");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
