//! Which Pod goes to which node: what is known of both, and what to do next. No IO, no clock.
//!
//! ```text
//!              ┌────────────── refused, and looked up ──────────────┐
//!              ▼                                                    │
//!   Aside ─▶ Waiting ── next ──▶ Binding ── answered, or seen ──▶ Bound ─▶ ended, or gone
//! ```
//!
//! # Guarantees
//!
//! - A Pod takes its room from the moment that its binding is asked for until it has ended, is
//!   gone, or is known to have no node: bindings under way are counted, so no node is ever
//!   overfull by what this plan asks for.
//! - Nothing is asked for before all Pods, Jobs and nodes are known.
//! - Who has a node keeps it: news from before the binding change nothing.
//!
//! # The order
//!
//! Waiting Pods go by priority, then by the age of their owner, then by their own, then by
//! name. So the Pods of the Job that was created first go first, whenever they come. Of Jobs of the
//! same second which came first is known if that was seen; those that were there before go by their
//! names, and first. An owner that is no Job, or whose Job is gone, is as old as the oldest of its
//! Pods that are known, ended ones included. One that does not fit holds up nobody, as in
//! kube-scheduler: what fits goes ahead of it. So a large Pod may wait for as long as small ones
//! keep coming; priority is the remedy.
//!
//! Pods with the same demand fit in the same places, so they wait in one line, of which only the
//! head is looked at. A line whose head fits nowhere is closed until room appears. An event
//! costs the logarithm of the number of Pods, times the number of different demands.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::demand::{Demand, Node, NodeSight, Used};
use super::pod::{Place, PodSight};
use crate::sight::{self, Key};

/// How long a Pod waits in vain before it is told why. Most room comes sooner here, and a Pod
/// that is bound meanwhile costs one request instead of three.
const TELL_AFTER: Duration = Duration::from_secs(1);

/// How long after it was told why it fits nowhere it is told something else.
const TELL_AGAIN_AFTER: Duration = Duration::from_secs(30);

/// The pause between two Pods that are told. Fifty in a second leave the server to those who
/// have more to do, even if a hundred thousand wait.
const TELL_PAUSE: Duration = Duration::from_millis(20);

/// Where a Pod is in the order of those that wait.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    priority: Reverse<i32>,
    owner: Rank,
    created: i64,
    /// Shorter names first, so that number 9 comes before number 10.
    length: usize,
    key: Key,
}

/// How old an owner is: when it was created, and for those of the same second its version then. On the
/// first list it is the place, as versions are of the last write there: lower than any that follows,
/// as there are at least as many versions as Jobs.
type Rank = (i64, u64);

#[derive(Debug)]
struct Known {
    uid: Arc<str>,
    owner: Option<Arc<str>>,
    demand: Arc<Demand>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// It needs no node from us, and no room.
    Aside,
    Waiting(Waiting),
    /// It has been asked to be bound to this node.
    Binding(Arc<str>),
    Bound(Arc<str>),
}

#[derive(Debug)]
struct Waiting {
    order: Order,
    tell_at: Instant,
    told: Option<String>,
    says_it_has_no_node: bool,
}

/// Somebody who has Pods that are known.
#[derive(Debug)]
struct Owner {
    rank: Rank,
    pods: HashSet<Key>,
}

/// The Pods that wait with the same demand.
#[derive(Debug, Default)]
struct Line {
    waiting: BTreeSet<Order>,
    /// Whether the head may fit somewhere.
    is_open: bool,
}

/// A binding to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bind {
    pub(super) key: Key,
    pub(super) uid: Arc<str>,
    pub(super) node: Arc<str>,
}

/// What came of a binding.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It was made.
    Bound,
    /// There is no such Pod.
    Gone,
    /// It was refused, or given up; this is how the Pod is.
    Refused(Box<PodSight>),
}

/// A Pod to be told why it fits nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tell {
    pub(super) key: Key,
    pub(super) uid: Arc<str>,
    pub(super) message: String,
    /// Whether it says already that it has no node, for another reason.
    pub(super) says_it_has_no_node: bool,
}

