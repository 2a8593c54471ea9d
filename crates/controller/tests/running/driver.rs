//! Gives Pods the fates that a test asks for, as a node would: binds them, lets them run, end,
//! and go when they are deleted. And collects the Pods of Jobs that are gone, or go.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use http::Request;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::core::WatchEvent;
use serde_json::{Value, json};

use crate::cluster::{NAMESPACE, Time};

/// What becomes of a Pod.
#[derive(Clone, Debug)]
pub(crate) struct Fate {
    /// How long it runs.
    pub(crate) after: Duration,
    pub(crate) end: End,
    /// How long it takes to end when it is deleted; none: it is never bound to a node, and goes
    /// at once.
    pub(crate) farewell: Option<Duration>,
}

/// How a Pod ends.
#[derive(Clone, Debug)]
pub(crate) enum End {
    Succeeds,
    /// With this exit code.
    Fails(i32),
    /// With this condition and exit code.
    FailsBy(&'static str, i32),
    /// Not by itself.
    Runs,
    /// Not by itself either; its containers have been restarted so often.
    Restarts(i32),
}

impl Fate {
    pub(crate) fn succeeds() -> Self {
        Fate { after: Duration::ZERO, end: End::Succeeds, farewell: None }
    }

    pub(crate) fn fails(code: i32) -> Self {
        Fate { end: End::Fails(code), ..Fate::succeeds() }
    }

    pub(crate) fn runs() -> Self {
        Fate { end: End::Runs, ..Fate::succeeds() }
    }

    pub(crate) fn after(self, seconds: u64) -> Self {
        Fate { after: Duration::from_secs(seconds), ..self }
    }

    pub(crate) fn farewell(self, seconds: u64) -> Self {
        Fate { farewell: Some(Duration::from_secs(seconds)), ..self }
    }
}

/// Who a Pod is, to say what becomes of it.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    pub(crate) job: String,
    pub(crate) index: Option<u32>,
    /// The how-many-th Pod of its Job and index it is, from 0.
    pub(crate) attempt: usize,
}

/// A Job and an index of it.
pub(crate) type Place = (String, Option<u32>);

type Fates = Arc<dyn Fn(&Who) -> Fate + Send + Sync>;

/// Drives Pods.
#[derive(Clone)]
pub(crate) struct Driver {
    fates: Fates,
    /// How many Pods there have been, by Job and index.
    seen: Arc<Mutex<HashMap<Place, usize>>>,
    held: Arc<Mutex<HashSet<String>>>,
}

impl Driver {
    /// Pods end as `fates` says.
    pub(crate) fn new(fates: impl Fn(&Who) -> Fate + Send + Sync + 'static) -> Self {
        Driver { fates: Arc::new(fates), seen: Arc::default(), held: Arc::default() }
    }

    /// From now on the new Pods of a Job run for ever, or end as they should.
    pub(crate) fn hold(&self, job: &str, is_held: bool) {
        let mut held = self.held.lock().expect("nobody panics here");
        if is_held {
            held.insert(job.to_owned())
        } else {
            held.remove(job)
        };
    }

    fn fate(&self, who: &Who) -> Fate {
        if self.held.lock().expect("nobody panics here").contains(&who.job) {
            return Fate::runs();
        }
        (self.fates)(who)
    }

    pub(crate) fn start(&self, client: Client, clock: Time) {
        let pods = Api::namespaced(client.clone(), NAMESPACE);
        tokio::spawn(self.clone().drive(client.clone(), Node { pods, clock }));
        tokio::spawn(collect(client));
    }

    async fn drive(self, client: Client, node: Node) {
        let mut known: HashSet<String> = HashSet::new();
        let mut going: HashSet<String> = HashSet::new();
        let request = Request::get("/api/v1/pods?watch=true&timeoutSeconds=31536000")
            .body(Vec::new())
            .expect("a request");
        let events = client.request_events::<Pod>(request).await.expect("a watch");
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            let Ok(WatchEvent::Added(pod) | WatchEvent::Modified(pod)) = event else { continue };
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            if known.insert(uid.clone())
                && let Some(who) = self.who(&pod)
            {
                let fate = self.fate(&who);
                tokio::spawn(node.clone().live(pod.clone(), fate));
            }
            if pod.metadata.deletion_timestamp.is_some()
                && pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
                && going.insert(uid)
            {
                tokio::spawn(node.clone().leave(pod));
            }
        }
    }

    fn who(&self, pod: &Pod) -> Option<Who> {
        let labels = pod.metadata.labels.as_ref()?;
        let job = labels.get("job-name")?.clone();
        let index = labels.get("batch.kubernetes.io/job-completion-index");
        let index = index.and_then(|index| index.parse().ok());
        let mut seen = self.seen.lock().expect("nobody panics here");
        let count = seen.entry((job.clone(), index)).or_insert(0);
        let attempt = *count;
        *count += 1;
        Some(Who { job, index, attempt })
    }
}

/// The annotation that says how long a Pod takes to end when it is deleted.
const FAREWELL: &str = "test/farewell";

/// Where Pods live.
#[derive(Clone)]
struct Node {
    pods: Api<Pod>,
    clock: Time,
}

