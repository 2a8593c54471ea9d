//! A file that is one process's at a time. It knows nothing of what the file stands for.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use thiserror::Error;

/// How long somebody else's lock is waited for. A process that is killed keeps its locks until
/// the operating system has taken it apart: milliseconds, or some hundred where it had
/// gigabytes of memory.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often it is tried meanwhile: there is nothing to wait on that ends after a while.
const PAUSE: Duration = Duration::from_millis(10);

/// Nobody else has any business with it.
const FILE_MODE: u32 = 0o600;

/// The most that is read of the number of a process.
const MAX_NUMBER_BYTES: u64 = 16;

/// A lock that is held. The operating system lets go of it when the process ends, however it
/// does.
#[derive(Debug)]
pub struct FileLock {
    _file: File,
}

/// Why a lock is not held.
#[derive(Debug, Error)]
pub enum LockError {
    /// Somebody else holds it.
    #[error("it is held by {}", holder(*by))]
    Held {
        /// The number of the process, if it is known.
        by: Option<u32>,
    },
    /// The file cannot be opened or locked.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl FileLock {
    /// Takes a lock, and makes its file where there is none. A lock that somebody else holds is
    /// waited for, but not for longer than a process takes to end.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        let mut patience = Patience::default();
        Self::take_while(path, || patience.pause())
    }

    /// Tries again as long as `tries_again` says so.
    fn take_while(path: &Path, mut tries_again: impl FnMut() -> bool) -> Result<Self, LockError> {
        let mut options = File::options();
        options.create(true).truncate(false).read(true).write(true).mode(FILE_MODE);
        let mut file = options.open(path)?;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(error.into()),
                Err(TryLockError::WouldBlock) if tries_again() => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(LockError::Held { by: read_number(&mut file) });
                }
            }
        }
        // For the one who is refused to be told; nothing else depends on it.
        let number = format!("{}\n", std::process::id());
        let _ = file.set_len(0).and_then(|()| file.write_all(number.as_bytes()));
        Ok(FileLock { _file: file })
    }
}

/// How much longer somebody who ends is waited for.
#[derive(Debug)]
pub(crate) struct Patience {
    end: Instant,
}

impl Default for Patience {
    fn default() -> Self {
        Patience { end: Instant::now() + PATIENCE }
    }
}

impl Patience {
    /// Lets a moment pass, unless it is over.
    pub(crate) fn pause(&mut self) -> bool {
        let goes_on = Instant::now() < self.end;
        if goes_on {
            std::thread::sleep(PAUSE);
        }
        goes_on
    }
}

/// Who holds a lock, in words.
pub(crate) fn holder(process: Option<u32>) -> String {
    process.map_or("another process".to_owned(), |number| format!("process {number}"))
}

fn read_number(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(MAX_NUMBER_BYTES).read_to_string(&mut text).ok()?;
    text.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_let_go_of_meanwhile_is_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lock");
        let mut held = Some(FileLock::take(&path).expect("it is free"));
        let mut attempts = 0;
        let taken = FileLock::take_while(&path, || {
            attempts += 1;
            if attempts == 3 {
                held = None;
            }
            true
        });
        taken.expect("nobody holds it any more");
        assert_eq!(attempts, 3);
    }

    #[test]
    fn a_lock_that_is_kept_is_refused_with_who_keeps_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lock");
        // Somebody with a longer number was there before.
        std::fs::write(&path, "4294967295\n").expect("it can be written");
        let _held = FileLock::take(&path).expect("it is free");
        let mut attempts = 0;
        let refused = FileLock::take_while(&path, || {
            attempts += 1;
            attempts < 3
        });
        let own = std::process::id();
        assert!(
            matches!(refused, Err(LockError::Held { by: Some(by) }) if by == own),
            "{refused:?}"
        );
        assert_eq!(attempts, 3);
    }

    #[test]
    fn a_holder_that_says_nothing_is_not_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lock");
        let held = File::create(&path).expect("it can be made");
        held.try_lock().expect("it is free");
        let refused = FileLock::take_while(&path, || false).expect_err("it is held");
        assert_eq!(refused.to_string(), "it is held by another process");
    }
}
