//! The binder: gives Pods their nodes, as kube-scheduler does. The plan decides; this brings it
//! the news and carries out what it asks for.
//!
//! ```text
//!   pods ───┐
//!   jobs ───┼─▶ plan ─▶ pods/binding, one request for each Pod
//!   nodes ──┘      └──▶ PodScheduled=False and FailedScheduling, for those that wait in vain
//! ```
//!
//! That a Pod was bound is told by the Pod itself (`spec.nodeName`, the condition PodScheduled):
//! there is no Event for it, which would double the requests. Why Pods wait is told by each Pod's
//! condition, and by Events as long as there are not many.

mod amounts;
mod demand;
mod plan;
mod pod;
mod unmet;

use std::convert::Infallible;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures_util::stream::{FuturesUnordered, select_all};
use futures_util::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::core::response::Status;
use serde_json::{Value, json};
use stint_apiserver::Clock;
use stint_node::Gate;
use tokio::task::unconstrained;
use tracing::warn;

use self::demand::NodeSight;
use self::plan::{Bind, Outcome, Plan, Tell};
use self::pod::{PodSight, UNSCHEDULABLE};
pub use self::unmet::{Unmet, unmet};
use crate::feed::{News, feed, whole};
use crate::pace::{self, now, reached};
use crate::refusal::{Refusal, words};
use crate::resource;

/// How many bindings are under way at once: what the store commits together, and a tenth of
/// what the server takes.
const AT_ONCE: usize = 64;

/// How many Pods are told at once why they wait.
const TELLS_AT_ONCE: usize = 8;

/// How many news are read before bindings get a turn: some 10 ms' worth.
const STEP_NEWS: usize = 1024;

/// How often a binding whose outcome is not known is tried, before the Pod waits in line
/// again: with doubling waits, some five seconds.
const ATTEMPTS: u32 = 10;

/// How many Events may be said at once, and how long it takes until there may be one more.
const EVENTS: u32 = 100;
const EVENT_EVERY: Duration = Duration::from_secs(1);

#[expect(clippy::large_enum_variant, reason = "it is read at once, and never kept")]
enum Heard {
    Pods(News<PodSight>),
    Nodes(News<NodeSight>),
    /// Only how old they are matters.
    Jobs(News),
}

/// Gives Pods their nodes, for ever, once the gate is open. Which Job came first is noted before.
pub(crate) async fn run(client: Client, clock: Clock, gate: Gate) -> Infallible {
    let pods = whole(resource::part::<PodSight>(&client, resource::core("pods"), None));
    let nodes = whole(resource::part::<NodeSight>(&client, resource::core("nodes"), None));
    let jobs = feed(resource::api(&client, resource::jobs(), None), None);
    let mut feeds = select_all([
        pods.map(Heard::Pods).boxed(),
        nodes.map(Heard::Nodes).boxed(),
        jobs.map(Heard::Jobs).boxed(),
    ]);
    let mut plan = Plan::new(now());
    let mut events = Allowance::new(now());
    let hands = Hands { client, clock };
    let (mut bindings, mut tells) = (FuturesUnordered::new(), FuturesUnordered::new());
    let mut opened = pin!(gate.opened());
    let mut is_open = false;
    loop {
        let wake_at = plan.wake_at().filter(|_| is_open && tells.len() < TELLS_AT_ONCE);
        tokio::select! {
            () = &mut opened, if !is_open => is_open = true,
            Some(heard) = feeds.next() => note(&mut plan, heard),
            Some((bind, outcome)) = bindings.next() => plan.settle(&bind, outcome, now()),
            Some(()) = tells.next() => {}
            () = reached(wake_at) => {}
        }
        // Without a budget, which would make news that are there look as if they were not.
        for _ in 0..STEP_NEWS {
            let Some(Some(heard)) = unconstrained(feeds.next()).now_or_never() else { break };
            note(&mut plan, heard);
        }
        if !is_open {
            continue;
        }
        while bindings.len() < AT_ONCE
            && let Some(bind) = plan.next()
        {
            bindings.push(hands.bind(bind));
        }
        while tells.len() < TELLS_AT_ONCE
            && let Some(tell) = plan.next_tell(now())
        {
            tells.push(hands.tell(tell, events.take(now())));
        }
    }
}

fn note(plan: &mut Plan, heard: Heard) {
    match heard {
        Heard::Pods(News::Began) => plan.begin_pods(),
        Heard::Pods(News::Seen(pod)) => plan.see_pod(pod, now()),
        Heard::Pods(News::Gone(pod)) => plan.pod_gone(&pod.metadata),
        Heard::Pods(News::Complete) => plan.complete_pods(now()),
        Heard::Nodes(News::Began) => plan.begin_nodes(),
        Heard::Nodes(News::Seen(node)) => plan.see_node(node),
        Heard::Nodes(News::Gone(node)) => plan.node_gone(&node.metadata),
        Heard::Nodes(News::Complete) => plan.complete_nodes(),
        Heard::Jobs(News::Began) => plan.begin_jobs(),
        Heard::Jobs(News::Seen(meta)) => plan.see_job(&meta),
        Heard::Jobs(News::Gone(meta)) => plan.job_gone(&meta),
        Heard::Jobs(News::Complete) => plan.complete_jobs(),
    }
}

