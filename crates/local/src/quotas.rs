//! The quota controller: what every ResourceQuota says of how much there is and how much of it is
//! used.
//!
//! ```text
//!   resourcequotas ──────────────────┐
//!   what they limit, of namespaces   ├─▶ roll ─▶ queue of quotas ─▶ get ─▶ all news ─▶ status
//!     with a quota ──────────────────┘
//! ```
//!
//! The API server charges a quota when something is made. This says what there is at the
//! beginning, and gives back what is gone or has ended. Where there is no quota nothing is
//! watched.
//!
//! # Guarantees
//!
//! A usage is written only on top of a version that everything it counts is older than, or charged
//! to: a quota is looked up, then all the news that are there are read, then the status is
//! written for that version and no other. A change is shown to every watch before it is answered,
//! so whatever that version was charged for has been counted, and whatever was charged later makes
//! another version of it. So nothing is given back that is in use.

mod roll;
mod tally;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, FuturesUnordered, SelectAll, select_all};
use futures_util::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::{Pod, ResourceQuota, ResourceQuotaStatus, Service};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as QuantityText;
use kube::Client;
use kube::api::{Api, PostParams};
use stint_api::quantity::Quantity;
use stint_apiserver::Clock;
use tokio::task::{unconstrained, yield_now};
use tracing::warn;

use self::roll::{Heard, Opened, Roll};
use self::tally::Item;
use crate::feed::{News, feed, whole};
use crate::pace::{now, reached, shown};
use crate::queue::{Queue, Settled};
use crate::refusal::{Refusal, words};
use crate::resource;
use crate::sight::Key;

/// How many news are read before others get a turn: some 10 ms' worth.
const STEP_NEWS: usize = 1024;

type Feeds = SelectAll<BoxStream<'static, Heard>>;

/// How far the work on a quota is.
enum Step {
    /// It is as it is now; none if it is gone.
    Found(Option<Box<ResourceQuota>>),
    Settled(Settled),
}

/// Keeps the statuses of quotas true, for ever.
pub(crate) async fn run(client: Client, clock: Clock) -> Infallible {
    let quotas = whole(Api::<ResourceQuota>::all(client.clone()));
    let mut feeds: Feeds = select_all([quotas.map(|news| Heard::Quotas(Box::new(news))).boxed()]);
    let (mut roll, mut queue) = (Roll::default(), Queue::default());
    let mut works: FuturesUnordered<BoxFuture<'_, (Key, Step)>> = FuturesUnordered::new();
    loop {
        let mut found = None;
        tokio::select! {
            Some(heard) = feeds.next() => roll.note(heard, &mut queue, clock.now()),
            Some((key, step)) = works.next() => match step {
                Step::Found(quota) => found = Some((key, quota)),
                Step::Settled(settled) => queue.settle(key, settled, now()),
            },
            () = shown(&clock, roll.wakes_at()) => {}
            () = reached(queue.due_at()) => {}
        }
        catch_up(&mut roll, &mut feeds, &mut queue, &clock).await;
        roll.expire(clock.now(), &mut queue);
        for opened in roll.opened.drain(..) {
            feeds.push(open(&client, opened));
        }
        if let Some((key, quota)) = found {
            match quota.and_then(|quota| due(&roll, &key, *quota)) {
                Some(quota) => works.push(write(&client, key, quota).boxed()),
                None => queue.settle(key, Settled::Done, now()),
            }
        }
        while let Some(key) = queue.take(now()) {
            works.push(look_up(&client, key).boxed());
        }
    }
}

/// Reads all the news that are there.
async fn catch_up(roll: &mut Roll, feeds: &mut Feeds, queue: &mut Queue<Key>, clock: &Clock) {
    loop {
        for _ in 0..STEP_NEWS {
            // Without a budget, which would make news that are there look as if they were not.
            match unconstrained(feeds.next()).now_or_never() {
                Some(Some(heard)) => roll.note(heard, queue, clock.now()),
                Some(None) | None => return,
            }
        }
        yield_now().await;
    }
}

