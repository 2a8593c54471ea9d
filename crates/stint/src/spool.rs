//! What containers print, between those who read their logs and whoever writes it out. A reader
//! who is slow must not hold up the former: of a log only the last parts are kept, and what is not
//! read in time is gone. So what waits is kept here: some of it in memory, the rest in files that
//! have no name, so that nothing of them is left whatever happens.
//!
//! # Guarantees
//!
//! - What is put in comes out in its order, each item once, or is counted as lost.
//! - Putting in never waits for whoever takes out. Whoever can wait, as nothing takes away what it
//!   reads, asks whether there is room first ([`Patience`]), and loses nothing.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;

/// How much waits in memory: what a pipe or a terminal falls behind by for a moment.
const MEMORY_BYTES: usize = 4 << 20;

/// How large a file becomes; it goes when it has been read.
const FILE_BYTES: u64 = 16 << 20;

/// How much waits at most, in files: a gigabyte, of which nobody reads all. It is twenty times what
/// is kept of a container's log.
const MAX_FILES: usize = 64;

/// How long losses add up until they are told: a reader who is too slow for minutes is not to be
/// told of each line.
const BETWEEN_LOSSES: Duration = Duration::from_secs(5);

/// Something that can wait in a file.
pub(crate) trait Spooled: Sized + Send + 'static {
    /// Appends it to what is written.
    fn pack(&self, bytes: &mut Vec<u8>);

    /// Reads what was packed.
    fn unpack(bytes: &[u8]) -> Self;

    /// Whose it is, and how much of it; nothing if it is not to be left out.
    fn source(&self) -> Option<(&str, u64)>;
}

/// What waits to be taken out.
pub(crate) struct Spool<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    held: Mutex<Held<T>>,
    more: Condvar,
}

struct Held<T> {
    /// The oldest; when there are files, nothing is added here.
    memory: VecDeque<T>,
    memory_bytes: usize,
    files: VecDeque<Segment>,
    /// The newest, for which no file has room, and which must not be left out. Nobody who can wait
    /// adds to them, so that they are few.
    rest: VecDeque<T>,
    folder: PathBuf,
    max_files: usize,
    /// How much was left out, by whose it is.
    lost: BTreeMap<String, u64>,
    /// When that was last asked for and there was some.
    lost_told: Option<Instant>,
    is_over: bool,
    is_full: watch::Sender<bool>,
}

/// Whoever puts something in, and can wait once what it reads is over.
#[derive(Clone, Debug)]
pub(crate) struct Patience {
    pub(crate) is_full: watch::Receiver<bool>,
    pub(crate) is_over: Arc<AtomicBool>,
}

impl Patience {
    /// Waits until there is room, if it can: whether it did, so that nothing is to be left out.
    pub(crate) async fn wait(&mut self) -> bool {
        let can_wait = self.is_over.load(Ordering::Relaxed);
        if can_wait {
            // If nobody takes anything any more there is nothing to wait for.
            let _ = self.is_full.wait_for(|is_full| !is_full).await;
        }
        can_wait
    }
}

/// A file that is written to its end and then read from its start.
struct Segment {
    file: File,
    written: u64,
    read: u64,
}

impl<T: Spooled> Spool<T> {
    /// Takes in all that comes, as fast as it does; what memory has no room for waits in files in
    /// this folder. Whether those are full is told by `is_full`.
    pub(crate) fn start(
        mut items: Receiver<T>,
        is_full: watch::Sender<bool>,
        folder: PathBuf,
    ) -> io::Result<Self> {
        let spool = Self::new(is_full, folder, MAX_FILES);
        let shared = spool.shared.clone();
        let take_in = move || {
            while let Some(item) = items.blocking_recv() {
                shared.put(item);
            }
            shared.held().is_over = true;
            shared.more.notify_all();
        };
        thread::Builder::new().name("spool".into()).spawn(take_in)?;
        Ok(spool)
    }

