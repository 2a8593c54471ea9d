//! What objects of one kind take together, in one namespace. Objects that take the same are one
//! line with a count: the Pods of a Job cost no more than one of them, however many they are.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, ResourceQuotaSpec, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use stint_api::quantity::Quantity;
use stint_api::quota::{
    Amounts, PodScopes, Tracked, is_in_scope, pod_usage, pod_usage_ends_at, service_usage,
};

use super::Name;

/// An object, as far as it is read.
#[derive(Debug)]
pub(super) enum Item {
    Pod(Box<Pod>),
    Service(Box<Service>),
    Other(Box<ObjectMeta>),
}

impl Item {
    pub(super) fn name(&self) -> Name {
        let meta = match self {
            Item::Pod(pod) => &pod.metadata,
            Item::Service(service) => &service.metadata,
            Item::Other(meta) => meta,
        };
        meta.name.as_deref().unwrap_or_default().into()
    }

    /// When it takes less, though nothing is heard of it.
    pub(super) fn ends_at(&self) -> Option<Timestamp> {
        match self {
            Item::Pod(pod) => pod_usage_ends_at(pod),
            Item::Service(_) | Item::Other(_) => None,
        }
    }
}

/// What an object takes, and what it is.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Share {
    /// Amounts as they are written, for they have to be told apart.
    usage: BTreeMap<String, String>,
    scopes: Option<PodScopes>,
}

/// What the objects of a kind take.
#[derive(Debug)]
pub(super) struct Tally {
    tracked: Tracked,
    items: HashMap<Name, Arc<Share>>,
    counts: HashMap<Arc<Share>, u64>,
    listed: HashSet<Name>,
    pub(super) is_complete: bool,
}

impl Tally {
    pub(super) fn new(tracked: Tracked) -> Self {
        let (items, counts, listed) = Default::default();
        Tally { tracked, items, counts, listed, is_complete: false }
    }

    /// A list begins.
    pub(super) fn begin(&mut self) {
        self.is_complete = false;
        self.listed.clear();
    }

    /// Everything was listed.
    pub(super) fn complete(&mut self) {
        self.is_complete = true;
        let listed = std::mem::take(&mut self.listed);
        let gone: Vec<Name> =
            self.items.keys().filter(|name| !listed.contains(*name)).cloned().collect();
        for name in &gone {
            self.remove(name);
        }
    }

    /// Counts an object, and says whether that makes a difference.
    pub(super) fn see(&mut self, item: &Item, now: Timestamp) -> bool {
        let name = item.name();
        if !self.is_complete {
            self.listed.insert(name.clone());
        }
        let (usage, scopes) = match item {
            Item::Pod(pod) => (pod_usage(pod, now), Some(PodScopes::of(pod))),
            Item::Service(service) => (service_usage(service), None),
            Item::Other(_) => (self.tracked.usage_of_one(), None),
        };
        self.put(name, Share { usage: written(&usage), scopes })
    }

    /// A Pod takes nothing any more but its place among the objects.
    pub(super) fn expire(&mut self, name: &Name) -> bool {
        let Some(share) = self.items.get(name) else { return false };
        let mut usage = share.usage.clone();
        usage.retain(|resource, _| resource.starts_with("count/"));
        let share = Share { usage, scopes: share.scopes.clone() };
        self.put(name.clone(), share)
    }

    fn put(&mut self, name: Name, share: Share) -> bool {
        if self.items.get(&name).is_some_and(|before| **before == share) {
            return false;
        }
        self.remove(&name);
        let share = match self.counts.get_key_value(&share) {
            Some((known, _)) => known.clone(),
            None => Arc::new(share),
        };
        *self.counts.entry(share.clone()).or_default() += 1;
        self.items.insert(name, share);
        true
    }

    /// Counts an object no more, and says whether it was counted.
    pub(super) fn remove(&mut self, name: &Name) -> bool {
        let Some(share) = self.items.remove(name) else { return false };
        let count = self.counts.get_mut(&share).expect("what is counted has a count");
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&share);
        }
        true
    }

    /// Whether the objects may take something of a resource.
    pub(super) fn takes(&self, resource: &str) -> bool {
        self.tracked.takes(resource)
    }

    /// What is taken of a resource by the objects that a quota is about.
    pub(super) fn used(&self, resource: &str, quota: &ResourceQuotaSpec) -> Quantity {
        let mut lines: Vec<(&Arc<Share>, u64)> = self
            .counts
            .iter()
            .filter(|(share, _)| is_in_scope(Some(quota), share.scopes.as_ref()))
            .map(|(share, count)| (share, *count))
            .collect();
        // The first amount says how the sum is written: let that be no matter of chance.
        lines.sort_by(|(one, _), (other, _)| one.usage.cmp(&other.usage));
        let amounts = lines.into_iter().filter_map(|(share, count)| {
            let amount: Quantity = share.usage.get(resource)?.parse().ok()?;
            Some(amount.times(count))
        });
        amounts.fold(Quantity::zero(), |sum, amount| sum.plus(&amount))
    }
}

fn written(usage: &Amounts) -> BTreeMap<String, String> {
    usage.iter().map(|(name, amount)| (name.clone(), amount.to_string())).collect()
}