/// The news of what a quota limits, in its namespace.
fn open(client: &Client, opened: Opened) -> BoxStream<'static, Heard> {
    let Opened { namespace, names, number, stop } = opened;
    let items: BoxStream<'static, News<Item>> = match (names.group, names.plural) {
        ("", "pods") => {
            let api: Api<Pod> = Api::namespaced(client.clone(), &namespace);
            whole(api).map(|news| news.map(|pod| Item::Pod(Box::new(pod)))).boxed()
        }
        ("", "services") => {
            let api: Api<Service> = Api::namespaced(client.clone(), &namespace);
            whole(api).map(|news| news.map(|service| Item::Service(Box::new(service)))).boxed()
        }
        _ => feed(resource::api(client, names, Some(&namespace)), None)
            .map(|news| news.map(|meta| Item::Other(Box::new(meta))))
            .boxed(),
    };
    let tag = move |news| Heard::Items { namespace: namespace.clone(), names, number, news };
    items.map(tag).take_until(stop).boxed()
}

/// A quota with the status that it should have, if it has another.
fn due(roll: &Roll, key: &Key, mut quota: ResourceQuota) -> Option<ResourceQuota> {
    let spec = quota.spec.clone().unwrap_or_default();
    let before = quota.status.clone().unwrap_or_default();
    let hard = spec.hard.clone().unwrap_or_default();
    let mut used = before.used.clone().unwrap_or_default();
    used.retain(|name, _| hard.contains_key(name));
    used.extend(roll.used(key, &spec)?);
    let is_new = before.hard.is_none() || before.used.is_none();
    let is_same = same(&hard, &before.hard.unwrap_or_default())
        && same(&used, &before.used.unwrap_or_default());
    // A quota that limits nothing needs no status.
    let is_told = !is_new || hard.is_empty();
    if is_same && is_told {
        return None;
    }
    quota.status = Some(ResourceQuotaStatus { hard: Some(hard), used: Some(used) });
    Some(quota)
}

type Amounts = BTreeMap<String, QuantityText>;

/// Whether amounts are the same, however they are written.
fn same(one: &Amounts, other: &Amounts) -> bool {
    let read = |amount: &QuantityText| amount.0.parse::<Quantity>().ok();
    one.len() == other.len()
        && one
            .iter()
            .all(|(name, amount)| other.get(name).is_some_and(|other| read(other) == read(amount)))
}

async fn look_up(client: &Client, key: Key) -> (Key, Step) {
    let api: Api<ResourceQuota> = Api::namespaced(client.clone(), &key.namespace);
    let step = match api.get_opt(&key.name).await {
        Ok(quota) => Step::Found(quota.map(Box::new)),
        Err(error) => Step::Settled(failed(&key, &error)),
    };
    (key, step)
}

async fn write(client: &Client, key: Key, quota: ResourceQuota) -> (Key, Step) {
    let api: Api<ResourceQuota> = Api::namespaced(client.clone(), &key.namespace);
    let written = api.replace_status(&key.name, &PostParams::default(), &quota).await;
    let settled = match written {
        Ok(_) => Settled::Done,
        Err(error) => failed(&key, &error),
    };
    (key, Step::Settled(settled))
}

fn failed(key: &Key, error: &kube::Error) -> Settled {
    match Refusal::of(error) {
        Refusal::NotFound => return Settled::Done,
        // Somebody was charged meanwhile.
        Refusal::Conflict => return Settled::Again,
        Refusal::AlreadyExists | Refusal::Terminating | Refusal::Expired | Refusal::Other => {}
    }
    warn!(quota = ?key, error = words(error), "the quota is tried again later");
    Settled::Failed
}

/// What a name of a namespace is kept as.
type Name = Arc<str>;
