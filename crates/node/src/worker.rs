//! Runs one Pod: brings its life the facts, and carries out what it wishes. What decides is in
//! `life`; what is written about it, in `status`.

mod carry;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use tokio::sync::{OwnedSemaphorePermit, RwLock, Semaphore, mpsc};

use crate::address::Addresses;
use crate::backoff::later;
use crate::begun::{self, Runs};
use crate::calls::{CallError, Calls, Head, PodRef, awaits_removal};
use crate::console::Console;
use crate::consoles::Consoles;
use crate::events::Events;
use crate::hosts_files::HostsFiles;
use crate::life::{Fact, Life, Plan, Said, Wish, seconds};
use crate::logs::{Logs, Pump};
use crate::options::Options;
use crate::runtime::{Container, Runtime, Sandbox};
use crate::spares::{self, Spares};
use crate::status::{self, Reporter};
use crate::volumes::{self, Volumes};

/// The pauses between tries to write, doubled with each.
const FIRST_RETRY: Duration = Duration::from_millis(200);
const LONGEST_RETRY: Duration = Duration::from_secs(15);

/// How many statuses are written at once that are not the last of their Pods. It is enough to tell of
/// hundreds of Pods in a second where the API answers at once. Where it is busy they wait, and most
/// are never written: the last status of a Pod, which waits for nobody, says it all.
pub(crate) const PASSING_STATUSES_AT_ONCE: usize = 4;

/// How often a node that ends tries to report on a Pod: for three seconds.
const LAST_TRIES: u32 = 5;

/// What all Pods of a node share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) calls: Calls,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) options: Options,
    pub(crate) logs: Logs,
    pub(crate) consoles: Consoles,
    pub(crate) hosts: HostsFiles,
    pub(crate) spares: Spares,
    pub(crate) addresses: Mutex<Addresses>,
    pub(crate) starts: Semaphore,
    /// The places of statuses that are not the last of their Pods.
    pub(crate) passing: Arc<Semaphore>,
    pub(crate) own_user: u32,
    /// Whether it was said that images are not used.
    pub(crate) has_said_images: AtomicBool,
}

impl Shared {
    /// The folder of what is kept for Pods until they have ended.
    pub(crate) fn pods_folder(&self) -> PathBuf {
        self.options.data.join("pods")
    }

    /// The folder of a Pod's volumes.
    pub(crate) fn pod_folder(&self, uid: &str) -> PathBuf {
        self.pods_folder().join(uid)
    }

    fn now(&self) -> Timestamp {
        self.options.clock.now()
    }
}

/// What an earlier process has done for a Pod.
#[derive(Clone, Debug)]
pub(crate) enum Past {
    /// Nothing.
    None,
    /// It has made what containers share, and started none.
    Prepared,
    /// It has started containers, these among them.
    Begun(Runs),
    /// Not an earlier process but another worker of this one, which has failed so.
    Failed(String),
}

/// Something that a worker is told.
#[derive(Clone, Debug)]
pub(crate) enum Word {
    /// The Pod as the API has it.
    Pod(Arc<Pod>),
    /// The Pod has left the API.
    Gone,
    /// The node ends.
    Shutdown(Duration),
}

/// What came of a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// It has ended, and the API says so.
    Ended,
    /// The same, and it was removed.
    Removed,
    /// It has left the API.
    Gone,
    /// The node ended before any of its containers was begun: the next one starts it.
    Untouched,
    /// It has ended, and the node ends without having been able to say so: the next one will.
    Unreported,
}

/// The containers' shared part, while there is one.
type SharedSandbox = Arc<RwLock<Option<Box<dyn Sandbox>>>>;

/// What has been done.
#[derive(Debug)]
enum Done {
    Fact(Fact),
    Prepared(Volumes),
    Started {
        cell: usize,
        begun: Begun,
    },
    /// A status that is not the last one may be written now.
    MayWrite(OwnedSemaphorePermit),
    Written(Box<PodStatus>, Result<Head, CallError>),
    Removed(Result<(), CallError>),
    Told,
    Refreshed,
}

