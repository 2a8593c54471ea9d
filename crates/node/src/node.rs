//! The agent as a whole: which Pods it runs, and how it begins and ends.
//!
//! ```text
//!   watch of this node's Pods ─▶ one worker for each ─▶ runtime
//!                                    │                    │
//!   API ◀── status, removal, events ─┴──── facts ◀────────┘
//! ```

use std::collections::{HashMap, HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::{JoinError, JoinHandle, JoinSet};

use crate::address::Addresses;
use crate::begun::{self, Begun};
use crate::calls::{CallError, Calls, PodRef, awaits_removal};
use crate::consoles::Consoles;
use crate::feed::{News, feed};
use crate::hosts_files::HostsFiles;
use crate::logs::{self, KeptLogs, Logs};
use crate::options::Options;
use crate::path;
use crate::registration;
use crate::runtime::Runtime;
use crate::spares::{self, Spares};
use crate::status;
use crate::worker::{self, Finish, PASSING_STATUSES_AT_ONCE, Past, Shared, Word};

/// How much longer than their grace the Pods of a node that ends may take.
const SHUTDOWN_SLACK: Duration = Duration::from_secs(10);

/// How soon a removal that came to nothing is tried again, and how rarely at last: until it is
/// done, as nobody else does it.
const FIRST_REMOVAL_PAUSE: Duration = Duration::from_secs(1);
const LAST_REMOVAL_PAUSE: Duration = Duration::from_secs(60);

/// A node that runs the Pods that are bound to it. When it is dropped everything it runs is ended
/// at once, and nothing is reported.
#[derive(Debug)]
pub struct Node {
    logs: Logs,
    consoles: Consoles,
    stop: Option<oneshot::Sender<Duration>>,
    agent: JoinHandle<()>,
}

impl Node {
    /// Starts a node.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with time and IO enabled.
    pub fn start(client: Client, runtime: Arc<dyn Runtime>, options: Options) -> Self {
        let calls = Calls::new(client);
        let (folder, clock) = (options.data.join(logs::FOLDER), options.clock.clone());
        let logs = Logs::new(folder, options.logs, clock);
        let consoles = Consoles::default();
        let shared = Arc::new(Shared {
            calls,
            runtime,
            logs: logs.clone(),
            consoles: consoles.clone(),
            hosts: HostsFiles::default(),
            addresses: Mutex::new(Addresses::claim(options.addresses, &options.data)),
            starts: Semaphore::new(options.starts_at_once.max(1)),
            passing: Arc::new(Semaphore::new(PASSING_STATUSES_AT_ONCE)),
            spares: Spares::new(options.data.join("spare")),
            own_user: rustix::process::getuid().as_raw(),
            has_said_images: AtomicBool::new(false),
            options,
        });
        let (stop, stopped) = oneshot::channel();
        let agent = tokio::spawn(Agent::new(shared).run(stopped));
        Node { logs, consoles, stop: Some(stop), agent }
    }

    /// The logs of its containers.
    pub fn logs(&self) -> Logs {
        self.logs.clone()
    }

    /// Its containers, for those who come to one.
    pub fn consoles(&self) -> Consoles {
        self.consoles.clone()
    }

    /// Ends all Pods, within this time and their own grace, reports that, and says that the node
    /// is not ready.
    pub async fn shutdown(mut self, grace: Duration) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(grace);
        }
        if let Err(error) = (&mut self.agent).await {
            tracing::warn!(%error, "the node did not end as it should");
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.agent.abort();
    }
}

/// What is known of a Pod.
#[derive(Debug)]
struct Entry {
    target: PodRef,
    /// Who runs it, until it has ended.
    worker: Option<mpsc::UnboundedSender<Word>>,
    /// How it was seen last, until it has ended.
    pod: Option<Arc<Pod>>,
    /// Whether a worker has failed on it.
    has_broken: bool,
    has_ended: bool,
    has_succeeded: bool,
    /// Whether somebody removed it before it had ended.
    was_stopped: bool,
    awaits_removal: bool,
    is_gone: bool,
}

