//! Writes that quotas are charged for. What is made and what is used are written together, or
//! neither is.
//!
//! ```text
//!   write ─▶ no quota is about it ─────────────────────────────▶ store
//!        └─▶ line of the namespace ─▶ charge, one after the other ─▶ one transaction:
//!                                     the objects, and the quotas as they were read
//! ```
//!
//! # Guarantees
//!
//! - A quota is charged on top of the very version that was looked at. Of two that want the last
//!   place one is refused, whoever else writes the quota.
//! - Nothing is charged for what is not made, also after a crash: both are one transaction.
//! - Those who come while others are being written are written together, so a quota costs a commit
//!   for many and not for each.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use k8s_openapi::api::core::v1::ResourceQuota;
use stint_api::quota::{Counted, Refusal, charge};
use stint_store::{Change, Condition, Operation, Page, StoreError, Write};
use tokio::sync::oneshot;

use super::track::Tracker;
use crate::api::{Api, Current, prefix, store_failed};
use crate::kind::{AnyKind, Part};
use crate::kinds;
use crate::object::{Object, managed};
use crate::status::Status;

/// Who owns what quotas say of usage: as in kube-apiserver.
const MANAGER: &str = "kube-apiserver";

/// How many writes are one transaction: half of what the store takes, which leaves as much for
/// quotas.
const AT_ONCE: usize = 64;

/// How many bytes of objects are one transaction: half of what the store takes. One object alone is
/// smaller.
const BYTES_AT_ONCE: usize = 4 * 1024 * 1024;

/// Why something was not written.
#[derive(Debug)]
pub(crate) enum Failed {
    /// A quota does not have it.
    Refused(Refusal),
    /// The store did not do it.
    Store(StoreError),
}

impl Failed {
    /// What a client is told, where no conflict is possible or it was dealt with.
    pub(crate) fn status(self, kind: &dyn AnyKind, name: &str) -> Status {
        match self {
            Failed::Refused(refusal) => Status::forbidden(kind.names(), name, refusal),
            Failed::Store(error) => store_failed(error),
        }
    }
}

/// Those who wait for quotas, by namespace. A namespace that is in it has a task that works on it.
pub(crate) type Lines = Arc<Mutex<HashMap<String, Vec<Waiting>>>>;

/// A write that waits for quotas.
#[derive(Debug)]
pub(crate) struct Waiting {
    counted: Counted,
    write: Write,
    answer: oneshot::Sender<Result<Arc<Change>, Failed>>,
}

impl Waiting {
    fn answer(self, answer: Result<Arc<Change>, Failed>) {
        // Who does not wait any more has gone away.
        let _ = self.answer.send(answer);
    }

    fn bytes(&self) -> usize {
        match &self.write.operation {
            Operation::Put(value) => value.len(),
            Operation::Delete => 0,
        }
    }

    /// Whether a key is one that its write is about.
    fn is_about(&self, key: &str) -> bool {
        let guard = self.write.guard.as_ref();
        &*self.write.key == key || guard.is_some_and(|guard| &*guard.key == key)
    }
}

impl Api {
    /// Carries out a write of something that quotas may be about.
    pub(super) async fn write_counted(
        &self,
        namespace: Option<&str>,
        counted: Option<Counted>,
        write: Write,
    ) -> Result<Arc<Change>, Failed> {
        if let (Some(namespace), Some(counted)) = (namespace, counted)
            && self.is_limited(namespace, &counted)
        {
            return self.wait_for_quotas(namespace, counted, write).await;
        }
        self.store.write(write).await.map_err(Failed::Store)
    }

    /// Whether quotas would let something be written; none of them is charged.
    pub(super) fn check_quotas(
        &self,
        namespace: Option<&str>,
        counted: Option<&Counted>,
    ) -> Result<(), Failed> {
        let (Some(namespace), Some(counted)) = (namespace, counted) else { return Ok(()) };
        let quotas = self.bursar().quotas(namespace);
        let mut quotas: Vec<ResourceQuota> = quotas.into_iter().map(|(_, quota)| quota).collect();
        charge(&mut quotas, counted).map(|_| ()).map_err(Failed::Refused)
    }

    /// What something takes of the quotas of a namespace; it is not asked for if there are none.
    pub(super) fn counted(
        &self,
        namespace: Option<&str>,
        counted: impl FnOnce() -> Option<Counted>,
    ) -> Option<Counted> {
        let quotas = prefix(kinds::resource_quotas(), Some(namespace?));
        let first = Page { limit: Some(1), ..Page::default() };
        let found = self.store.list(&quotas, first).expect("the newest revision can be read");
        if found.entries.is_empty() { None } else { counted() }
    }

    fn is_limited(&self, namespace: &str, counted: &Counted) -> bool {
        let quotas = self.bursar().quotas(namespace);
        quotas.iter().any(|(_, quota)| counted.is_limited_by(quota))
    }

    fn bursar(&self) -> Bursar {
        Bursar { store: self.store.clone(), tracker: self.tracker() }
    }

