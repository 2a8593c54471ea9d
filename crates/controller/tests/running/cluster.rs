//! An API server, a controller and a driver of Pods in one process.

use std::collections::HashSet;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Namespace, Pod};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use stint_api::names::finalizer;
use stint_apiserver::access::{Authenticator, Identity};
use stint_apiserver::log::NoLogs;
use stint_apiserver::{ApiServer, Limits, LocalServer};
use stint_controller::{Clock, Config, Controller, Metrics};
use stint_store::Store;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::driver::Driver;
use crate::history::History;
use crate::still::{Still, Stilled};
use crate::tally::{Tallied, Tally};

/// The namespace of every test.
pub(crate) const NAMESPACE: &str = "default";

/// How soon a condition is looked at again, by a clock that passes for nothing: often at first,
/// and then more rarely, so that one that never comes true does not take for ever.
fn pause(waited: Duration) -> Duration {
    (waited / 20).clamp(Duration::from_millis(50), Duration::from_secs(60))
}

/// How long a condition may take to come true: longer than any backoff.
const PATIENCE: Duration = Duration::from_secs(4 * 3600);

/// Everything but the Pods' fates.
pub(crate) struct Cluster {
    server: ApiServer,
    store: Store,
    still: Still,
    pub(crate) tally: Tally,
    pub(crate) admin: Client,
    pub(crate) driver: Driver,
    pub(crate) history: History,
    /// Pods that were created by requests whose sender had given up on them.
    pub(crate) strays: Arc<AtomicUsize>,
    running: Mutex<Option<JoinHandle<()>>>,
    clock: Time,
}

/// What time it is, for everybody in a test.
pub(crate) type Time = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The service that a controller's client speaks to.
pub(crate) type Service = Tallied<Stilled<LocalServer>>;

/// The time by tokio's clock.
fn clock() -> Time {
    let (began, start) = (Instant::now(), Timestamp::from_second(1_800_000_000).expect("a time"));
    Arc::new(move || {
        let passed = SignedDuration::try_from(began.elapsed()).expect("a test is short");
        start.checked_add(passed).expect("a test is short")
    })
}

impl Cluster {
    /// A cluster whose Pods are driven by `driver`. No controller runs yet.
    pub(crate) async fn new(driver: Driver) -> Self {
        let clock = clock();
        let now = clock.clone();
        let config = stint_apiserver::Config {
            gates: Default::default(),
            clock: stint_apiserver::Clock::new(move || now()),
            logs: Arc::new(NoLogs),
        };
        let store = Store::in_memory(stint_store::Options::default());
        let nobody = Authenticator::new::<&str>([]);
        let server = ApiServer::new(store.clone(), nobody, config, Limits::default());
        let still = Still::default();
        let admin = Client::new(still.around(server.local(Identity::admin())), NAMESPACE);
        let namespace = json!({"metadata": {"name": NAMESPACE}});
        let namespace: Namespace = serde_json::from_value(namespace).expect("a namespace");
        Api::all(admin.clone())
            .create(&PostParams::default(), &namespace)
            .await
            .expect("a namespace can be made");
        let history = History::start(admin.clone());
        driver.start(admin.clone(), clock.clone());
        let tally = Tally::default();
        Cluster {
            server,
            store,
            still,
            tally,
            admin,
            driver,
            history,
            strays: Arc::default(),
            running: Mutex::default(),
            clock,
        }
    }

    /// What a controller's client speaks to.
    pub(crate) fn service(&self) -> Service {
        self.tally.around(self.still.around(self.server.local(Identity::controller())))
    }

    /// The newest version of the store.
    pub(crate) fn newest(&self) -> Arc<dyn Fn() -> u64 + Send + Sync> {
        let store = self.store.clone();
        Arc::new(move || store.revision().get())
    }

    /// The configuration of a test's controller.
    pub(crate) fn config(&self) -> Config {
        Config { clock: self.clock(), ..Config::default() }
    }

    /// The clock of the test.
    pub(crate) fn clock(&self) -> Clock {
        let clock = self.clock.clone();
        Clock::new(move || clock())
    }

    /// Starts a controller as it is on the server.
    pub(crate) fn start(&self) -> Metrics {
        let client = Client::new(self.service(), NAMESPACE);
        self.start_with(client, self.config())
    }

    /// Starts a controller, in place of the one that runs.
    pub(crate) fn start_with(&self, client: Client, config: Config) -> Metrics {
        self.kill();
        let controller = Controller::new(client, config);
        let metrics = controller.metrics();
        let running = tokio::spawn(controller.run(std::future::pending()));
        *self.running.lock().expect("nobody panics here") = Some(running);
        metrics
    }

    /// Ends the controller in the middle of what it does.
    pub(crate) fn kill(&self) {
        if let Some(running) = self.running.lock().expect("nobody panics here").take() {
            running.abort();
        }
    }