/// A container that was started.
#[derive(Debug)]
struct Begun {
    container: Arc<dyn Container>,
    pump: Pump,
    console: Console,
    /// The file for its last words.
    message: Option<PathBuf>,
}

/// One Pod.
#[derive(Debug)]
struct Worker {
    shared: Arc<Shared>,
    pod: Arc<Pod>,
    target: PodRef,
    life: Life,
    reporter: Reporter,
    events: Events,
    address: Option<Ipv4Addr>,
    sandbox: SharedSandbox,
    /// Whose turn it is to start: as with a kubelet, containers start in the order of the spec.
    turn: Arc<tokio::sync::Mutex<()>>,
    volumes: Arc<Volumes>,
    /// When to look again whether their content has changed; never while that is looked at.
    refresh_at: Option<Timestamp>,
    /// Whether there is a folder for them: once it is removed nothing may be made in it.
    folder: Arc<Mutex<FolderIs>>,
    /// Whether a container has ended unseen.
    has_lost: bool,
    containers: Vec<Option<Arc<dyn Container>>>,
    /// Whether the Pod has an ending: what waits for its turn to start does not start any more.
    is_ending: Arc<AtomicBool>,
    under_way: FuturesUnordered<BoxFuture<'static, Done>>,
    writing: Writing,
    grace: Option<Duration>,
    awaits_removal: bool,
    is_removed: bool,
    is_gone: bool,
    is_shut_down: bool,
    /// When it was last looked what is to be done.
    looked: Timestamp,
}

/// What is with the folder of a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FolderIs {
    Kept,
    Removed,
}

/// How the API is told.
#[derive(Debug, Default)]
struct Writing {
    /// What was written last.
    written: Option<Box<PodStatus>>,
    is_under_way: bool,
    /// Whether a place is awaited for a status that is not the last one.
    awaits_place: bool,
    /// Since when there is something else to say.
    changed: Option<Timestamp>,
    failures: u32,
    /// Whether the API does not take what there is to say, and would not the next time.
    is_refused: bool,
    not_before: Option<Timestamp>,
}

