//! What is in a namespace: how it is deleted, what is left of it, and when that changes.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::stream::{self, select_all};
use futures_util::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Preconditions, WatchEvent, WatchParams,
};
use stint_api::names::finalizer::{FOREGROUND_DELETION, ORPHAN};
use stint_apiserver::kind::Names;
use tokio::time::{Instant, timeout_at};

use crate::refusal::Refusal;
use crate::resource;

/// How many objects are listed at once: as many as upstream's lists have.
const PAGE: u32 = 500;

/// How many deletions are under way at once: what the store commits together.
const AT_ONCE: usize = 64;

/// How long nothing may happen to what is left before it is looked at again. Nothing should
/// depend on it; upstream, too, looks again after 15 seconds.
const LOOK_AGAIN: Duration = Duration::from_secs(15);

/// How long further changes are gathered after one, for each object that is left: looking at
/// an object takes some 0.1 ms.
const GATHER: Duration = Duration::from_millis(1);

/// The longest time for which changes are gathered.
const GATHER_LONGEST: Duration = Duration::from_secs(5);

/// What is left in a namespace, and why.
#[derive(Debug, Default)]
pub(super) struct Remaining {
    /// The kinds that are left.
    pub(super) kinds: Vec<Left>,
    /// How many objects each finalizer keeps.
    pub(super) finalizers: BTreeMap<String, usize>,
    /// What could not be done.
    pub(super) errors: Vec<String>,
}

/// Objects of one kind.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) names: &'static Names,
    pub(super) count: usize,
    /// The version of the list that they were on.
    pub(super) version: String,
}

impl Remaining {
    /// Whether the namespace is empty, and known to be.
    pub(super) fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.errors.is_empty()
    }
}

/// Deletes the objects of a kind in a namespace, and notes what is left.
pub(super) async fn delete(
    client: &Client,
    names: &'static Names,
    namespace: &str,
    now: Timestamp,
    remaining: &mut Remaining,
) {
    let api = resource::api(client, names, Some(namespace));
    if let Err(error) = try_to_delete(&api, names, namespace, now, remaining).await {
        remaining.errors.push(error);
    }
}

async fn try_to_delete(
    api: &Api<DynamicObject>,
    names: &'static Names,
    namespace: &str,
    now: Timestamp,
    remaining: &mut Remaining,
) -> Result<(), String> {
    let mut first_error = None;
    let mut found = false;
    let mut pages = Pages::new(api);
    while let Some((page, _)) = pages.next().await.map_err(|error| error.to_string())? {
        found |= !page.is_empty();
        let mut deletions = stream::iter(page.into_iter().filter(is_to_be_deleted))
            .map(|meta| delete_one(api, meta))
            .buffer_unordered(AT_ONCE);
        while let Some(result) = deletions.next().await {
            first_error = first_error.or(result.err());
        }
    }
    if found {
        count(api, names, namespace, now, remaining).await?;
    }
    first_error.map_or(Ok(()), |error| Err(error.to_string()))
}

/// Whether an object waits for nothing but being deleted. One that waits for its dependents is
/// deleted again, so that it does not: they go as well.
fn is_to_be_deleted(meta: &ObjectMeta) -> bool {
    let waits = |finalizer: &String| finalizer == ORPHAN || finalizer == FOREGROUND_DELETION;
    meta.deletion_timestamp.is_none() || meta.finalizers.iter().flatten().any(waits)
}

async fn delete_one(api: &Api<DynamicObject>, meta: ObjectMeta) -> kube::Result<()> {
    let name = meta.name.unwrap_or_default();
    let preconditions = Preconditions { uid: meta.uid, resource_version: None };
    let params = DeleteParams::background().preconditions(preconditions);
    match api.delete(&name, &params).await {
        Ok(_) => Ok(()),
        // It is gone, or another one has its name, which is counted.
        Err(error) if matches!(Refusal::of(&error), Refusal::NotFound | Refusal::Conflict) => {
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Notes what is left of a kind. What has neither finalizers nor time left should not be.
async fn count(
    api: &Api<DynamicObject>,
    names: &'static Names,
    namespace: &str,
    now: Timestamp,
    remaining: &mut Remaining,
) -> Result<(), String> {
    let mut left = Left { names, count: 0, version: String::new() };
    let mut is_expected = false;
    let mut pages = Pages::new(api);
    while let Some((page, version)) = pages.next().await.map_err(|error| error.to_string())? {
        left.count += page.len();
        left.version = version;
        for meta in page {
            is_expected |= meta.deletion_timestamp.is_some_and(|time| time.0 > now);
            for finalizer in meta.finalizers.unwrap_or_default() {
                is_expected = true;
                *remaining.finalizers.entry(finalizer).or_default() += 1;
            }
        }
    }
    if left.count == 0 {
        return Ok(());
    }
    remaining.kinds.push(left);
    if is_expected {
        return Ok(());
    }
    let Names { group, version, plural, .. } = names;
    Err(format!(
        "unexpected items still remain in namespace: {namespace} for gvr: {group}/{version}, \
         Resource={plural}"
    ))
}

/// A list, page by page.
struct Pages<'a> {
    api: &'a Api<DynamicObject>,
    params: ListParams,
    is_over: bool,
}

impl<'a> Pages<'a> {
    fn new(api: &'a Api<DynamicObject>) -> Self {
        Pages { api, params: ListParams::default().limit(PAGE), is_over: false }
    }

    async fn next(&mut self) -> kube::Result<Option<(Vec<ObjectMeta>, String)>> {
        if self.is_over {
            return Ok(None);
        }
        let list = self.api.list_metadata(&self.params).await?;
        self.params.continue_token = list.metadata.continue_.filter(|token| !token.is_empty());
        self.is_over = self.params.continue_token.is_none();
        let items = list.items.into_iter().map(|item| item.metadata).collect();
        Ok(Some((items, list.metadata.resource_version.unwrap_or_default())))
    }
}

/// Waits until what is left in a namespace has changed so far that it is worth a look.
pub(super) async fn changed(client: &Client, namespace: &str, remaining: &Remaining) {
    let mut deadline = Instant::now() + LOOK_AGAIN;
    let mut left: usize = remaining.kinds.iter().map(|left| left.count).sum();
    let gather = GATHER_LONGEST.min(GATHER * u32::try_from(left).unwrap_or(u32::MAX));
    let mut watches = Vec::new();
    for kind in &remaining.kinds {
        let api = resource::api(client, kind.names, Some(namespace));
        match api.watch_metadata(&WatchParams::default(), &kind.version).await {
            Ok(watch) => watches.push(watch.into_stream().boxed()),
            Err(_) => deadline = deadline.min(Instant::now() + GATHER_LONGEST),
        }
    }
    let mut watches = select_all(watches);
    let mut is_first = true;
    while left > 0 {
        match timeout_at(deadline, watches.next()).await {
            Ok(Some(Ok(WatchEvent::Bookmark(_)))) => {}
            Ok(Some(Ok(event))) => {
                left = left.saturating_sub(matches!(event, WatchEvent::Deleted(_)).into());
                if std::mem::take(&mut is_first) {
                    deadline = deadline.min(Instant::now() + gather);
                }
            }
            // Without a watch, it is looked at again before long.
            Ok(Some(Err(_)) | None) => {
                tokio::time::sleep_until(deadline.min(Instant::now() + GATHER_LONGEST)).await;
                return;
            }
            Err(_) => return,
        }
    }
    if remaining.kinds.is_empty() {
        tokio::time::sleep(GATHER_LONGEST).await;
    }
}
