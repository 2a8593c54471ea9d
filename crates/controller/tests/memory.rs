//! What 50,000 live Pods cost a controller that holds them.
//!
//! The API is a stub that makes its answers as they are read, so that what grows in this
//! process is the controller alone. It is a test binary of its own: nothing runs beside it. Time
//! passes only when nobody has anything to do, so that a pause ends when all is dealt with.

use std::convert::Infallible;
use std::fs;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use stint_controller::{Config, Controller};
use tower_service::Service;

const PODS: usize = 50_000;
const LIMIT_BYTES: usize = 100 * 1024 * 1024;
const JOB_UID: &str = "0b7a2c1e-8f0d-4b8e-9d6e-5f3f6a1c2b4d";

#[derive(Clone, Default)]
struct Stub {
    /// Resident bytes when the Pods were first asked for.
    baseline: Arc<AtomicUsize>,
    /// How often the Pods were listed whole.
    lists: Arc<AtomicUsize>,
    /// Ends the Pod watch as too old.
    is_expired: Arc<AtomicBool>,
}

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

impl Service<Request<Body>> for Stub {
    type Response = Answer;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let answer = self.answer(&request);
        Box::pin(std::future::ready(Ok(answer)))
    }
}

impl Stub {
    fn answer(&self, request: &Request<Body>) -> Answer {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or(""));
        match (request.method(), path) {
            (&Method::GET, "/apis/batch/v1/jobs") => {
                let lines = [line("ADDED", &job()), bookmark(1)];
                streamed(stream::iter(lines).chain(stream::pending()))
            }
            (&Method::GET, "/api/v1/pods") if query.contains("sendInitialEvents") => self.pods(),
            (&Method::GET, "/api/v1/pods") => streamed(stream::pending()),
            (&Method::GET, path) if path.ends_with("/jobs/j") => whole(&job()),
            (&Method::GET, path) if path.ends_with("/pods") => page(query),
            (&Method::POST, path) if path.ends_with("/events") => whole(&json!({})),
            other => panic!("nobody should ask for {other:?}"),
        }
    }

    fn pods(&self) -> Answer {
        if self.lists.load(Ordering::SeqCst) == 0 {
            self.baseline.store(resident(), Ordering::SeqCst);
        }
        let stub = self.clone();
        let ends = stream::once(async move {
            stub.lists.fetch_add(1, Ordering::SeqCst);
            bookmark(PODS as u64 + 10)
        });
        let stub = self.clone();
        let expires = stream::once(async move {
            while !stub.is_expired.swap(false, Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            line(
                "ERROR",
                &json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "message": "too old", "reason": "Expired", "code": 410,
                }),
            )
        });
        let pods = stream::iter((0..PODS).map(|number| line("ADDED", &pod(number))));
        streamed(pods.chain(ends).chain(expires))
    }
}

fn line(kind: &str, object: &Value) -> Bytes {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n").into()
}

fn bookmark(version: u64) -> Bytes {
    line(
        "BOOKMARK",
        &json!({
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {
                "resourceVersion": version.to_string(),
                "annotations": {"k8s.io/initial-events-end": "true"},
            },
        }),
    )
}

fn streamed(lines: impl Stream<Item = Bytes> + Send + 'static) -> Answer {
    let frames = lines.map(|line| Ok(Frame::data(line)));
    Response::new(StreamBody::new(frames).boxed_unsync())
}

fn whole(object: &Value) -> Answer {
    Response::new(Full::new(Bytes::from(object.to_string())).boxed_unsync())
}

/// A page of the list that a ledger asks for before it takes over a Job.
fn page(query: &str) -> Answer {
    let after = query.split("continue=").nth(1).and_then(|from| from.parse().ok()).unwrap_or(0);
    let to = PODS.min(after + 1000);
    let items: Vec<Value> = (after..to).map(pod).collect();
    let mut metadata = json!({"resourceVersion": (PODS as u64 + 10).to_string()});
    if to < PODS {
        metadata["continue"] = to.to_string().into();
    }
    whole(&json!({"metadata": metadata, "items": items}))
}

