//! An API server and a node in one process.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ConfigMap, ContainerStatus, Event, Namespace, Pod};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use stint_apiserver::access::{Authenticator, Identity};
use stint_apiserver::log::NoLogs;
use stint_apiserver::{ApiServer, Limits};
use stint_node::{Clock, Node, Options, Runtime};
use stint_store::Store;
use tower_service::Service;

use crate::fake::Fake;
use crate::still::Still;

pub(crate) const NAMESPACE: &str = "default";
pub(crate) const NODE: &str = "here";

/// How long a condition may take to come true.
const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) struct Cluster {
    server: ApiServer,
    still: Still,
    pub(crate) admin: Client,
    pub(crate) fake: Fake,
    pub(crate) folder: tempfile::TempDir,
    clock: Clock,
    /// The calls of the node: `PATCH /api/…`.
    calls: Arc<Mutex<Vec<String>>>,
    /// How many of the next writes of the node get no true answer.
    faults: Arc<AtomicUsize>,
    /// Whether what the node says of Pods is refused.
    refuses: Arc<AtomicBool>,
    /// Whether removals by the node are.
    refuses_removals: Arc<AtomicBool>,
    /// How many seconds what the node says of Pods takes.
    slowness: Arc<AtomicUsize>,
}

impl Cluster {
    pub(crate) async fn new() -> Self {
        let (began, start) =
            (tokio::time::Instant::now(), Timestamp::from_second(1_800_000_000).expect("a time"));
        let now = move || {
            let passed = SignedDuration::try_from(began.elapsed()).expect("a test is short");
            start.checked_add(passed).expect("a test is short")
        };
        let config = stint_apiserver::Config {
            gates: Default::default(),
            clock: stint_apiserver::Clock::new(now),
            logs: Arc::new(NoLogs),
            tracks_owners: true,
        };
        let store = Store::in_memory(stint_store::Options::default());
        let nobody = Authenticator::new::<&str>([]);
        let server = ApiServer::new(store, nobody, config, Limits::default());
        let still = Still::default();
        let admin = Client::new(still.around(server.local(Identity::admin())), NAMESPACE);
        for name in [NAMESPACE, "kube-node-lease"] {
            let namespace = json!({"metadata": {"name": name}});
            let namespace: Namespace = serde_json::from_value(namespace).expect("a namespace");
            let made = Api::all(admin.clone()).create(&PostParams::default(), &namespace).await;
            made.expect("a namespace can be made");
        }
        let clock = Clock::new(now);
        let fake = Fake::new(clock.clone());
        let folder = tempfile::tempdir().expect("a folder");
        Cluster {
            server,
            still,
            admin,
            fake,
            folder,
            clock,
            calls: Arc::default(),
            faults: Arc::default(),
            refuses: Arc::default(),
            refuses_removals: Arc::default(),
            slowness: Arc::default(),
        }
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            clock: self.clock.clone(),
            env: vec![("PATH".to_owned(), "/bin".to_owned())],
            ..Options::new(NODE, self.folder.path())
        }
    }

    pub(crate) fn start(&self) -> Node {
        self.start_with(self.options())
    }

    pub(crate) fn start_with(&self, options: Options) -> Node {
        self.start_on(Arc::new(self.fake.clone()), options)
    }

    pub(crate) fn start_on(&self, runtime: Arc<dyn Runtime>, options: Options) -> Node {
        let inner = self.still.around(self.server.local(Identity::node(NODE)));
        let client = Client::new(
            Noted {
                inner,
                calls: self.calls.clone(),
                faults: self.faults.clone(),
                refuses: self.refuses.clone(),
                refuses_removals: self.refuses_removals.clone(),
                slowness: self.slowness.clone(),
            },
            NAMESPACE,
        );
        Node::start(client, runtime, options)
    }

    /// The next so many writes of the node about Pods are done, and answered with a failure.
    pub(crate) fn lose_answers(&self, count: usize) {
        self.faults.store(count, Ordering::Relaxed);
    }

    /// From now on what the node says of Pods is refused.
    pub(crate) fn refuse_statuses(&self) {
        self.refuses.store(true, Ordering::Relaxed);
    }

    /// From now on what the node says of Pods takes so many seconds.
    pub(crate) fn slow_statuses(&self, seconds: usize) {
        self.slowness.store(seconds, Ordering::Relaxed);
    }

    /// Whether the node can remove Pods from now on.
    pub(crate) fn refuse_removals(&self, refuses: bool) {
        self.refuses_removals.store(refuses, Ordering::Relaxed);
    }

    /// How many calls of the node begin and end so.
    pub(crate) fn count(&self, method: &str, end: &str) -> usize {
        let calls = self.calls.lock().expect("nobody panics here");
        calls.iter().filter(|call| call.starts_with(method) && call.ends_with(end)).count()
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.admin.clone(), NAMESPACE)
    }

    /// Creates a Pod that is bound to the node. Where it says nothing else, it is never
    /// restarted.
    pub(crate) async fn create(&self, name: &str, mut spec: Value) -> Pod {
        spec["nodeName"] = json!(NODE);
        if spec["restartPolicy"].is_null() {
            spec["restartPolicy"] = json!("Never");
        }
        for list in ["containers", "initContainers"] {
            for container in spec[list].as_array_mut().into_iter().flatten() {
                container["image"] = json!("i");
            }
        }
        let pod = json!({"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec});
        let pod: Pod = serde_json::from_value(pod).expect("the test's own Pod is a Pod");
        self.pods().create(&PostParams::default(), &pod).await.expect("the Pod is valid")
    }

    /// A Pod of one container with this script.
    pub(crate) async fn script(&self, name: &str, script: &str) -> Pod {
        self.create(name, json!({"containers": [main(script)]})).await
    }

    pub(crate) async fn config_map(&self, name: &str, data: Value) {
        let map = json!({"metadata": {"name": name}, "data": data});
        let map: ConfigMap = serde_json::from_value(map).expect("a ConfigMap");
        let maps: Api<ConfigMap> = Api::namespaced(self.admin.clone(), NAMESPACE);
        maps.create(&PostParams::default(), &map).await.expect("it can be made");
    }

    pub(crate) async fn delete(&self, name: &str, grace: Option<u32>) {
        let params = DeleteParams { grace_period_seconds: grace, ..DeleteParams::default() };
        self.pods().delete(name, &params).await.expect("it can be deleted");
    }

    pub(crate) async fn find(&self, name: &str) -> Option<Pod> {
        self.pods().get_opt(name).await.expect("Pods can be read")
    }

    /// Waits until a Pod is as it should be.
    pub(crate) async fn wait(&self, name: &str, what: &str, is_so: impl Fn(&Pod) -> bool) -> Pod {
        let began = tokio::time::Instant::now();
        loop {
            let pod = self.find(name).await.unwrap_or_else(|| panic!("{name} is gone"));
            if is_so(&pod) {
                return pod;
            }
            let status = serde_json::to_string_pretty(&pod.status).expect("JSON");
            let history = self.fake.timed();
            assert!(began.elapsed() < PATIENCE, "{name} never {what}: {status}\n{history:#?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    pub(crate) async fn wait_phase(&self, name: &str, wanted: &str) -> Pod {
        self.wait(name, wanted, |pod| phase(pod) == wanted).await
    }

    pub(crate) async fn wait_gone(&self, name: &str) {
        let began = tokio::time::Instant::now();
        while self.find(name).await.is_some() {
            assert!(began.elapsed() < PATIENCE, "{name} never goes");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The reasons of the events of a Pod.
    pub(crate) async fn reasons(&self, name: &str) -> Vec<String> {
        self.events(name).await.into_iter().map(|event| event.reason.unwrap_or_default()).collect()
    }

    /// What is said in the Events of a Pod.
    pub(crate) async fn messages(&self, name: &str) -> Vec<String> {
        self.events(name).await.into_iter().map(|event| event.message.unwrap_or_default()).collect()
    }

    async fn events(&self, name: &str) -> Vec<Event> {
        let events: Api<Event> = Api::namespaced(self.admin.clone(), NAMESPACE);
        let all = events.list(&ListParams::default()).await.expect("Events can be listed");
        let is_of_pod = |it: &Event| it.involved_object.name.as_deref() == Some(name);
        all.items.into_iter().filter(is_of_pod).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.server.drain();
    }
}

/// A container called main with this script.
pub(crate) fn main(script: &str) -> Value {
    container("main", script)
}

pub(crate) fn container(name: &str, script: &str) -> Value {
    let words: Vec<&str> = script.split(' ').collect();
    json!({"name": name, "command": words})
}

pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("")
}

/// The status of a container.
pub(crate) fn status_of<'p>(pod: &'p Pod, name: &str) -> &'p ContainerStatus {
    let status = pod.status.as_ref().expect("it has a status");
    let main = status.container_statuses.iter().flatten();
    let mut all = main.chain(status.init_container_statuses.iter().flatten());
    all.find(|status| status.name == name).expect("it is told")
}

/// The state of a container: `running`, `waiting REASON`, `terminated REASON CODE`.
pub(crate) fn state_of(pod: &Pod, name: &str) -> String {
    let state = status_of(pod, name).state.clone().unwrap_or_default();
    if let Some(waiting) = state.waiting {
        return format!("waiting {}", waiting.reason.unwrap_or_default());
    }
    match state.terminated {
        Some(end) => format!("terminated {} {}", end.reason.unwrap_or_default(), end.exit_code),
        None => "running".to_owned(),
    }
}

/// A condition: `True`, `False REASON`; empty if it is not there.
pub(crate) fn condition(pod: &Pod, kind: &str) -> String {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let found = conditions.into_iter().flatten().find(|it| it.type_ == kind);
    found.map_or_else(String::new, |it| match &it.reason {
        Some(reason) => format!("{} {reason}", it.status),
        None => it.status.clone(),
    })
}

/// A service whose calls are noted.
#[derive(Clone)]
struct Noted<S> {
    inner: S,
    calls: Arc<Mutex<Vec<String>>>,
    faults: Arc<AtomicUsize>,
    refuses: Arc<AtomicBool>,
    refuses_removals: Arc<AtomicBool>,
    slowness: Arc<AtomicUsize>,
}

impl<S, B, R> Service<Request<B>> for Noted<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Send + 'static,
    R: Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if self.refuses.load(Ordering::Relaxed) && request.uri().path().ends_with("/status") {
            // The server does not take a patch of no kind.
            request.headers_mut().remove(http::header::CONTENT_TYPE);
        }
        let is_refused = self.refuses_removals.load(Ordering::Relaxed);
        if is_refused && request.method() == http::Method::DELETE {
            // Nor does it create what has a name already.
            *request.method_mut() = http::Method::POST;
        }
        let path = request.uri().path();
        let is_write = request.method() != http::Method::GET && path.contains("/pods/");
        let take = |left: usize| left.checked_sub(1);
        let is_lost = is_write
            && self.faults.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        let is_status = path.contains("/pods/") && path.ends_with("/status");
        let seconds = if is_status { self.slowness.load(Ordering::Relaxed) } else { 0 };
        let call = format!("{} {path}", request.method());
        self.calls.lock().expect("nobody panics here").push(call);
        let mut inner = self.inner.clone();
        Box::pin(async move {
            // Before it is called: time does not pass while the server has something to do.
            if seconds > 0 {
                tokio::time::sleep(Duration::from_secs(seconds as u64)).await;
            }
            let mut answer = inner.call(request).await?;
            if is_lost {
                *answer.status_mut() = http::StatusCode::GATEWAY_TIMEOUT;
            }
            Ok(answer)
        })
    }
}