impl Node {
    async fn live(self, pod: Pod, fate: Fate) {
        let pods = &self.pods;
        let name = pod.metadata.name.clone().unwrap_or_default();
        if let Some(farewell) = fate.farewell {
            let seconds = farewell.as_secs().to_string();
            let note = json!({"metadata": {"annotations": {FAREWELL: seconds}}});
            if pods.patch(&name, &PatchParams::default(), &Patch::Merge(note)).await.is_err() {
                return;
            }
            let binding = json!({
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "here"},
            });
            let post = Default::default();
            let _ =
                pods.create_subresource::<Value, Value>("binding", &name, &post, &binding).await;
        }
        let is_instant = fate.after.is_zero() && !matches!(fate.end, End::Runs | End::Restarts(_));
        if !is_instant {
            self.set_status(&pod, "Running", None, None, 0).await;
            tokio::time::sleep(fate.after).await;
        }
        match fate.end {
            End::Succeeds => self.set_status(&pod, "Succeeded", Some(0), None, 0).await,
            End::Fails(code) => self.set_status(&pod, "Failed", Some(code), None, 0).await,
            End::Restarts(count) => self.set_status(&pod, "Running", None, None, count).await,
            End::FailsBy(condition, code) => {
                self.set_status(&pod, "Failed", Some(code), Some(condition), 0).await;
            }
            End::Runs => {}
        }
    }

    /// A Pod that was deleted ends, and then goes.
    async fn leave(self, pod: Pod) {
        let annotations = pod.metadata.annotations.as_ref();
        let farewell = annotations.and_then(|all| all.get(FAREWELL)?.parse().ok()).unwrap_or(0);
        tokio::time::sleep(Duration::from_secs(farewell)).await;
        self.set_status(&pod, "Failed", Some(143), None, 0).await;
        let name = pod.metadata.name.clone().unwrap_or_default();
        let _ = self.pods.delete(&name, &DeleteParams::default().grace_period(0)).await;
    }

    /// Says how a Pod is, unless it has ended or is gone.
    async fn set_status(
        &self,
        pod: &Pod,
        phase: &str,
        exit_code: Option<i32>,
        condition: Option<&str>,
        restarts: i32,
    ) {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let Ok(now) = self.pods.get(name).await else { return };
        let has_ended = now
            .status
            .as_ref()
            .is_some_and(|status| matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")));
        if has_ended || now.metadata.uid != pod.metadata.uid {
            return;
        }
        let mut conditions = vec![json!({
            "type": "Ready", "status": if exit_code.is_none() { "True" } else { "False" },
        })];
        conditions.extend(condition.map(|kind| json!({"type": kind, "status": "True"})));
        let state = match exit_code {
            Some(code) => {
                let at = Timestamp::from_second((self.clock)().as_second()).expect("a time");
                json!({"terminated": {"exitCode": code, "reason": "Done", "finishedAt": at.to_string()}})
            }
            None => json!({"running": {}}),
        };
        let status = json!({"metadata": {"uid": pod.metadata.uid}, "status": {
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": [{
                "name": "main", "image": "i", "imageID": "i", "ready": exit_code.is_none(),
                "restartCount": restarts, "state": state,
            }],
        }});
        let _ = self.pods.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await;
    }
}

/// Follows owner references: deletes the Pods of Jobs that are gone, and takes apart those of
/// Jobs that go in the foreground or leave orphans behind.
async fn collect(client: Client) {
    let request = Request::get("/apis/batch/v1/jobs?watch=true&timeoutSeconds=31536000")
        .body(Vec::new())
        .expect("a request");
    let events = client.request_events::<Job>(request).await.expect("a watch");
    let mut events = std::pin::pin!(events);
    let mut going: HashSet<String> = HashSet::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(WatchEvent::Deleted(job)) => {
                tokio::spawn(delete_pods(client.clone(), job.metadata.uid.unwrap_or_default()));
            }
            Ok(WatchEvent::Modified(job))
                if job.metadata.deletion_timestamp.is_some()
                    && going.insert(job.metadata.uid.clone().unwrap_or_default()) =>
            {
                tokio::spawn(take_apart(client.clone(), job));
            }
            _ => {}
        }
    }
}

/// The Pods that a Job owns.
async fn owned(pods: &Api<Pod>, uid: &str) -> Vec<Pod> {
    let all = pods.list(&Default::default()).await.expect("Pods can be listed");
    let is_owned =
        |pod: &Pod| pod.metadata.owner_references.iter().flatten().any(|owner| owner.uid == uid);
    all.items.into_iter().filter(is_owned).collect()
}

async fn delete_pods(client: Client, uid: String) {
    let pods: Api<Pod> = Api::namespaced(client, NAMESPACE);
    // A Pod may be created by somebody who does not know yet.
    for _ in 0..3 {
        for pod in owned(&pods, &uid).await {
            let name = pod.metadata.name.unwrap_or_default();
            let _ = pods.delete(&name, &DeleteParams::background()).await;
        }
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
}

/// Deletes the Pods of a Job or makes them orphans, and then lets it go.
async fn take_apart(client: Client, job: Job) {
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let jobs: Api<Job> = Api::namespaced(client, NAMESPACE);
    let uid = job.metadata.uid.unwrap_or_default();
    let finalizers = job.metadata.finalizers.unwrap_or_default();
    let is_orphaning = finalizers.iter().any(|it| it == "orphan");
    loop {
        let owned = owned(&pods, &uid).await;
        if owned.is_empty() {
            break;
        }
        for pod in owned {
            let name = pod.metadata.name.unwrap_or_default();
            if is_orphaning {
                let patch = json!({"metadata": {
                    "ownerReferences": [{"$patch": "delete", "uid": uid}],
                }});
                let _ = pods.patch(&name, &Default::default(), &Patch::Strategic(patch)).await;
            } else if pod.metadata.deletion_timestamp.is_none() {
                let _ = pods.delete(&name, &DeleteParams::background()).await;
            }
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    let patch = json!({"metadata": {"uid": uid, "finalizers": null}});
    let name = job.metadata.name.unwrap_or_default();
    let _ = jobs.patch(&name, &Default::default(), &Patch::Merge(patch)).await;
}
