//! The quotas there are, and what is there of what they limit, in the namespaces that have some.
//! It writes nothing.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ResourceQuota, ResourceQuotaSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as QuantityText;
use stint_api::quantity::Quantity;
use stint_api::quota::Tracked;
use stint_apiserver::kind::Names;
use tokio::sync::oneshot;

use super::Name;
use super::tally::{Item, Tally};
use crate::deadlines::Deadlines;
use crate::feed::News;
use crate::queue::Queue;
use crate::resource;
use crate::sight::Key;

/// What a quota may limit that there is none of here: upstream knows it, and finds nothing.
const NONE_HERE: [&str; 5] = [
    "count/persistentvolumeclaims",
    "count/replicationcontrollers",
    "persistentvolumeclaims",
    "replicationcontrollers",
    "requests.storage",
];

/// Something that happened.
pub(super) enum Heard {
    Quotas(Box<News<ResourceQuota>>),
    /// To objects of a kind in a namespace, from the feed with this number.
    Items {
        namespace: Name,
        names: &'static Names,
        number: u64,
        news: News<Item>,
    },
}

/// What is to be watched from now on, until the end of the receiver.
pub(super) struct Opened {
    pub(super) namespace: Name,
    pub(super) names: &'static Names,
    pub(super) number: u64,
    pub(super) stop: oneshot::Receiver<()>,
}

/// The quotas, and what they limit.
#[derive(Default)]
pub(super) struct Roll {
    spaces: HashMap<Name, Space>,
    /// When Pods count as gone that nobody removes.
    deadlines: Deadlines<Key>,
    listed: HashSet<Key>,
    is_complete: bool,
    count: u64,
    pub(super) opened: Vec<Opened>,
}

/// A namespace with quotas.
#[derive(Default)]
struct Space {
    /// What each of them limits.
    quotas: HashMap<Name, Vec<String>>,
    /// What is there, by kind.
    watched: Vec<Watched>,
}

struct Watched {
    names: &'static Names,
    number: u64,
    tally: Tally,
    /// Ends the watch when it is dropped.
    _stop: oneshot::Sender<()>,
}

impl Roll {
    fn note_quota(&mut self, news: News<ResourceQuota>, queue: &mut Queue<Key>) {
        match news {
            News::Began => {
                self.is_complete = false;
                self.listed.clear();
            }
            News::Seen(quota) => self.see(&quota, queue),
            News::Gone(quota) => self.lose(&Key::of(&quota.metadata)),
            News::Complete => {
                self.is_complete = true;
                let listed = std::mem::take(&mut self.listed);
                let known = self.spaces.iter().flat_map(|(namespace, space)| {
                    space.quotas.keys().map(|name| key(namespace, name))
                });
                let gone: Vec<Key> = known.filter(|key| !listed.contains(key)).collect();
                gone.iter().for_each(|key| self.lose(key));
            }
        }
    }

    pub(super) fn note(&mut self, heard: Heard, queue: &mut Queue<Key>, now: Timestamp) {
        match heard {
            Heard::Quotas(news) => self.note_quota(*news, queue),
            Heard::Items { namespace, names, number, news } => {
                self.note_item(&namespace, names, number, news, queue, now);
            }
        }
    }

    fn see(&mut self, quota: &ResourceQuota, queue: &mut Queue<Key>) {
        let key = Key::of(&quota.metadata);
        if !self.is_complete {
            self.listed.insert(key.clone());
        }
        let hard = quota.spec.iter().flat_map(|spec| spec.hard.iter().flatten());
        let limited: Vec<String> = hard.map(|(name, _)| name.clone()).collect();
        self.spaces
            .entry(key.namespace.clone())
            .or_default()
            .quotas
            .insert(key.name.clone(), limited);
        self.watch(&key.namespace);
        queue.add(key);
    }

    fn lose(&mut self, key: &Key) {
        let Some(space) = self.spaces.get_mut(&key.namespace) else { return };
        space.quotas.remove(&key.name);
        if space.quotas.is_empty() {
            self.spaces.remove(&key.namespace);
        } else {
            self.watch(&key.namespace);
        }
    }