    async fn wait_for_quotas(
        &self,
        namespace: &str,
        counted: Counted,
        write: Write,
    ) -> Result<Arc<Change>, Failed> {
        let (answer, answered) = oneshot::channel();
        let is_first = {
            let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            let line = lines.get_mut(namespace);
            let is_first = line.is_none();
            let waiting = Waiting { counted, write, answer };
            match line {
                Some(line) => line.push(waiting),
                None => drop(lines.insert(namespace.to_owned(), vec![waiting])),
            }
            is_first
        };
        if is_first {
            // A task of its own: a client that goes away takes nobody else's write with it.
            tokio::spawn(work(self.bursar(), self.lines.clone(), namespace.to_owned()));
        }
        answered.await.unwrap_or_else(|_| {
            let source = Arc::new(std::io::Error::other("whoever charges quotas has ended"));
            Err(Failed::Store(StoreError::InDoubt { source }))
        })
    }
}

/// Works on the line of a namespace until nobody is left in it.
async fn work(bursar: Bursar, lines: Lines, namespace: String) {
    loop {
        let batch = {
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            let line = lines.get_mut(&namespace).expect("only this task removes it");
            if line.is_empty() {
                lines.remove(&namespace);
                return;
            }
            let mut bytes = 0;
            let fits = |waiting: &&Waiting| {
                bytes += waiting.bytes();
                bytes <= BYTES_AT_ONCE
            };
            let count = line.iter().take(AT_ONCE).take_while(fits).count().max(1);
            line.drain(..count).collect::<Vec<_>>()
        };
        bursar.settle(&namespace, batch).await;
    }
}

/// Whoever charges quotas.
struct Bursar {
    store: stint_store::Store,
    tracker: Tracker,
}

impl Bursar {
    /// The quotas of a namespace, in the order of their names.
    fn quotas(&self, namespace: &str) -> Vec<(Current, ResourceQuota)> {
        let kind = kinds::resource_quotas();
        let listing = self
            .store
            .list(&prefix(kind, Some(namespace)), Page::default())
            .expect("the newest revision can be read");
        let read = |entry: Arc<stint_store::Entry>| {
            let object = kind.read_stored(&entry.value, entry.modified);
            let quota = object.expect_ref::<ResourceQuota>().clone();
            let managed = managed(&entry.value);
            (Current { entry, object, managed }, quota)
        };
        listing.entries.into_iter().map(read).collect()
    }

    /// Answers everybody: charges quotas and writes what they let through.
    async fn settle(&self, namespace: &str, mut batch: Vec<Waiting>) {
        while !batch.is_empty() {
            let (stored, mut quotas): (Vec<Current>, Vec<ResourceQuota>) =
                self.quotas(namespace).into_iter().unzip();
            let mut charged = BTreeSet::new();
            let mut admitted = Vec::new();
            for waiting in batch {
                match charge(&mut quotas, &waiting.counted) {
                    Ok(places) => {
                        charged.extend(places);
                        admitted.push(waiting);
                    }
                    Err(refusal) => waiting.answer(Err(Failed::Refused(refusal))),
                }
            }
            let mut writes: Vec<Write> =
                admitted.iter().map(|waiting| waiting.write.clone()).collect();
            for place in charged {
                match self.charged(&stored[place], quotas[place].clone()) {
                    Ok(write) => writes.push(write),
                    Err(_) => unreachable!("what was stored can be stored again"),
                }
            }
            batch = match self.store.transact(writes).await {
                Ok(changes) => {
                    for (waiting, change) in admitted.into_iter().zip(changes) {
                        waiting.answer(Ok(change));
                    }
                    return;
                }
                Err(error) => self.without_failed(namespace, error, admitted).await,
            };
        }
    }

    /// The write of a quota that says what is used now.
    fn charged(&self, current: &Current, quota: ResourceQuota) -> Result<Write, Status> {
        let kind = kinds::resource_quotas();
        let mut quota: Box<dyn Object> = Box::new(quota);
        let tracked =
            self.tracker.track(kind, Part::Status, Some(current), quota.as_mut(), MANAGER);
        let managed = tracked.managed.as_deref().map(str::as_bytes);
        let stored: Bytes = kind.to_stored(quota.as_ref(), managed)?;
        Ok(Write::put(current.entry.key.clone(), Condition::At(current.entry.modified), stored))
    }

    /// Answers those whose write has failed, and gives those that are to be tried again.
    async fn without_failed(
        &self,
        namespace: &str,
        error: StoreError,
        mut batch: Vec<Waiting>,
    ) -> Vec<Waiting> {
        match &error {
            StoreError::Conflict { key, .. } => {
                // Of two with the same key the later one has failed. If it is nobody's key it is that
                // of a quota, which somebody else has written: all are tried again.
                if let Some(place) = batch.iter().rposition(|waiting| waiting.is_about(key)) {
                    batch.remove(place).answer(Err(Failed::Store(error)));
                }
                batch
            }
            StoreError::TooLarge { .. } if batch.len() > 1 => {
                for waiting in batch {
                    Box::pin(self.settle(namespace, vec![waiting])).await;
                }
                Vec::new()
            }
            _ => {
                for waiting in batch {
                    waiting.answer(Err(Failed::Store(error.clone())));
                }
                Vec::new()
            }
        }
    }
}
