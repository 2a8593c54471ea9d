//! Endpoints and EndpointSlices: which Pods are behind a Service that selects them.
//!
//! ```text
//!   services ─────────────────┐
//!   pods of namespaces        ├─▶ roll ─▶ queue of Services ─▶ what is there, and what should be
//!     with such a Service ────┤
//!   endpoints, slices ────────┘
//! ```
//!
//! Where no Service selects Pods, no Pods are watched. A Service is brought up to date at once,
//! and then not before a pause is over, however often its Pods change. Services without a
//! selector are left alone, and so are slices and Endpoints that somebody else keeps: Endpoints
//! written by hand are not mirrored into slices.

mod backend;
mod slices;
mod subsets;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{BoxStream, FuturesUnordered, SelectAll, select_all};
use futures_util::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::Endpoints;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, PostParams, Preconditions};
use stint_apiserver::kinds;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::unconstrained;
use tracing::warn;

use self::backend::{Backend, PodSight, ServiceSight};
use crate::feed::{News, feed, whole};
use crate::pace::{now, reached};
use crate::queue::{Queue, Settled};
use crate::refusal::{Refusal, words};
use crate::resource;
use crate::sight::Key;

/// How many Services are brought up to date at once.
const AT_ONCE: usize = 8;

/// The pause after a Service was brought up to date: four times a second is as fast as clients
/// can make use of it.
const PAUSE: Duration = Duration::from_millis(250);

/// How many news are read before Services get a turn: some 10 ms' worth.
const STEP_NEWS: usize = 1024;

enum Heard {
    Services(News<ServiceSight>),
    /// Of a namespace, from the feed with this number.
    Pods(Arc<str>, u64, News<PodSight>),
    /// Endpoints, or a slice, of the Service with the name that this yields.
    Written(News, fn(&ObjectMeta) -> Option<Arc<str>>),
}

/// What a Service's work is about.
enum Wanted {
    /// There is no such Service.
    Nothing,
    /// It tells of these Pods.
    Backends(Arc<ServiceSight>, Vec<Backend>),
}

/// Keeps Endpoints and EndpointSlices up to date, for ever.
pub(crate) async fn run(client: Client) -> Infallible {
    let services = whole(resource::part::<ServiceSight>(&client, resource::core("services"), None));
    let slice_names =
        kinds::find("discovery.k8s.io", "v1", "endpointslices").expect("it is served").names();
    let endpoints = feed(resource::api(&client, resource::core("endpoints"), None), None);
    let slices = feed(resource::api(&client, slice_names, None), None);
    let mut feeds: SelectAll<BoxStream<'static, Heard>> = select_all([
        services.map(Heard::Services).boxed(),
        endpoints.map(|news| Heard::Written(news, own_name)).boxed(),
        slices.map(|news| Heard::Written(news, service_name)).boxed(),
    ]);
    let places = Semaphore::new(AT_ONCE);
    let (mut roll, mut queue) = (Roll::default(), Queue::default());
    let mut works = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(heard) = feeds.next() => roll.note(heard, &mut queue),
            Some((key, settled)) = works.next() => queue.settle(key, settled, now()),
            () = reached(queue.due_at()) => {}
        }
        for _ in 0..STEP_NEWS {
            let Some(Some(heard)) = unconstrained(feeds.next()).now_or_never() else { break };
            roll.note(heard, &mut queue);
        }
        for (namespace, number, stop) in roll.opened.drain(..) {
            let api = resource::part::<PodSight>(&client, resource::core("pods"), Some(&namespace));
            let tag = move |news| Heard::Pods(namespace.clone(), number, news);
            feeds.push(whole(api).map(tag).take_until(stop).boxed());
        }
        while let Some(key) = queue.take(now()) {
            let wanted = roll.wanted(&key);
            let (client, places) = (&client, &places);
            works.push(async move {
                let settled = match wanted {
                    None => Settled::Done,
                    Some(wanted) => tend(client, places, &key, wanted).await,
                };
                (key, settled)
            });
        }
    }
}

fn own_name(meta: &ObjectMeta) -> Option<Arc<str>> {
    meta.name.as_deref().map(Arc::from)
}

fn service_name(meta: &ObjectMeta) -> Option<Arc<str>> {
    meta.labels.as_ref()?.get(slices::SERVICE_NAME).map(|name| name.as_str().into())
}