    /// Watches what the quotas of a namespace limit, and nothing else.
    fn watch(&mut self, namespace: &Name) {
        let Some(space) = self.spaces.get_mut(namespace) else { return };
        for names in resource::namespaced() {
            let Some(tracked) = Tracked::of(names.group, names.plural) else { continue };
            let is_limited = space.quotas.values().flatten().any(|name| tracked.takes(name));
            let place = space.watched.iter().position(|watched| watched.is_of(names));
            match (is_limited, place) {
                (true, None) => {
                    let (stop, stopped) = oneshot::channel();
                    self.count += 1;
                    let (number, tally) = (self.count, Tally::new(tracked));
                    space.watched.push(Watched { names, number, tally, _stop: stop });
                    let namespace = namespace.clone();
                    self.opened.push(Opened { namespace, names, number, stop: stopped });
                }
                (false, Some(place)) => drop(space.watched.swap_remove(place)),
                (true, Some(_)) | (false, None) => {}
            }
        }
    }

    fn note_item(
        &mut self,
        namespace: &Name,
        names: &'static Names,
        number: u64,
        news: News<Item>,
        queue: &mut Queue<Key>,
        now: Timestamp,
    ) {
        let Some(space) = self.spaces.get_mut(namespace) else { return };
        let mut watched = space.watched.iter_mut();
        let watched = watched.find(|it| it.is_of(names) && it.number == number);
        let Some(Watched { tally, .. }) = watched else { return };
        let is_changed = match news {
            News::Began => {
                tally.begin();
                false
            }
            News::Complete => {
                tally.complete();
                true
            }
            News::Seen(item) => {
                let key = key(namespace, &item.name());
                match item.ends_at().filter(|_| names.plural == "pods") {
                    Some(end) => self.deadlines.set(key, end + A_MOMENT),
                    None => self.deadlines.remove(&key),
                }
                tally.see(&item, now)
            }
            News::Gone(item) => {
                let name = item.name();
                if names.plural == "pods" {
                    self.deadlines.remove(&key(namespace, &name));
                }
                tally.remove(&name)
            }
        };
        if is_changed && tally.is_complete {
            space.ask_all(namespace, queue, |limited| {
                Tracked::of(names.group, names.plural).is_some_and(|it| it.takes(limited))
            });
        }
    }

    /// When something is due though nothing is heard.
    pub(super) fn wakes_at(&self) -> Option<Timestamp> {
        self.deadlines.next()
    }

    /// Counts Pods no more that should be gone.
    pub(super) fn expire(&mut self, now: Timestamp, queue: &mut Queue<Key>) {
        while let Some(pod) = self.deadlines.take_due(now) {
            let Some(space) = self.spaces.get_mut(&pod.namespace) else { continue };
            let mut watched = space.watched.iter_mut();
            let pods = watched.find(|it| it.names.group.is_empty() && it.names.plural == "pods");
            if pods.is_some_and(|pods| pods.tally.expire(&pod.name)) {
                space.ask_all(&pod.namespace, queue, |limited| Tracked::Pods.takes(limited));
            }
        }
    }

    /// What is used of what a quota limits; none as long as that is not known.
    pub(super) fn used(
        &self,
        key: &Key,
        spec: &ResourceQuotaSpec,
    ) -> Option<BTreeMap<String, QuantityText>> {
        let space = self.spaces.get(&key.namespace)?;
        let mut used = BTreeMap::new();
        for name in spec.hard.iter().flatten().map(|(name, _)| name) {
            let is_tracked = resource::namespaced().any(|names| {
                Tracked::of(names.group, names.plural).is_some_and(|tracked| tracked.takes(name))
            });
            let amount = if is_tracked {
                let tally = &space.watched.iter().find(|it| it.tally.takes(name))?.tally;
                Some(tally.is_complete.then(|| tally.used(name, spec))?)
            } else {
                NONE_HERE.contains(&name.as_str()).then(Quantity::zero)
            };
            used.extend(amount.map(|amount| (name.clone(), QuantityText(amount.to_string()))));
        }
        Some(used)
    }
}

/// A Pod is gone after its time, not at it.
const A_MOMENT: SignedDuration = SignedDuration::from_millis(1);

impl Space {
    /// Asks for work on the quotas that limit something.
    fn ask_all(&self, namespace: &Name, queue: &mut Queue<Key>, takes: impl Fn(&str) -> bool) {
        let concerned =
            self.quotas.iter().filter(|(_, limited)| limited.iter().any(|it| takes(it)));
        concerned.for_each(|(name, _)| queue.add(key(namespace, name)));
    }
}

impl Watched {
    fn is_of(&self, names: &Names) -> bool {
        self.names.group == names.group && self.names.plural == names.plural
    }
}

fn key(namespace: &Name, name: &Name) -> Key {
    Key { namespace: namespace.clone(), name: name.clone() }
}
