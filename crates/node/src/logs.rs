//! The logs of containers: who writes them, where they are, and who reads them.
//!
//! ```text
//!   container ─pipe─▶ pump ─lines─▶ <logs>/<namespace>_<pod>_<uid>/<container>/<run>.<part>.log
//!                                          └──▶ reader (follows across parts, until the end)
//! ```
//!
//! A part that is full is followed by another, and the oldest goes. Nothing is ever renamed, so
//! a reader that has a part open reads it to its end. A container that writes nothing has no
//! file.

mod line;
mod pump;
mod reader;
mod tail;
mod writer;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use futures_util::{Stream, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use tokio::sync::watch;

pub(crate) use self::pump::{Inlets, Pump};
use self::reader::Reader;
pub(crate) use self::writer::Writer;
use crate::calls::PodRef;
use crate::clock::Clock;

/// The folder of the logs within that of the node.
pub(crate) const FOLDER: &str = "logs";

/// How much of a container's output is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRotation {
    /// How large a part grows.
    pub part_bytes: u64,
    /// How many parts there are.
    pub parts: u32,
}

impl Default for LogRotation {
    /// Five parts of 10 MiB, as a kubelet.
    fn default() -> Self {
        LogRotation { part_bytes: 10 << 20, parts: 5 }
    }
}

/// Which part of which log is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Of which container.
    pub container: String,
    /// Whether to go on as the log grows, until the container ends.
    pub follow: bool,
    /// Whether of the container's run before this one.
    pub previous: bool,
    /// Of this run of the container, the first of which is 0. The last two are kept.
    pub run: Option<u32>,
    /// Only what was written since then.
    pub since: Option<Timestamp>,
    /// Whether each line starts with its time.
    pub timestamps: bool,
    /// The last so many lines.
    pub tail_lines: Option<u64>,
    /// The first so many bytes.
    pub limit_bytes: Option<u64>,
    /// Only of one of the two streams.
    pub stream: LogStream,
}

/// Which output of a container is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogStream {
    /// Both.
    #[default]
    All,
    /// The standard output.
    Stdout,
    /// The standard error.
    Stderr,
}

/// The text of a log, piece by piece.
pub type LogText = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// The logs of this node's containers.
#[derive(Clone, Debug)]
pub struct Logs {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    rotation: LogRotation,
    clock: Clock,
    /// The runs of Pods that have not ended, by uid and container.
    live: Mutex<HashMap<String, HashMap<String, Run>>>,
}

/// Logs that were there at some time. Those of Pods that have come since are not among them.
#[derive(Debug, Default)]
pub(crate) struct KeptLogs {
    /// The uids of their Pods, and where they are.
    folders: Vec<(String, PathBuf)>,
}

impl KeptLogs {
    /// Removes them but for those of these Pods.
    pub(crate) fn remove_all_but(self, is_kept: impl Fn(&str) -> bool) {
        for (_, folder) in self.folders.into_iter().filter(|(uid, _)| !is_kept(uid)) {
            remove_folder(&folder);
        }
    }
}

/// The newest run of a container, as its readers see it.
#[derive(Clone, Debug)]
struct Run {
    number: u32,
    progress: watch::Receiver<Progress>,
}

/// How far a log is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    /// How many bytes were written to all parts.
    bytes: u64,
    /// Which part is written to.
    part: u32,
    is_over: bool,
}

impl Logs {
    /// The logs that a node has left in its folder, to be read while no node uses it.
    pub fn left_in(data: &Path) -> Self {
        let clock = Clock::new(Timestamp::now);
        Self::new(data.join(FOLDER), LogRotation::default(), clock)
    }

    pub(crate) fn new(folder: PathBuf, rotation: LogRotation, clock: Clock) -> Self {
        let shared = Shared { folder, rotation, clock, live: Mutex::default() };
        Logs { shared: Arc::new(shared) }
    }

    /// The log of a container of a Pod of this node.
    ///
    /// # Errors
    ///
    /// A sentence for whoever asks: the container has not been started yet, or its log is gone.
    pub fn open(&self, pod: &Pod, options: &LogOptions) -> Result<LogText, String> {
        let target = PodRef::of(pod);
        let name = &target.name;
        let container = options.container.as_str();
        let live = self.live().get(&target.uid).and_then(|runs| runs.get(container)).cloned();
        let newest = match &live {
            Some(run) => Some(run.number),
            None => status_of(pod, container).and_then(newest_run),
        };
        let Some(newest) = newest else {
            let reason = status_of(pod, container).and_then(waiting_reason);
            let reason = reason.unwrap_or("ContainerCreating");
            return Err(format!(
                "container \"{container}\" in pod \"{name}\" is waiting to start: {reason}"
            ));
        };
        // The last that has ended and is followed by another: the newest itself, as long as the next
        // one waits.
        let is_followed = status_of(pod, container).is_some_and(waits_to_run_again)
            && status_of(pod, container).and_then(newest_run) == Some(newest);
        let number = match options.run {
            Some(run) => run.min(newest),
            None if !options.previous || is_followed => newest,
            None => newest.checked_sub(1).ok_or_else(|| {
                format!("previous terminated container \"{container}\" in pod \"{name}\" not found")
            })?,
        };
        let progress = live.filter(|run| run.number == number).map(|run| run.progress);
        let folder = self.folder_of(&target).join(container);
        let reader = Reader::new(folder, number, options, progress);
        Ok(Box::pin(stream::unfold(reader, Reader::next)))
    }

