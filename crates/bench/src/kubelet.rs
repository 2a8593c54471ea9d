//! Ends Pods the moment they are seen, in place of a kubelet: one call for each, some dozens at a
//! time. Tests have another one (`testing/kit`), which looks before it writes and knows more fates;
//! here every call that is not the controller's own blurs what is measured.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http::header::CONTENT_TYPE;
use jiff::Timestamp;
use kube::Client;
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::observer::Pod;

/// How many calls are under way at once: more gain nothing on few cores.
const AT_ONCE: usize = 64;

/// How often a call is tried that the server did not answer well, and how long after another.
const TRIES: usize = 20;
const AGAIN: Duration = Duration::from_millis(100);

/// Ends all Pods that come.
pub(crate) async fn run(client: Client, mut coming: mpsc::UnboundedReceiver<Pod>) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut have_failed: HashSet<(String, u32)> = HashSet::new();
    let mut calls = JoinSet::new();
    while let Some(pod) = coming.recv().await {
        while calls.try_join_next().is_some() {}
        let is_one = u64::from(pod.index) * u64::from(pod.fails) % 100 < u64::from(pod.fails);
        let fails = is_one && have_failed.insert((pod.job.clone(), pod.index));
        let place = places.clone().acquire_owned().await.expect("nobody closes it");
        let client = client.clone();
        calls.spawn(async move {
            end(&client, &pod.name, fails).await;
            drop(place);
        });
    }
}

/// Says that a Pod has ended. One that is gone has no need of it.
async fn end(client: &Client, name: &str, fails: bool) {
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let ended = json!({
        "exitCode": i32::from(fails), "reason": "Done", "startedAt": now, "finishedAt": now,
    });
    let body = json!({"status": {
        "phase": if fails { "Failed" } else { "Succeeded" },
        "containerStatuses": [{
            "name": "main", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": ended},
        }],
    }});
    let path = format!("/api/v1/namespaces/default/pods/{name}/status");
    patch(client, &path, "application/merge-patch+json", body.to_string()).await;
}

/// Patches something until the server has decided about it.
pub(crate) async fn patch(client: &Client, path: &str, kind: &str, body: String) {
    for _ in 0..TRIES {
        let request = Request::patch(path).header(CONTENT_TYPE, kind);
        let request = request.body(body.clone().into_bytes()).expect("a request");
        match client.request_text(request).await {
            Ok(_) => return,
            Err(kube::Error::Api(status)) if status.code < 429 => return,
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    }
}
