//! The cluster as a whole: what is started in which order, and how it ends.

use std::path::PathBuf;
use std::sync::Arc;

use kube::Client;
use stint_api::feature_gates::FeatureGates;
use stint_apiserver::access::{Authenticator, Identity, Role};
use stint_apiserver::log::{LogSource, NoLogs};
use stint_apiserver::{ApiServer, Clock, Config, Limits};
use stint_store::{Store, StoreError};

use crate::bootstrap::{BootstrapError, bootstrap};
use crate::collector;
use crate::namespaces;
use crate::tasks::{Starting, TaskFailure, Tasks};

/// The namespace of a client that names none.
const DEFAULT_NAMESPACE: &str = "default";

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
    /// namespace.
    pub ca_certificate: String,
    /// Which features are on.
    pub gates: FeatureGates,
    /// What time it is.
    pub clock: Clock,
    /// Where the logs of Pods come from.
    pub logs: Arc<dyn LogSource>,
    /// How much the API server takes on at once.
    pub limits: Limits,
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
            logs: Arc::new(NoLogs),
            limits: Limits::default(),
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
    tasks: Tasks,
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
        let store = open(storage, store).await?;
        let clock = options.clock.clone();
        let config = Config { gates: options.gates, clock: options.clock, logs: options.logs };
        let server = ApiServer::new(store.clone(), authenticator, config, options.limits);
        // Upstream the API server makes its namespaces itself.
        bootstrap(&client(&server, Identity::new("system:apiserver", Role::Admin))).await?;
        let mut starting = Starting::default();
        let controller = || client(&server, Identity::controller());
        starting.spawn("namespaces", namespaces::run(controller(), ca_certificate, clock));
        starting.spawn("collector", collector::run(controller()));
        Ok(Cluster { tasks: starting.watch_over(), server, store })
    }

    /// A client of this cluster's API that needs no socket. Nothing is retried for it.
    pub fn client(&self, identity: Identity) -> Client {
        client(&self.server, identity)
    }

    /// The API server, for those who bring it to a socket.
    pub fn server(&self) -> ApiServer {
        self.server.clone()
    }

    /// Waits until a part of the cluster has failed, which should never happen. The others go
    /// on.
    pub async fn failed(&self) -> TaskFailure {
        self.tasks.failed().await
    }

    /// Stops the cluster's own tasks, then closes the store. What clients ask for afterwards is
    /// refused, and the folder may be opened again.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if it is not known whether everything was written.
    pub async fn shutdown(self) -> Result<(), StoreError> {
        self.tasks.stop().await;
        self.store.close().await
    }
}

async fn open(storage: Storage, options: stint_store::Options) -> Result<Store, StoreError> {
    match storage {
        Storage::Memory => Ok(Store::in_memory(options)),
        Storage::Folder(folder) => {
            // Everything that is stored is read and verified, which takes a while.
            let opening = tokio::task::spawn_blocking(move || Store::open(folder, options));
            opening.await.expect("opening a store does not panic and is not cancelled")
        }
    }
}

fn client(server: &ApiServer, identity: Identity) -> Client {
    Client::new(server.local(identity), DEFAULT_NAMESPACE)
}