/// What is known of the Pods and the nodes.
#[derive(Debug)]
pub(super) struct Plan {
    nodes: BTreeMap<Arc<str>, Node>,
    used: HashMap<Arc<str>, Used>,
    pods: HashMap<Key, Known>,
    owners: HashMap<Arc<str>, Owner>,
    /// The Jobs there are, by uid, whether they have Pods or not.
    jobs: HashMap<Arc<str>, Rank>,
    /// How many there were on the first list so far, and none once it is complete.
    first_jobs: Option<u64>,
    lines: HashMap<Arc<Demand>, Line>,
    /// The heads of the lines that are open.
    heads: BTreeMap<Order, Arc<Demand>>,
    closed: Vec<Arc<Demand>>,
    /// When waiting Pods are to be told why.
    tells: BTreeSet<(Instant, Order)>,
    next_tell: Instant,
    pod_list: List<Key>,
    node_list: List<Arc<str>>,
    job_list: List<Arc<str>>,
    /// Pods of a list that is not complete: their owners' age is not known yet.
    held: Vec<PodSight>,
}

/// How far a list of all objects is.
#[derive(Debug)]
enum List<K> {
    /// There has been none.
    None,
    /// These were seen.
    Running(HashSet<K>),
    Complete,
}

impl Plan {
    pub(super) fn new(now: Instant) -> Self {
        Plan {
            nodes: BTreeMap::new(),
            used: HashMap::new(),
            pods: HashMap::new(),
            owners: HashMap::new(),
            jobs: HashMap::new(),
            first_jobs: Some(0),
            lines: HashMap::new(),
            heads: BTreeMap::new(),
            closed: Vec::new(),
            tells: BTreeSet::new(),
            next_tell: now,
            pod_list: List::None,
            node_list: List::None,
            job_list: List::None,
            held: Vec::new(),
        }
    }

    pub(super) fn begin_pods(&mut self) {
        self.pod_list = List::Running(HashSet::new());
        self.held.clear();
    }

    pub(super) fn complete_pods(&mut self, now: Instant) {
        let List::Running(seen) = std::mem::replace(&mut self.pod_list, List::Complete) else {
            return;
        };
        let gone: Vec<Key> = self.pods.keys().filter(|key| !seen.contains(*key)).cloned().collect();
        gone.iter().for_each(|key| self.forget(key));
        for sight in std::mem::take(&mut self.held) {
            self.see_pod(sight, now);
        }
    }

    pub(super) fn begin_nodes(&mut self) {
        self.node_list = List::Running(HashSet::new());
    }

    pub(super) fn complete_nodes(&mut self) {
        if let List::Running(seen) = std::mem::replace(&mut self.node_list, List::Complete) {
            self.nodes.retain(|name, _| seen.contains(name));
        }
    }

    pub(super) fn see_node(&mut self, sight: NodeSight) {
        let name: Arc<str> = sight.metadata.name.as_deref().unwrap_or_default().into();
        if let List::Running(seen) = &mut self.node_list {
            seen.insert(name.clone());
        }
        self.nodes.insert(name, Node::read(sight));
        self.open_lines();
    }

    pub(super) fn node_gone(&mut self, meta: &ObjectMeta) {
        self.nodes.remove(meta.name.as_deref().unwrap_or_default());
    }

    pub(super) fn begin_jobs(&mut self) {
        self.job_list = List::Running(HashSet::new());
    }

    pub(super) fn complete_jobs(&mut self) {
        if let List::Running(seen) = std::mem::replace(&mut self.job_list, List::Complete) {
            self.jobs.retain(|uid, _| seen.contains(uid));
            self.first_jobs = None;
        }
    }

    /// Takes note of a Job. Its Pods may have come before it.
    pub(super) fn see_job(&mut self, meta: &ObjectMeta) {
        let uid = sight::uid(meta);
        if let List::Running(seen) = &mut self.job_list {
            seen.insert(uid.clone());
        }
        if self.jobs.contains_key(&uid) {
            return;
        }
        let place = self.first_jobs.as_mut().map(|count| {
            *count += 1;
            *count
        });
        let rank = (sight::created(meta), place.unwrap_or_else(|| sight::version(meta)));
        self.jobs.insert(uid.clone(), rank);
        let Some(owner) = self.owners.get_mut(&uid) else { return };
        owner.rank = rank;
        for key in owner.pods.iter().cloned().collect::<Vec<Key>>() {
            self.rank_anew(&key, rank);
        }
    }