    fn new(is_full: watch::Sender<bool>, folder: PathBuf, max_files: usize) -> Self {
        let held = Held {
            memory: VecDeque::new(),
            memory_bytes: 0,
            files: VecDeque::new(),
            rest: VecDeque::new(),
            folder,
            max_files,
            lost: BTreeMap::new(),
            lost_told: None,
            is_over: false,
            is_full,
        };
        Spool { shared: Arc::new(Shared { held: Mutex::new(held), more: Condvar::new() }) }
    }

    /// The next items, up to so many; waits for the first. None if there will be no more.
    pub(crate) fn take(&self, most: usize) -> Vec<T> {
        let mut held = self.shared.held();
        loop {
            let taken = held.take(most);
            if !taken.is_empty() || held.is_over {
                return taken;
            }
            held = self.shared.more.wait(held).expect("nobody panics here");
        }
    }

    /// Whether the next items are there already.
    pub(crate) fn has_more(&self) -> bool {
        let held = self.shared.held();
        !held.memory.is_empty() || !held.files.is_empty() || !held.rest.is_empty()
    }

    /// How much was left out since this was last told, by whose it is; nothing if that was just
    /// now and more may come.
    pub(crate) fn take_lost(&self, now: Instant) -> BTreeMap<String, u64> {
        let mut held = self.shared.held();
        let told_lately = |told: Instant| now.saturating_duration_since(told) < BETWEEN_LOSSES;
        if held.lost.is_empty() || (!held.is_over && held.lost_told.is_some_and(told_lately)) {
            return BTreeMap::new();
        }
        held.lost_told = Some(now);
        std::mem::take(&mut held.lost)
    }
}

impl<T: Spooled> Shared<T> {
    fn held(&self) -> MutexGuard<'_, Held<T>> {
        self.held.lock().expect("nobody panics here")
    }

    fn put(&self, item: T) {
        self.held().put(item);
        self.more.notify_all();
    }
}

impl<T: Spooled> Held<T> {
    fn put(&mut self, item: T) {
        let mut packed = Vec::new();
        item.pack(&mut packed);
        let fits = self.memory_bytes + packed.len() <= MEMORY_BYTES || self.memory.is_empty();
        if self.files.is_empty() && self.rest.is_empty() && fits {
            self.memory_bytes += packed.len();
            self.memory.push_back(item);
            return;
        }
        let source = item.source().map(|(whose, bytes)| (whose.to_owned(), bytes));
        let is_written = self.rest.is_empty() && self.write(&packed, source.is_none()).is_ok();
        match source {
            _ if is_written => {}
            Some((whose, bytes)) => *self.lost.entry(whose).or_default() += bytes,
            None => self.rest.push_back(item),
        }
        self.tell_room();
    }

