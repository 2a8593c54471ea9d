//! What the tests of the cluster share: a cluster, objects, and waiting for what is to happen.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stint_apiserver::Clock;
use stint_apiserver::access::Identity;
use stint_local::{Cluster, Options, Storage};
use tokio::task::JoinHandle;

/// What every test's cluster shows as its certificate.
pub(crate) const CA: &str = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";

/// No test waits longer than this. It is reached only if something is broken.
const BACKSTOP: Duration = Duration::from_secs(120);

pub(crate) async fn in_memory() -> (Cluster, Client) {
    start(Storage::Memory).await
}

pub(crate) async fn in_folder(folder: &Path) -> (Cluster, Client) {
    start(Storage::Folder(folder.to_owned())).await
}

async fn start(storage: Storage) -> (Cluster, Client) {
    start_with(Options { storage, ..Options::default() }).await
}

pub(crate) async fn start_with(options: Options) -> (Cluster, Client) {
    // What becomes of a Job and its Pods is what the tests themselves make of it.
    let options = Options { ca_certificate: CA.to_owned(), jobs: None, ..options };
    let cluster = Cluster::start(options).await.expect("the cluster starts");
    let client = cluster.client(Identity::admin());
    (cluster, client)
}

/// Runs a test against the backstop, and fails it if a part of the cluster fails.
pub(crate) async fn watched<T>(cluster: &Cluster, test: impl Future<Output = T>) -> T {
    tokio::select! {
        done = test => done,
        failure = cluster.failed() => panic!("{failure}"),
        () = tokio::time::sleep(BACKSTOP) => panic!("this takes too long"),
    }
}

/// Creates an object from its JSON.
pub(crate) async fn create<K>(api: &Api<K>, object: Value) -> K
where
    K: Clone + Debug + DeserializeOwned + Serialize,
{
    let object = serde_json::from_value(object).expect("an object");
    api.create(&PostParams::default(), &object).await.expect("it can be created")
}

pub(crate) async fn delete<K>(api: &Api<K>, name: &str, params: &DeleteParams)
where
    K: Clone + Debug + DeserializeOwned,
{
    let _ = api.delete(name, params).await.expect("it can be deleted");
}

/// Waits until the objects of a kind, by name, are as they should be.
pub(crate) async fn until<K>(
    api: &Api<K>,
    what: &str,
    is_so: impl Fn(&BTreeMap<String, K>) -> bool,
) -> BTreeMap<String, K>
where
    K: Clone + Debug + DeserializeOwned + Resource + Send + 'static,
{
    let mut objects = BTreeMap::new();
    let params = WatchParams::default().initial_events();
    let waiting = async {
        let mut watch = api.watch(&params, "").await.expect("a watch").into_stream().boxed();
        let mut is_complete = false;
        while let Some(event) = watch.next().await {
            match event.expect("an event") {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    objects.insert(key(&object), object);
                }
                WatchEvent::Deleted(object) => {
                    objects.remove(&key(&object));
                }
                WatchEvent::Bookmark(_) => is_complete = true,
                WatchEvent::Error(status) => panic!("{status:?}"),
            }
            if is_complete && is_so(&objects) {
                return;
            }
        }
        panic!("the watch has ended");
    };
    if tokio::time::timeout(BACKSTOP, waiting).await.is_err() {
        panic!("{what} does not happen: {objects:#?}");
    }
    objects
}

/// Waits until an object is gone.
pub(crate) async fn until_gone<K>(api: &Api<K>, name: &str)
where
    K: Clone + Debug + DeserializeOwned + Resource + Send + 'static,
{
    until(api, &format!("the end of {name}"), |objects| !objects.contains_key(name)).await;
}

/// A Job.
pub(crate) fn job(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "none"}],
        }}},
    })
}

/// A Pod, with owners.
pub(crate) fn pod(name: &str, owners: &[OwnerReference]) -> Value {
    json!({
        "metadata": {"name": name, "ownerReferences": owners},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    })
}

/// A config map, with owners.
pub(crate) fn map(name: &str, owners: &[OwnerReference]) -> Value {
    json!({"metadata": {"name": name, "ownerReferences": owners}})
}

/// A reference to an object, as its dependents have it.
pub(crate) fn owned_by<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    owner.owner_ref(&()).expect("it was created")
}

/// A reference that keeps its owner until the dependent is gone.
pub(crate) fn blocking<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference { block_owner_deletion: Some(true), ..owned_by(owner) }
}

/// An object that a finalizer keeps.
pub(crate) fn held(mut object: Value) -> Value {
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    object
}