/// Runs a Pod to its end.
pub(crate) async fn run(
    shared: Arc<Shared>,
    pod: Arc<Pod>,
    mut inbox: mpsc::UnboundedReceiver<Word>,
    past: Past,
) -> Finish {
    if matches!(past, Past::Prepared) {
        let folder = shared.pod_folder(&PodRef::of(&pod).uid);
        let removing = tokio::task::spawn_blocking(move || spares::remove(&folder));
        removing.await.expect("removing does not panic");
    }
    let begun = match &past {
        Past::None | Past::Prepared => Runs::new(),
        Past::Begun(begun) => begun.clone(),
        Past::Failed(_) => {
            let folder = shared.pod_folder(&PodRef::of(&pod).uid);
            let reading = tokio::task::spawn_blocking(move || begun::containers(&folder));
            reading.await.expect("reading does not panic")
        }
    };
    let mut worker = Worker::new(shared, pod, past, &begun);
    let finish = loop {
        if let Some(finish) = worker.step() {
            break finish;
        }
        let clock = worker.shared.options.clock.clone();
        let wake_at = worker.wake_at();
        let wake = async {
            match wake_at {
                Some(at) => clock.reach(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            word = inbox.recv() => match word {
                Some(word) => worker.hear(word),
                // The node itself was dropped: everything ends with it.
                None => break Finish::Gone,
            },
            Some(done) = worker.under_way.next(), if !worker.under_way.is_empty() => {
                worker.take(done);
            }
            () = wake => {}
        }
    };
    if finish != Finish::Unreported {
        worker.clean_up().await;
    }
    finish
}

impl Worker {
    fn new(shared: Arc<Shared>, pod: Arc<Pod>, past: Past, begun: &Runs) -> Self {
        let (plan, backoff, now) = (Plan::of(&pod), shared.options.backoff, shared.now());
        // One that an earlier process has taken on has been active since then.
        let began = pod.status.as_ref().and_then(|status| status.start_time.as_ref());
        let began = began.map_or(now, |time| time.0);
        let life = match past {
            Past::Begun(runs) => {
                let mut life = Life::lost(plan, backoff, began, &runs, now);
                if let Some(has_succeeded) = status::outcome(&life, &pod, &runs, now) {
                    life.know(has_succeeded);
                }
                life
            }
            Past::Failed(message) => Life::broken(plan, backoff, began, begun, now, message),
            Past::None | Past::Prepared => Life::new(plan, backoff, began),
        };
        let (runtime, host) = (shared.runtime.name(), shared.options.host_address);
        let mut worker = Worker {
            target: PodRef::of(&pod),
            reporter: Reporter::new(&pod, runtime, host),
            events: Events::default(),
            address: None,
            sandbox: Arc::default(),
            turn: Arc::default(),
            volumes: Arc::default(),
            refresh_at: None,
            folder: Arc::new(Mutex::new(FolderIs::Kept)),
            has_lost: false,
            containers: vec![None; life.cells.len()],
            is_ending: Arc::default(),
            under_way: FuturesUnordered::new(),
            writing: Writing::default(),
            grace: None,
            awaits_removal: false,
            is_removed: false,
            is_gone: false,
            is_shut_down: false,
            looked: now,
            life,
            shared,
            pod: pod.clone(),
        };
        worker.hear(Word::Pod(pod));
        worker
    }

    fn hear(&mut self, word: Word) {
        let now = self.shared.now();
        match word {
            Word::Pod(pod) => {
                let meta = &pod.metadata;
                if meta.deletion_timestamp.is_some() {
                    let grace = seconds(meta.deletion_grace_period_seconds.unwrap_or(0));
                    if self.grace.is_none_or(|known| grace < known) {
                        self.grace = Some(grace);
                        self.life.observe(Fact::Deleted { grace }, now);
                    }
                }
                self.awaits_removal = awaits_removal(&pod);
                let spec = pod.spec.as_ref();
                let deadline = spec.and_then(|spec| spec.active_deadline_seconds);
                self.life.plan.active_deadline = deadline.map(seconds);
                self.pod = pod;
            }
            Word::Gone => {
                self.is_gone = true;
                self.life.observe(Fact::Vanished, now);
            }
            Word::Shutdown(grace) => {
                self.is_shut_down = true;
                (self.writing.failures, self.writing.not_before) = (0, None);
                self.life.observe(Fact::Shutdown { grace }, now);
            }
        }
    }

    /// Does what can be done now; how it has finished, if it has.
    fn step(&mut self) -> Option<Finish> {
        let now = self.shared.now();
        self.looked = now;
        if self.is_shut_down && self.is_untouched() {
            return Some(Finish::Untouched);
        }
        for wish in self.life.next(now) {
            self.carry_out(wish, now);
        }
        self.is_ending.store(self.life.ending().is_some(), Ordering::Relaxed);
        if self.life.is_left_as_it_is() {
            return self.life.is_over().then_some(Finish::Untouched);
        }
        if self.is_gone {
            return self.life.is_over().then_some(Finish::Gone);
        }
        if self.is_shut_down && self.life.is_over() && self.writing.failures >= LAST_TRIES {
            return Some(Finish::Unreported);
        }
        if self.life.is_up() && self.refresh_at.is_some_and(|at| at <= now) {
            self.refresh_at = None;
            self.refresh();
        }
        // Who deletes a Pod need not wait for a last status that nobody will ever read.
        let is_untold = self.life.is_over() && self.awaits_removal && self.writing.is_refused;
        let is_written = is_untold || self.write_if_due(now);
        if !self.life.is_over() || !is_written || self.writing.is_under_way {
            return None;
        }
        for call in self.events.rest(now) {
            self.send_event(call);
        }
        if !self.awaits_removal || self.is_removed {
            // What is still to be told is told without the Pod waiting for it.
            let rest = std::mem::take(&mut self.under_way);
            if !rest.is_empty() {
                tokio::spawn(rest.for_each(|_| std::future::ready(())));
            }
            return Some(if self.is_removed { Finish::Removed } else { Finish::Ended });
        }
        if self.writing.not_before.is_none_or(|at| at <= now) {
            self.writing.is_under_way = true;
            let (calls, target) = (self.shared.calls.clone(), self.target.clone());
            self.do_it(async move { Done::Removed(calls.remove(&target).await) });
        }
        None
    }

    /// Whether nothing was made or written for it yet.
    fn is_untouched(&self) -> bool {
        let nothing_written = self.writing.written.is_none() && !self.writing.is_under_way;
        nothing_written && self.life.is_fresh()
    }

    /// When to look again if nothing happens. What was due at the last look and not done then
    /// waits for something else, so that a worker never wakes without end.
    fn wake_at(&self) -> Option<Timestamp> {
        let writing = &self.writing;
        let is_free = !writing.is_under_way && !self.is_gone;
        let write_at = writing.changed.filter(|_| is_free).map(|it| self.write_at(it));
        let remove_at = writing.not_before.filter(|_| is_free && self.life.is_over());
        let refresh_at = self.refresh_at.filter(|_| self.life.is_up());
        let is_ahead = |at: &Timestamp| *at > self.looked;
        let own = write_at.into_iter().chain(remove_at).chain(refresh_at).filter(is_ahead);
        own.chain(self.life.wake_at(self.looked)).min()
    }

    /// When a change is written: the last one at once, others with what comes after them.
    fn write_at(&self, changed: Timestamp) -> Timestamp {
        let at = match self.life.is_over() {
            true => changed,
            false => later(changed, self.shared.options.status_delay),
        };
        self.writing.not_before.map_or(at, |not_before| at.max(not_before))
    }

    /// Whether the API has what there is to say.
    fn write_if_due(&mut self, now: Timestamp) -> bool {
        let status = self.reporter.report(&self.life, &self.pod, now);
        if self.writing.written.as_deref() == Some(&status) {
            self.writing.changed = None;
            return true;
        }
        let changed = *self.writing.changed.get_or_insert(now);
        if !self.writing.is_under_way && self.write_at(changed) <= now {
            if self.life.is_over() {
                self.write(status, None);
            } else if !self.writing.awaits_place {
                self.await_place();
            }
        }
        false
    }

    /// Writes a status, in a place that it is given or without one.
    fn write(&mut self, status: PodStatus, place: Option<OwnedSemaphorePermit>) {
        self.writing.is_under_way = true;
        let (calls, target) = (self.shared.calls.clone(), self.target.clone());
        self.do_it(async move {
            let written = calls.write_status(&target, &status).await;
            drop(place);
            Done::Written(Box::new(status), written)
        });
    }

    /// Waits for a place of a status that is not the last one.
    fn await_place(&mut self) {
        self.writing.awaits_place = true;
        let passing = self.shared.passing.clone();
        self.do_it(async move {
            Done::MayWrite(passing.acquire_owned().await.expect("it is never closed"))
        });
    }

    /// Writes what there is to say now, if it is not the last word: for that no place is needed.
    fn write_in(&mut self, place: OwnedSemaphorePermit, now: Timestamp) {
        let is_busy = self.writing.is_under_way || self.writing.changed.is_none();
        if is_busy || self.is_gone || self.life.is_over() {
            return;
        }
        let status = self.reporter.report(&self.life, &self.pod, now);
        if self.writing.written.as_deref() != Some(&status) {
            self.write(status, Some(place));
        }
    }

    fn take(&mut self, done: Done) {
        let now = self.shared.now();
        match done {
            Done::Told => {}
            Done::Fact(fact) => {
                self.has_lost |= matches!(fact, Fact::Lost { .. });
                self.life.observe(fact, now);
            }
            Done::Refreshed => self.plan_refresh(now),
            Done::Prepared(volumes) => {
                self.volumes = Arc::new(volumes);
                self.plan_refresh(now);
                self.life.observe(Fact::Prepared, now);
            }
            Done::Started { cell, begun } => {
                let at = begun.container.started_at();
                self.containers[cell] = Some(begun.container.clone());
                self.life.observe(Fact::Started { cell, at }, now);
                self.wait_for(cell, begun);
            }
            Done::MayWrite(place) => {
                self.writing.awaits_place = false;
                self.write_in(place, now);
            }
            Done::Written(status, Ok(head)) => {
                // It may still be awaited when the last status was written without it.
                let awaits_place = self.writing.awaits_place;
                let written = Some(status);
                self.writing = Writing { written, awaits_place, ..Writing::default() };
                self.awaits_removal |= head.metadata.awaits_removal();
            }
            Done::Removed(Ok(()) | Err(CallError::NotFound)) => {
                self.writing.is_under_way = false;
                self.is_removed = true;
            }
            Done::Written(_, Err(CallError::NotFound)) => {
                self.writing.is_under_way = false;
                self.hear(Word::Gone);
            }
            Done::Written(_, Err(error)) | Done::Removed(Err(error)) => {
                let writing = &mut self.writing;
                writing.is_under_way = false;
                writing.failures += 1;
                writing.is_refused = matches!(error, CallError::Refused(_));
                let pause = FIRST_RETRY.saturating_mul(1 << (writing.failures - 1).min(10));
                writing.not_before = Some(later(now, pause.min(LONGEST_RETRY)));
                let PodRef { namespace, name, .. } = &self.target;
                tracing::warn!(namespace, name, %error, "cannot report on a Pod, trying again");
            }
        }
    }

    /// Looks at the volumes again in a while, if their content may change.
    fn plan_refresh(&mut self, now: Timestamp) {
        let interval = self.shared.options.volume_interval;
        self.refresh_at = volumes::may_change(&self.pod).then(|| later(now, interval));
    }

    fn carry_out(&mut self, wish: Wish, now: Timestamp) {
        match wish {
            Wish::Prepare => self.prepare(),
            Wish::Start { cell } => self.start(cell),
            Wish::Signal { cell, signal } => {
                if let Some(container) = &self.containers[cell] {
                    container.signal(signal);
                }
            }
            Wish::Probe { cell, kind } => self.probe(cell, kind),
            Wish::PostStart { cell } => self.post_start(cell),
            Wish::PreStop { cell } => self.pre_stop(cell),
            Wish::Close => self.close(),
            Wish::Tell(said) => self.tell(&said, now),
        }
    }

    fn tell(&mut self, said: &Said, now: Timestamp) {
        let node = &self.shared.options.node_name;
        if let Some(call) = self.events.say(&self.target, node, said, now) {
            self.send_event(call);
        }
    }

    fn do_it(&self, what: impl Future<Output = Done> + Send + 'static) {
        self.under_way.push(Box::pin(what));
    }

    /// Gives back what the Pod had. Its logs stay as long as it is in the API.
    async fn clean_up(self) {
        let Worker { shared, target, address, sandbox, folder: state, has_lost, .. } = self;
        if let Some(sandbox) = sandbox.write().await.take() {
            sandbox.close().await;
        }
        shared.logs.finish(&target.uid);
        shared.consoles.forget(&target.uid);
        if let Some(address) = address {
            shared.addresses.lock().expect("nobody panics with it").give_back(address);
        }
        let folder = shared.pod_folder(&target.uid);
        let removing = tokio::task::spawn_blocking(move || {
            shared.hosts.remove(&target);
            *state.lock().expect("nobody panics with it") = FolderIs::Removed;
            // What has run there may not be gone yet if nobody saw it end.
            match has_lost {
                true => shared.spares.discard(&folder),
                false => shared.spares.take(&folder),
            }
        });
        removing.await.expect("removing does not panic");
    }
}