/// A Job that an earlier controller has begun, all of whose Pods run.
fn job() -> Value {
    json!({
        "metadata": {
            "name": "j", "namespace": "ns", "uid": JOB_UID, "resourceVersion": "1",
            "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "completionMode": "Indexed", "completions": PODS, "parallelism": PODS,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": JOB_UID}},
            "template": {
                "metadata": {"labels": labels(0)},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]},
            },
        },
        "status": {
            "active": PODS, "ready": PODS, "terminating": 0,
            "startTime": "2026-01-01T00:00:00Z", "uncountedTerminatedPods": {},
        },
    })
}

fn labels(index: usize) -> Value {
    json!({
        "batch.kubernetes.io/controller-uid": JOB_UID, "batch.kubernetes.io/job-name": "j",
        "controller-uid": JOB_UID, "job-name": "j", "app": "train",
        "batch.kubernetes.io/job-completion-index": index.to_string(),
    })
}

/// A Pod that runs, as a cluster has it.
fn pod(number: usize) -> Value {
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:05Z"});
    json!({
        "metadata": {
            "name": format!("j-{number}-bcdfg"), "generateName": format!("j-{number}-"),
            "namespace": "ns", "uid": format!("11111111-2222-4333-8444-{number:012}"),
            "resourceVersion": (number + 2).to_string(),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": labels(number),
            "annotations": {"batch.kubernetes.io/job-completion-index": number.to_string()},
            "finalizers": ["batch.kubernetes.io/job-tracking"],
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": JOB_UID,
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "nodeName": format!("node-{}", number % 500), "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "registry.example.com/train:1", "args": ["x".repeat(800)]}],
        },
        "status": {
            "phase": "Running", "podIP": "10.0.0.1", "startTime": "2026-01-01T00:00:01Z",
            "conditions": [
                condition("PodReadyToStartContainers"), condition("Initialized"),
                condition("Ready"), condition("ContainersReady"), condition("PodScheduled"),
            ],
            "containerStatuses": [{
                "name": "main", "image": "i", "imageID": "i", "ready": true, "restartCount": 0,
                "state": {"running": {"startedAt": "2026-01-01T00:00:04Z"}},
            }],
        },
    })
}

/// The bytes of this process that are its own and in memory.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("there is /proc");
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("a line");
    let kib: usize = line.split_whitespace().nth(1).expect("a number").parse().expect("a number");
    kib * 1024
}

/// How long to wait for what never comes.
const PATIENCE: Duration = Duration::from_secs(600);

#[tokio::test(start_paused = true)]
async fn fifty_thousand_live_pods_are_held_in_100_mib() {
    let stub = Stub::default();
    let controller = Controller::new(Client::new(stub.clone(), "ns"), Config::default());
    let metrics = controller.metrics();
    tokio::spawn(controller.run(std::future::pending()));
    let mut peak = 0;
    for lists in 1..=2 {
        let listed = || stub.lists.load(Ordering::SeqCst) >= lists;
        let held = || metrics.text().contains(&format!("pods_held {PODS}\n"));
        let looked_up = || metrics.text().contains(r#"_count{verb="list",result="success"} 1"#);
        let began = tokio::time::Instant::now();
        while !(listed() && held() && looked_up()) {
            assert!(began.elapsed() < PATIENCE, "list {lists} never ends:\n{}", metrics.text());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // What was taken in is dealt with when this ends.
        tokio::time::sleep(Duration::from_millis(20)).await;
        let grown = resident().saturating_sub(stub.baseline.load(Ordering::SeqCst));
        println!("list {lists}: {} bytes for each Pod, {} MiB", grown / PODS, grown >> 20);
        peak = peak.max(grown);
        stub.is_expired.store(true, Ordering::SeqCst);
    }
    assert!(peak < LIMIT_BYTES, "{} MiB for {PODS} Pods", peak >> 20);
    assert!(peak > PODS * 100, "{peak} bytes: the Pods were not held at all");
}