    /// A Job is gone. What it owned keeps its place.
    pub(super) fn job_gone(&mut self, meta: &ObjectMeta) {
        self.jobs.remove(&sight::uid(meta));
    }

    pub(super) fn pod_gone(&mut self, meta: &ObjectMeta) {
        let key = Key::of(meta);
        if self.pods.get(&key).is_some_and(|known| known.uid == sight::uid(meta)) {
            self.forget(&key);
        }
    }

    pub(super) fn see_pod(&mut self, sight: PodSight, now: Instant) {
        let key = Key::of(&sight.metadata);
        let uid = sight::uid(&sight.metadata);
        if self.pods.get(&key).is_some_and(|known| known.uid != uid) {
            self.forget(&key);
        }
        if !self.pods.contains_key(&key) {
            self.meet(&key, uid, &sight);
        }
        if let List::Running(seen) = &mut self.pod_list {
            seen.insert(key.clone());
            if sight.place() == Place::Wanted {
                self.held.push(sight);
                return;
            }
        }
        let known = self.pods.get_mut(&key).expect("it was just met");
        match (sight.place(), &known.stage) {
            // A Pod that is being bound, or is, cannot lose its node again: this is old.
            (Place::Wanted | Place::Aside, Stage::Binding(_) | Stage::Bound(_)) => {}
            (Place::Wanted, Stage::Aside | Stage::Waiting(_)) => self.wait(key, &sight, now),
            (Place::Aside | Place::Ended, _) => self.set_aside(&key),
            (Place::On(node), Stage::Binding(asked)) if **asked == *node => {
                known.stage = Stage::Bound(asked.clone());
            }
            (Place::On(node), Stage::Bound(known)) if **known == *node => {}
            (Place::On(node), _) => {
                let node = node.into();
                self.set_aside(&key);
                let known = self.pods.get_mut(&key).expect("it is known");
                known.demand = Arc::new(sight.demand());
                self.take_room(&key, &node);
                self.pods.get_mut(&key).expect("it is known").stage = Stage::Bound(node);
            }
        }
    }

    /// Takes note of what came of a binding.
    pub(super) fn settle(&mut self, bind: &Bind, outcome: Outcome, now: Instant) {
        let Some(known) = self.pods.get_mut(&bind.key).filter(|known| known.uid == bind.uid) else {
            return;
        };
        if !matches!(known.stage, Stage::Binding(_)) {
            return;
        }
        match outcome {
            Outcome::Bound => known.stage = Stage::Bound(bind.node.clone()),
            Outcome::Gone => self.forget(&bind.key),
            Outcome::Refused(sight) => {
                self.set_aside(&bind.key);
                if sight::uid(&sight.metadata) == bind.uid {
                    self.see_pod(*sight, now);
                }
            }
        }
    }

    /// The next binding to be made.
    pub(super) fn next(&mut self) -> Option<Bind> {
        if !self.is_complete() {
            return None;
        }
        while let Some((order, demand)) = self.heads.pop_first() {
            let Some(node) = self.find_place(&demand) else {
                self.lines.get_mut(&demand).expect("it has a head").is_open = false;
                self.closed.push(demand);
                continue;
            };
            let key = order.key.clone();
            // The line is looked for among the open ones when its head goes.
            self.heads.insert(order, demand);
            self.set_aside(&key);
            self.take_room(&key, &node);
            let known = self.pods.get_mut(&key).expect("who waits is known");
            known.stage = Stage::Binding(node.clone());
            return Some(Bind { uid: known.uid.clone(), key, node });
        }
        None
    }

