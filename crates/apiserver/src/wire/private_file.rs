//! Files that only their owner may read, and that are there whole or not at all. It must not
//! know what is in them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The longest file that is read: a key and a certificate take 2 KiB, a kubeconfig of ours
/// 10 KiB, and one of somebody with a hundred clusters less than this.
const MAX_BYTES: u64 = 1024 * 1024;

#[cfg(unix)]
const FILE_MODE: u32 = 0o600;
#[cfg(unix)]
const FOLDER_MODE: u32 = 0o700;

/// Why a private file could not be read or written.
#[derive(Debug, Error)]
pub enum PrivateFileError {
    /// The folder could not be made.
    #[error("cannot create the folder {}: {source}", path.display())]
    CreateFolder {
        /// The folder.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// Others may read it, and that could not be changed.
    #[error("cannot keep others from reading {}: {source}", path.display())]
    Protect {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The file could not be written. What was there before still is.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The file was written but could not get its name. What was there before still is.
    #[error("cannot replace {}: {source}", path.display())]
    Replace {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The file has its name, but may not have it after a power cut.
    #[error("cannot sync the folder {}: {source}", path.display())]
    SyncFolder {
        /// The folder.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
}

/// Makes a folder that only its owner may enter, and those above it where they are missing.
pub(super) fn create_folder(path: &Path) -> Result<(), PrivateFileError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, FOLDER_MODE);
    builder
        .create(path)
        .map_err(|source| PrivateFileError::CreateFolder { path: path.to_owned(), source })?;
    #[cfg(unix)]
    protect(path, FOLDER_MODE)?;
    Ok(())
}

/// The text of a file, or nothing if there is no file. If others could read it, they no longer
/// can.
pub(super) fn read(path: &Path) -> Result<Option<String>, PrivateFileError> {
    let text = peek(path)?;
    #[cfg(unix)]
    if text.is_some() {
        protect(path, FILE_MODE)?;
    }
    Ok(text)
}

/// The text of a file that may be somebody else's and is left as it is, or nothing if there is
/// no file.
pub(super) fn peek(path: &Path) -> Result<Option<String>, PrivateFileError> {
    let failed = |source| PrivateFileError::Read { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_BYTES {
        let detail = format!("it is longer than {MAX_BYTES} bytes");
        return Err(failed(io::Error::new(io::ErrorKind::FileTooLarge, detail)));
    }
    Ok(Some(text))
}

/// Puts a text into a file that only its owner may read, whatever was there before.
///
/// # Guarantees
///
/// Whoever reads the file finds the old text or the new one, also after a crash. At no time can
/// others read it. After success the new text survives a power cut.
pub(super) fn write(path: &Path, text: &str) -> Result<(), PrivateFileError> {
    put(path, text)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    sync(folder.unwrap_or(Path::new(".")))
}

/// The same, but for the power cut: it survives that after [`sync`] of its folder. So several
/// files can be put there before the disk is waited for.
pub(super) fn put(path: &Path, text: &str) -> Result<(), PrivateFileError> {
    let unfinished = unfinished(path);
    let filled = fill(&unfinished, text).and_then(|file| file.sync_all());
    filled.map_err(|source| {
        // It may hold a part of the text; if it cannot be removed, the next attempt does it.
        let _ = fs::remove_file(&unfinished);
        PrivateFileError::Write { path: path.to_owned(), source }
    })?;
    fs::rename(&unfinished, path).map_err(|source| {
        let _ = fs::remove_file(&unfinished);
        PrivateFileError::Replace { path: path.to_owned(), source }
    })
}

/// Makes the names in a folder survive a power cut.
pub(super) fn sync(folder: &Path) -> Result<(), PrivateFileError> {
    sync_folder(folder)
        .map_err(|source| PrivateFileError::SyncFolder { path: folder.to_owned(), source })
}

/// Whether a file could be written there, and what stands in the way. Nothing is left of the
/// attempt.
pub(super) fn check_writable(path: &Path) -> Result<(), PrivateFileError> {
    let unfinished = unfinished(path);
    let tried = fill(&unfinished, "").and_then(|_| fs::remove_file(&unfinished));
    tried.map_err(|source| PrivateFileError::Write { path: path.to_owned(), source })
}

/// What a file is called until it is whole: a name beside it that no one lists.
fn unfinished(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".unfinished");
    path.with_file_name(name)
}

/// Makes a file anew. It never writes into one that is there, which could be somebody's link.
fn fill(path: &Path, text: &str) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, FILE_MODE);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Elsewhere a folder cannot be opened, and a rename is durable by itself.
#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Takes every right from others that `mode` does not give them.
#[cfg(unix)]
fn protect(path: &Path, mode: u32) -> Result<(), PrivateFileError> {
    use std::os::unix::fs::PermissionsExt;
    let failed = |source| PrivateFileError::Protect { path: path.to_owned(), source };
    let found = fs::metadata(path).map_err(failed)?.permissions().mode();
    if found & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(failed)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
    }

    #[test]
    fn only_the_owner_may_read_what_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("a/b");
        create_folder(&inner).expect("made");
        write(&inner.join("key"), "secret").expect("written");
        assert_eq!(mode(&inner), 0o700);
        assert_eq!(mode(&folder.path().join("a")), 0o700);
        assert_eq!(mode(&inner.join("key")), 0o600);
        assert_eq!(read(&inner.join("key")).expect("read").as_deref(), Some("secret"));
    }

    #[test]
    fn a_file_that_others_could_read_is_closed_to_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("pki");
        fs::create_dir(&inner).expect("made");
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o755)).expect("opened");
        let path = inner.join("key");
        fs::write(&path, "old").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("opened");
        create_folder(&inner).expect("there");
        assert_eq!(mode(&inner), 0o700);
        read(&path).expect("read");
        assert_eq!(mode(&path), 0o600);

        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("opened");
        write(&path, "new").expect("written");
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn what_a_crash_left_behind_does_not_matter() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        let victim = folder.path().join("victim");
        fs::write(&victim, "untouched").expect("written");
        std::os::unix::fs::symlink(&victim, unfinished(&path)).expect("linked");
        write(&path, "new").expect("written");
        assert_eq!(read(&path).expect("read").as_deref(), Some("new"));
        assert_eq!(fs::read_to_string(&victim).expect("read"), "untouched");
        assert!(!unfinished(&path).exists());
    }

    #[test]
    fn a_missing_file_is_nothing_and_a_missing_folder_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("none/key");
        assert!(read(&path).expect("nothing").is_none());
        let error = write(&path, "x").expect_err("no folder");
        assert!(matches!(error, PrivateFileError::Write { .. }), "{error}");
    }

    #[test]
    fn a_file_that_cannot_be_replaced_is_told_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        fs::create_dir(&path).expect("a folder in its place");
        let error = write(&path, "x").expect_err("a folder is in its place");
        assert!(matches!(error, PrivateFileError::Replace { .. }), "{error}");
        assert!(!unfinished(&path).exists());
    }

    #[test]
    fn an_endless_file_is_not_read() {
        let error = read(Path::new("/dev/zero")).expect_err("endless");
        assert!(matches!(error, PrivateFileError::Read { .. }), "{error}");
    }
}
