//! Reads the log of a run, part after part, and goes on as it grows if asked to.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};

use bytes::{BufMut, Bytes, BytesMut};
use tokio::sync::watch;

use super::line::Line;
use super::parts::{Opened, Reading};
use super::{LogOptions, Progress, tail};

/// How much is given at once.
const PIECE_BYTES: usize = 32 << 10;

/// A reader of one run's log.
#[derive(Debug)]
pub(super) struct Reader {
    reading: Reading,
    options: LogOptions,
    /// How the writer fares, if there is one.
    progress: Option<watch::Receiver<Progress>>,
    /// The part that is read, and what of it.
    part: Option<(u32, BufReader<File>)>,
    has_begun: bool,
    /// The beginning of a line whose end was not written yet.
    torn: Vec<u8>,
    /// Whether the last thing that was given ended a line: only then comes a time.
    is_at_start: bool,
    /// How much went before it could be read, until that is said.
    missed_bytes: u64,
    left: u64,
}

/// Why reading stops for now.
enum Pause {
    /// There is no more.
    End,
    /// There may be more after the next word of the writer.
    Wait,
}

impl Reader {
    pub(super) fn new(
        reading: Reading,
        options: &LogOptions,
        progress: Option<watch::Receiver<Progress>>,
    ) -> Self {
        Reader {
            reading,
            options: options.clone(),
            progress,
            part: None,
            has_begun: false,
            torn: Vec::new(),
            is_at_start: true,
            missed_bytes: 0,
            left: options.limit_bytes.unwrap_or(u64::MAX),
        }
    }

    /// The next piece, and who reads on; none at the end.
    pub(super) async fn next(mut self) -> Option<(Bytes, Self)> {
        loop {
            if self.left == 0 {
                return None;
            }
            // What the writer says is read before the file: nothing can come between.
            let seen = self.progress.as_mut().map(|progress| *progress.borrow_and_update());
            // A disk may take its time: that is waited for where waiting holds up nobody else.
            let reading = tokio::task::spawn_blocking(move || {
                let mut piece = BytesMut::new();
                let pause = self.fill(&mut piece, seen);
                (self, piece, pause)
            });
            let (reader, piece, pause) = reading.await.expect("reading does not panic");
            self = reader;
            if !piece.is_empty() {
                return Some((piece.freeze(), self));
            }
            match (pause, &mut self.progress) {
                (Some(Pause::Wait), Some(progress)) => {
                    // A writer that is gone has said that it is over.
                    if progress.changed().await.is_err() {
                        self.progress = None;
                    }
                }
                (Some(Pause::Wait | Pause::End), _) => return None,
                (None, _) => tokio::task::consume_budget().await,
            }
        }
    }

    /// Reads until a piece is full or there is nothing more.
    fn fill(&mut self, piece: &mut BytesMut, seen: Option<Progress>) -> Option<Pause> {
        if !self.has_begun {
            self.has_begun = true;
            self.open_first();
        }
        while piece.len() < PIECE_BYTES && self.left > 0 {
            let Some((part, file)) = &mut self.part else {
                if !self.open_next() {
                    return Some(self.pause(seen));
                }
                continue;
            };
            let part = *part;
            let before = self.torn.len();
            let read = file.read_until(b'\n', &mut self.torn).unwrap_or(0);
            if read > 0 && self.torn.last() == Some(&b'\n') {
                let line = std::mem::take(&mut self.torn);
                self.give(&line[..line.len() - 1], piece);
                continue;
            }
            debug_assert!(self.torn.len() >= before, "reading adds");
            // The end of the part: there is another only if the writer has gone on to it.
            let is_left_behind = seen.is_none_or(|seen| seen.part > part || seen.is_over);
            if is_left_behind && self.open_next() {
                self.torn.clear();
                continue;
            }
            return Some(self.pause(seen));
        }
        None
    }

    fn pause(&self, seen: Option<Progress>) -> Pause {
        match seen {
            Some(seen) if self.options.follow && !seen.is_over => Pause::Wait,
            Some(_) | None => Pause::End,
        }
    }

    /// Opens where reading begins.
    fn open_first(&mut self) {
        let Some(lines) = self.options.tail_lines else { return };
        let (folder, run) = (self.reading.folder(), self.reading.run());
        // All that is there stays until it is opened.
        if let Some((part, offset)) = tail::find(folder, run, lines)
            && let Some(mut opened) = self.reading.open(Some(part))
            && opened.part == part
            && opened.file.seek(SeekFrom::Start(offset)).is_ok()
        {
            self.part = Some((part, BufReader::new(opened.file)));
        }
    }

    /// Opens the next part that is there.
    fn open_next(&mut self) -> bool {
        let Some(Opened { part, file, missed_bytes }) = self.reading.open(None) else {
            return false;
        };
        self.missed_bytes += missed_bytes;
        self.part = Some((part, BufReader::new(file)));
        true
    }

    fn give(&mut self, line: &[u8], piece: &mut BytesMut) {
        let Some(line) = Line::read(line) else { return };
        if !line.is_of(self.options.stream) || !line.is_since(self.options.since) {
            return;
        }
        let missed_bytes = std::mem::take(&mut self.missed_bytes);
        if missed_bytes > 0 {
            self.tell_missed(missed_bytes, line.time, piece);
        }
        self.put_time(line.time, piece);
        self.put(line.text, piece);
        if line.is_full {
            self.put(b"\n", piece);
        }
        self.is_at_start = line.is_full;
    }

    /// Says in a line of its own that something is missing: nobody who reads a log has other ears.
    fn tell_missed(&mut self, bytes: u64, time: &str, piece: &mut BytesMut) {
        if !self.is_at_start {
            self.put(b"\n", piece);
            self.is_at_start = true;
        }
        self.put_time(time, piece);
        let text =
            format!("stint: {bytes} bytes are left out here, as they were not read in time\n");
        self.put(text.as_bytes(), piece);
    }

    fn put_time(&mut self, time: &str, piece: &mut BytesMut) {
        if self.options.timestamps && self.is_at_start {
            self.put(time.as_bytes(), piece);
            self.put(b" ", piece);
        }
    }

    fn put(&mut self, bytes: &[u8], piece: &mut BytesMut) {
        let end = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
        piece.put_slice(&bytes[..end]);
        self.left -= end as u64;
    }
}