    /// The last lines of a container's newest run that wrote anything, for Pods whose objects are
    /// gone; empty if there is nothing left of them.
    pub fn last_words(&self, namespace: &str, pod: &str, uid: &str, container: &str) -> String {
        let target =
            PodRef { namespace: namespace.to_owned(), name: pod.to_owned(), uid: uid.to_owned() };
        let folder = self.folder_of(&target).join(container);
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let runs = entries.filter_map(|entry| {
            let name = entry.file_name();
            name.to_str()?.split_once('.')?.0.parse().ok()
        });
        runs.max().map_or(String::new(), |run| tail::excerpt(&folder, run))
    }

    /// A new run of a container: where its output goes. Its last run but one is forgotten. This
    /// blocks.
    pub(crate) fn begin(&self, pod: &PodRef, container: &str, run: u32) -> Writer {
        let folder = self.folder_of(pod).join(container);
        if let Some(old) = run.checked_sub(2) {
            remove_run(&folder, old);
        }
        let (progress, seen) = watch::channel(Progress::default());
        let mut live = self.live();
        let of_pod = live.entry(pod.uid.clone()).or_default();
        of_pod.insert(container.to_owned(), Run { number: run, progress: seen });
        Writer::new(folder, run, self.shared.rotation, progress)
    }

    /// The last lines of a run, for a termination message.
    pub(crate) fn tail(&self, pod: &PodRef, container: &str, run: u32) -> String {
        tail::excerpt(&self.folder_of(pod).join(container), run)
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// A Pod has ended: nothing is written any more.
    pub(crate) fn finish(&self, uid: &str) {
        self.live().remove(uid);
    }

    /// A Pod is gone, and so are its logs.
    pub(crate) fn remove(&self, pod: &PodRef) {
        self.finish(&pod.uid);
        remove_folder(&self.folder_of(pod));
    }

    /// The logs that are there now.
    pub(crate) fn kept(&self) -> KeptLogs {
        let entries = fs::read_dir(&self.shared.folder).into_iter().flatten().flatten();
        let of_pods = entries.filter_map(|entry| {
            let name = entry.file_name();
            let (_, uid) = name.to_str()?.rsplit_once('_')?;
            Some((uid.to_owned(), entry.path()))
        });
        KeptLogs { folders: of_pods.collect() }
    }

    fn folder_of(&self, pod: &PodRef) -> PathBuf {
        let PodRef { namespace, name, uid } = pod;
        self.shared.folder.join(format!("{namespace}_{name}_{uid}"))
    }

    fn live(&self) -> MutexGuard<'_, HashMap<String, HashMap<String, Run>>> {
        self.shared.live.lock().expect("nobody panics with it")
    }
}

/// The file of a part.
fn part_path(folder: &Path, run: u32, part: u32) -> PathBuf {
    folder.join(format!("{run}.{part}.log"))
}

/// The parts of a run that are there, the oldest first.
fn parts_of(folder: &Path, run: u32) -> Vec<u32> {
    let mut parts: Vec<u32> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let (of_run, part) = name.to_str()?.strip_suffix(".log")?.split_once('.')?;
            (of_run.parse() == Ok(run)).then(|| part.parse().ok())?
        })
        .collect();
    parts.sort_unstable();
    parts
}

fn remove_run(folder: &Path, run: u32) {
    for part in parts_of(folder, run) {
        let path = part_path(folder, run, part);
        if let Err(error) = fs::remove_file(&path) {
            tracing::debug!(path = %path.display(), %error, "cannot remove an old log");
        }
    }
}

fn remove_folder(path: &Path) {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "cannot remove the logs of a Pod");
        }
        _ => {}
    }
}

fn status_of<'p>(pod: &'p Pod, container: &str) -> Option<&'p ContainerStatus> {
    let status = pod.status.as_ref()?;
    let main = status.container_statuses.iter().flatten();
    let mut all = main.chain(status.init_container_statuses.iter().flatten());
    all.find(|status| status.name == container)
}

/// The newest run that a status tells of.
fn newest_run(status: &ContainerStatus) -> Option<u32> {
    let count = u32::try_from(status.restart_count).unwrap_or(0);
    let state = status.state.as_ref()?;
    let has_run = state.running.is_some() || state.terminated.is_some();
    let has_ended_before = status.last_state.as_ref().is_some_and(|it| it.terminated.is_some());
    (has_run || has_ended_before).then_some(count)
}

/// Whether a container has ended, and its next run has not begun: what it says of itself is of the run
/// that ended last.
fn waits_to_run_again(status: &ContainerStatus) -> bool {
    let last = status.last_state.as_ref().and_then(|it| it.terminated.as_ref());
    let is_waiting = status.state.as_ref().is_some_and(|state| state.waiting.is_some());
    is_waiting && last.is_some_and(|last| last.container_id == status.container_id)
}

fn waiting_reason(status: &ContainerStatus) -> Option<&str> {
    status.state.as_ref()?.waiting.as_ref()?.reason.as_deref()
}

#[cfg(test)]
mod tests;