struct Agent {
    shared: Arc<Shared>,
    pods: HashMap<String, Entry>,
    /// What comes of them, or what they said when they failed.
    workers: JoinSet<(String, Result<Finish, String>)>,
    tasks: JoinSet<()>,
    /// The Pods that a list has not named yet.
    missing: HashSet<String>,
    is_first_list: bool,
    /// The Pods of which an earlier process had left something running.
    leftovers: HashSet<String>,
    /// What an earlier process has kept of Pods: all that have a folder.
    kept: Begun,
    /// Whether the machine has crashed, so that more may have begun than is known.
    is_distrusted: bool,
    /// The logs that it has left.
    kept_logs: KeptLogs,
    /// The Pods that are gone and have left their logs, the oldest first.
    stopped: VecDeque<PodRef>,
    began: Timestamp,
}

impl Agent {
    fn new(shared: Arc<Shared>) -> Self {
        let began = shared.options.clock.now();
        Agent {
            shared,
            pods: HashMap::new(),
            workers: JoinSet::new(),
            tasks: JoinSet::new(),
            missing: HashSet::new(),
            is_first_list: true,
            leftovers: HashSet::new(),
            kept: Begun::new(),
            is_distrusted: false,
            kept_logs: KeptLogs::default(),
            stopped: VecDeque::new(),
            began,
        }
    }

    async fn run(mut self, mut stopped: oneshot::Receiver<Duration>) {
        match self.shared.runtime.end_leftovers().await {
            Ok(found) if found.is_empty() => {}
            Ok(found) => {
                tracing::info!(pods = found.len(), "ended what an earlier process left");
                self.leftovers.extend(found);
            }
            Err(error) => {
                tracing::warn!(%error, "cannot tell whether an earlier process left anything");
            }
        }
        let (calls, options) = (self.shared.calls.clone(), self.shared.options.clone());
        // Before anything is heard of Pods: whatever comes later is their own.
        let (folder, logs) = (self.shared.pods_folder(), self.shared.logs.clone());
        let shared = self.shared.clone();
        let reading = tokio::task::spawn_blocking(move || {
            shared.spares.clear();
            (begun::read(&folder), logs.kept())
        });
        (self.kept, self.kept_logs) = reading.await.expect("reading does not panic");
        let name = self.shared.runtime.name();
        let has_crashed = tokio::select! {
            has_crashed = registration::has_machine_crashed(&calls, &options) => has_crashed,
            _ = &mut stopped => return,
        };
        self.is_distrusted = has_crashed;
        // Nothing begins before the API knows that this node runs, and on which start of the machine.
        // Once it knows, nobody can tell that the machine has crashed: then Pods are to be looked at,
        // too.
        let beginning = async {
            if has_crashed {
                options.gate.opened().await;
            }
            let said = registration::say_status(&calls, &options, name, self.began, true).await;
            said.is_ok().then(|| options.clock.now())
        };
        let said_at = tokio::select! {
            said_at = beginning => said_at,
            _ = &mut stopped => {
                if !has_crashed {
                    self.say_unready(&calls, &options).await;
                }
                return;
            }
        };
        let node = path::pods_of_node(&options.node_name);
        let mut news = feed::<Pod>(calls.client(), node);
        self.tasks.spawn(self.shared.hosts.clone().follow(calls.clone()));
        let mut registration = JoinSet::new();
        let keeping = registration::keep(calls.clone(), options.clone(), name, self.began, said_at);
        registration.spawn(keeping);
        let mut gate = pin!(options.gate.opened());
        let mut is_open = false;
        let grace = loop {
            tokio::select! {
                grace = &mut stopped => break grace.unwrap_or_default(),
                () = &mut gate, if !is_open => is_open = true,
                Some(heard) = news.next(), if is_open => self.hear(heard),
                Some(ended) = self.workers.join_next() => self.take(ended),
                Some(_) = self.tasks.join_next() => {}
            }
        };
        for entry in self.pods.values() {
            if let Some(worker) = &entry.worker {
                let _ = worker.send(Word::Shutdown(grace));
            }
        }
        let all = async { while self.workers.join_next().await.is_some() {} };
        if tokio::time::timeout(grace + SHUTDOWN_SLACK, all).await.is_err() {
            tracing::warn!("some Pods did not end in time; they are reported at the next start");
        }
        registration.shutdown().await;
        let shared = self.shared.clone();
        let closing = tokio::task::spawn_blocking(move || shared.spares.close());
        closing.await.expect("closing does not panic");
        self.say_unready(&calls, &options).await;
    }