    /// The next Pod to be told why it fits nowhere.
    pub(super) fn next_tell(&mut self, now: Instant) -> Option<Tell> {
        if !self.is_complete() || now < self.next_tell {
            return None;
        }
        while self.tells.first().is_some_and(|(at, _)| *at <= now) {
            let (_, order) = self.tells.pop_first().expect("there is a first");
            let key = order.key.clone();
            let demand = self.pods[&key].demand.clone();
            let is_closed = !self.lines[&demand].is_open;
            let message = is_closed.then(|| self.explain(&demand));
            let known = self.pods.get_mut(&key).expect("who waits is known");
            let Stage::Waiting(waiting) = &mut known.stage else {
                unreachable!("only who waits is to be told")
            };
            waiting.tell_at = now + if is_closed { TELL_AGAIN_AFTER } else { TELL_AFTER };
            self.tells.insert((waiting.tell_at, order));
            let Some(message) = message.filter(|message| waiting.told.as_ref() != Some(message))
            else {
                continue;
            };
            waiting.told = Some(message.clone());
            let says_it_has_no_node = std::mem::replace(&mut waiting.says_it_has_no_node, true);
            self.next_tell = now + TELL_PAUSE;
            return Some(Tell { uid: known.uid.clone(), key, message, says_it_has_no_node });
        }
        None
    }

