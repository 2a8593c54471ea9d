//! Mount namespaces to copy. A mimic takes as many mounts as the folder has entries, and most
//! containers miss the same targets as the one before: /dev/termination-log, to begin with. So the
//! helper has a namespace made in which the targets of a container are there, empty; a copy of
//! that is made in a fraction of the time.
//!
//! A template is good for as long as the mimicked folders and the machine's mounts are what they
//! were.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::mounts::{self, Missing};
use super::sys::{self, Fork};
use crate::runtime::Mount;

/// How many sets of targets are kept: more than there are kinds of Pods at a time. Each holds
/// some hundred mounts.
const MOST: usize = 32;

/// A folder that was changed less than this before it was copied may have been changed again
/// without looking so: file systems count time in ticks of up to 10 ms.
const TICKS: Duration = Duration::from_millis(50);

/// The templates there are.
#[derive(Debug)]
pub(super) struct Templates {
    /// Tells when anything was mounted or unmounted on the machine.
    machine_mounts: Option<File>,
    made: HashMap<Vec<Missing>, Template>,
}

#[derive(Debug)]
struct Template {
    namespace: OwnedFd,
    folders: Vec<(PathBuf, Stamp)>,
}

/// What changes when an entry of a folder comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    place: (u64, u64),
    changed: (i64, i64),
    owner: (u32, u32, u32),
}

impl Stamp {
    fn of(folder: &Path) -> io::Result<Stamp> {
        let found = fs::metadata(folder)?;
        Ok(Stamp {
            place: (found.dev(), found.ino()),
            changed: (found.ctime(), found.ctime_nsec()),
            owner: (found.uid(), found.gid(), found.mode()),
        })
    }

    /// Whether a later change cannot have the same stamp.
    fn is_settled(&self) -> bool {
        let (seconds, nanoseconds) = self.changed;
        let since = Duration::new(seconds.max(0) as u64, nanoseconds.max(0) as u32);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        now.saturating_sub(since) > TICKS
    }
}

impl Templates {
    pub(super) fn new() -> Self {
        let machine_mounts = File::open("/proc/self/mountinfo").ok();
        Templates { machine_mounts, made: HashMap::new() }
    }

    /// The namespace to copy for a container with these mounts; `None` if it is as well served
    /// by a copy of the machine's.
    pub(super) fn find_or_make(
        &mut self,
        mounts: &[Mount],
        folder: &Path,
    ) -> Option<BorrowedFd<'_>> {
        if mounts.is_empty() {
            return None;
        }
        if self.machine_has_changed() {
            self.made.clear();
        }
        let missing = mounts::missing_targets(mounts);
        if missing.is_empty() {
            return None;
        }
        if !self.made.get(&missing).is_some_and(Template::is_good) {
            self.made.remove(&missing);
            if self.made.len() >= MOST {
                self.made.clear();
            }
            let template = Template::make(&missing, folder)?;
            self.made.insert(missing.clone(), template);
        }
        self.made.get(&missing).map(|template| template.namespace.as_fd())
    }

    fn machine_has_changed(&self) -> bool {
        let Some(mounts) = &self.machine_mounts else { return true };
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut changed = [PollFd::new(mounts, PollFlags::PRI)];
        poll(&mut changed, Some(&now)).is_ok()
            && changed[0].revents().intersects(PollFlags::PRI | PollFlags::ERR)
    }
}

impl Template {
    fn is_good(&self) -> bool {
        self.folders.iter().all(|(folder, stamp)| Stamp::of(folder).is_ok_and(|now| now == *stamp))
    }

    /// `None` if it would not be good for long, or cannot be made: the container finds out why.
    fn make(missing: &[Missing], folder: &Path) -> Option<Template> {
        let folders: Vec<(PathBuf, Stamp)> = mounts::mimicked_folders(missing)?
            .into_iter()
            .map(|folder| Stamp::of(&folder).map(|stamp| (folder, stamp)))
            .collect::<io::Result<_>>()
            .ok()?;
        if !folders.iter().all(|(_, stamp)| stamp.is_settled()) {
            return None;
        }
        let (mut ready, mut made) = io::pipe().ok()?;
        let (mut released, release) = io::pipe().ok()?;
        let maker = match sys::fork(libc::CLONE_NEWNS).ok()? {
            Fork::Child => {
                drop((ready, release));
                sys::set_death_signal(libc::SIGKILL);
                let done = mounts::begin().is_ok() && mounts::make_targets(missing, folder).is_ok();
                let _ = made.write_all(&[u8::from(done)]);
                // The namespace stays until somebody else holds it.
                let _ = released.read(&mut [0]);
                sys::exit(0)
            }
            Fork::Parent(maker) => maker,
        };
        drop(made);
        let mut done = [0];
        let namespace = match ready.read(&mut done) {
            Ok(1) if done == [1] => File::open(format!("/proc/{maker}/ns/mnt")).ok(),
            _ => None,
        };
        drop(release);
        let _ = sys::reap(Some(maker), true);
        Some(Template { namespace: namespace?.into(), folders })
    }
}
