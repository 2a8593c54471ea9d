//! The file that an audit log is written to. It must not know what is in a line.
//!
//! # Guarantees
//!
//! - Lines are whole, and in the order in which requests were answered.
//! - What waits to be written has a limit in bytes, and strangers have a small part of it: they
//!   push out nobody's line but their own.
//! - A disk that is slow makes clients wait and loses none of their lines. One that hangs, or takes
//!   nothing, holds up clients for [`ROOM_TIME`] and the cluster itself not at all; lines are lost
//!   then, and how many is the next line.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;

use super::line_of_lost;

/// How large the file becomes before it makes room for the next one; one such is kept, so that it
/// is 200 MiB at most, or about half a million requests.
const FILE_BYTES: u64 = 100 << 20;

/// How much may wait to be written: some twenty thousand requests, which is a few seconds of the
/// most that there can be.
const WAITING_BYTES: usize = 16 << 20;

/// How much of that may be of those who have not said who they are.
const STRANGERS_BYTES: usize = 1 << 20;

/// How long a client waits for room in the log. No disk is so slow that is not stuck.
const ROOM_TIME: Duration = Duration::from_secs(5);

/// How long the end waits for what is still to be written.
const FLUSH_TIME: Duration = Duration::from_secs(5);

/// How much is written at once. No line is longer, so that each is written whole or not at all.
const BUFFER_BYTES: usize = 128 << 10;

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

/// Whose line it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The cluster's own: it never waits.
    Cluster,
    /// Of a client that is known: it waits if many lines wait already.
    Client,
    /// Of somebody who has not said who they are: it neither waits nor holds up others.
    Stranger,
}

/// An audit log. Clones write to the same one.
#[derive(Clone, Debug)]
pub struct AuditFile {
    entries: UnboundedSender<Entry>,
    queue: Arc<Queue>,
}

/// What is known of the lines that wait.
#[derive(Debug)]
struct Queue {
    /// A permit for each byte that may wait.
    room: Arc<Semaphore>,
    /// The same for strangers, who need one of each.
    strangers: Arc<Semaphore>,
    room_bytes: usize,
    /// How many lines had no room.
    lost: AtomicU64,
    /// Whether somebody has waited in vain, since when nothing was written.
    is_stuck: AtomicBool,
}

#[derive(Debug)]
enum Entry {
    /// A line, and its room, which is free again once it is written.
    Line(Vec<u8>, [Option<OwnedSemaphorePermit>; 2]),
    /// Somebody wants to know when all before it is written.
    Mark(oneshot::Sender<()>),
}

/// Opens a file to append to.
type Opener = Box<dyn FnMut(&Path) -> io::Result<File> + Send>;

impl AuditFile {
    /// Appends to a file, which is for its owner alone.
    ///
    /// # Errors
    ///
    /// [`AuditFileError::Open`] if that cannot be opened.
    pub fn open(path: &Path) -> Result<Self, AuditFileError> {
        Self::open_with(path, FILE_BYTES, WAITING_BYTES, Box::new(open_own))
    }

    fn open_with(
        path: &Path,
        file_bytes: u64,
        room_bytes: usize,
        opener: Opener,
    ) -> Result<Self, AuditFileError> {
        let failed = |source| {
            let source = Arc::new(source);
            AuditFileError::Open { path: path.to_owned(), source }
        };
        let queue = Arc::new(Queue {
            room: Arc::new(Semaphore::new(room_bytes)),
            strangers: Arc::new(Semaphore::new(STRANGERS_BYTES.min(room_bytes / 16))),
            room_bytes,
            lost: AtomicU64::new(0),
            is_stuck: AtomicBool::new(false),
        });
        let mut log = Log::open(path, file_bytes, opener, queue.clone()).map_err(failed)?;
        let (entries, received) = unbounded_channel();
        let spawned = thread::Builder::new().name("audit".into()).spawn(move || log.keep(received));
        spawned.map_err(failed)?;
        Ok(AuditFile { entries, queue })
    }

