//! The cluster as a whole: what is started in which order, and how it ends.

use std::convert::Infallible;
use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use stint_api::feature_gates::FeatureGates;
use stint_apiserver::access::{Authenticator, Identity, Role};
use stint_apiserver::{ApiServer, AuditFile, Clock, Config, Limits};
use stint_controller::Controller;
use stint_node::Gate;
use stint_store::{Revision, Store, StoreError};

use crate::binder;
use crate::bootstrap::{BootstrapError, bootstrap};
use crate::collector;
use crate::disk;
use crate::endpoints;
use crate::event_collector;
use crate::namespaces;
use crate::pod_collector;
use crate::pods::{NodeConsoles, NodeLogs, NodeOptions, Running};
use crate::quotas;
use crate::tasks::{Starting, TaskFailure, Tasks};
use crate::ttl;

/// The namespace of a client that names none.
const DEFAULT_NAMESPACE: &str = "default";

/// Who writes what the cluster's own parts write.
const CONTROLLER: &str = "stint-controller";

/// How long after the start it is first looked what there is too much of. To read the most that is kept,
/// 20,000 Events and 5,000 Pods, takes two thirds as long as to read the store: whoever waits for the first answer
/// goes first.
const TIDIED_AFTER: Duration = Duration::from_secs(1);

/// Where the objects of a cluster are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// In memory: they are gone with the cluster.
    #[default]
    Memory,
    /// In this folder, which is the store's alone.
    Folder(PathBuf),
}

/// What a cluster is made of. `Options::default()` is one in memory that nobody outside this
/// process can enter; name what is to be different.
#[derive(Debug)]
pub struct Options {
    /// Where the objects are kept.
    pub storage: Storage,
    /// How the store keeps them.
    pub store: stint_store::Options,
    /// Who is known from outside this process.
    pub authenticator: Authenticator,
    /// The certificate, in PEM, by which Pods know the API server; it is put into every
    /// namespace. Empty: there is none, and namespaces keep what they have.
    pub ca_certificate: String,
    /// Which features are on.
    pub gates: FeatureGates,
    /// What time it is.
    pub clock: Clock,
    /// What runs Pods; without it somebody else does, or nobody.
    pub node: Option<NodeOptions>,
    /// Whether it is noted who owns which fields of what is created, as clients of a cluster expect. It
    /// makes objects half as large again, and where nobody else comes there is nobody to tell.
    pub tracks_owners: bool,
    /// How much the API server takes on at once.
    pub limits: Limits,
    /// Where it is written down who asks for what, from the first request of the cluster's own on.
    pub audit: Option<AuditFile>,
    /// How Jobs are run, or that they are left to somebody else. Gates and clock are the
    /// cluster's own.
    pub jobs: Option<stint_controller::Config>,
    /// How much is kept of what is over.
    pub kept: Kept,
    /// Before it is open no Pod is made, given a node, or run, and no Job goes because its time to live
    /// is over. So somebody can look at what an earlier cluster has left, and change it, first.
    pub gate: Gate,
}

/// How much is kept of what is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// How many Pods that have ended, and that nobody holds by a finalizer. Upstream's
    /// terminated-pod-gc-threshold is 12,500, for a cluster.
    pub finished_pods: usize,
    /// How long Events are kept after they were last said: upstream's event-ttl.
    pub event_ttl: Duration,
    /// How many Events.
    pub events: usize,
}

impl Default for Kept {
    /// 5,000 Pods and 20,000 Events are some 40 MB each.
    fn default() -> Self {
        Kept { finished_pods: 5_000, event_ttl: Duration::from_secs(3600), events: 20_000 }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            storage: Storage::default(),
            store: stint_store::Options::default(),
            authenticator: Authenticator::new::<&str>([]),
            ca_certificate: String::new(),
            gates: FeatureGates::default(),
            clock: Clock::system(),
            node: None,
            tracks_owners: true,
            limits: Limits::default(),
            audit: None,
            jobs: Some(stint_controller::Config::default()),
            kept: Kept::default(),
            gate: Gate::default(),
        }
    }
}

/// Why a cluster does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What every cluster has cannot be made.
    #[error(transparent)]
    Bootstrap(#[from] BootstrapError),
}

/// A cluster that runs in this process. When it is dropped its tasks are stopped; what was
/// answered is stored either way.
#[derive(Debug)]
pub struct Cluster {
    server: ApiServer,
    store: Store,
    /// How far the store was when it was opened.
    opened_at: Revision,
    tasks: Tasks,
    node: Option<Running>,
}

