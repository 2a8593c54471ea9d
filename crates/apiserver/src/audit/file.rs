//! The file that an audit log is written to. It must not know what is in a line.
//!
//! # Guarantees
//!
//! - Lines are whole, and in the order in which requests were answered.
//! - A disk that is slow makes requests wait, and loses none of their lines; only the ends of what
//!   goes on for a while cannot wait. One that takes nothing loses lines, which is told, and how many.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;

/// How large the file becomes before it makes room for the next one; one such is kept, so that it
/// is 200 MiB at most, or about half a million requests.
const FILE_BYTES: u64 = 100 << 20;

/// How many lines may wait to be written: a few megabytes.
const MAX_WAITING: usize = 4096;

/// Why there is no audit log.
#[derive(Debug, thiserror::Error)]
pub enum AuditFileError {
    /// The file cannot be opened.
    #[error("cannot write the audit log {}: {source}", path.display())]
    Open {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: Arc<io::Error>,
    },
}

/// An audit log. Clones write to the same one.
#[derive(Clone, Debug)]
pub struct AuditFile {
    lines: Sender<Entry>,
}

#[derive(Debug)]
enum Entry {
    Line(Vec<u8>),
    /// Somebody wants to know when all before it is written.
    Mark(oneshot::Sender<()>),
}

impl AuditFile {
    /// Appends to a file, which is for its owner alone.
    ///
    /// # Errors
    ///
    /// [`AuditFileError::Open`] if that cannot be opened.
    pub fn open(path: &Path) -> Result<Self, AuditFileError> {
        Self::open_limited(path, FILE_BYTES)
    }

    fn open_limited(path: &Path, file_bytes: u64) -> Result<Self, AuditFileError> {
        let failed = |source| {
            let source = Arc::new(source);
            AuditFileError::Open { path: path.to_owned(), source }
        };
        let mut log = Log::open(path, file_bytes).map_err(failed)?;
        let (lines, received) = channel(MAX_WAITING);
        let spawned = thread::Builder::new().name("audit".into()).spawn(move || log.keep(received));
        spawned.map_err(failed)?;
        Ok(AuditFile { lines })
    }

    /// Adds a line; waits if many wait already.
    pub(crate) async fn add(&self, line: Vec<u8>) {
        // Nobody takes it only if the thread has panicked, which has been said.
        let _ = self.lines.send(Entry::Line(line)).await;
    }

    /// Waits until everything is written that was added before.
    pub async fn flush(&self) {
        let (mark, reached) = oneshot::channel();
        if self.lines.send(Entry::Mark(mark)).await.is_ok() {
            let _ = reached.await;
        }
    }

    /// The same where nobody can wait. Whether there was room.
    pub(crate) fn try_add(&self, line: Vec<u8>) -> bool {
        self.lines.try_send(Entry::Line(line)).is_ok()
    }
}

struct Log {
    path: PathBuf,
    file: BufWriter<File>,
    written: u64,
    file_bytes: u64,
    lost: u64,
}

impl Log {
    fn open(path: &Path, file_bytes: u64) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        let written = file.metadata()?.len();
        let file = BufWriter::new(file);
        Ok(Log { path: path.to_owned(), file, written, file_bytes, lost: 0 })
    }

    /// Writes lines until nobody has any. What was said is there when nothing waits.
    fn keep(&mut self, mut entries: Receiver<Entry>) {
        let mut marks = Vec::new();
        while let Some(first) = entries.blocking_recv() {
            let mut next = Some(first);
            while let Some(entry) = next {
                match entry {
                    Entry::Line(line) => self.note(&line),
                    Entry::Mark(mark) => marks.push(mark),
                }
                next = entries.try_recv().ok();
            }
            let flushed = self.file.flush();
            self.tell(flushed, 0);
            // Whoever does not listen any more has no reason to be told.
            for mark in marks.drain(..) {
                let _ = mark.send(());
            }
        }
    }

    fn note(&mut self, line: &[u8]) {
        if self.written > 0 && self.written + line.len() as u64 > self.file_bytes {
            let turned = self.turn();
            self.tell(turned, 0);
        }
        let written = self.file.write_all(line);
        self.written += line.len() as u64;
        self.tell(written, 1);
    }

    /// Begins a new file; the one before stays beside it.
    fn turn(&mut self) -> io::Result<()> {
        self.file.flush()?;
        let mut before = self.path.clone().into_os_string();
        before.push(".1");
        fs::rename(&self.path, before)?;
        *self = Log { lost: self.lost, ..Log::open(&self.path, self.file_bytes)? };
        Ok(())
    }

    /// Says when lines begin to be lost, and how many were when they are written again.
    fn tell(&mut self, result: io::Result<()>, lines: u64) {
        let path = self.path.display();
        match result {
            Ok(()) if self.lost > 0 && lines > 0 => {
                tracing::warn!(%path, lines = self.lost, "the audit log is written again; lines were lost");
                self.lost = 0;
            }
            Ok(()) => {}
            Err(error) => {
                if self.lost == 0 {
                    tracing::error!(%path, %error, "the audit log cannot be written; its lines are lost");
                }
                self.lost += lines.max(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_appended_and_a_file_that_is_full_makes_room_for_the_next() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("audit.log");
        fs::write(&path, "before\n").expect("it is ours");
        let log = AuditFile::open_limited(&path, 20).expect("it opens");
        log.add(b"first\n".to_vec()).await;
        log.flush().await;
        let read = |path: &Path| fs::read_to_string(path).expect("it is there");
        assert_eq!(read(&path), "before\nfirst\n");
        log.add(b"the second\n".to_vec()).await;
        assert!(log.try_add(b"third\n".to_vec()));
        log.flush().await;
        assert_eq!(read(&path), "the second\nthird\n");
        assert_eq!(read(&folder.path().join("audit.log.1")), "before\nfirst\n");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let refused = AuditFile::open(&folder.path().join("no/audit.log")).expect_err("no folder");
        let said = refused.to_string();
        assert!(said.contains("cannot write the audit log ") && said.contains("no/audit.log"));
    }
}