    /// Adds a line; a client's waits for a while if many wait already.
    pub(crate) async fn add(&self, line: Vec<u8>, whose: Whose) {
        let mut line = Unwritten { line: Some(line), queue: &self.queue };
        if let Some(room) = self.queue.room_for(line.bytes(), whose) {
            return self.send(line.take(), room);
        }
        if whose == Whose::Client && !self.queue.is_stuck.load(Ordering::Relaxed) {
            let room = self.queue.room.clone().acquire_many_owned(line.bytes());
            match timeout(ROOM_TIME, room).await {
                Ok(room) => self.send(line.take(), [room.ok(), None]),
                Err(_) => self.queue.is_stuck.store(true, Ordering::Relaxed),
            }
        }
    }

    /// The same where nobody can wait.
    pub(crate) fn try_add(&self, line: Vec<u8>, whose: Whose) {
        let mut line = Unwritten { line: Some(line), queue: &self.queue };
        if let Some(room) = self.queue.room_for(line.bytes(), whose) {
            self.send(line.take(), room);
        }
    }

    fn send(&self, line: Vec<u8>, room: [Option<OwnedSemaphorePermit>; 2]) {
        // Nobody takes it only if the thread has panicked, which has been said.
        let _ = self.entries.send(Entry::Line(line, room));
    }

    /// Waits until everything is written that was added before, or until that takes too long.
    pub async fn flush(&self) {
        let (mark, reached) = oneshot::channel();
        if self.entries.send(Entry::Mark(mark)).is_ok()
            && timeout(FLUSH_TIME, reached).await.is_err()
        {
            tracing::error!("the last lines of the audit log are not written: its disk hangs");
        }
    }
}

impl Queue {
    /// Room for a line, if there is any.
    fn room_for(&self, bytes: u32, whose: Whose) -> Option<[Option<OwnedSemaphorePermit>; 2]> {
        let of = |semaphore: &Arc<Semaphore>| semaphore.clone().try_acquire_many_owned(bytes).ok();
        match whose {
            Whose::Cluster | Whose::Client => Some([Some(of(&self.room)?), None]),
            Whose::Stranger => Some([Some(of(&self.strangers)?), Some(of(&self.room)?)]),
        }
    }
}

/// A line that is counted as lost if nobody takes it.
struct Unwritten<'q> {
    line: Option<Vec<u8>>,
    queue: &'q Queue,
}

impl Unwritten<'_> {
    /// How much room it takes. One that is too long for any would wait for ever.
    fn bytes(&self) -> u32 {
        let bytes = self.line.as_ref().map_or(0, Vec::len).min(self.queue.room_bytes);
        u32::try_from(bytes).expect("the room has fewer")
    }

    fn take(&mut self) -> Vec<u8> {
        self.line.take().expect("it is taken once")
    }
}

impl Drop for Unwritten<'_> {
    fn drop(&mut self) {
        if self.line.is_some() && self.queue.lost.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!("lines are missing from the audit log: too many wait to be written");
        }
    }
}

struct Log {
    path: PathBuf,
    opener: Opener,
    queue: Arc<Queue>,
    file: BufWriter<File>,
    written: u64,
    file_bytes: u64,
    /// When it is tried to begin a new file.
    turns_at: u64,
    /// Whether the file has given up its name already, for one that could not be opened yet.
    is_moved: bool,
    /// Whether it was said that no new file can be begun; once is enough until it can.
    is_turn_told: bool,
    /// Lines that could not be written, or had no room.
    lost: u64,
    /// Whether it was said that nothing can be written; once is enough until it can.
    is_trouble_told: bool,
}

impl Log {
    fn open(
        path: &Path,
        file_bytes: u64,
        mut opener: Opener,
        queue: Arc<Queue>,
    ) -> io::Result<Self> {
        let file = opener(path)?;
        let written = file.metadata()?.len();
        let (path, file) = (path.to_owned(), BufWriter::with_capacity(BUFFER_BYTES, file));
        let (is_moved, is_turn_told, is_trouble_told) = (false, false, false);
        let (turns_at, lost) = (file_bytes, 0);
        Ok(Log {
            path,
            opener,
            queue,
            file,
            written,
            file_bytes,
            turns_at,
            is_moved,
            is_turn_told,
            lost,
            is_trouble_told,
        })
    }

