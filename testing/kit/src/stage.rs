//! An API on which Jobs are given: what users do to it, and how to wait for what must come.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::driver::Driver;
use crate::fate::Fate;
use crate::history::History;
use crate::job::{end, is_tracked, manifest};
use crate::node::Node;

/// The namespace of every test.
pub const NAMESPACE: &str = "default";

/// How many Pods are shown when something goes wrong.
const LINES: usize = 40;

/// What time it is, for everybody in a test.
pub type Time = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// An API with Pods that are driven and noted. Clones are the same stage.
#[derive(Clone)]
pub struct Stage {
    /// A client that may do everything.
    pub admin: Client,
    /// What becomes of the Pods.
    pub driver: Driver,
    /// What became of them.
    pub history: History,
    /// Pods that were created by requests whose sender had given up on them.
    pub strays: Arc<AtomicUsize>,
    /// How long a condition may take to come true.
    pub patience: Duration,
    /// The managedBy of Jobs that name none themselves.
    pub managed_by: Option<String>,
    /// Whether who runs the Jobs keeps the start time of those that are suspended again, as the
    /// built-in controller did before 1.36.
    pub keeps_start_time: bool,
    /// What else is known when something never comes true.
    pub remarks: Arc<dyn Fn() -> Vec<String> + Send + Sync>,
    /// What is gone with the stage.
    _background: Arc<JoinSet<()>>,
}

impl Stage {
    /// A stage whose Pods `driver` drives already, in the `background`.
    pub fn new(
        mut background: JoinSet<()>,
        admin: Client,
        driver: Driver,
        patience: Duration,
    ) -> Self {
        let history = History::start(&mut background, admin.clone());
        let remarks = Arc::new(Vec::new);
        Stage {
            admin,
            driver,
            history,
            strays: Arc::default(),
            patience,
            managed_by: None,
            keeps_start_time: false,
            remarks,
            _background: Arc::new(background),
        }
    }

