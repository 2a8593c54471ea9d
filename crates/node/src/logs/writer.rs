//! Writes the parts of one run's log.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::parts::Parts;
use super::{LogRotation, Progress, part_path};
use crate::descriptors::is_short;

/// How long a file waits for a descriptor that somebody else was quicker to take: whoever starts a
/// container takes several, and lets go of them if there are not enough.
const DESCRIPTOR_PATIENCE: Duration = Duration::from_secs(5);

/// How soon that is tried again.
const DESCRIPTOR_PAUSE: Duration = Duration::from_millis(10);

/// Where the output of a run goes.
#[derive(Debug)]
pub(crate) struct Writer {
    parts: Arc<Parts>,
    rotation: LogRotation,
    file: Option<File>,
    /// Keeps a descriptor for the file, until there is one.
    place: Option<File>,
    /// How large the part is.
    bytes: u64,
    /// How much could not be written.
    lost_bytes: u64,
    progress: watch::Sender<Progress>,
}

impl Writer {
    pub(super) fn new(
        parts: Arc<Parts>,
        rotation: LogRotation,
        progress: watch::Sender<Progress>,
    ) -> Self {
        Writer { parts, rotation, file: None, place: None, bytes: 0, lost_bytes: 0, progress }
    }

    /// Takes the descriptor that the file will need. A container that runs while there is none would
    /// lose what it writes.
    pub(crate) fn reserve(&mut self) -> io::Result<()> {
        self.place = Some(File::open("/dev/null")?);
        Ok(())
    }

    /// Where its files are.
    pub(super) fn folder(&self) -> &Path {
        &self.parts.folder
    }

    /// Waits until another part may begin: others may have to read what is there first.
    pub(super) async fn room(&self) {
        self.parts.room().await;
    }

    /// Writes whole lines, each into one part.
    pub(super) fn write(&mut self, mut lines: &[u8]) {
        while !lines.is_empty() {
            let room = self.rotation.part_bytes.saturating_sub(self.bytes);
            let mut fits = fitting(lines, usize::try_from(room).unwrap_or(usize::MAX));
            if fits == 0 && self.bytes > 0 {
                self.begin_next_part();
                continue;
            }
            if fits == 0 {
                // A line that is longer than a part has one of its own.
                fits = fitting(lines, lines.iter().take_while(|byte| **byte != b'\n').count() + 1);
            }
            let (now, after) = lines.split_at(fits);
            match self.try_write(now) {
                Ok(()) => self.progress.send_modify(|it| it.bytes += now.len() as u64),
                // A disk that is full must not stop the container: its output is lost.
                Err(error) => return self.lose(lines, &error),
            }
            lines = after;
        }
    }

    fn try_write(&mut self, lines: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let Parts { folder, run, .. } = &*self.parts;
                fs::create_dir_all(folder)?;
                let path = part_path(folder, *run, self.parts.newest());
                self.place = None;
                // Who has lost something waits no more: the container goes on without its output.
                let until = (self.lost_bytes == 0).then(|| Instant::now() + DESCRIPTOR_PATIENCE);
                let file = opened(&path, until)?;
                self.bytes = file.metadata()?.len();
                none.insert(file)
            }
        };
        if let Err(error) = file.write_all(lines) {
            // What there was room for would be the beginning of the line that comes next.
            let _ = file.set_len(self.bytes);
            return Err(error);
        }
        self.bytes += lines.len() as u64;
        Ok(())
    }

    /// That output is lost is said when it begins, and how much it was at the end.
    fn lose(&mut self, lines: &[u8], error: &io::Error) {
        if self.lost_bytes == 0 {
            tracing::error!(folder = %self.folder().display(), %error, "output is lost");
        }
        self.lost_bytes += lines.len() as u64;
    }

    fn begin_next_part(&mut self) {
        self.file = None;
        self.bytes = 0;
        let next = self.parts.begin_next();
        self.progress.send_modify(|it| it.part = next);
    }
}

/// Opens a part, or makes it; if there is no descriptor, tries again until then.
fn opened(path: &Path, until: Option<Instant>) -> io::Result<File> {
    loop {
        match OpenOptions::new().create(true).append(true).open(path) {
            Err(error) if is_short(&error) && until.is_some_and(|until| Instant::now() < until) => {
                thread::sleep(DESCRIPTOR_PAUSE);
            }
            opened => return opened,
        }
    }
}

/// How many bytes of these lines a part takes that has so much room: whole lines.
fn fitting(lines: &[u8], room: usize) -> usize {
    if lines.len() <= room {
        return lines.len();
    }
    lines[..room].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.lost_bytes > 0 {
            let (folder, bytes) = (self.folder().display(), self.lost_bytes);
            tracing::warn!(%folder, bytes, "output was lost");
        }
        self.progress.send_modify(|it| it.is_over = true);
    }
}