    /// Writes an item to the last file. Full is full but for what must not be left out.
    fn write(&mut self, packed: &[u8], is_needed: bool) -> io::Result<()> {
        if self.files.back().is_none_or(|last| last.written >= FILE_BYTES) {
            if self.files.len() >= self.max_files && !is_needed {
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
            let file = tempfile::tempfile_in(&self.folder)?;
            self.files.push_back(Segment { file, written: 0, read: 0 });
        }
        let last = self.files.back_mut().expect("there is one");
        let length = u32::try_from(packed.len()).expect("lines are short").to_le_bytes();
        last.file.seek(SeekFrom::Start(last.written))?;
        let written = last.file.write_all(&[&length[..], packed].concat());
        // If there was no room for all of it, the rest is written over by what comes next.
        written.map(|()| last.written += (length.len() + packed.len()) as u64)
    }

    /// Tells whether there is room, if that has changed.
    fn tell_room(&self) {
        let is_full = self.files.len() >= self.max_files || !self.rest.is_empty();
        self.is_full.send_if_modified(|told| std::mem::replace(told, is_full) != is_full);
    }

    fn take(&mut self, most: usize) -> Vec<T> {
        if self.memory.is_empty() {
            let mut left = most;
            while left > 0
                && let Some(first) = self.files.front_mut()
            {
                match first.next() {
                    Some(packed) => {
                        self.memory.push_back(T::unpack(&packed));
                        left -= 1;
                    }
                    None => {
                        // There is more only if it cannot be read.
                        let unread = first.written - first.read;
                        if unread > 0 {
                            *self.lost.entry(String::new()).or_default() += unread;
                        }
                        self.files.pop_front();
                    }
                }
            }
            if self.files.front().is_some_and(|first| first.read >= first.written) {
                self.files.pop_front();
            }
            if self.files.is_empty() && self.memory.is_empty() {
                std::mem::swap(&mut self.memory, &mut self.rest);
            }
            self.tell_room();
        }
        let count = most.min(self.memory.len());
        let taken: Vec<T> = self.memory.drain(..count).collect();
        if self.memory.is_empty() {
            self.memory_bytes = 0;
        }
        taken
    }
}

impl Segment {
    /// The next item as it was packed; none at the end.
    fn next(&mut self) -> Option<Vec<u8>> {
        if self.read >= self.written {
            return None;
        }
        let mut length = [0; 4];
        let mut read = || -> io::Result<Vec<u8>> {
            self.file.seek(SeekFrom::Start(self.read))?;
            self.file.read_exact(&mut length)?;
            let mut packed = vec![0; u32::from_le_bytes(length) as usize];
            self.file.read_exact(&mut packed)?;
            Ok(packed)
        };
        let packed = read().ok()?;
        self.read += (length.len() + packed.len()) as u64;
        Some(packed)
    }
}

/// That something was left out, for people.
pub(crate) fn told_lost(whose: &str, bytes: u64) -> String {
    let amount = match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    };
    let what = match whose {
        "" => format!("{amount} of the output"),
        whose => format!("{whose} {amount}"),
    };
    format!(
        "{what} were left out: they were not read in time, and there was no more room for them to \
         wait; write the output to a file, or print less\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Line(Vec<u8>);

    impl Spooled for Line {
        fn pack(&self, bytes: &mut Vec<u8>) {
            bytes.extend_from_slice(&self.0);
        }

        fn unpack(bytes: &[u8]) -> Self {
            Line(bytes.to_vec())
        }

        fn source(&self) -> Option<(&str, u64)> {
            (self.0.len() > 10).then_some(("loud", self.0.len() as u64))
        }
    }

    fn line(number: usize) -> Line {
        Line(format!("{number:01000}").into_bytes())
    }

    fn spool(max_files: usize) -> (Spool<Line>, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        (Spool::new(watch::Sender::new(false), folder.path().to_owned(), max_files), folder)
    }

    #[test]
    fn what_nobody_takes_waits_in_files_and_comes_in_its_order() {
        let (spool, folder) = spool(MAX_FILES);
        let mut taken = Vec::new();
        // Far more than memory and a file hold, with somebody who takes some now and then.
        for number in 0..50_000 {
            spool.shared.put(line(number));
            if number % 10_000 == 9_999 {
                taken.extend((0..20).flat_map(|_| spool.take(64)));
            }
        }
        assert!(spool.has_more());
        assert_eq!(std::fs::read_dir(folder.path()).expect("it is ours").count(), 0, "no names");
        spool.shared.held().is_over = true;
        loop {
            let more = spool.take(64);
            if more.is_empty() {
                break;
            }
            taken.extend(more);
        }
        assert!(taken.iter().cloned().eq((0..50_000).map(line)), "{}", taken.len());
        assert!(spool.take_lost(Instant::now()).is_empty() && !spool.has_more());
    }

    #[test]
    fn what_must_not_be_left_out_comes_in_its_order_even_without_a_disk() {
        let (spool, folder) = spool(MAX_FILES);
        folder.close().expect("it is empty");
        let is_full = spool.shared.held().is_full.subscribe();
        for number in 0..10_000 {
            spool.shared.put(line(number));
        }
        let notes: Vec<Line> = (0..100).map(|it| Line(format!("note {it}").into_bytes())).collect();
        notes.iter().for_each(|note| spool.shared.put(note.clone()));
        assert!(*is_full.borrow());
        spool.shared.held().is_over = true;
        let taken: Vec<Line> =
            std::iter::from_fn(|| Some(spool.take(64)).filter(|it| !it.is_empty()))
                .flatten()
                .collect();
        let (lines, rest) = taken.split_at(taken.len() - notes.len());
        assert_eq!(rest, notes);
        let lost = spool.take_lost(Instant::now())["loud"];
        assert_eq!(lines.len() as u64 * 1000 + lost, 10_000 * 1000);
        assert!(lines.iter().cloned().eq((0..lines.len()).map(line)), "{}", lines.len());
        assert!(!*is_full.borrow());
    }

    #[test]
    fn what_there_is_no_room_for_is_counted_and_what_is_short_is_kept() {
        let (spool, _folder) = spool(1);
        for number in 0..40_000 {
            spool.shared.put(line(number));
        }
        let is_full = spool.shared.held().is_full.subscribe();
        assert!(*is_full.borrow());
        spool.shared.put(Line(b"a note".to_vec()));
        spool.shared.held().is_over = true;
        let mut taken = Vec::new();
        loop {
            let more = spool.take(64);
            if more.is_empty() {
                break;
            }
            taken.extend(more);
        }
        assert!(!*is_full.borrow());
        let lost = spool.take_lost(Instant::now())["loud"];
        let note = taken.pop().expect("there is one");
        assert_eq!(note, Line(b"a note".to_vec()));
        assert_eq!(taken.len() as u64 * 1000 + lost, 40_000 * 1000);
        assert!(taken.iter().cloned().eq((0..taken.len()).map(line)), "the oldest are kept");
        assert!(lost > 10_000 * 1000, "{lost}");
    }

    #[test]
    fn losses_are_told_now_and_then_and_all_of_them_at_the_end() {
        let (spool, folder) = spool(MAX_FILES);
        folder.close().expect("it is empty");
        let now = Instant::now();
        let lose = |count: usize| (0..count).for_each(|number| spool.shared.put(line(number)));
        lose(10_000);
        let first = spool.take_lost(now)["loud"];
        lose(5);
        assert!(spool.take_lost(now + BETWEEN_LOSSES / 2).is_empty());
        lose(5);
        assert_eq!(spool.take_lost(now + BETWEEN_LOSSES)["loud"], 10 * 1000);
        assert!(spool.take_lost(now + BETWEEN_LOSSES * 2).is_empty());
        lose(1);
        assert_eq!(spool.take_lost(now + BETWEEN_LOSSES * 2)["loud"], 1000);
        lose(2);
        spool.shared.held().is_over = true;
        assert_eq!(spool.take_lost(now + BETWEEN_LOSSES * 2)["loud"], 2 * 1000);
        let kept = std::iter::from_fn(|| Some(spool.take(64)).filter(|it| !it.is_empty()));
        assert_eq!(kept.flatten().count() as u64 * 1000 + first, 10_000 * 1000);
    }

    #[test]
    fn losses_are_told_in_amounts_that_can_be_read() {
        let amount = |bytes| told_lost("[a/0]", bytes).split(" were").next().map(str::to_owned);
        assert_eq!(amount(999).as_deref(), Some("[a/0] 999 bytes"));
        assert_eq!(amount(1536).as_deref(), Some("[a/0] 1.5 KiB"));
        assert_eq!(amount(3 << 19).as_deref(), Some("[a/0] 1.5 MiB"));
        assert!(told_lost("", 3 << 20).starts_with("3.0 MiB of the output were left out: "));
    }
}