/// The Services there are, and the Pods of namespaces with Services that select some.
#[derive(Default)]
struct Roll {
    services: HashMap<Key, Arc<ServiceSight>>,
    spaces: HashMap<Arc<str>, Space>,
    count: u64,
    /// Namespaces whose Pods are to be watched from now on, until the end of the receiver.
    opened: Vec<(Arc<str>, u64, oneshot::Receiver<()>)>,
    are_services_known: bool,
    listed: HashSet<Key>,
    /// What there was before the Services were known.
    early: HashSet<Key>,
}

/// A namespace with Services that select Pods.
struct Space {
    number: u64,
    services: BTreeSet<Arc<str>>,
    pods: HashMap<Arc<str>, Backend>,
    listed: HashSet<Arc<str>>,
    is_complete: bool,
    /// Ends the watch when it is dropped.
    _stop: oneshot::Sender<()>,
}

impl Roll {
    fn note(&mut self, heard: Heard, queue: &mut Queue<Key>) {
        match heard {
            Heard::Services(News::Began) => {
                self.are_services_known = false;
                self.listed.clear();
            }
            Heard::Services(News::Seen(service)) => self.see_service(service, queue),
            Heard::Services(News::Gone(service)) => {
                self.lose_service(Key::of(&service.metadata), queue);
            }
            Heard::Services(News::Complete) => {
                self.are_services_known = true;
                let listed = std::mem::take(&mut self.listed);
                let gone = self.services.keys().filter(|key| !listed.contains(*key));
                for key in gone.cloned().collect::<Vec<_>>() {
                    self.lose_service(key, queue);
                }
                self.early.drain().for_each(|key| queue.add(key));
            }
            Heard::Pods(namespace, number, news) => {
                if let Some(space) = self.spaces.get_mut(&namespace)
                    && space.number == number
                {
                    space.note(&namespace, &self.services, news, queue);
                }
            }
            Heard::Written(News::Seen(meta) | News::Gone(meta), name) => {
                let Some(name) = name(&meta) else { return };
                let key = Key { name, ..Key::of(&meta) };
                if self.are_services_known {
                    queue.add(key);
                } else {
                    self.early.insert(key);
                }
            }
            Heard::Written(News::Began, _) => {}
            // Some may have gone while nobody looked.
            Heard::Written(News::Complete, _) => {
                self.services.keys().for_each(|key| queue.add(key.clone()));
            }
        }
    }

    fn see_service(&mut self, service: ServiceSight, queue: &mut Queue<Key>) {
        let key = Key::of(&service.metadata);
        if !self.are_services_known {
            self.listed.insert(key.clone());
        }
        let selects = service.selector().is_some();
        self.services.insert(key.clone(), Arc::new(service));
        if selects {
            let (opened, count) = (&mut self.opened, &mut self.count);
            let space = self.spaces.entry(key.namespace.clone()).or_insert_with(|| {
                let (stop, stopped) = oneshot::channel();
                *count += 1;
                opened.push((key.namespace.clone(), *count, stopped));
                Space::new(*count, stop)
            });
            space.services.insert(key.name.clone());
        } else {
            self.leave_space(&key);
        }
        queue.add(key);
    }

    fn lose_service(&mut self, key: Key, queue: &mut Queue<Key>) {
        self.services.remove(&key);
        self.leave_space(&key);
        queue.add(key);
    }

    fn leave_space(&mut self, key: &Key) {
        let Some(space) = self.spaces.get_mut(&key.namespace) else { return };
        space.services.remove(&key.name);
        if space.services.is_empty() {
            self.spaces.remove(&key.namespace);
        }
    }

    /// What a Service's Endpoints and slices should tell; none if that is not known, or not
    /// ours to say.
    fn wanted(&self, key: &Key) -> Option<Wanted> {
        let Some(service) = self.services.get(key) else {
            return self.are_services_known.then_some(Wanted::Nothing);
        };
        let space = self.spaces.get(&key.namespace).filter(|space| space.is_complete)?;
        service.selector()?;
        let mut backends: Vec<Backend> =
            space.pods.values().filter(|backend| service.selects(backend)).cloned().collect();
        backends.sort_by(|a, b| a.reference.name.cmp(&b.reference.name));
        Some(Wanted::Backends(service.clone(), backends))
    }
}

impl Space {
    fn new(number: u64, stop: oneshot::Sender<()>) -> Self {
        Space {
            number,
            services: BTreeSet::new(),
            pods: HashMap::new(),
            listed: HashSet::new(),
            is_complete: false,
            _stop: stop,
        }
    }