    async fn say_unready(&self, calls: &Calls, options: &Options) {
        let name = self.shared.runtime.name();
        let said = registration::say_status(calls, options, name, self.began, false).await;
        if let Err(error) = said {
            tracing::warn!(%error, "cannot say that the node is not ready");
        }
    }

    fn hear(&mut self, news: News<Pod>) {
        match news {
            News::Began => self.missing = self.pods.keys().cloned().collect(),
            News::Seen(pod) => self.see(Arc::new(*pod)),
            News::Gone(pod) => self.lose(pod.metadata.uid.as_deref().unwrap_or("")),
            News::Complete => {
                for uid in std::mem::take(&mut self.missing) {
                    self.lose(&uid);
                }
                if std::mem::take(&mut self.is_first_list) {
                    self.sweep();
                }
            }
        }
    }

    fn see(&mut self, pod: Arc<Pod>) {
        let target = PodRef::of(&pod);
        let uid = target.uid.clone();
        self.missing.remove(&uid);
        let is_awaited = awaits_removal(&pod);
        let status = pod.status.as_ref();
        let phase = status.and_then(|status| status.phase.as_deref()).unwrap_or("");
        let has_ended = matches!(phase, "Succeeded" | "Failed");
        let has_succeeded = phase == "Succeeded";
        let was_stopped = pod.metadata.deletion_timestamp.is_some() && !has_ended;
        if let Some(entry) = self.pods.get_mut(&uid) {
            (entry.has_ended, entry.has_succeeded) = (has_ended, has_succeeded);
            entry.was_stopped |= was_stopped;
            let is_new = is_awaited && !entry.awaits_removal;
            entry.awaits_removal = is_awaited;
            match &entry.worker {
                // A worker that has just ended does not hear it: `take` looks then.
                Some(worker) => {
                    entry.pod = Some(pod.clone());
                    let _ = worker.send(Word::Pod(pod));
                }
                None if is_new => self.remove(target),
                None => {}
            }
            return;
        }
        let mut entry = Entry {
            target: target.clone(),
            worker: None,
            pod: None,
            has_broken: false,
            has_ended,
            has_succeeded,
            was_stopped,
            awaits_removal: is_awaited,
            is_gone: false,
        };
        if !has_ended {
            let past = self.past_of(&pod, &uid);
            entry.worker = Some(self.employ(&uid, pod.clone(), past));
            entry.pod = Some(pod);
        } else if is_awaited {
            self.remove(target);
        }
        self.pods.insert(uid, entry);
    }

    /// Starts a worker.
    fn employ(&mut self, uid: &str, pod: Arc<Pod>, past: Past) -> mpsc::UnboundedSender<Word> {
        let (words, inbox) = mpsc::unbounded_channel();
        let (shared, uid) = (self.shared.clone(), uid.to_owned());
        self.workers.spawn(async move {
            // What it holds is dropped when it fails, and with it what runs.
            let work = AssertUnwindSafe(worker::run(shared, pod, inbox, past)).catch_unwind();
            (uid, work.await.map_err(|panic| said_by(&*panic)))
        });
        words
    }

    /// What an earlier process has done for a Pod. One that was begun and not reported yet has
    /// begun all the same.
    fn past_of(&mut self, pod: &Pod, uid: &str) -> Past {
        let kept = self.kept.remove(uid);
        let is_kept = kept.is_some();
        let begun = kept.unwrap_or_default();
        let is_left = self.leftovers.contains(uid);
        // Later Pods have had no other node process.
        let is_unknown = self.is_distrusted && self.is_first_list;
        if !begun.is_empty() || is_left || is_unknown || has_begun(pod) {
            Past::Begun(begun)
        } else if is_kept {
            Past::Prepared
        } else {
            Past::None
        }
    }

    /// A Pod has left the API.
    fn lose(&mut self, uid: &str) {
        let Some(entry) = self.pods.get_mut(uid) else { return };
        match &entry.worker {
            Some(worker) => {
                entry.is_gone = true;
                entry.was_stopped |= !entry.has_ended;
                let _ = worker.send(Word::Gone);
            }
            None => self.forget(uid),
        }
    }