    /// Writes lines until nobody has any. What was said is there when nothing waits.
    fn keep(&mut self, mut entries: UnboundedReceiver<Entry>) {
        let mut marks = Vec::new();
        while let Some(first) = entries.blocking_recv() {
            let mut next = Some(first);
            while let Some(entry) = next {
                match entry {
                    Entry::Line(line, room) => {
                        self.note_lost();
                        self.note(&line);
                        drop(room);
                        self.queue.is_stuck.store(false, Ordering::Relaxed);
                    }
                    Entry::Mark(mark) => marks.push(mark),
                }
                next = entries.try_recv().ok();
            }
            self.note_lost();
            self.flush();
            // Whoever does not listen any more has no reason to be told.
            for mark in marks.drain(..) {
                let _ = mark.send(());
            }
        }
    }

    /// Writes a line, or counts it as lost.
    fn note(&mut self, line: &[u8]) {
        if let Err(error) = self.write(line) {
            self.tell(&error);
            self.lost += 1;
        }
    }

    /// Writes down how many lines are missing.
    fn note_lost(&mut self) {
        self.lost += self.queue.lost.swap(0, Ordering::Relaxed);
        if self.lost > 0 && self.write(&line_of_lost(self.lost)).is_ok() {
            self.lost = 0;
        }
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if self.written > 0 && self.written + line.len() as u64 > self.turns_at {
            self.turn();
        }
        self.file.write_all(line)?;
        self.written += line.len() as u64;
        Ok(())
    }

    /// What cannot be written is kept, and tried again with what comes next.
    fn flush(&mut self) {
        match self.file.flush() {
            Ok(()) if std::mem::take(&mut self.is_trouble_told) => {
                tracing::warn!(path = %self.path.display(), "the audit log is written again");
            }
            Ok(()) => {}
            Err(error) => self.tell(&error),
        }
    }

    fn tell(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.is_trouble_told, true) {
            let path = self.path.display();
            tracing::error!(%path, %error, "the audit log cannot be written");
        }
    }

    /// Begins a new file; the one before stays beside it. As long as that fails the old one goes
    /// on, under whichever name it has, and it is tried again when that has grown by a hundredth.
    fn turn(&mut self) {
        match self.try_turn() {
            Ok(()) => self.is_turn_told = false,
            Err(error) => {
                self.turns_at = self.written + self.file_bytes / 100;
                if !std::mem::replace(&mut self.is_turn_told, true) {
                    let path = self.path.display();
                    tracing::error!(%path, %error, "no new file for the audit log; the old one grows");
                }
            }
        }
    }

    fn try_turn(&mut self) -> io::Result<()> {
        self.file.flush()?;
        if !self.is_moved {
            let mut before = self.path.clone().into_os_string();
            before.push(".1");
            fs::rename(&self.path, before)?;
            self.is_moved = true;
        }
        let file = (self.opener)(&self.path)?;
        self.written = file.metadata()?.len();
        self.file = BufWriter::with_capacity(BUFFER_BYTES, file);
        self.turns_at = self.file_bytes;
        self.is_moved = false;
        Ok(())
    }
}