    /// When a Pod is to be told next.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let first = self.tells.first().filter(|_| self.is_complete())?;
        Some(first.0.max(self.next_tell))
    }

    fn is_complete(&self) -> bool {
        matches!(
            (&self.pod_list, &self.node_list, &self.job_list),
            (List::Complete, List::Complete, List::Complete)
        )
    }

    /// Takes note of a Pod that was not known.
    fn meet(&mut self, key: &Key, uid: Arc<str>, sight: &PodSight) {
        let owner = sight.owner().map(|owner| Arc::<str>::from(owner.uid.as_str()));
        if let Some(owner) = &owner {
            let job = self.jobs.get(owner).copied();
            let rank = job.unwrap_or_else(|| sight.rank());
            let new = || Owner { rank, pods: HashSet::new() };
            let known = self.owners.entry(owner.clone()).or_insert_with(new);
            // Lists come in the order of names. Afterwards every Pod is newer than those that
            // wait, and who waits must keep its place.
            if job.is_none() && !matches!(self.pod_list, List::Complete) {
                known.rank = known.rank.min(rank);
            }
            known.pods.insert(key.clone());
        }
        let known = Known { uid, owner, demand: Arc::default(), stage: Stage::Aside };
        self.pods.insert(key.clone(), known);
    }

    /// Puts a Pod in line, where it may be already.
    fn wait(&mut self, key: Key, sight: &PodSight, now: Instant) {
        let owner = self.pods[&key].owner.as_ref();
        let order = Order {
            priority: Reverse(sight.priority()),
            owner: owner.map_or_else(|| sight.rank(), |owner| self.owners[owner].rank),
            created: sight::created(&sight.metadata),
            length: key.name.len(),
            key: key.clone(),
        };
        let demand = sight.demand();
        let known = self.pods.get_mut(&key).expect("it is known");
        let told = sight.told().map(str::to_owned);
        let says_it_has_no_node = sight.says_it_has_no_node();
        if let Stage::Waiting(waiting) = &mut known.stage {
            // Who has no owner keeps the version that it began to wait with.
            let is_same_place =
                waiting.order == Order { owner: waiting.order.owner, ..order.clone() };
            if is_same_place && *known.demand == demand {
                waiting.told = told.or(waiting.told.take());
                waiting.says_it_has_no_node |= says_it_has_no_node;
                return;
            }
            self.set_aside(&key);
        }
        let demand = match self.lines.get_key_value(&demand) {
            Some((known, _)) => known.clone(),
            None => Arc::new(demand),
        };
        let waiting = Waiting { order, tell_at: now + TELL_AFTER, told, says_it_has_no_node };
        self.enter_line(demand, waiting);
    }

    /// Gives a Pod that waits the place that its owner's age gives it.
    fn rank_anew(&mut self, key: &Key, owner: Rank) {
        let known = self.pods.get_mut(key).expect("an owner has Pods that are known");
        let Stage::Waiting(waiting) = &mut known.stage else { return };
        let order = Order { owner, ..waiting.order.clone() };
        let (told, tell_at) = (waiting.told.take(), waiting.tell_at);
        let says_it_has_no_node = waiting.says_it_has_no_node;
        let demand = known.demand.clone();
        self.set_aside(key);
        self.enter_line(demand, Waiting { order, tell_at, told, says_it_has_no_node });
    }

    /// Puts a Pod in line that is in none.
    fn enter_line(&mut self, demand: Arc<Demand>, waiting: Waiting) {
        let order = &waiting.order;
        let line = self.lines.entry(demand.clone()).or_default();
        line.is_open |= line.waiting.is_empty();
        if line.is_open {
            let head = line.waiting.first();
            if head.is_none_or(|head| order < head) {
                head.and_then(|head| self.heads.remove(head));
                self.heads.insert(order.clone(), demand.clone());
            }
        }
        line.waiting.insert(order.clone());
        self.tells.insert((waiting.tell_at, order.clone()));
        let known = self.pods.get_mut(&order.key).expect("it is known");
        known.demand = demand;
        known.stage = Stage::Waiting(waiting);
    }

    /// Takes a Pod out of its line, or its room from it.
    fn set_aside(&mut self, key: &Key) {
        let known = self.pods.get_mut(key).expect("it is known");
        match std::mem::replace(&mut known.stage, Stage::Aside) {
            Stage::Aside => {}
            Stage::Waiting(waiting) => {
                let demand = known.demand.clone();
                self.tells.remove(&(waiting.tell_at, waiting.order.clone()));
                self.leave_line(&demand, &waiting.order);
            }
            Stage::Binding(node) | Stage::Bound(node) => {
                let used = self.used.get_mut(&node).expect("who is on a node uses it");
                used.amounts.subtract(&known.demand.needs);
                used.pods -= 1;
                if used.pods == 0 {
                    self.used.remove(&node);
                }
                self.open_lines();
            }
        }
    }

    fn leave_line(&mut self, demand: &Arc<Demand>, order: &Order) {
        let line = self.lines.get_mut(demand).expect("who waits is in a line");
        line.waiting.remove(order);
        self.heads.remove(order);
        match line.waiting.first() {
            Some(head) if line.is_open => {
                self.heads.insert(head.clone(), demand.clone());
            }
            Some(_) => {}
            None => {
                self.lines.remove(demand);
            }
        }
    }

    /// There may be room where there was none.
    fn open_lines(&mut self) {
        for demand in std::mem::take(&mut self.closed) {
            // One that has emptied, and perhaps filled again, meanwhile is as it should be.
            let Some(line) = self.lines.get_mut(&demand).filter(|line| !line.is_open) else {
                continue;
            };
            line.is_open = true;
            let head = line.waiting.first().expect("a line without Pods is none").clone();
            self.heads.insert(head, demand);
        }
    }

    fn take_room(&mut self, key: &Key, node: &Arc<str>) {
        let used = self.used.entry(node.clone()).or_default();
        used.amounts.add(&self.pods[key].demand.needs);
        used.pods += 1;
    }

    fn forget(&mut self, key: &Key) {
        self.set_aside(key);
        let known = self.pods.remove(key).expect("it is known");
        let Some(owner) = known.owner else { return };
        let left = self.owners.get_mut(&owner).expect("a Pod keeps its owner known");
        left.pods.remove(key);
        if left.pods.is_empty() {
            self.owners.remove(&owner);
        }
    }

    /// The best node that will do.
    fn find_place(&self, demand: &Demand) -> Option<Arc<str>> {
        let nothing = Used::default();
        let offers = self.nodes.iter().filter_map(|(name, node)| {
            let used = self.used.get(name).unwrap_or(&nothing);
            node.takes(demand, used).then(|| (node.badness(demand, used), name))
        });
        offers.min().map(|(_, name)| name.clone())
    }

    /// Why a Pod with this demand fits nowhere, as kube-scheduler says it.
    fn explain(&self, demand: &Demand) -> String {
        if self.nodes.is_empty() {
            return "no nodes available to schedule pods".to_owned();
        }
        let nothing = Used::default();
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (name, node) in &self.nodes {
            let used = self.used.get(name).unwrap_or(&nothing);
            for objection in node.objections(demand, used) {
                *counts.entry(objection.to_string()).or_default() += 1;
            }
        }
        let mut objections: Vec<String> =
            counts.iter().map(|(objection, count)| format!("{count} {objection}")).collect();
        objections.sort();
        format!("0/{} nodes are available: {}.", self.nodes.len(), objections.join(", "))
    }
}

#[cfg(test)]
mod tests;
