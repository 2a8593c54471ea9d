//! What all verbs share: the store, the kinds' rules, and the way from one to the other. It
//! knows no HTTP.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use stint_api::feature_gates::FeatureGates;
use stint_store::{Entry, Revision, Store, StoreError};
use tokio::sync::{Mutex, watch};

use crate::clock::Clock;
use crate::kind::{AnyKind, Names};
use crate::kinds;
use crate::log::LogSource;
use crate::object::{Object, managed};
use crate::status::Status;
use crate::verb::charge::Lines;

/// What the server works on.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which features are on.
    pub gates: FeatureGates,
    /// What time it is.
    pub clock: Clock,
    /// Where the logs of Pods come from.
    pub logs: Arc<dyn LogSource>,
    /// Whether it is noted who owns which fields of what is created. It is half of a small object, and
    /// of no use where nobody but the cluster's own parts will ever come. Whoever applies something, or
    /// says himself who owns it, has it noted all the same.
    pub tracks_owners: bool,
}

/// The API on its store.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) store: Store,
    pub(crate) gates: FeatureGates,
    pub(crate) clock: Clock,
    pub(crate) logs: Arc<dyn LogSource>,
    pub(crate) tracks_owners: bool,
    /// Turns true when everything that has no end of its own is to end.
    pub(crate) draining: watch::Sender<bool>,
    /// Held while an object with an address of its own is created, so that no two get the same.
    pub(crate) addresses: Mutex<()>,
    /// Writes that wait for quotas.
    pub(crate) lines: Lines,
}

/// An object as it is stored now.
#[derive(Debug)]
pub(crate) struct Current {
    pub(crate) entry: Arc<Entry>,
    pub(crate) object: Box<dyn Object>,
    /// Who owns which of its fields, which its object does not say.
    pub(crate) managed: Option<Bytes>,
}

/// What a write came to: an object as the client is shown it.
#[derive(Debug)]
pub(crate) struct Written {
    /// Its stored form.
    pub(crate) stored: Bytes,
    /// Its version; none after a dry run that would have created it.
    pub(crate) revision: Option<Revision>,
    /// Whether it is new.
    pub(crate) is_new: bool,
    /// What the client should know.
    pub(crate) warnings: Vec<String>,
}

impl Api {
    pub(crate) fn new(store: Store, config: Config) -> Self {
        let Config { gates, clock, logs, tracks_owners } = config;
        let (draining, addresses) = (watch::Sender::new(false), Mutex::new(()));
        let lines = Lines::default();
        Api { store, gates, clock, logs, tracks_owners, draining, addresses, lines }
    }

    /// Resolves when everything that has no end of its own is to end.
    pub(crate) fn drained(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut draining = self.draining.subscribe();
        async move {
            // Without a sender there is no server left, and nothing to wait for.
            let _ = draining.wait_for(|draining| *draining).await;
        }
    }

    /// The time as objects carry it: in whole seconds.
    pub(crate) fn now(&self) -> Timestamp {
        in_seconds(&self.clock)
    }

    /// What is stored under a name, decoded.
    pub(crate) fn current(
        &self,
        kind: &dyn AnyKind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Current, Status> {
        let entry = self
            .store
            .get(&key(kind, namespace, name))
            .ok_or_else(|| Status::not_found(kind.names(), name))?;
        let object = kind.read_stored(&entry.value, entry.modified);
        let managed = managed(&entry.value);
        Ok(Current { entry, object, managed })
    }

    /// Refuses to put something into a namespace that is not there, or will not be for long.
    /// What is put there must be so on the condition that the namespace is as it is answered:
    /// whoever empties it sees all that was made before it was marked, and nothing is later.
    pub(crate) fn check_namespace(
        &self,
        names: &Names,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Arc<Entry>>, Status> {
        let Some(namespace) = namespace else { return Ok(None) };
        let namespaces = kinds::namespaces();
        let found = self.current(namespaces, None, namespace)?;
        if found.object.meta().deletion_timestamp.is_some() {
            return Err(Status::namespace_terminating(names, name, namespace));
        }
        Ok(Some(found.entry))
    }
}

/// The time as objects carry it.
pub(crate) fn in_seconds(clock: &Clock) -> Timestamp {
    let second = clock.now().as_second();
    Timestamp::from_second(second).expect("a time without its fraction is a time")
}

/// Where an object is stored.
pub(crate) fn key(kind: &dyn AnyKind, namespace: Option<&str>, name: &str) -> String {
    format!("{}{name}", prefix(kind, namespace))
}

/// Where the objects of a kind are stored: those of a namespace, or all.
pub(crate) fn prefix(kind: &dyn AnyKind, namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!("/registry/{}/{namespace}/", kind.stored_under()),
        None => format!("/registry/{}/", kind.stored_under()),
    }
}

/// What a client is told when the store fails.
pub(crate) fn store_failed(error: StoreError) -> Status {
    match error {
        StoreError::TooLarge { limit, .. } => Status::too_large(limit),
        StoreError::InDoubt { .. } => {
            Status::timeout(&format!("it is not known whether the write was done: {error}"))
        }
        StoreError::Compacted { .. } => Status::expired(EXPIRED),
        StoreError::Future { asked, newest } => {
            Status::too_large_version(asked.get(), newest.get())
        }
        StoreError::Closed => Status::unavailable("the server is shutting down"),
        StoreError::Io { .. } => {
            Status::unavailable(format!("the store cannot be written: {error}"))
        }
        // Conflicts are answered where they can happen; the others are of opening a store.
        other => Status::internal(other),
    }
}

/// What a client is told when it asks for something too old.
pub(crate) const EXPIRED: &str =
    "The provided resource version is too old: it is not kept any more";
