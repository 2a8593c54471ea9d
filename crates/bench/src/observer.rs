//! Watches all Jobs and Pods of an API, and notes when it has seen what of each Job. Whoever is
//! measured is measured by these eyes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use http::Request;
use kube::Client;
use kube::core::WatchEvent;
use serde::Deserialize;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::error::BenchError;

/// How soon a watch that broke off is begun anew.
const AGAIN: Duration = Duration::from_millis(100);

/// How long anything that is waited for may take: ten thousand Pods at twenty calls a second take
/// a quarter of an hour.
const PATIENCE: Duration = Duration::from_secs(3600);

/// The label by which a Pod says how many of a hundred indexes fail once.
pub(crate) const FAILS: &str = "stint-bench-fails";

/// When it was seen what of a Job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    pub(crate) first_pod: Option<Instant>,
    pub(crate) last_end: Option<Instant>,
    pub(crate) end: Option<(Instant, String)>,
}

/// A Pod that was seen for the first time, or to have ended.
#[derive(Clone, Debug)]
pub(crate) struct Pod {
    pub(crate) name: String,
    pub(crate) job: String,
    pub(crate) index: u32,
    /// How many of a hundred indexes fail once.
    pub(crate) fails: u32,
}

/// Who hears of Pods. As many wait here as a Job has.
type Listeners = Mutex<Vec<mpsc::UnboundedSender<Pod>>>;

#[derive(Debug, Default)]
struct Notes {
    jobs: Mutex<HashMap<String, Times>>,
    came: Listeners,
    ended: Listeners,
}

/// An observer, as long as the value lives.
#[derive(Debug)]
pub(crate) struct Observer {
    notes: Arc<Notes>,
    changed: watch::Receiver<()>,
    _watches: JoinSet<()>,
}

impl Observer {
    /// Begins to watch.
    pub(crate) fn start(client: &Client) -> Self {
        let notes = Arc::new(Notes::default());
        let (change, changed) = watch::channel(());
        let mut watches = JoinSet::new();
        let (on_pods, on_jobs) = (notes.clone(), notes.clone());
        let pod_change = change.clone();
        let (mut known, mut ended) = (HashSet::new(), HashSet::new());
        watches.spawn(follow(client.clone(), "/api/v1/pods", move |object: Object| {
            on_pods.see_pod(&object, &mut known, &mut ended);
            pod_change.send_replace(());
        }));
        watches.spawn(follow(client.clone(), "/apis/batch/v1/jobs", move |object: Object| {
            on_jobs.see_job(&object);
            change.send_replace(());
        }));
        Observer { notes, changed, _watches: watches }
    }

    /// Every Pod from now on, when it is seen for the first time.
    pub(crate) fn coming(&self) -> mpsc::UnboundedReceiver<Pod> {
        listen(&self.notes.came)
    }

    /// Every Pod from now on, when it is seen to have ended.
    pub(crate) fn ending(&self) -> mpsc::UnboundedReceiver<Pod> {
        listen(&self.notes.ended)
    }

    /// Waits until something is so of a Job.
    pub(crate) async fn until<T>(
        &self,
        job: &str,
        mut is_so: impl FnMut(&Times) -> Option<T>,
    ) -> Result<T, BenchError> {
        let mut changed = self.changed.clone();
        let wait = async {
            loop {
                if let Some(found) = lock(&self.notes.jobs).get(job).and_then(&mut is_so) {
                    return found;
                }
                if changed.changed().await.is_err() {
                    // The watches end with this value alone.
                    std::future::pending::<()>().await;
                }
            }
        };
        let late = |_| BenchError::Job { name: job.to_owned(), end: "nothing, in an hour".into() };
        tokio::time::timeout(PATIENCE, wait).await.map_err(late)
    }

    /// Whether a Job was seen to have ended.
    pub(crate) fn has_ended(&self, job: &str) -> bool {
        lock(&self.notes.jobs).get(job).is_some_and(|times| times.end.is_some())
    }

    /// Waits until a Job is complete, and tells when what of it was seen.
    pub(crate) async fn complete(&self, job: &str) -> Result<Times, BenchError> {
        let times = self.until(job, |times| times.end.is_some().then(|| times.clone())).await?;
        match &times.end {
            Some((_, end)) if end == "Failed" => {
                Err(BenchError::Job { name: job.to_owned(), end: end.clone() })
            }
            _ => Ok(times),
        }
    }
}

impl Notes {
    fn see_pod(&self, object: &Object, known: &mut HashSet<String>, ended: &mut HashSet<String>) {
        let Some(pod) = object.pod() else { return };
        let now = Instant::now();
        let uid = &object.metadata.uid;
        if known.insert(uid.clone()) {
            lock(&self.jobs).entry(pod.job.clone()).or_default().first_pod.get_or_insert(now);
            tell(&self.came, &pod);
        }
        let phase = object.status.phase.as_deref();
        if matches!(phase, Some("Succeeded" | "Failed")) && ended.insert(uid.clone()) {
            lock(&self.jobs).entry(pod.job.clone()).or_default().last_end = Some(now);
            tell(&self.ended, &pod);
        }
    }

    fn see_job(&self, object: &Object) {
        let is_end =
            |it: &&Condition| matches!(&*it.kind, "Complete" | "Failed") && it.status == "True";
        let Some(end) = object.status.conditions.iter().find(is_end) else { return };
        let mut jobs = lock(&self.jobs);
        let times = jobs.entry(object.metadata.name.clone()).or_default();
        times.end.get_or_insert_with(|| (Instant::now(), end.kind.clone()));
    }
}

fn listen(listeners: &Listeners) -> mpsc::UnboundedReceiver<Pod> {
    let (sender, receiver) = mpsc::unbounded_channel();
    lock(listeners).push(sender);
    receiver
}

/// Tells those who still listen.
fn tell(listeners: &Listeners, pod: &Pod) {
    lock(listeners).retain(|listener| listener.send(pod.clone()).is_ok());
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells everything that is at a path, and every change of it. What a watch that broke off has told
/// is told again: those who hear it know what they have seen.
async fn follow(client: Client, path: &'static str, mut tell: impl FnMut(Object)) {
    loop {
        let request = Request::get(format!("{path}?watch=true&timeoutSeconds=86400"));
        let request = request.body(Vec::new()).expect("a request");
        if let Ok(events) = client.request_events::<Object>(request).await {
            let mut events = std::pin::pin!(events);
            while let Some(Ok(event)) = events.next().await {
                match event {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => tell(object),
                    WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => {}
                    WatchEvent::Error(_) => break,
                }
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// What is read of a Job or a Pod.
#[derive(Clone, Debug, Deserialize)]
struct Object {
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Clone, Debug, Deserialize)]
struct Metadata {
    name: String,
    uid: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Status {
    phase: Option<String>,
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

impl Object {
    /// The Pod that it is; nothing for one that belongs to no Job.
    fn pod(&self) -> Option<Pod> {
        let label = |name: &str| self.metadata.labels.get(name);
        let number = |name: &str| label(name).and_then(|text| text.parse().ok()).unwrap_or(0);
        Some(Pod {
            name: self.metadata.name.clone(),
            job: label("job-name")?.clone(),
            index: number("batch.kubernetes.io/job-completion-index"),
            fails: number(FAILS),
        })
    }
}
