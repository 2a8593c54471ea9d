//! An API server, a controller and a driver of Pods in one process.

use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::json;
use stint_apiserver::access::{Authenticator, Identity};
use stint_apiserver::log::NoLogs;
use stint_apiserver::{ApiServer, Limits, LocalServer};
use stint_controller::{Clock, Config, Controller, Metrics};
use stint_kit::{Driver, NAMESPACE, Stage, Time, collector, play};
use stint_store::Store;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use crate::still::{Still, Stilled};
use crate::tally::{Tallied, Tally};

/// How long a condition may take to come true: longer than any backoff.
const PATIENCE: Duration = Duration::from_secs(4 * 3600);

/// How long is long here, where time passes for nothing.
const LONG: Duration = Duration::from_secs(3600);

/// Everything but the Pods' fates.
pub(crate) struct Cluster {
    server: ApiServer,
    store: Store,
    still: Still,
    pub(crate) tally: Tally,
    stage: Stage,
    running: Mutex<Option<JoinHandle<()>>>,
    clock: Time,
}

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
            tracks_owners: true,
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
        let mut background = JoinSet::new();
        driver.start(&mut background, admin.clone(), clock.clone(), LONG);
        collector::start(&mut background, admin.clone());
        let tally = Tally::default();
        let mut stage = Stage::new(background, admin, driver, PATIENCE);
        let calls = tally.clone();
        stage.remarks = Arc::new(move || calls.lines());
        Cluster { server, store, still, tally, stage, running: Mutex::default(), clock }
    }

    /// What a controller's client speaks to.
    pub(crate) fn service(&self) -> Service {
        self.service_for(Identity::controller())
    }

    /// What the client of somebody speaks to.
    pub(crate) fn service_for(&self, somebody: Identity) -> Service {
        self.tally.around(self.still.around(self.server.local(somebody)))
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
}

impl Deref for Cluster {
    type Target = Stage;

    fn deref(&self) -> &Stage {
        &self.stage
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.kill();
        self.server.drain();
    }
}

/// Checks what must hold whatever was played.
pub(crate) async fn check_all(cluster: &Cluster) {
    play::check_all(cluster).await;
    let refused = cluster.tally.answered("PATCH jobs/status", 422);
    assert_eq!(refused, 0, "statuses that the API refused");
}