    /// The Jobs of the test's namespace.
    pub fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.admin.clone(), NAMESPACE)
    }

    /// The Pods of the test's namespace.
    pub fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.admin.clone(), NAMESPACE)
    }

    /// Creates a Job with this spec, of one plain container.
    pub async fn create(&self, name: &str, mut spec: Value) -> Job {
        if let (Some(managed_by), None) = (&self.managed_by, spec.get("managedBy")) {
            spec["managedBy"] = managed_by.clone().into();
        }
        let job = manifest(name, spec);
        self.jobs().create(&PostParams::default(), &job).await.expect("the test's own Job is valid")
    }

    /// Changes a Job.
    pub async fn patch(&self, name: &str, patch: Value) {
        let patch = Patch::Merge(patch);
        self.jobs().patch(name, &PatchParams::default(), &patch).await.expect("it can be changed");
    }

    /// Changes which nodes the Pods to come of a suspended Job may run on, and changes it back: the
    /// Job after that. Nothing is changed of a Job that has a start time all the same: that is
    /// refused.
    pub async fn try_template(&self, name: &str) -> Option<Job> {
        let mut last = None;
        for value in [json!("yes"), json!(null)] {
            let template = json!({"spec": {"nodeSelector": {"tried": value}}});
            let patch = Patch::Merge(json!({"spec": {"template": template}}));
            match self.jobs().patch(name, &PatchParams::default(), &patch).await {
                Ok(job) => {
                    assert!(!self.keeps_start_time, "{name} has a start time");
                    last = Some(job);
                }
                Err(kube::Error::Api(refusal)) if self.keeps_start_time => {
                    assert!(refusal.message.contains("field is immutable"), "{}", refusal.message);
                    return None;
                }
                Err(error) => panic!("the template of {name} can be changed: {error}"),
            }
        }
        last
    }

    /// Deletes a Job, and its Pods in the background.
    pub async fn delete(&self, name: &str) {
        self.jobs().delete(name, &DeleteParams::background()).await.expect("it can be deleted");
    }

    /// A Job as it is.
    pub async fn job(&self, name: &str) -> Job {
        self.jobs().get(name).await.expect("the Job is there")
    }

    /// Waits until a Job is as it should be.
    pub async fn wait(&self, name: &str, what: &str, is_so: impl Fn(&Job) -> bool) -> Job {
        let began = Instant::now();
        loop {
            let job = self.job(name).await;
            if is_so(&job) {
                return job;
            }
            if began.elapsed() > self.patience {
                let status = serde_json::to_string(&job.status).expect("JSON");
                let pods = self.pod_lines(name).await.join("\n");
                let remarks = (self.remarks)().join("\n");
                panic!("{name} never {what}: {status}\n{pods}\n{remarks}");
            }
            tokio::time::sleep(pause(began.elapsed())).await;
        }
    }

    /// Waits until something is so.
    pub async fn until(&self, what: &str, is_so: impl AsyncFnMut(&Self) -> bool) {
        self.until_of("", what, is_so).await;
    }

    /// Waits until something is so of a Job that need not be there.
    pub async fn until_of(
        &self,
        name: &str,
        what: &str,
        mut is_so: impl AsyncFnMut(&Self) -> bool,
    ) {
        let began = Instant::now();
        while !is_so(self).await {
            if began.elapsed() > self.patience {
                let pods = self.pod_lines(name).await.join("\n");
                panic!("{name} never {what}\n{pods}\n{:#?}", self.history.of(name));
            }
            tokio::time::sleep(pause(began.elapsed())).await;
        }
    }

    /// Waits until a Job has finished, and checks what must hold of every one that has.
    pub async fn finish(&self, name: &str) -> Job {
        let job = self.wait(name, "finishes", |job| end(job).is_some()).await;
        self.settle(name).await;
        job
    }

    /// Waits until no Pod of a Job bears the finalizer.
    pub async fn settle(&self, name: &str) {
        self.until_of(name, "lets its Pods go", async |it| !it.history.has_tracked(name)).await;
    }

    /// Waits until no Pod of a Job that has finished bears the finalizer, by what the API says.
    pub async fn settle_all(&self) {
        self.until("lets all Pods go", async |stage| {
            let jobs = stage.jobs().list(&ListParams::default()).await.expect("Jobs");
            let ended = jobs.items.iter().filter(|job| end(job).is_some());
            let ended: HashSet<&str> =
                ended.filter_map(|job| job.metadata.uid.as_deref()).collect();
            let pods = stage.pods().list(&ListParams::default()).await.expect("Pods");
            let owners = pods.items.iter().filter(|pod| is_tracked(pod));
            let mut owners = owners.flat_map(|pod| pod.metadata.owner_references.iter().flatten());
            !owners.any(|owner| ended.contains(&*owner.uid))
        })
        .await;
    }

    /// The Pods of a Job that the API has.
    pub async fn pods_of(&self, name: &str) -> Vec<Pod> {
        let labels = ListParams::default().labels(&format!("job-name={name}"));
        self.pods().list(&labels).await.expect("Pods can be listed").items
    }

    /// Gives a Pod that runs another fate, at this moment.
    pub async fn end_pod(&self, pod: Pod, fate: Fate) {
        let clock: Time = Arc::new(Timestamp::now);
        Node::new(self.admin.clone(), clock, Duration::ZERO).live(pod, fate).await;
    }

    /// The Events of a Job.
    pub async fn events_of(&self, name: &str) -> Vec<Event> {
        let events: Api<Event> = Api::namespaced(self.admin.clone(), NAMESPACE);
        let all = events.list(&ListParams::default()).await.expect("Events can be listed");
        let is_meant = |event: &Event| event.involved_object.name.as_deref() == Some(name);
        all.items.into_iter().filter(is_meant).collect()
    }

    /// The first Pods whose names begin so, a line each; those that bear the finalizer come first.
    pub async fn pod_lines(&self, name: &str) -> Vec<String> {
        let pods = self.pods().list(&ListParams::default()).await.expect("Pods can be listed");
        let line = |pod: &Pod| {
            let meta = &pod.metadata;
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            format!(
                "{} {} finalizers {:?} deleted {:?} owners {:?}",
                meta.name.as_deref().unwrap_or("?"),
                phase.unwrap_or("?"),
                meta.finalizers,
                meta.deletion_timestamp.is_some(),
                meta.owner_references.iter().flatten().map(|it| &it.uid).collect::<Vec<_>>(),
            )
        };
        let is_meant =
            |pod: &&Pod| pod.metadata.name.as_deref().is_some_and(|it| it.starts_with(name));
        let (held, others): (Vec<&Pod>, Vec<&Pod>) =
            pods.items.iter().filter(is_meant).partition(|pod| is_tracked(pod));
        held.into_iter().chain(others).take(LINES).map(line).collect()
    }
}

/// How soon a condition is looked at again: often at first, and then more rarely, so that one that
/// never comes true does not take for ever by a clock that passes for nothing.
fn pause(waited: Duration) -> Duration {
    (waited / 20).clamp(Duration::from_millis(50), Duration::from_secs(60))
}
