//! The floor: what a Job costs the API server at least. A loop creates the Pods, as many at once as
//! the Job would, and removes the finalizer of each when it has ended. It counts nothing.

use std::collections::HashSet;
use std::sync::Arc;

use http::Request;
use http::header::CONTENT_TYPE;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::error::BenchError;
use crate::kubelet::patch;
use crate::observer::Observer;

/// How many creations are under way at once, and how many removals.
const AT_ONCE: usize = 32;

const FINALIZER: &str = "batch.kubernetes.io/job-tracking";

/// Runs so many Pods under the name of a Job that does not exist.
pub(crate) async fn run(
    client: &Client,
    observer: &Observer,
    job: &str,
    pods: u32,
    parallelism: u32,
) -> Result<(), BenchError> {
    let active = Arc::new(Semaphore::new(parallelism as usize));
    let mut ending = observer.ending();
    let creating = create_all(client.clone(), job.to_owned(), pods, active.clone());
    let creating = tokio::spawn(creating);
    let removals = Arc::new(Semaphore::new(AT_ONCE));
    let (mut calls, mut left) = (JoinSet::new(), pods);
    let mut have_ended = HashSet::new();
    while left > 0 {
        let Some(pod) = ending.recv().await else { break };
        if pod.job != job || !have_ended.insert(pod.name.clone()) {
            continue;
        }
        left -= 1;
        active.add_permits(1);
        while calls.try_join_next().is_some() {}
        let place = removals.clone().acquire_owned().await.expect("nobody closes it");
        let client = client.clone();
        calls.spawn(async move {
            let path = format!("/api/v1/namespaces/default/pods/{}", pod.name);
            let body = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}});
            let kind = "application/strategic-merge-patch+json";
            patch(&client, &path, kind, body.to_string()).await;
            drop(place);
        });
    }
    while calls.join_next().await.is_some() {}
    creating.await.expect("creating does not panic")
}

async fn create_all(
    client: Client,
    job: String,
    pods: u32,
    active: Arc<Semaphore>,
) -> Result<(), BenchError> {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut calls: JoinSet<Result<String, kube::Error>> = JoinSet::new();
    for index in 0..pods {
        active.acquire().await.expect("nobody closes it").forget();
        let place = places.clone().acquire_owned().await.expect("nobody closes it");
        let (client, body) = (client.clone(), pod(&job, index).to_string());
        calls.spawn(async move {
            let request = Request::post("/api/v1/namespaces/default/pods")
                .header(CONTENT_TYPE, "application/json")
                .body(body.into_bytes());
            let answer = client.request_text(request.expect("a request")).await;
            drop(place);
            answer
        });
        while let Some(ended) = calls.try_join_next() {
            created(ended)?;
        }
    }
    while let Some(ended) = calls.join_next().await {
        created(ended)?;
    }
    Ok(())
}

fn created(
    ended: Result<Result<String, kube::Error>, tokio::task::JoinError>,
) -> Result<(), BenchError> {
    let answer = ended.expect("a call does not panic");
    answer.map(drop).map_err(|source| BenchError::Api { what: "a Pod", source })
}

/// A Pod as a controller makes it of [`crate::load`]'s Job.
fn pod(job: &str, index: u32) -> Value {
    let index_key = "batch.kubernetes.io/job-completion-index";
    let index_text = index.to_string();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("{job}-{index}"),
            "labels": {
                "job-name": job, "batch.kubernetes.io/job-name": job, index_key: index_text,
                "controller-uid": "00000000-0000-0000-0000-000000000000",
                "batch.kubernetes.io/controller-uid": "00000000-0000-0000-0000-000000000000",
            },
            "annotations": {index_key: index_text},
            "finalizers": [FINALIZER],
        },
        "spec": {
            "restartPolicy": "Never", "hostname": format!("{job}-{index}"),
            "containers": [{
                "name": "main", "image": "i", "command": ["true"],
                "env": [{"name": "JOB_COMPLETION_INDEX", "valueFrom": {
                    "fieldRef": {"fieldPath": format!("metadata.labels['{index_key}']")},
                }}],
            }],
        },
    })
}