/// A file for its owner alone.
fn open_own(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::OwnedFd;

    use super::*;

    fn read(path: &Path) -> String {
        fs::read_to_string(path).expect("it is there")
    }

    fn open_limited(path: &Path, opener: Opener) -> AuditFile {
        AuditFile::open_with(path, 20, WAITING_BYTES, opener).expect("it opens")
    }

    #[tokio::test]
    async fn lines_are_appended_and_a_file_that_is_full_makes_room_for_the_next() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("audit.log");
        fs::write(&path, "before\n").expect("it is ours");
        let log = open_limited(&path, Box::new(open_own));
        log.add(b"first\n".to_vec(), Whose::Client).await;
        log.flush().await;
        assert_eq!(read(&path), "before\nfirst\n");
        log.add(b"the second\n".to_vec(), Whose::Client).await;
        log.try_add(b"third\n".to_vec(), Whose::Cluster);
        log.flush().await;
        assert_eq!(read(&path), "the second\nthird\n");
        assert_eq!(read(&folder.path().join("audit.log.1")), "before\nfirst\n");
    }

    #[tokio::test]
    async fn a_new_file_that_cannot_be_begun_is_begun_later_and_nothing_is_lost() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("audit.log");
        let before = folder.path().join("audit.log.1");
        // It opens at first, then twice not: the old file has given up its name by then.
        let mut opened = 0;
        let log = open_limited(
            &path,
            Box::new(move |path| {
                opened += 1;
                if matches!(opened, 2 | 3) {
                    return Err(io::Error::other("on purpose"));
                }
                open_own(path)
            }),
        );
        for line in ["the first\n", "the second\n", "the third\n"] {
            log.add(line.as_bytes().to_vec(), Whose::Client).await;
        }
        log.flush().await;
        assert_eq!(read(&before), "the first\nthe second\nthe third\n");
        log.add(b"the fourth\n".to_vec(), Whose::Client).await;
        log.flush().await;
        assert_eq!(read(&before), "the first\nthe second\nthe third\n");
        assert_eq!(read(&path), "the fourth\n");
    }

    /// A log on a disk that hangs until somebody reads the other end.
    fn hanging(room_bytes: usize) -> (AuditFile, io::PipeReader) {
        let (reader, writer) = io::pipe().expect("a pipe");
        let mut writer = Some(File::from(OwnedFd::from(writer)));
        let opener = Box::new(move |_: &Path| Ok(writer.take().expect("it is opened once")));
        let log = AuditFile::open_with(Path::new("hanging"), FILE_BYTES, room_bytes, opener);
        (log.expect("it opens"), reader)
    }

    /// A line of a thousand bytes.
    fn line(letter: u8) -> Vec<u8> {
        [vec![letter; 999], vec![b'\n']].concat()
    }

    /// Reads all lines, as many of each letter as there are.
    fn tally(text: &str, letter: char) -> usize {
        text.lines().filter(|line| line.starts_with(letter)).count()
    }

    async fn all_of(log: AuditFile, mut reader: io::PipeReader) -> String {
        let reading = tokio::task::spawn_blocking(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).expect("it is text");
            text
        });
        log.flush().await;
        drop(log);
        reading.await.expect("no panic")
    }

    #[tokio::test]
    async fn a_disk_that_hangs_stops_nobody_and_what_is_lost_is_counted() {
        const LINES: usize = 1000;
        let (log, reader) = hanging(100_000);
        for _ in 0..LINES {
            log.add(line(b'c'), Whose::Cluster).await;
        }
        let text = all_of(log, reader).await;
        let lost = text.lines().filter(|line| line.starts_with('{')).map(|line| {
            let event: serde_json::Value = serde_json::from_str(line).expect("JSON");
            let count = event["annotations"]["stint.dev/lost-lines"].as_str().expect("a count");
            count.parse::<usize>().expect("a number")
        });
        let lost: usize = lost.sum();
        assert!(lost > 0, "nothing was lost");
        assert_eq!(tally(&text, 'c') + lost, LINES);
    }

    #[tokio::test]
    async fn strangers_push_out_nobody() {
        let (log, reader) = hanging(100_000);
        for _ in 0..1000 {
            log.add(line(b's'), Whose::Stranger).await;
        }
        for _ in 0..50 {
            log.try_add(line(b'k'), Whose::Client);
        }
        let text = all_of(log, reader).await;
        assert_eq!(tally(&text, 'k'), 50);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let refused = AuditFile::open(&folder.path().join("no/audit.log")).expect_err("no folder");
        let said = refused.to_string();
        assert!(said.contains("cannot write the audit log ") && said.contains("no/audit.log"));
    }
}
