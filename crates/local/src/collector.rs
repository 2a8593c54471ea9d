//! The collector: what becomes of objects when their owners go. The graph decides; this brings
//! it the news and carries out what it asks for.
//!
//! # Guarantees
//!
//! - What was stored before an owner was deleted is seen before anything is done about the
//!   owner: all news that are there are read before the graph is asked. So no object is taken
//!   from an owner's dependents because the news of one kind came later than those of another.
//! - Nothing is deleted under a name: every request names the uid it means.

use std::convert::Infallible;
use std::fmt::Display;
use std::time::Instant;

use futures_util::stream::{FuturesUnordered, SelectAll, select_all};
use futures_util::{FutureExt, Stream, StreamExt};
use kube::Client;
use kube::api::{
    Api, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions, PropagationPolicy,
};
use kube::core::ObjectMeta;
use serde_json::{Value, json};
use stint_apiserver::kind::Names;
use tokio::task::{unconstrained, yield_now};
use tracing::warn;

use crate::feed::{News, feed, whole};
use crate::graph::Graph;
use crate::graph::object::{self, GraphKind, KindId, ObjectId, Owners, Propagation};
use crate::graph::op::{Item, Op, Outcome};
use crate::graph::uid::Uid;
use crate::pace::reached;
use crate::refusal::{Refusal, words};
use crate::resource;
use crate::sight::MetaSight;

/// How many requests are under way at once: what the store commits together, and a tenth of
/// what the server takes.
const AT_ONCE: usize = 64;

/// How many news are read before others get a turn: some 10 ms' worth.
const STEP_NEWS: usize = 1024;

/// Follows the owner references, for ever.
pub(crate) async fn run(client: Client) -> Infallible {
    let kinds: Vec<&'static Names> = resource::collected().collect();
    let mut graph = Graph::new(kinds.iter().map(|names| graph_kind(names)).collect());
    let mut feeds = select_all(kinds.iter().enumerate().map(|(place, names)| {
        let news = match (names.group, names.plural) {
            // The many: of all else they could be large.
            ("", "pods") => whole(resource::part::<MetaSight>(&client, names, None))
                .map(|news| news.map(|object| object.metadata))
                .boxed(),
            _ => feed(resource::api(&client, names, None), None),
        };
        news.map(move |news| (KindId(place), news)).boxed()
    }));
    let hands = Hands { client, kinds, graph_kinds: graph.kinds().to_vec() };
    let mut works = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some((kind, news)) = feeds.next() => note(&mut graph, kind, news),
            Some((item, outcome)) = works.next() => graph.settle(item, outcome, Instant::now()),
            () = reached(graph.wake_at()) => {}
        }
        catch_up(&mut graph, &mut feeds).await;
        while works.len() < AT_ONCE
            && let Some(op) = graph.next(Instant::now())
        {
            works.push(hands.carry_out(op));
        }
    }
}

fn graph_kind(names: &Names) -> GraphKind {
    GraphKind {
        api_version: names.api_version(),
        kind: names.kind,
        is_namespaced: names.is_namespaced,
    }
}

/// Reads all the news that are there. A change is shown to every watch before it is answered,
/// so whoever has changed something and then something else is seen to have done so.
async fn catch_up<S>(graph: &mut Graph, feeds: &mut SelectAll<S>)
where
    S: Stream<Item = (KindId, News)> + Unpin,
{
    loop {
        for _ in 0..STEP_NEWS {
            // Without a budget, which would make news that are there look as if they were not.
            match unconstrained(feeds.next()).now_or_never() {
                Some(Some((kind, news))) => note(graph, kind, news),
                Some(None) | None => return,
            }
        }
        yield_now().await;
    }
}

fn note(graph: &mut Graph, kind: KindId, news: News) {
    match news {
        News::Began => graph.begin(kind),
        News::Seen(meta) => graph.see(kind, &meta),
        News::Gone(meta) => graph.gone(&meta),
        News::Complete => graph.complete(kind),
    }
}

/// What the graph's decisions are carried out with.
struct Hands {
    client: Client,
    kinds: Vec<&'static Names>,
    graph_kinds: Vec<GraphKind>,
}

impl Hands {
    async fn carry_out(&self, op: Op) -> (Item, Outcome) {
        let item = op.item();
        let outcome = match op {
            Op::Ask(id) => self.ask(&id).await,
            Op::Delete { id, version, owners, propagation } => {
                self.delete(&id, version, &owners, propagation).await
            }
            Op::DropOwners { id, owners } => self.drop_owners(&id, &owners).await,
            Op::Unblock { id, owners } => self.unblock(&id, &owners).await,
            Op::Release { id, finalizer } => self.release(&id, finalizer).await,
        };
        (item, outcome)
    }

    fn api(&self, id: &ObjectId) -> Api<DynamicObject> {
        resource::api(&self.client, self.kinds[id.kind.0], id.namespace())
    }

