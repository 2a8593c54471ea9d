//! The parts of one run's log: which of them are there, and who still needs which. Only the last
//! are kept, but for those that somebody who reads has not come to yet.
//!
//! # Guarantees
//!
//! - A part that a reader has not opened stays, up to [`MORE_PARTS`] beyond those that are kept
//!   anyway. Then the container waits for the reader, up to [`PATIENCE`].
//! - Whoever is not waited for any longer is told how much it has missed.
//! - What is removed as a whole, with its Pod or for a newer run, stays until those who read it have
//!   left.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::line::Line;
use super::{LogRotation, part_path, parts_of, remove_run};

/// How many parts are kept for those who read more slowly than the container writes: 250 MiB of the
/// usual size, so that 100 MB written at once hold up nobody.
const MORE_PARTS: u32 = 25;

/// How long a container waits for a reader who has to come to the next part: with parts of 10 MiB a
/// terminal that shows 350 KB a second is fast enough, and one that is stopped holds up no Job for long.
const PATIENCE: Duration = Duration::from_secs(30);

/// The parts of a run.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) folder: PathBuf,
    pub(super) run: u32,
    rotation: LogRotation,
    held: Mutex<Held>,
    /// Somebody needs less than before.
    moved: Notify,
}

#[derive(Debug, Default)]
struct Held {
    /// The first part that may be there, and the one that is written to.
    oldest: u32,
    newest: u32,
    readers: HashMap<u64, Place>,
    next_reader: u64,
    /// The place of somebody who will read it all, and has not come yet.
    awaited: Option<Place>,
    /// With what all of it goes when nobody reads it any more.
    removal: Option<Removal>,
}

/// With what a run goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    /// With nothing: there are newer runs of the container.
    Alone,
    /// With its Pod, and the folders.
    WithPod,
}

/// How far a reader is.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// The part that it opens next.
    next: u32,
    /// Whether nothing stays for it any more.
    is_given_up: bool,
    /// How much went that it had not read.
    missed_bytes: u64,
}

impl Parts {
    /// Those of a run that begins. `is_awaited` says that somebody will come and read it all.
    pub(super) fn begin(
        folder: PathBuf,
        run: u32,
        rotation: LogRotation,
        is_awaited: bool,
    ) -> Arc<Self> {
        let awaited = is_awaited.then(Place::default);
        let held = Mutex::new(Held { awaited, ..Held::default() });
        Arc::new(Parts { folder, run, rotation, held, moved: Notify::new() })
    }

    /// Those that a run has left: all of them stay, as nobody adds to them.
    pub(super) fn left(folder: PathBuf, run: u32) -> Arc<Self> {
        let rotation = LogRotation { parts: u32::MAX, ..LogRotation::default() };
        let there = parts_of(&folder, run);
        let oldest = there.first().copied().unwrap_or(0);
        let newest = there.last().copied().unwrap_or(0);
        let held = Mutex::new(Held { oldest, newest, ..Held::default() });
        Arc::new(Parts { folder, run, rotation, held, moved: Notify::new() })
    }

    /// The part that is written to.
    pub(super) fn newest(&self) -> u32 {
        self.held().newest
    }

    /// The part that is written to is full.
    pub(super) fn begin_next(&self) -> u32 {
        let mut held = self.held();
        held.newest += 1;
        self.prune(&mut held);
        held.newest
    }

