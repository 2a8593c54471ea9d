//! What the writes of a Pod cost: creates Pods as a Job controller does, binds them, and patches
//! their status as a kubelet does. Says how long each took and how long a stored Pod is.
//!
//!     cargo run --release -p stint-apiserver --example pod_writes [PODS]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use stint_api::feature_gates::FeatureGates;
use stint_apiserver::access::{Authenticator, Identity};
use stint_apiserver::log::NoLogs;
use stint_apiserver::{ApiServer, Clock, Config, Limits, LocalServer};
use stint_store::{Options, Store};
use tower_service::Service;

const PODS: &str = "/api/v1/namespaces/default/pods";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

fn main() {
    let count: usize =
        std::env::args().nth(1).map_or(5_000, |count| count.parse().expect("a number"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(measure(count));
}

async fn measure(count: usize) {
    let config = Config {
        gates: FeatureGates::default(),
        clock: Clock::new(|| "2026-05-01T12:00:00Z".parse().expect("a time")),
        logs: Arc::new(NoLogs),
        tracks_owners: true,
    };
    let nobody = Authenticator::new(Vec::<(String, Identity)>::new());
    let store = Store::in_memory(Options::default());
    let server = ApiServer::new(store, nobody, config, Limits::default());
    let mut server = server.local(Identity::admin());
    let namespace = json!({"metadata": {"name": "default"}});
    send(&mut server, "POST", "/api/v1/namespaces", "setup/1", "application/json", &namespace)
        .await;
    let mut took = [Duration::ZERO; 5];
    for n in 0..count {
        let pod = format!("{PODS}/p-{n}");
        let (binding, status) = (format!("{pod}/binding"), format!("{pod}/status"));
        let steps = [
            ("POST", PODS, "stint/1", "application/json", new_pod(n)),
            ("POST", &*binding, "binder/1", "application/json", binding_of(n)),
            ("PATCH", &*status, "node/1", STRATEGIC, running()),
            ("PATCH", &*status, "node/1", STRATEGIC, succeeded()),
            ("PATCH", &*pod, "stint/1", STRATEGIC, json!({"metadata": {"finalizers": null}})),
        ];
        for ((method, path, agent, media_type, body), took) in steps.into_iter().zip(&mut took) {
            *took += send(&mut server, method, path, agent, media_type, &body).await;
        }
    }
    let names = ["create", "bind", "status: running", "status: succeeded", "finalizer off"];
    for (name, took) in names.iter().zip(took) {
        println!("{name}: {:.1} us", took.as_secs_f64() * 1e6 / count as f64);
    }
    let request = Request::get(format!("{PODS}/p-0")).body(Full::new(Bytes::new()));
    let Ok(answer) = server.call(request.expect("a request")).await;
    let body = answer.into_body().collect().await.expect("all of it");
    println!("a Pod: {} bytes", body.to_bytes().len());
}

async fn send(
    server: &mut LocalServer,
    method: &str,
    path: &str,
    agent: &str,
    media_type: &str,
    body: &Value,
) -> Duration {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media_type)
        .header("user-agent", agent)
        .body(Full::new(Bytes::from(body.to_string())))
        .expect("a request");
    let started = Instant::now();
    let Ok(answer) = server.call(request).await;
    let took = started.elapsed();
    assert!(answer.status().is_success(), "{method} {path}: {}", answer.status());
    took
}

fn new_pod(n: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("p-{n}"),
            "annotations": {"batch.kubernetes.io/job-completion-index": n.to_string()},
            "labels": {
                "batch.kubernetes.io/controller-uid": "0daf105b-088d-4f97-b075-5589638b58fe",
                "batch.kubernetes.io/job-completion-index": n.to_string(),
                "batch.kubernetes.io/job-name": "p", "controller-uid": "0daf105b-088d-4f97-b075-5589638b58fe",
                "job-name": "p",
            },
            "finalizers": ["batch.kubernetes.io/job-tracking"],
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "Job", "name": "p", "controller": true,
                "blockOwnerDeletion": true, "uid": "0daf105b-088d-4f97-b075-5589638b58fe",
            }],
        },
        "spec": {
            "restartPolicy": "Never",
            "containers": [{
                "name": "main", "image": "busybox", "command": ["sh", "-c", "echo $JOB_COMPLETION_INDEX"],
                "resources": {"requests": {"cpu": "10m", "memory": "8Mi"}},
                "env": [{"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {
                    "fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']",
                }}}],
            }],
        },
    })
}

fn binding_of(n: usize) -> Value {
    json!({"metadata": {"name": format!("p-{n}")}, "target": {"kind": "Node", "name": "node"}})
}

fn conditions(ready: &str) -> Value {
    let condition = |of: &str, status: &str| json!({"type": of, "status": status, "lastTransitionTime": "2026-05-01T12:00:00Z"});
    json!([
        condition("PodReadyToStartContainers", "True"),
        condition("Initialized", "True"),
        condition("Ready", ready),
        condition("ContainersReady", ready),
        condition("PodScheduled", "True"),
    ])
}

fn running() -> Value {
    json!({"status": {
        "phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}], "hostIP": "10.0.0.1",
        "hostIPs": [{"ip": "10.0.0.1"}], "startTime": "2026-05-01T12:00:00Z", "conditions": conditions("True"),
        "containerStatuses": [{
            "name": "main", "image": "busybox", "imageID": "x", "containerID": "c://1", "ready": true,
            "started": true, "restartCount": 0, "state": {"running": {"startedAt": "2026-05-01T12:00:00Z"}},
        }],
    }})
}

fn succeeded() -> Value {
    json!({"status": {
        "phase": "Succeeded", "conditions": conditions("False"),
        "containerStatuses": [{
            "name": "main", "image": "busybox", "imageID": "x", "containerID": "c://1", "ready": false,
            "started": false, "restartCount": 0, "state": {"terminated": {
                "exitCode": 0, "reason": "Completed", "startedAt": "2026-05-01T12:00:00Z",
                "finishedAt": "2026-05-01T12:00:01Z", "containerID": "c://1",
            }},
        }],
    }})
}
