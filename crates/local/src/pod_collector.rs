//! The Pod collector: Pods that nobody else would remove, as upstream's podgc does.
//!
//! - Of Pods that have ended only so many are kept: those that succeeded go first, then those
//!   that failed, of each the oldest. (Upstream goes by age alone; but whoever asks why a Job
//!   failed needs the log of the Pod that did, however long ago.) A Pod with a finalizer is
//!   neither counted nor deleted: somebody has yet to take note of it.
//! - A Pod on a node that is no more, and stays so for a while, has failed, with the condition
//!   DisruptionTarget, and goes.
//! - A Pod that is being deleted and never got a node has failed, since no node will say so: who
//!   waits for its end (a Job that replaces failed Pods only) need not wait for ever.
//!
//! Nodes that are out of service by a taint are not looked at: there is one machine.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::{FuturesUnordered, select_all};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use serde::Deserialize;
use serde_json::{Value, json};
use stint_apiserver::Clock;
use tracing::{info, warn};

use crate::deadlines::Deadlines;
use crate::feed::{News, feed, whole};
use crate::pace::{now, reached, shown};
use crate::queue::{Queue, Settled};
use crate::refusal::{Refusal, words};
use crate::resource;
use crate::sight::{self, Key, Sight, Unlabelled, has_ended};

/// How many requests are under way at once.
const AT_ONCE: usize = 16;

/// How long a node may be missing before its Pods are lost: as upstream.
const NODE_GRACE: SignedDuration = SignedDuration::from_secs(40);

/// How long a Pod without a node may be on its way out. Whoever has deleted it may be about to
/// let it go; upstream looks every 20 seconds.
const UNSCHEDULED_GRACE: SignedDuration = SignedDuration::from_secs(20);

type PodSight = Sight<PodSpecSight, PodStatusSight, Unlabelled>;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodSpecSight {
    node_name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct PodStatusSight {
    phase: Option<String>,
}

enum Heard {
    Pods(News<PodSight>),
    Nodes(News),
}

/// Which Pod: another of the same name is not meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Which {
    key: Key,
    uid: Arc<str>,
}

/// What there is to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Item {
    /// A Pod has ended and is one too many.
    Surplus(Which),
    /// The node of a Pod is no more.
    Lost(Which),
    /// A Pod is on its way out and has no node.
    Unscheduled(Which),
    /// A node is missing: look whether it is.
    Missing(Arc<str>),
}

/// What came of it.
enum Found {
    /// It is done, or not to be done any more.
    Done,
    /// The node is really no more.
    NodeGone(Arc<str>),
}

/// Removes Pods, for ever.
pub(crate) async fn run(client: Client, most_finished: usize, clock: Clock) -> Infallible {
    let pods = whole(resource::part::<PodSight>(&client, resource::core("pods"), None));
    let nodes = feed(resource::api(&client, resource::core("nodes"), None), None);
    let mut feeds = select_all([pods.map(Heard::Pods).boxed(), nodes.map(Heard::Nodes).boxed()]);
    let mut roll = Roll { most_finished, ..Roll::default() };
    let mut queue = Queue::default();
    let mut works = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(heard) = feeds.next() => roll.note(heard, clock.now()),
            Some((item, done)) = works.next() => {
                let settled = match done {
                    Ok(Found::Done) => Settled::Done,
                    Ok(Found::NodeGone(node)) => {
                        roll.on_node(&node).for_each(|which| queue.add(Item::Lost(which)));
                        Settled::Done
                    }
                    Err(()) => Settled::Failed,
                };
                queue.settle(item, settled, now());
            }
            () = shown(&clock, roll.deadlines.next()) => {}
            () = reached(queue.due_at()) => {}
        }
        while let Some(item) = roll.take(clock.now()) {
            queue.add(item);
        }
        while works.len() < AT_ONCE
            && let Some(item) = queue.take(now())
        {
            let pod = roll.pod(&item).cloned();
            let (client, clock) = (&client, &clock);
            works.push(async move {
                let done = carry_out(client, clock, &item, pod).await;
                (item, done)
            });
        }
    }
}

/// What is known of a Pod.
#[derive(Clone, Debug)]
struct Known {
    uid: Arc<str>,
    version: Option<String>,
    created: i64,
    node: Option<Arc<str>>,
    has_ended: bool,
    has_failed: bool,
    /// Whether it has ended, is deleted and has no time left: nothing can be done.
    is_over: bool,
}

/// The Pods there are, and the nodes.
#[derive(Default)]
struct Roll {
    most_finished: usize,
    pods: HashMap<Key, Known>,
    /// Those that have ended and that nobody holds: the succeeded before the failed, then the
    /// oldest first.
    finished: BTreeSet<(bool, i64, Key)>,
    by_node: HashMap<Arc<str>, HashSet<Key>>,
    nodes: HashSet<Arc<str>>,
    deadlines: Deadlines<Item>,
    /// What a list has told so far.
    listed_pods: HashSet<Key>,
    listed_nodes: HashSet<Arc<str>>,
    are_pods_known: bool,
    are_nodes_known: bool,
}