    /// The metadata of an object; none if there is no such object.
    async fn look_up(&self, id: &ObjectId) -> kube::Result<Option<ObjectMeta>> {
        if !is_name(id.name()) {
            return Ok(None);
        }
        let found = self.api(id).get_metadata_opt(id.name()).await?;
        Ok(found.map(|found| found.metadata).filter(|meta| object::uid(meta) == id.uid))
    }

    async fn ask(&self, id: &ObjectId) -> Outcome {
        match self.look_up(id).await {
            Ok(None) => Outcome::Absent,
            Ok(Some(_)) => Outcome::Present,
            Err(error) => refused(id, "looked up", &error),
        }
    }

    /// Deletes an object that is as the graph knows it. If it has changed in all but its owners
    /// it is deleted all the same, so that one that changes all the time does not live on.
    async fn delete(
        &self,
        id: &ObjectId,
        version: u64,
        owners: &Owners,
        propagation: Propagation,
    ) -> Outcome {
        let first = self.try_to_delete(id, Some(version.to_string()), propagation).await;
        let Err(error) = first else { return first.expect("it is no error") };
        if Refusal::of(&error) != Refusal::Conflict {
            return gone_or_refused(id, "deleted", &error);
        }
        match self.look_up(id).await {
            Ok(None) => Outcome::Gone,
            Ok(Some(meta)) => {
                let references = meta.owner_references.as_deref().unwrap_or_default();
                let now = Owners::read(&self.graph_kinds, id.namespace(), references);
                if now != *owners || meta.deletion_timestamp.is_some() {
                    return Outcome::Refused;
                }
                match self.try_to_delete(id, None, propagation).await {
                    Ok(outcome) => outcome,
                    Err(error) => gone_or_refused(id, "deleted", &error),
                }
            }
            Err(error) => refused(id, "looked up", &error),
        }
    }

    async fn try_to_delete(
        &self,
        id: &ObjectId,
        resource_version: Option<String>,
        propagation: Propagation,
    ) -> kube::Result<Outcome> {
        let policy = match propagation {
            Propagation::Background => PropagationPolicy::Background,
            Propagation::Foreground => PropagationPolicy::Foreground,
            Propagation::Orphan => PropagationPolicy::Orphan,
        };
        let uid = Some(id.uid.to_string());
        let params = DeleteParams {
            propagation_policy: Some(policy),
            preconditions: Some(Preconditions { uid, resource_version }),
            ..DeleteParams::default()
        };
        let deleted = self.api(id).delete(id.name(), &params).await?;
        Ok(deleted.either(|object| done(&object.metadata), |_| Outcome::Gone))
    }

    async fn drop_owners(&self, id: &ObjectId, owners: &[Uid]) -> Outcome {
        let reference = |uid: &Uid| json!({"$patch": "delete", "uid": uid.to_string()});
        let references: Vec<Value> = owners.iter().map(reference).collect();
        self.patch(id, json!({"ownerReferences": references})).await
    }

    async fn unblock(&self, id: &ObjectId, owners: &[Uid]) -> Outcome {
        let reference = |uid: &Uid| json!({"uid": uid.to_string(), "blockOwnerDeletion": false});
        let references: Vec<Value> = owners.iter().map(reference).collect();
        self.patch(id, json!({"ownerReferences": references})).await
    }

    async fn release(&self, id: &ObjectId, finalizer: &str) -> Outcome {
        self.patch(id, json!({"$deleteFromPrimitiveList/finalizers": [finalizer]})).await
    }

    /// Patches the metadata of an object, of this and no other.
    async fn patch(&self, id: &ObjectId, mut metadata: Value) -> Outcome {
        metadata["uid"] = json!(id.uid.to_string());
        let patch = Patch::Strategic(json!({"metadata": metadata}));
        match self.api(id).patch_metadata(id.name(), &PatchParams::default(), &patch).await {
            Ok(patched) => done(&patched.metadata),
            Err(error) => gone_or_refused(id, "patched", &error),
        }
    }
}

/// Whether an object can be called so at all. A reference may say anything, and what is no part
/// of a path must not become one.
fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    !matches!(name, "" | "." | "..") && name.bytes().all(is_plain)
}

fn done(meta: &ObjectMeta) -> Outcome {
    let version = meta.resource_version.as_deref().and_then(|version| version.parse().ok());
    Outcome::Done(version.unwrap_or(0))
}

fn gone_or_refused(id: &ObjectId, what: &str, error: &kube::Error) -> Outcome {
    match Refusal::of(error) {
        Refusal::NotFound => Outcome::Gone,
        _ => refused(id, what, &words(error)),
    }
}

fn refused(id: &ObjectId, what: &str, error: &impl Display) -> Outcome {
    warn!(object = ?id, %error, "it cannot be {what} now");
    Outcome::Refused
}