/// Takes the finalizer off again.
pub(crate) async fn let_go<K>(api: &Api<K>, name: &str)
where
    K: Clone + Debug + DeserializeOwned,
{
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/hold"]}});
    let params = PatchParams::default();
    api.patch(name, &params, &Patch::Strategic(patch)).await.expect("it can be patched");
}

/// Whether an object is there and being deleted.
pub(crate) fn is_deleted<K: Resource>(objects: &BTreeMap<String, K>, name: &str) -> bool {
    objects.get(name).is_some_and(|object| object.meta().deletion_timestamp.is_some())
}

fn key<K: Resource>(object: &K) -> String {
    object.name_any()
}

/// A node that has this much to give.
pub(crate) fn node(name: &str, cpu: &str, pods: usize) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": cpu, "memory": "64Gi", "pods": pods.to_string()}},
    })
}

/// A Pod that asks for so much.
pub(crate) fn asking(name: &str, cpu: &str) -> Value {
    let mut pod = pod(name, &[]);
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
    pod
}

/// Says how a Pod is doing, as its node would.
pub(crate) async fn report(pods: &Api<Pod>, name: &str, status: Value) {
    let patch = Patch::Strategic(json!({"status": status}));
    pods.patch_status(name, &PatchParams::default(), &patch).await.expect("a status");
}

/// The node that a Pod is on.
pub(crate) fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

pub(crate) fn phase(pod: &Pod) -> &str {
    let status = pod.status.as_ref();
    status.and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// How many requests the server has answered.
pub(crate) async fn requests(client: &Client) -> usize {
    let request = kube::core::Request::new("/metrics");
    let mut request = request.list(&Default::default()).expect("a request");
    *request.uri_mut() = "/metrics".parse().expect("a path");
    let text = client.request_text(request).await.expect("the metrics");
    let count = |line: &str| line.rsplit(' ').next()?.parse::<f64>().ok();
    let counts = text.lines().filter(|line| line.starts_with("apiserver_request_total"));
    counts.filter_map(count).sum::<f64>() as usize
}

/// Time that stands still until it is told to go on. Without it, paused time would go on
/// whenever everybody waits for the store, which has a thread of its own.
pub(crate) struct Still {
    began: tokio::time::Instant,
    backstop: Mutex<Option<JoinHandle<()>>>,
    _end: std::sync::mpsc::Sender<()>,
}

/// When a test with its own time begins.
pub(crate) const MORNING: i64 = 1_800_000_000;

impl Still {
    pub(crate) fn new() -> Self {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        // Time does not go on by itself as long as there is blocking work.
        let backstop = tokio::task::spawn_blocking(move || {
            let _ = ended.recv_timeout(BACKSTOP);
        });
        let backstop = Mutex::new(Some(backstop));
        Still { began: tokio::time::Instant::now(), backstop, _end: end }
    }

    /// Runs a test against the backstop, in real time, and fails it if a part of the cluster
    /// fails.
    pub(crate) async fn watched<T>(&self, cluster: &Cluster, test: impl Future<Output = T>) -> T {
        let backstop = self.backstop.lock().expect("nobody panics").take().expect("once");
        tokio::select! {
            done = test => done,
            failure = cluster.failed() => panic!("{failure}"),
            _ = backstop => panic!("this takes too long"),
        }
    }

    /// A clock that shows this time.
    pub(crate) fn clock(&self) -> Clock {
        let began = self.began;
        Clock::new(move || {
            let morning = Timestamp::from_second(MORNING).expect("a time");
            morning + SignedDuration::try_from(began.elapsed()).expect("not long")
        })
    }

    /// Lets time pass until objects are as they should be: for what happens a while after
    /// something that nobody sees happen.
    pub(crate) async fn pass_until<K>(
        &self,
        api: &Api<K>,
        is_so: impl Fn(&BTreeMap<String, K>) -> bool,
    ) -> BTreeMap<String, K>
    where
        K: Clone + Debug + DeserializeOwned + Resource,
    {
        loop {
            let list = api.list(&Default::default()).await.expect("a list");
            let objects = list.items.into_iter().map(|object| (key(&object), object)).collect();
            if is_so(&objects) {
                return objects;
            }
            tokio::time::advance(Duration::from_millis(500)).await;
        }
    }

    /// Lets time pass until this many seconds since the beginning.
    pub(crate) async fn go_to(&self, seconds: u64) {
        let then = self.began + Duration::from_secs(seconds);
        tokio::time::advance(then - tokio::time::Instant::now()).await;
    }
}

/// So many seconds after the morning.
pub(crate) fn at(seconds: i64) -> Time {
    Time(Timestamp::from_second(MORNING + seconds).expect("a time"))
}