impl Roll {
    fn note(&mut self, heard: Heard, now: Timestamp) {
        match heard {
            Heard::Pods(News::Began) => {
                self.are_pods_known = false;
                self.listed_pods.clear();
            }
            Heard::Pods(News::Seen(pod)) => self.see(&pod, now),
            Heard::Pods(News::Gone(pod)) => self.forget(&Key::of(&pod.metadata)),
            Heard::Pods(News::Complete) => {
                self.are_pods_known = true;
                let listed = std::mem::take(&mut self.listed_pods);
                let gone: Vec<Key> =
                    self.pods.keys().filter(|key| !listed.contains(*key)).cloned().collect();
                gone.iter().for_each(|key| self.forget(key));
            }
            Heard::Nodes(News::Began) => {
                self.are_nodes_known = false;
                self.listed_nodes.clear();
            }
            Heard::Nodes(News::Seen(meta)) => {
                let name = name(&meta);
                self.deadlines.remove(&Item::Missing(name.clone()));
                self.listed_nodes.insert(name.clone());
                self.nodes.insert(name);
            }
            Heard::Nodes(News::Gone(meta)) => {
                let name = name(&meta);
                self.nodes.remove(&name);
                self.miss(&name, now);
            }
            Heard::Nodes(News::Complete) => {
                self.are_nodes_known = true;
                let listed = std::mem::take(&mut self.listed_nodes);
                self.nodes.retain(|name| listed.contains(name));
                let used: Vec<Arc<str>> = self.by_node.keys().cloned().collect();
                used.iter().for_each(|name| self.miss(name, now));
            }
        }
    }

    fn see(&mut self, pod: &PodSight, now: Timestamp) {
        let meta = &pod.metadata;
        let key = Key::of(meta);
        self.forget(&key);
        if !self.are_pods_known {
            self.listed_pods.insert(key.clone());
        }
        let node = pod.spec.node_name.as_deref().filter(|node| !node.is_empty());
        let has_ended = has_ended(pod.status.phase.as_deref());
        let is_deleted = meta.deletion_timestamp.is_some();
        let known = Known {
            uid: sight::uid(meta),
            version: meta.resource_version.clone(),
            created: meta.creation_timestamp.as_ref().map_or(0, |time| time.0.as_second()),
            node: node.map(Arc::from),
            has_ended,
            has_failed: pod.status.phase.as_deref() == Some("Failed"),
            is_over: has_ended && is_deleted && meta.deletion_grace_period_seconds == Some(0),
        };
        let is_held = meta.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty());
        if has_ended && !is_deleted && !is_held {
            self.finished.insert((known.has_failed, known.created, key.clone()));
        }
        match (&known.node, &meta.deletion_timestamp) {
            (Some(node), _) => {
                self.by_node.entry(node.clone()).or_default().insert(key.clone());
                if !known.is_over {
                    self.miss(&node.clone(), now);
                }
            }
            (None, Some(time)) if !has_ended => {
                let due = time.0.checked_add(UNSCHEDULED_GRACE).unwrap_or(Timestamp::MAX);
                let which = Which { key: key.clone(), uid: known.uid.clone() };
                self.deadlines.set(Item::Unscheduled(which), due);
            }
            (None, _) => {}
        }
        self.pods.insert(key, known);
    }

    fn forget(&mut self, key: &Key) {
        let Some(known) = self.pods.remove(key) else { return };
        self.finished.remove(&(known.has_failed, known.created, key.clone()));
        let which = Which { key: key.clone(), uid: known.uid };
        self.deadlines.remove(&Item::Unscheduled(which));
        let Some(node) = known.node else { return };
        let others = self.by_node.get_mut(&node).expect("it was put there");
        others.remove(key);
        if others.is_empty() {
            self.by_node.remove(&node);
        }
    }

    /// Takes note of a node that is needed, and perhaps missing.
    fn miss(&mut self, node: &Arc<str>, now: Timestamp) {
        let item = Item::Missing(node.clone());
        let is_missing = self.are_nodes_known && !self.nodes.contains(node);
        if is_missing && self.by_node.contains_key(node) && !self.deadlines.contains(&item) {
            self.deadlines.set(item, now.checked_add(NODE_GRACE).unwrap_or(Timestamp::MAX));
        }
    }

    /// The Pods on a node about which something can be done.
    fn on_node(&self, node: &Arc<str>) -> impl Iterator<Item = Which> {
        let keys = self.by_node.get(node).into_iter().flatten();
        keys.filter(|key| !self.pods[*key].is_over).map(|key| self.which(key.clone()))
    }

    fn which(&self, key: Key) -> Which {
        Which { uid: self.pods[&key].uid.clone(), key }
    }

    /// Something to do now.
    fn take(&mut self, now: Timestamp) -> Option<Item> {
        if !(self.are_pods_known && self.are_nodes_known) {
            return None;
        }
        if self.finished.len() > self.most_finished {
            let (_, _, key) = self.finished.pop_first().expect("there are too many");
            return Some(Item::Surplus(self.which(key)));
        }
        self.deadlines.take_due(now)
    }

    /// The Pod that something is about, if it is still there.
    fn pod(&self, item: &Item) -> Option<&Known> {
        match item {
            Item::Surplus(which) | Item::Lost(which) | Item::Unscheduled(which) => {
                self.pods.get(&which.key).filter(|known| known.uid == which.uid)
            }
            Item::Missing(_) => None,
        }
    }
}