    fn forget(&mut self, uid: &str) {
        let Some(entry) = self.pods.remove(uid) else { return };
        let logs = self.shared.logs.clone();
        let target = if entry.was_stopped && !entry.has_succeeded {
            logs.finish(uid);
            self.stopped.push_back(entry.target);
            let is_too_many = self.stopped.len() > self.shared.options.stopped_logs;
            is_too_many.then(|| self.stopped.pop_front()).flatten()
        } else {
            Some(entry.target)
        };
        if let Some(target) = target {
            self.tasks.spawn_blocking(move || logs.remove(&target));
        }
    }

    /// A worker has ended.
    fn take(&mut self, ended: Result<(String, Result<Finish, String>), JoinError>) {
        let (uid, finish) = match ended {
            Ok((uid, Ok(finish))) => (uid, finish),
            Ok((uid, Err(message))) => return self.replace(&uid, &message),
            Err(error) => return tracing::error!(%error, "a worker of a Pod has not ended well"),
        };
        let Some(entry) = self.pods.get_mut(&uid) else { return };
        (entry.worker, entry.pod) = (None, None);
        let (target, is_awaited) = (entry.target.clone(), entry.awaits_removal);
        match finish {
            _ if entry.is_gone => self.forget(&uid),
            // It was deleted when its worker did not listen any more.
            Finish::Ended if is_awaited => self.remove(target),
            Finish::Ended | Finish::Removed | Finish::Gone => {}
            Finish::Untouched | Finish::Unreported => {}
        }
    }

    /// A worker has failed: another one reports that, and clears up after it. If that fails, too,
    /// the next start of the node reports it.
    fn replace(&mut self, uid: &str, message: &str) {
        let Some(entry) = self.pods.get_mut(uid) else { return };
        let PodRef { namespace, name, .. } = &entry.target;
        tracing::error!(namespace, name, message, "what runs a Pod has failed");
        entry.worker = None;
        let is_first = !std::mem::replace(&mut entry.has_broken, true);
        let Some(pod) = entry.pod.take().filter(|_| is_first) else { return };
        let is_gone = entry.is_gone;
        let past = Past::Failed(format!("what runs the Pod on this node has failed: {message}"));
        let words = self.employ(uid, pod, past);
        if is_gone {
            let _ = words.send(Word::Gone);
        }
        if let Some(entry) = self.pods.get_mut(uid) {
            entry.worker = Some(words);
        }
    }

    /// Removes a Pod that has ended from the API. Where its worker has done so, or a finalizer
    /// keeps it, this changes nothing.
    fn remove(&mut self, target: PodRef) {
        let calls = self.shared.calls.clone();
        self.tasks.spawn(async move {
            let mut pause = FIRST_REMOVAL_PAUSE;
            loop {
                let PodRef { namespace, name, .. } = &target;
                match calls.remove(&target).await {
                    Ok(()) | Err(CallError::NotFound) => return,
                    Err(_) if calls.is_gone(&target).await => return,
                    Err(error) if pause == FIRST_REMOVAL_PAUSE => {
                        tracing::warn!(namespace, name, %error, "cannot remove a Pod yet");
                    }
                    Err(error) => {
                        tracing::debug!(namespace, name, %error, "cannot remove a Pod yet");
                    }
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LAST_REMOVAL_PAUSE);
            }
        });
    }

    /// Removes what an earlier process has kept for Pods that are gone, and but for their logs of
    /// those that have ended. Only what was there at the start is looked at: a Pod that comes
    /// meanwhile makes its own.
    fn sweep(&mut self) {
        let known: HashSet<String> = self.pods.keys().cloned().collect();
        let (kept, shared) = (std::mem::take(&mut self.kept), self.shared.clone());
        let logs = std::mem::take(&mut self.kept_logs);
        self.tasks.spawn_blocking(move || {
            for uid in kept.into_keys() {
                spares::remove(&shared.pod_folder(&uid));
            }
            logs.remove_all_but(|uid| known.contains(uid));
        });
    }
}

/// What somebody said who panicked.
fn said_by(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("nobody knows why").to_owned()
}

/// Whether a Pod's status says that one of its containers has begun.
fn has_begun(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let lists = status.map(|it| [&it.container_statuses, &it.init_container_statuses]);
    let mut all = lists.into_iter().flatten().flatten().flatten();
    all.any(status::tells_of_a_run)
}