    fn note(
        &mut self,
        namespace: &Arc<str>,
        services: &HashMap<Key, Arc<ServiceSight>>,
        news: News<PodSight>,
        queue: &mut Queue<Key>,
    ) {
        let key = |name: &Arc<str>| Key { namespace: namespace.clone(), name: name.clone() };
        let (name, new) = match news {
            News::Began => {
                self.is_complete = false;
                self.listed.clear();
                return;
            }
            News::Complete => {
                self.is_complete = true;
                let listed = std::mem::take(&mut self.listed);
                self.pods.retain(|name, _| listed.contains(name));
                self.services.iter().for_each(|name| queue.add(key(name)));
                return;
            }
            News::Seen(pod) => (Key::of(&pod.metadata).name, Backend::read(pod)),
            News::Gone(pod) => (Key::of(&pod.metadata).name, None),
        };
        let old = match new.clone() {
            Some(new) => self.pods.insert(name.clone(), new),
            None => self.pods.remove(&name),
        };
        if !self.is_complete {
            self.listed.insert(name);
            return;
        }
        if old == new {
            return;
        }
        for name in &self.services {
            let service = &services[&key(name)];
            let mut sides = old.iter().chain(&new);
            if sides.any(|backend| service.selects(backend)) {
                queue.add(key(name));
            }
        }
    }
}

/// Brings a Service up to date, and waits for a while if that was needed.
async fn tend(client: &Client, places: &Semaphore, key: &Key, wanted: Wanted) -> Settled {
    let place = places.acquire().await.expect("it is never closed");
    let done = match &wanted {
        Wanted::Nothing => clear(client, key).await,
        Wanted::Backends(service, backends) => write(client, key, service, backends).await,
    };
    drop(place);
    match done {
        Ok(has_written) => {
            if has_written {
                tokio::time::sleep(PAUSE).await;
            }
            Settled::Done
        }
        Err(error) => match Refusal::of(&error) {
            // The namespace is on its way out.
            Refusal::Terminating => Settled::Done,
            Refusal::Conflict | Refusal::AlreadyExists | Refusal::NotFound => Settled::Failed,
            Refusal::Expired | Refusal::Other => {
                warn!(service = ?key, error = words(&error), "its endpoints are tried again later");
                Settled::Failed
            }
        },
    }
}

/// Deletes what is left of a Service's Endpoints. Its slices have an owner, and go with it.
async fn clear(client: &Client, key: &Key) -> kube::Result<bool> {
    let api: Api<Endpoints> = Api::namespaced(client.clone(), &key.namespace);
    let Some(endpoints) = api.get_opt(&key.name).await? else { return Ok(false) };
    let manager = endpoints.metadata.labels.as_ref().and_then(|it| it.get(subsets::MANAGED_BY));
    if manager.is_none_or(|manager| manager != subsets::MANAGER) {
        return Ok(false);
    }
    delete(&api, endpoints.metadata).await?;
    Ok(true)
}

async fn write(
    client: &Client,
    key: &Key,
    service: &ServiceSight,
    backends: &[Backend],
) -> kube::Result<bool> {
    let api: Api<EndpointSlice> = Api::namespaced(client.clone(), &key.namespace);
    let ours =
        format!("{}={},{}={}", slices::SERVICE_NAME, key.name, slices::MANAGED_BY, slices::MANAGER);
    let existing = api.list(&ListParams::default().labels(&ours)).await?.items;
    let changes = slices::changes(service, backends, existing);
    let mut has_written = false;
    let params = PostParams::default();
    for slice in &changes.create {
        api.create(&params, slice).await?;
        has_written = true;
    }
    for slice in &changes.update {
        let name = slice.metadata.name.as_deref().unwrap_or_default();
        api.replace(name, &params, slice).await?;
        has_written = true;
    }
    for slice in changes.delete {
        delete(&api, slice.metadata).await?;
        has_written = true;
    }
    let api: Api<Endpoints> = Api::namespaced(client.clone(), &key.namespace);
    let existing = api.get_opt(&key.name).await?;
    if let Some(endpoints) = subsets::update(service, backends, existing) {
        match endpoints.metadata.resource_version {
            Some(_) => api.replace(&key.name, &params, &endpoints).await?,
            None => api.create(&params, &endpoints).await?,
        };
        has_written = true;
    }
    Ok(has_written)
}

/// Deletes an object, this and no other.
async fn delete<K>(api: &Api<K>, meta: ObjectMeta) -> kube::Result<()>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let (uid, resource_version) = (meta.uid, None);
    let params = DeleteParams::default().preconditions(Preconditions { uid, resource_version });
    match api.delete(&meta.name.unwrap_or_default(), &params).await {
        Err(error) if Refusal::of(&error) != Refusal::NotFound => Err(error),
        _ => Ok(()),
    }
}