    /// Waits until those who read have left room for another part, or have been waited for long
    /// enough.
    pub(super) async fn room(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let moved = self.moved.notified();
            if !self.is_crowded() {
                return;
            }
            if timeout_at(deadline, moved).await.is_err() {
                let mut held = self.held();
                held.give_up();
                self.prune(&mut held);
                return;
            }
        }
    }

    /// Somebody reads the run from here on: all that is there of it stays. Somebody who wants `all` is
    /// whoever was awaited.
    pub(super) fn read(self: &Arc<Self>, all: bool) -> Reading {
        let mut held = self.held();
        let id = held.next_reader;
        held.next_reader += 1;
        let awaited = if all { held.awaited.take() } else { None };
        held.readers.insert(id, awaited.unwrap_or_default());
        Reading { parts: self.clone(), id }
    }

    /// Whether somebody reads the run, so that it goes when they have left.
    pub(super) fn outlives(&self, removal: Removal) -> bool {
        let mut held = self.held();
        held.removal = (!held.readers.is_empty()).then_some(removal);
        held.removal.is_some()
    }

    fn is_crowded(&self) -> bool {
        let held = self.held();
        held.newest - held.oldest >= self.rotation.parts.max(1).saturating_add(MORE_PARTS)
    }

    /// Removes what is neither kept nor needed.
    fn prune(&self, held: &mut Held) {
        let kept = (held.newest + 1).saturating_sub(self.rotation.parts.max(1));
        let needed = held.places().filter(|it| !it.is_given_up).map(|it| it.next).min();
        let first = needed.map_or(kept, |needed| needed.min(kept));
        while held.oldest < first {
            let part = held.oldest;
            let path = part_path(&self.folder, self.run, part);
            if held.places().any(|it| it.next <= part) {
                let bytes = text_bytes(&path);
                let missing = held.places().filter(|it| it.next <= part);
                missing.for_each(|it| it.missed_bytes += bytes);
            }
            // It may be gone with its Pod.
            let _ = fs::remove_file(path);
            held.oldest += 1;
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().expect("nobody panics with it")
    }
}

impl Held {
    fn places(&mut self) -> impl Iterator<Item = &mut Place> {
        self.readers.values_mut().chain(&mut self.awaited)
    }

    /// Waits no longer for those who keep the most.
    fn give_up(&mut self) {
        let oldest = self.oldest;
        self.places().filter(|it| it.next <= oldest).for_each(|it| it.is_given_up = true);
    }
}

/// Somebody who reads a run. What it needs is let go when it is dropped.
#[derive(Debug)]
pub(super) struct Reading {
    parts: Arc<Parts>,
    id: u64,
}

/// A part that was opened.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) part: u32,
    pub(super) file: File,
    /// How much of the log went before it could be read.
    pub(super) missed_bytes: u64,
}

impl Reading {
    pub(super) fn folder(&self) -> &Path {
        &self.parts.folder
    }

    pub(super) fn run(&self) -> u32 {
        self.parts.run
    }

    /// Opens the next part that is there, from this one on if it is named.
    pub(super) fn open(&self, from: Option<u32>) -> Option<Opened> {
        let mut held = self.parts.held();
        let (oldest, newest) = (held.oldest, held.newest);
        let place = held.readers.get_mut(&self.id).expect("it is there until it is dropped");
        let first = from.unwrap_or(place.next).max(oldest);
        let opened = (first..=newest).find_map(|part| {
            let path = part_path(&self.parts.folder, self.parts.run, part);
            File::open(path).ok().map(|file| (part, file))
        });
        let (part, file) = opened?;
        let missed_bytes = std::mem::take(&mut place.missed_bytes);
        *place = Place { next: part + 1, ..Place::default() };
        self.parts.prune(&mut held);
        drop(held);
        self.parts.moved.notify_waiters();
        Some(Opened { part, file, missed_bytes })
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut held = self.parts.held();
        held.readers.remove(&self.id);
        let Parts { folder, run, .. } = &*self.parts;
        match held.removal.filter(|_| held.readers.is_empty()) {
            Some(Removal::Alone) => remove_run(folder, *run),
            Some(Removal::WithPod) => {
                remove_run(folder, *run);
                // The folders of the container and of the Pod, if that was all.
                let _ = fs::remove_dir(folder);
                let _ = folder.parent().map(fs::remove_dir);
            }
            None => self.parts.prune(&mut held),
        }
        drop(held);
        self.parts.moved.notify_waiters();
    }
}

/// How much of a part a reader would have seen.
fn text_bytes(path: &Path) -> u64 {
    let Ok(file) = File::open(path) else { return 0 };
    let lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
    let bytes = lines.filter_map(|line| {
        let line = Line::read(&line)?;
        Some(line.text.len() + usize::from(line.is_full))
    });
    bytes.sum::<usize>() as u64
}