/// How many Events may be said now.
struct Allowance {
    left: u32,
    since: Instant,
}

impl Allowance {
    fn new(now: Instant) -> Self {
        Allowance { left: EVENTS, since: now }
    }

    fn take(&mut self, now: Instant) -> bool {
        let more = now.saturating_duration_since(self.since).as_secs() / EVENT_EVERY.as_secs();
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        if more > 0 {
            self.left = self.left.saturating_add(more).min(EVENTS);
            self.since = now;
        }
        let may = self.left > 0;
        self.left -= u32::from(may);
        may
    }
}

/// What the plan's decisions are carried out with.
struct Hands {
    client: Client,
    clock: Clock,
}

impl Hands {
    /// Makes a binding. If it is not known what became of it, the Pod is looked at; its room
    /// stays taken until that is known.
    async fn bind(&self, bind: Bind) -> (Bind, Outcome) {
        let names = resource::core("pods");
        let pods: Api<PodSight> = resource::part(&self.client, names, Some(&bind.key.namespace));
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "namespace": &*bind.key.namespace,
                "name": &*bind.key.name,
                "uid": &*bind.uid,
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": &*bind.node},
        });
        let mut attempts = 0;
        loop {
            attempts += 1;
            let (name, params) = (&bind.key.name, PostParams::default());
            let made = pods.create_subresource::<Value, Status>("binding", name, &params, &binding);
            let Err(error) = made.await else { return (bind, Outcome::Bound) };
            let is_certain = match Refusal::of(&error) {
                Refusal::NotFound => return (bind, Outcome::Gone),
                Refusal::Conflict | Refusal::AlreadyExists => true,
                Refusal::Terminating | Refusal::Expired | Refusal::Other => {
                    warn!(pod = ?bind.key, error = words(&error), "it cannot be bound now");
                    tokio::time::sleep(pace::delay(attempts)).await;
                    false
                }
            };
            match self.look_up(&pods, &bind).await {
                None => return (bind, Outcome::Gone),
                Some(pod) if is_certain || attempts == ATTEMPTS || !pod.is_wanted() => {
                    return (bind, Outcome::Refused(Box::new(pod)));
                }
                Some(_) => {}
            }
        }
    }

    /// How a Pod is, however long it takes to know.
    async fn look_up(&self, pods: &Api<PodSight>, bind: &Bind) -> Option<PodSight> {
        let mut failures = 0;
        loop {
            match pods.get_opt(&bind.key.name).await {
                Ok(pod) => return pod,
                Err(error) => {
                    failures += 1;
                    warn!(pod = ?bind.key, error = words(&error), "it cannot be looked up now");
                    tokio::time::sleep(pace::delay(failures)).await;
                }
            }
        }
    }

    /// Tells a Pod why it waits, and with an Event those who look for one. What cannot be told
    /// is not repeated: the Pod has changed, and waits in another place if at all.
    async fn tell(&self, tell: Tell, is_event_allowed: bool) {
        let time = json!(Time(self.clock.now()));
        let mut condition = json!({
            "type": stint_api::names::pod_condition::SCHEDULED,
            "status": "False",
            "reason": UNSCHEDULABLE,
            "message": tell.message,
        });
        if !tell.says_it_has_no_node {
            condition["lastTransitionTime"] = time.clone();
        }
        let patch = json!({
            "metadata": {"uid": &*tell.uid},
            "status": {"conditions": [condition]},
        });
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &tell.key.namespace);
        let (name, params) = (&tell.key.name, PatchParams::default());
        let told = pods.patch_status(name, &params, &Patch::Strategic(patch)).await;
        if let Err(error) = told {
            tell_failed(&tell, &error);
        } else if is_event_allowed && let Err(error) = self.say(&tell, &time).await {
            tell_failed(&tell, &error);
        }
    }

    async fn say(&self, tell: &Tell, time: &Value) -> kube::Result<()> {
        let Tell { key, uid, message, .. } = tell;
        let event = json!({
            "metadata": {"name": format!("{}.{:x}", key.name, self.clock.now().as_nanosecond())},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": &*key.namespace,
                "name": &*key.name,
                "uid": &**uid,
            },
            "type": "Warning",
            "reason": "FailedScheduling",
            "message": message,
            "source": {"component": "default-scheduler"},
            "reportingComponent": "default-scheduler",
            "reportingInstance": "",
            "firstTimestamp": time,
            "lastTimestamp": time,
            "count": 1,
        });
        let event: Event = serde_json::from_value(event).expect("it is an Event");
        let events: Api<Event> = Api::namespaced(self.client.clone(), &key.namespace);
        events.create(&PostParams::default(), &event).await.map(drop)
    }
}

fn tell_failed(tell: &Tell, error: &kube::Error) {
    match Refusal::of(error) {
        Refusal::NotFound | Refusal::Conflict | Refusal::Terminating => {}
        Refusal::AlreadyExists | Refusal::Expired | Refusal::Other => {
            warn!(pod = ?tell.key, error = words(error), "it cannot be told why it waits");
        }
    }
}