    pub(crate) fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.admin.clone(), NAMESPACE)
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.admin.clone(), NAMESPACE)
    }

    /// Creates a Job with this spec, of one plain container.
    pub(crate) async fn create(&self, name: &str, spec: Value) -> Job {
        let job = manifest(name, spec);
        self.jobs().create(&PostParams::default(), &job).await.expect("the test's own Job is valid")
    }

    /// Changes a Job.
    pub(crate) async fn patch(&self, name: &str, patch: Value) {
        let patch = Patch::Merge(patch);
        self.jobs().patch(name, &PatchParams::default(), &patch).await.expect("it can be changed");
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.jobs().delete(name, &DeleteParams::background()).await.expect("it can be deleted");
    }

    pub(crate) async fn job(&self, name: &str) -> Job {
        self.jobs().get(name).await.expect("the Job is there")
    }

    /// Waits until a Job is as it should be.
    pub(crate) async fn wait(&self, name: &str, what: &str, is_so: impl Fn(&Job) -> bool) -> Job {
        let began = Instant::now();
        loop {
            let job = self.job(name).await;
            if is_so(&job) {
                return job;
            }
            if began.elapsed() > PATIENCE {
                let status = serde_json::to_string(&job.status).expect("JSON");
                let pods = self.pod_lines().await.join("\n");
                let calls = self.tally.lines().join("\n");
                panic!("{name} never {what}: {status}\n{pods}\n{calls}");
            }
            tokio::time::sleep(pause(began.elapsed())).await;
        }
    }

    /// Waits until something is so.
    pub(crate) async fn until(&self, what: &str, mut is_so: impl AsyncFnMut(&Self) -> bool) {
        let began = Instant::now();
        while !is_so(self).await {
            assert!(
                began.elapsed() < PATIENCE,
                "never {what}\n{}",
                self.pod_lines().await.join("\n")
            );
            tokio::time::sleep(pause(began.elapsed())).await;
        }
    }

    /// Waits until a Job has finished, and checks what must hold of every one that has.
    pub(crate) async fn finish(&self, name: &str) -> Job {
        let job = self.wait(name, "finishes", |job| end(job).is_some()).await;
        self.settle(name).await;
        job
    }

    /// Waits until no Pod of a Job bears the finalizer.
    pub(crate) async fn settle(&self, name: &str) {
        self.until("lets its Pods go", async |cluster| !cluster.history.has_tracked(name)).await;
    }

    /// Waits until no Pod of a Job that has finished bears the finalizer, by what the API says.
    pub(crate) async fn settle_all(&self) {
        self.until("lets all Pods go", async |cluster| {
            let jobs = cluster.jobs().list(&ListParams::default()).await.expect("Jobs");
            let ended = jobs.items.iter().filter(|job| end(job).is_some());
            let ended: HashSet<&str> =
                ended.filter_map(|job| job.metadata.uid.as_deref()).collect();
            let pods = cluster.pods().list(&ListParams::default()).await.expect("Pods");
            let owners = pods.items.iter().filter(|pod| is_tracked(pod));
            let mut owners = owners.flat_map(|pod| pod.metadata.owner_references.iter().flatten());
            !owners.any(|owner| ended.contains(&*owner.uid))
        })
        .await;
    }

    /// The Pods of a Job that the API has.
    pub(crate) async fn pods_of(&self, name: &str) -> Vec<Pod> {
        let labels = ListParams::default().labels(&format!("job-name={name}"));
        self.pods().list(&labels).await.expect("Pods can be listed").items
    }

    /// The Events of a Job.
    pub(crate) async fn events_of(&self, name: &str) -> Vec<Event> {
        let events: Api<Event> = Api::namespaced(self.admin.clone(), NAMESPACE);
        let all = events.list(&ListParams::default()).await.expect("Events can be listed");
        let is_meant = |event: &Event| event.involved_object.name.as_deref() == Some(name);
        all.items.into_iter().filter(is_meant).collect()
    }

    /// All Pods, a line each.
    pub(crate) async fn pod_lines(&self) -> Vec<String> {
        let pods = self.pods().list(&ListParams::default()).await.expect("Pods can be listed");
        let line = |pod: &Pod| {
            let meta = &pod.metadata;
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            format!(
                "{} {} finalizers {:?} deleted {:?}",
                meta.name.as_deref().unwrap_or("?"),
                phase.unwrap_or("?"),
                meta.finalizers,
                meta.deletion_timestamp.is_some(),
            )
        };
        pods.items.iter().take(200).map(line).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.kill();
        self.server.drain();
    }
}

/// A Job of one plain container.
pub(crate) fn manifest(name: &str, mut spec: Value) -> Job {
    if spec["template"].is_null() {
        spec["template"] = json!({
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]},
        });
    }
    let job = json!({"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec});
    serde_json::from_value(job).expect("the test's own Job is a Job")
}

/// How a Job has ended: `Complete CompletionsReached`.
pub(crate) fn end(job: &Job) -> Option<String> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let is_end = |kind: &str| matches!(kind, "Complete" | "Failed");
    let end = conditions.iter().find(|it| is_end(&it.type_) && it.status == "True")?;
    Some(format!("{} {}", end.type_, end.reason.as_deref().unwrap_or("")))
}

/// Whether a Pod bears the finalizer.
pub(crate) fn is_tracked(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().flatten().any(|name| name == finalizer::JOB_TRACKING)
}

/// A Job's counts: active, succeeded, failed.
pub(crate) fn counts(job: &Job) -> (i32, i32, i32) {
    let status = job.status.clone().unwrap_or_default();
    (status.active.unwrap_or(0), status.succeeded.unwrap_or(0), status.failed.unwrap_or(0))
}
