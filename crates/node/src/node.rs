//! The agent as a whole: which Pods it runs, and how it begins and ends.
//!
//! ```text
//!   watch of this node's Pods ─▶ one worker for each ─▶ runtime
//!                                    │                    │
//!   API ◀── status, removal, events ─┴──── facts ◀────────┘
//! ```

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use crate::address::Addresses;
use crate::calls::{CallError, Calls, PodRef, awaits_removal};
use crate::feed::{News, feed};
use crate::hosts_files::HostsFiles;
use crate::logs::Logs;
use crate::options::Options;
use crate::path;
use crate::registration;
use crate::runtime::Runtime;
use crate::worker::{self, Finish, Shared, Word, remove_folder};

/// How much longer than their grace the Pods of a node that ends may take.
const SHUTDOWN_SLACK: Duration = Duration::from_secs(10);

/// How often a removal that came to nothing is tried again, and after which pause.
const REMOVALS: u32 = 5;
const REMOVAL_PAUSE: Duration = Duration::from_secs(2);

/// A node that runs the Pods that are bound to it. When it is dropped everything it runs is ended
/// at once, and nothing is reported.
#[derive(Debug)]
pub struct Node {
    logs: Logs,
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
        let logs = Logs::new(options.data.join("logs"), options.logs, options.clock.clone());
        let shared = Arc::new(Shared {
            calls,
            runtime,
            logs: logs.clone(),
            hosts: HostsFiles::default(),
            addresses: Mutex::new(Addresses::new(options.addresses)),
            starts: Semaphore::new(options.starts_at_once.max(1)),
            own_user: rustix::process::getuid().as_raw(),
            has_said_images: AtomicBool::new(false),
            options,
        });
        let (stop, stopped) = oneshot::channel();
        let agent = tokio::spawn(Agent::new(shared).run(stopped));
        Node { logs, stop: Some(stop), agent }
    }

    /// The logs of its containers.
    pub fn logs(&self) -> Logs {
        self.logs.clone()
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
    awaits_removal: bool,
    is_gone: bool,
}

struct Agent {
    shared: Arc<Shared>,
    pods: HashMap<String, Entry>,
    workers: JoinSet<(String, Finish)>,
    tasks: JoinSet<()>,
    /// The Pods that a list has not named yet.
    missing: HashSet<String>,
    is_first_list: bool,
    /// The Pods of which an earlier process had left something running.
    leftovers: HashSet<String>,
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
        let name = self.shared.runtime.name();
        let node = path::pods_of_node(&options.node_name);
        let mut news = feed::<Pod>(calls.client(), node);
        self.tasks.spawn(self.shared.hosts.clone().follow(calls.clone()));
        let mut registration = JoinSet::new();
        registration.spawn(registration::keep(calls.clone(), options.clone(), name));
        let grace = loop {
            tokio::select! {
                grace = &mut stopped => break grace.unwrap_or_default(),
                Some(heard) = news.next() => self.hear(heard),
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
        let said = registration::say_status(&calls, &options, name, self.began, false).await;
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
        if let Some(entry) = self.pods.get_mut(&uid) {
            let is_new = is_awaited && !entry.awaits_removal;
            entry.awaits_removal = is_awaited;
            match &entry.worker {
                // A worker that has just ended does not hear it: `take` looks then.
                Some(worker) => drop(worker.send(Word::Pod(pod))),
                None if is_new => self.remove(target),
                None => {}
            }
            return;
        }
        let status = pod.status.as_ref();
        let phase = status.and_then(|status| status.phase.as_deref()).unwrap_or("");
        let has_ended = matches!(phase, "Succeeded" | "Failed");
        let mut worker = None;
        if has_ended {
            if is_awaited {
                self.remove(target.clone());
            }
        } else {
            let has_begun = status.is_some_and(|status| {
                let has = |list: &Option<Vec<_>>| list.as_ref().is_some_and(|it| !it.is_empty());
                status.start_time.is_some()
                    || has(&status.container_statuses)
                    || has(&status.init_container_statuses)
            });
            // One that was started and not reported yet has been started all the same.
            let has_begun = has_begun || self.leftovers.contains(&uid);
            let (sender, inbox) = mpsc::unbounded_channel();
            worker = Some(sender);
            let (shared, id) = (self.shared.clone(), uid.clone());
            self.workers
                .spawn(async move { (id, worker::run(shared, pod, inbox, has_begun).await) });
        }
        self.pods.insert(uid, Entry { target, worker, awaits_removal: is_awaited, is_gone: false });
    }

    /// A Pod has left the API.
    fn lose(&mut self, uid: &str) {
        let Some(entry) = self.pods.get_mut(uid) else { return };
        match &entry.worker {
            Some(worker) => {
                entry.is_gone = true;
                let _ = worker.send(Word::Gone);
            }
            None => self.forget(uid),
        }
    }

    fn forget(&mut self, uid: &str) {
        if let Some(entry) = self.pods.remove(uid) {
            let logs = self.shared.logs.clone();
            self.tasks.spawn_blocking(move || logs.remove(&entry.target));
        }
    }

    /// A worker has ended.
    fn take(&mut self, ended: Result<(String, Finish), tokio::task::JoinError>) {
        let (uid, finish) = match ended {
            Ok(ended) => ended,
            // Nothing of it is left in the table but its name; at the next start it is reported.
            Err(error) => return tracing::error!(%error, "a worker of a Pod has failed"),
        };
        let Some(entry) = self.pods.get_mut(&uid) else { return };
        entry.worker = None;
        let (target, is_awaited) = (entry.target.clone(), entry.awaits_removal);
        match finish {
            _ if entry.is_gone => self.forget(&uid),
            // It was deleted when its worker did not listen any more.
            Finish::Ended if is_awaited => self.remove(target),
            Finish::Ended | Finish::Removed | Finish::Gone | Finish::Untouched => {}
        }
    }

    /// Removes a Pod that has ended from the API. Where its worker has done so, or a finalizer
    /// keeps it, this changes nothing.
    fn remove(&mut self, target: PodRef) {
        let calls = self.shared.calls.clone();
        self.tasks.spawn(async move {
            for _ in 0..REMOVALS {
                match calls.remove(&target).await {
                    Ok(()) | Err(CallError::NotFound) => return,
                    Err(error) => {
                        tracing::debug!(pod = target.name, %error, "cannot remove a Pod");
                    }
                }
                tokio::time::sleep(REMOVAL_PAUSE).await;
            }
        });
    }

    /// Removes what an earlier process has kept for Pods that are gone.
    fn sweep(&mut self) {
        let kept: HashSet<String> = self.pods.keys().cloned().collect();
        let shared = self.shared.clone();
        self.tasks.spawn_blocking(move || {
            shared.logs.keep_only(|uid| kept.contains(uid));
            let folders = std::fs::read_dir(shared.options.data.join("pods"));
            for entry in folders.into_iter().flatten().flatten() {
                let name = entry.file_name();
                if name.to_str().is_some_and(|uid| !kept.contains(uid)) {
                    remove_folder(&entry.path());
                }
            }
        });
    }
}
