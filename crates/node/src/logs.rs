//! The logs of containers: who writes them, where they are, and who reads them.
//!
//! ```text
//!   container ─pipe─▶ pump ─lines─▶ <logs>/<namespace>_<pod>_<uid>/<container>/<run>.<part>.log
//!                                          └──▶ reader (follows across parts, until the end)
//! ```
//!
//! A part that is full is followed by another, and the oldest goes when those who read have come past
//! it. Nothing is ever renamed, so a reader that has a part open reads it to its end. A container that writes nothing has no
//! file.

mod line;
mod parts;
mod pump;
mod reader;
mod readers;
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

use self::parts::{Parts, Removal};
pub(crate) use self::pump::{Inlets, Pump};
use self::reader::Reader;
pub use self::readers::LogReaders;
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
    /// The parts of runs that were written or read, by the folders of their Pods.
    parts: Mutex<HashMap<PathBuf, Vec<Arc<Parts>>>>,
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
    parts: Arc<Parts>,
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

    /// Logs in this folder.
    pub(crate) fn new(folder: PathBuf, rotation: LogRotation, clock: Clock) -> Self {
        let (parts, live) = (Mutex::default(), Mutex::default());
        let shared = Shared { folder, rotation, clock, parts, live };
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
            Some(run) => Some(run.parts.run),
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
        let live = live.filter(|run| run.parts.run == number);
        let (parts, progress) = match live {
            Some(run) => (run.parts, Some(run.progress)),
            None => (self.parts_of(&target, container, number), None),
        };
        let LogOptions { since, tail_lines, limit_bytes, .. } = options;
        let is_whole = since.is_none() && tail_lines.is_none() && limit_bytes.is_none();
        let reader = Reader::new(parts.read(is_whole), options, progress);
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

    /// A new run of a container: where its output goes. `is_awaited` says that somebody will read it
    /// from its beginning, who is waited for as if he had come already. Its last run but one is
    /// forgotten. This blocks.
    pub(crate) fn begin(
        &self,
        pod: &PodRef,
        container: &str,
        run: u32,
        is_awaited: bool,
    ) -> Writer {
        let of_pod = self.folder_of(pod);
        let folder = of_pod.join(container);
        let rotation = self.shared.rotation;
        let parts = Parts::begin(folder.clone(), run, rotation, is_awaited);
        let mut known = self.parts();
        let of_pod = known.entry(of_pod).or_default();
        let is_old = |it: &mut Arc<Parts>| it.folder == folder && it.run + 2 <= run;
        // Each of them is to know that it is removed.
        let old = of_pod.extract_if(.., is_old);
        let is_read = old.filter(|it| it.outlives(Removal::Alone)).count() > 0;
        of_pod.push(parts.clone());
        drop(known);
        if let Some(old) = run.checked_sub(2).filter(|_| !is_read) {
            remove_run(&folder, old);
        }
        let (progress, seen) = watch::channel(Progress::default());
        let mut live = self.live();
        let of_pod = live.entry(pod.uid.clone()).or_default();
        of_pod.insert(container.to_owned(), Run { parts: parts.clone(), progress: seen });
        Writer::new(parts, rotation, progress)
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

    /// A Pod is gone, and so are its logs, once those who read them have left.
    pub(crate) fn remove(&self, pod: &PodRef) {
        self.finish(&pod.uid);
        let folder = self.folder_of(pod);
        let mut read = self.parts().remove(&folder).unwrap_or_default();
        read.retain(|parts| parts.outlives(Removal::WithPod));
        match read.is_empty() {
            true => remove_folder(&folder),
            false => remove_unread(&folder, &read),
        }
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

    /// The parts of a run that is not written to any more.
    fn parts_of(&self, pod: &PodRef, container: &str, run: u32) -> Arc<Parts> {
        let of_pod = self.folder_of(pod);
        let folder = of_pod.join(container);
        let mut known = self.parts();
        let of_pod = known.entry(of_pod).or_default();
        if let Some(parts) = of_pod.iter().find(|it| it.folder == folder && it.run == run) {
            return parts.clone();
        }
        let parts = Parts::left(folder, run);
        of_pod.push(parts.clone());
        parts
    }

    fn parts(&self) -> MutexGuard<'_, HashMap<PathBuf, Vec<Arc<Parts>>>> {
        self.shared.parts.lock().expect("nobody panics with it")
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

/// Removes the logs of a Pod but for the runs that somebody reads. Whoever reads them removes them at last.
fn remove_unread(folder: &Path, read: &[Arc<Parts>]) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let container = entry.path();
        for file in fs::read_dir(&container).into_iter().flatten().flatten() {
            let name = file.file_name();
            let run = name.to_str().and_then(|name| name.split_once('.')?.0.parse().ok());
            let is_read = |it: &Arc<Parts>| it.folder == container && Some(it.run) == run;
            if !read.iter().any(is_read) {
                let _ = fs::remove_file(file.path());
            }
        }
        // It stays as long as there is something in it.
        let _ = fs::remove_dir(&container);
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
