//! An API server, and replicas of a controller on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use stint_apiserver::access::{Authenticator, Identity};
use stint_apiserver::log::NoLogs;
use stint_apiserver::{ApiServer, Limits};
use stint_controller::{
    Clock, Config, Controller, ElectionConfig, Health, LeaseTiming, Metrics, Role, Ticks,
};
use stint_store::Store;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::net::Net;
use crate::still::Still;

pub(crate) const NAMESPACE: &str = "default";
pub(crate) const LEASE: &str = "stint";

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// How long a condition may take to come true.
const PATIENCE: Duration = Duration::from_secs(3600);

/// An API server.
pub(crate) struct Cluster {
    server: ApiServer,
    still: Still,
    pub(crate) admin: Client,
    began: Instant,
}

/// A replica that runs.
pub(crate) struct Replica {
    pub(crate) net: Net,
    pub(crate) health: Health,
    pub(crate) metrics: Metrics,
    /// By how much its clock of terms has jumped, in milliseconds.
    jumped: Arc<AtomicU64>,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<()>,
}

impl Cluster {
    pub(crate) async fn new() -> Self {
        let began = Instant::now();
        let config = stint_apiserver::Config {
            gates: Default::default(),
            clock: stint_apiserver::Clock::new(move || wall(began, 0)),
            logs: Arc::new(NoLogs),
            tracks_owners: true,
        };
        let store = Store::in_memory(stint_store::Options::default());
        let nobody = Authenticator::new::<&str>([]);
        let server = ApiServer::new(store, nobody, config, Limits::default());
        let still = Still::default();
        let admin = Client::new(still.around(server.local(Identity::admin())), NAMESPACE);
        let namespace = json!({"metadata": {"name": NAMESPACE}});
        let namespace: Namespace = serde_json::from_value(namespace).expect("a namespace");
        let namespaces = Api::all(admin.clone());
        namespaces.create(&PostParams::default(), &namespace).await.expect("a namespace");
        Cluster { server, still, admin, began }
    }

    /// What time it is, for whoever writes it down.
    pub(crate) fn clock(&self) -> Clock {
        let began = self.began;
        Clock::new(move || wall(began, 0))
    }

    /// A client on its own way to the server.
    pub(crate) fn client(&self, net: &Net) -> Client {
        let local = self.server.local(Identity::controller());
        Client::new(net.around(self.still.around(local)), NAMESPACE)
    }

    /// Starts a replica.
    pub(crate) fn start(&self, identity: &str) -> Replica {
        self.start_skewed(identity, 0)
    }

    /// Starts a replica whose wall clock goes wrong by so many seconds.
    pub(crate) fn start_skewed(&self, identity: &str, skew_seconds: i64) -> Replica {
        let net = Net::default();
        let config = Config { clock: self.clock(), ..Config::default() };
        let controller = Controller::new(self.client(&net), config);
        let (health, metrics) = (controller.health(), controller.metrics());
        let jumped: Arc<AtomicU64> = Arc::default();
        let (began, jump) = (self.began, jumped.clone());
        let ticks = Ticks::new(move || {
            began.elapsed() + Duration::from_millis(jump.load(Ordering::SeqCst))
        });
        let election = ElectionConfig {
            namespace: NAMESPACE.to_owned(),
            name: LEASE.to_owned(),
            identity: identity.to_owned(),
            timing: LeaseTiming::default(),
            clock: Clock::new(move || wall(began, skew_seconds)),
            ticks,
        };
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(controller.run_elected(election, async {
            let _ = stopped.await;
        }));
        Replica { net, health, metrics, jumped, stop: Some(stop), running }
    }

    pub(crate) fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.admin.clone(), NAMESPACE)
    }

    pub(crate) fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.admin.clone(), NAMESPACE)
    }

    /// Who has the Lease.
    pub(crate) async fn holder(&self) -> String {
        let lease = self.leases().get_opt(LEASE).await.expect("an answer");
        lease.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default()
    }

    pub(crate) async fn create(&self, name: &str, mut spec: Value) {
        spec["template"] = json!({
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]},
        });
        let job = json!({"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec});
        let job = serde_json::from_value(job).expect("a Job");
        self.jobs().create(&PostParams::default(), &job).await.expect("the test's own Job");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.server.drain();
    }
}

impl Replica {
    pub(crate) fn leads(&self) -> bool {
        self.health.role() == Role::Leader
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        (&mut self.running).await.expect("it ends");
    }

    /// Ends it in the middle of what it does.
    pub(crate) fn kill(self) {
        self.running.abort();
    }

    /// Lets its clock go on by so much at once, as when a machine wakes up.
    pub(crate) fn sleep_through(&self, time: Duration) {
        let millis = u64::try_from(time.as_millis()).expect("a test is short");
        self.jumped.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// Waits until something is so, and says how long that took.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(LOOK).await;
    }
    began.elapsed()
}

fn wall(began: Instant, skew_seconds: i64) -> Timestamp {
    let passed = SignedDuration::try_from(began.elapsed()).expect("a test is short");
    let start = Timestamp::from_second(1_800_000_000 + skew_seconds).expect("a time");
    start.checked_add(passed).expect("a test is short")
}