impl Cluster {
    /// Starts a cluster. Once this returns, the namespaces that every cluster has are there.
    ///
    /// # Errors
    ///
    /// [`StartError`] if the store cannot be opened or written.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with time enabled.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let Options { storage, store, authenticator, ca_certificate, .. } = options;
        let folder = match &storage {
            Storage::Folder(folder) => Some(folder.clone()),
            Storage::Memory => None,
        };
        let store = open(storage, store).await?;
        let opened_at = store.revision();
        let clock = options.clock.clone();
        let logs = NodeLogs::default();
        let config = Config {
            gates: options.gates,
            clock: options.clock,
            logs: Arc::new(logs.clone()),
            tracks_owners: options.tracks_owners,
        };
        let server = ApiServer::new(store.clone(), authenticator, config, options.limits);
        let consoles = NodeConsoles::default();
        server.visit(Arc::new(consoles.clone()));
        if let Some(log) = options.audit {
            server.audit(log);
        }
        // Upstream the API server makes its namespaces itself.
        bootstrap(&client(&server, Identity::new("system:apiserver", Role::Admin))).await?;
        let mut starting = Starting::default();
        let controller = || client(&server, Identity::controller());
        starting.spawn("namespaces", namespaces::run(controller(), ca_certificate, clock.clone()));
        starting.spawn("collector", collector::run(controller()));
        let gate = options.gate;
        starting.spawn("binder", binder::run(controller(), clock.clone(), gate.clone()));
        starting.spawn("endpoints", endpoints::run(controller()));
        starting.spawn("quotas", quotas::run(controller(), clock.clone()));
        starting.spawn("TTL", ttl::run(controller(), clock.clone(), gate.clone()));
        let kept = options.kept;
        let pods = pod_collector::run(controller(), kept.finished_pods, clock.clone());
        starting.spawn("Pod collector", in_peace(pods));
        let events = event_collector::run(controller(), kept, clock.clone());
        starting.spawn("Event collector", in_peace(events));
        if let Some(folder) = folder {
            starting.spawn("disk watch", disk::watch(store.refusal(), folder));
        }
        let node = options.node.map(|mut node| {
            node.options.gate = gate.clone();
            let identity = Identity::node(&node.options.node_name);
            Running::start(node, client(&server, identity), clock.clone(), &logs, &consoles)
        });
        if let Some(config) = options.jobs {
            let clock = stint_controller::Clock::new(move || clock.now());
            let config = stint_controller::Config { gates: options.gates, clock, ..config };
            // It looks who else writes the status of its Jobs; who owns what of Pods is nothing to it.
            let owned = server.local(Identity::controller()).named(CONTROLLER).unwarned();
            let owned = owned.without_managed_fields_of("pods");
            let jobs = Controller::new(Client::new(owned, DEFAULT_NAMESPACE), config);
            let metrics = jobs.metrics();
            server.add_metrics(move || metrics.text());
            starting.spawn("Job controller", run_jobs(jobs, gate));
        }
        Ok(Cluster { tasks: starting.watch_over(), server, store, opened_at, node })
    }

    /// A client of this cluster's API that needs no socket. Nothing is retried for it.
    pub fn client(&self, identity: Identity) -> Client {
        client(&self.server, identity)
    }

    /// The same for who does not ask who owns the fields of objects: `managedFields` are left out of
    /// what it is answered.
    pub fn plain_client(&self, identity: Identity) -> Client {
        let local = self.server.local(identity).named("stint").without_managed_fields();
        Client::new(local, DEFAULT_NAMESPACE)
    }

    /// The API server, for those who bring it to a socket.
    pub fn server(&self) -> ApiServer {
        self.server.clone()
    }

    /// The newest `resourceVersion` that this cluster has found when it was started: what is newer
    /// has been written since.
    pub fn opened_at(&self) -> u64 {
        self.opened_at.get()
    }

    /// Waits until a part of the cluster has failed, which should never happen. The others go
    /// on.
    pub async fn failed(&self) -> TaskFailure {
        self.tasks.failed().await
    }

    /// Waits until the disk has taken nothing for so long, and answers why.
    pub async fn refused(&self, patience: Duration) -> StoreError {
        disk::refused(self.store.refusal(), patience).await
    }

    /// Stops the cluster's own tasks, then ends its Pods with grace. The API still answers.
    pub async fn end_pods(self) -> Resting {
        // First those who would have the Pods replaced.
        self.tasks.stop().await;
        if let Some(node) = self.node {
            node.stop().await;
        }
        Resting { store: self.store }
    }

    /// Stops the cluster's own tasks, ends its Pods with grace, then closes the store. What
    /// clients ask for afterwards is refused, and the folder may be opened again.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if it is not known whether everything was written.
    pub async fn shutdown(self) -> Result<(), StoreError> {
        self.end_pods().await.close().await
    }
}

/// A cluster in which nothing happens by itself any more: its clients can look at what is left.
#[derive(Debug)]
pub struct Resting {
    store: Store,
}

impl Resting {
    /// Closes the store. What clients ask for afterwards is refused, and the folder may be opened
    /// again.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if it is not known whether everything was written.
    pub async fn close(self) -> Result<(), StoreError> {
        self.store.close().await
    }
}

async fn run_jobs(controller: Controller, gate: Gate) -> Infallible {
    gate.opened().await;
    controller.run(pending()).await;
    panic!("the Job controller ended, and nobody had told it to")
}

/// What removes what is over, once those are served who have waited for the start.
async fn in_peace(part: impl Future<Output = Infallible>) -> Infallible {
    tokio::time::sleep(TIDIED_AFTER).await;
    part.await
}

/// Opens a store.
pub(crate) async fn open(
    storage: Storage,
    options: stint_store::Options,
) -> Result<Store, StoreError> {
    match storage {
        Storage::Memory => Ok(Store::in_memory(options)),
        Storage::Folder(folder) => {
            // Everything that is stored is read and verified, which takes a while.
            let opening = tokio::task::spawn_blocking(move || Store::open(folder, options));
            opening.await.expect("opening a store does not panic and is not cancelled")
        }
    }
}

/// A client of an API server that needs no socket. What it writes is owned by the part of this
/// program that it is for. The cluster's own parts are not told who owns what, for which they have
/// no use: it is half of what there is to read of a Pod. Nor are they warned of fields that there are not: they
/// write none.
pub(crate) fn client(server: &ApiServer, identity: Identity) -> Client {
    let role = identity.role;
    let local = server.local(identity);
    let local = match role {
        Role::Controller => local.named(CONTROLLER).without_managed_fields().unwarned(),
        Role::Node => local.named("stint-node").without_managed_fields().unwarned(),
        Role::Admin | Role::Edit | Role::View | Role::Nobody => local.named("stint"),
    };
    Client::new(local, DEFAULT_NAMESPACE)
}