fn name(meta: &ObjectMeta) -> Arc<str> {
    meta.name.as_deref().unwrap_or_default().into()
}

async fn carry_out(
    client: &Client,
    clock: &Clock,
    item: &Item,
    pod: Option<Known>,
) -> Result<Found, ()> {
    let done = match (item, pod) {
        (Item::Missing(node), _) => look_for(client, node).await,
        // It is gone.
        (Item::Surplus(_) | Item::Lost(_) | Item::Unscheduled(_), None) => Ok(Found::Done),
        (Item::Surplus(Which { key, .. }), Some(pod)) => delete(client, key, &pod).await,
        (Item::Lost(Which { key, .. }), Some(pod)) => {
            info!(pod = ?key, "its node is no more, and so is the Pod");
            let condition = json!({
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "DeletionByPodGC",
                "message": "PodGC: node no longer exists",
                "lastTransitionTime": Time(clock.now()),
            });
            fail_and_delete(client, key, &pod, json!([condition])).await
        }
        (Item::Unscheduled(Which { key, .. }), Some(pod)) => {
            fail_and_delete(client, key, &pod, json!([])).await
        }
    };
    done.or_else(|error| match Refusal::of(&error) {
        // It is gone, or another, or not as it was: the watch tells, and it is tried again.
        Refusal::NotFound | Refusal::Conflict => Ok(Found::Done),
        Refusal::AlreadyExists | Refusal::Terminating | Refusal::Expired | Refusal::Other => {
            warn!(?item, error = words(&error), "this is tried again later");
            Err(())
        }
    })
}

async fn look_for(client: &Client, node: &Arc<str>) -> kube::Result<Found> {
    let nodes: Api<Node> = Api::all(client.clone());
    Ok(match nodes.get_metadata_opt(node).await? {
        None => Found::NodeGone(node.clone()),
        Some(_) => Found::Done,
    })
}

/// Says that a Pod has failed, if it has not ended, and deletes it. It may succeed at this very
/// moment: so it has failed as it was seen, or not at all.
async fn fail_and_delete(
    client: &Client,
    key: &Key,
    pod: &Known,
    conditions: Value,
) -> kube::Result<Found> {
    if !pod.has_ended {
        let pods: Api<Pod> = Api::namespaced(client.clone(), &key.namespace);
        let patch = json!({
            "metadata": {"uid": &*pod.uid, "resourceVersion": pod.version},
            "status": {"phase": "Failed", "conditions": conditions},
        });
        let params = PatchParams::default();
        pods.patch_status(&key.name, &params, &Patch::Strategic(patch)).await?;
    }
    delete(client, key, pod).await
}

async fn delete(client: &Client, key: &Key, pod: &Known) -> kube::Result<Found> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &key.namespace);
    let uid = Some(pod.uid.to_string());
    let preconditions = Preconditions { uid, resource_version: None };
    let params = DeleteParams::default().grace_period(0).preconditions(preconditions);
    pods.delete(&key.name, &params).await?;
    Ok(Found::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(uid: &str, phase: &str) -> PodSight {
        let pod = json!({
            "metadata": {"namespace": "n", "name": "p", "uid": uid},
            "spec": {"nodeName": "a"},
            "status": {"phase": phase},
        });
        serde_json::from_value(pod).expect("a Pod")
    }

    #[test]
    fn what_was_decided_about_a_pod_is_not_done_to_another_of_its_name() {
        let mut roll = Roll::default();
        let now = Timestamp::UNIX_EPOCH;
        for heard in [
            Heard::Nodes(News::Began),
            Heard::Nodes(News::Complete),
            Heard::Pods(News::Began),
            Heard::Pods(News::Complete),
        ] {
            roll.note(heard, now);
        }
        roll.note(Heard::Pods(News::Seen(pod("first", "Succeeded"))), now);
        let surplus = roll.take(now).expect("none is kept");
        assert!(matches!(surplus, Item::Surplus(_)), "{surplus:?}");
        let lost = Item::Lost(roll.on_node(&"a".into()).next().expect("it is there"));
        for item in [&surplus, &lost] {
            assert_eq!(roll.pod(item).map(|known| &*known.uid), Some("first"));
        }
        roll.note(Heard::Pods(News::Seen(pod("second", "Running"))), now);
        for item in [&surplus, &lost] {
            assert!(roll.pod(item).is_none(), "{item:?}");
        }
    }
}
