//! Where Pods live: binds them, lets them run and end, and lets them go when they are deleted, as a
//! kubelet would.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::answered::answered;
use crate::fate::{End, Fate, Span};
use crate::stage::Time;

/// The annotation that says how many seconds a Pod takes to end when it is deleted.
const FAREWELL: &str = "test/farewell";

/// The answer to a write of a Pod that is at another version.
const CONFLICT: u16 = 409;

/// Where Pods live.
#[derive(Clone)]
pub(crate) struct Node {
    client: Client,
    clock: Time,
    long: Duration,
}

impl Node {
    pub(crate) fn new(client: Client, clock: Time, long: Duration) -> Self {
        Node { client, clock, long }
    }

    pub(crate) async fn live(self, pod: Pod, fate: Fate) {
        if let Some(farewell) = fate.farewell
            && self.bind(&pod, self.length(farewell)).await.is_err()
        {
            return;
        }
        if !fate.is_instant() {
            self.set_status(&pod, Look::running(0)).await;
            tokio::time::sleep(self.length(fate.after)).await;
        }
        match fate.end {
            End::Succeeds => self.set_status(&pod, Look::ended(0)).await,
            End::Fails(code) => self.set_status(&pod, Look::ended(code)).await,
            End::Restarts(count) => self.set_status(&pod, Look::running(count)).await,
            End::FailsBy(condition, code) => {
                let look = Look { condition: Some(condition), ..Look::ended(code) };
                self.set_status(&pod, look).await;
            }
            End::Runs => {}
        }
    }

    /// A Pod that was deleted ends, and then goes.
    pub(crate) async fn leave(self, pod: Pod) {
        let annotations = pod.metadata.annotations.as_ref();
        let farewell = annotations.and_then(|all| all.get(FAREWELL)?.parse().ok()).unwrap_or(0);
        tokio::time::sleep(Duration::from_secs(farewell)).await;
        self.set_status(&pod, Look::ended(143)).await;
        let (pods, name) = (self.pods(&pod), name(&pod));
        let now = DeleteParams::default().grace_period(0);
        let _ = answered(|| pods.delete(name, &now)).await;
    }

    /// Gives a Pod its node, and notes how long it will take to end.
    async fn bind(&self, pod: &Pod, farewell: Duration) -> Result<(), kube::Error> {
        let (pods, name, params) = (self.pods(pod), name(pod), PatchParams::default());
        let seconds = farewell.as_secs().to_string();
        let note = Patch::Merge(json!({"metadata": {"annotations": {FAREWELL: seconds}}}));
        answered(|| pods.patch(name, &params, &note)).await?;
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "here"},
        });
        let post = Default::default();
        let bind = || pods.create_subresource::<Value, Value>("binding", name, &post, &binding);
        let _ = answered(bind).await;
        Ok(())
    }

    /// Says how a Pod is, unless it has ended or is gone. A Pod ends once: its own end and that of
    /// its deletion may come at the same time, and whoever comes second must not overwrite the
    /// first. So it is written to as it was read, or read again.
    async fn set_status(&self, pod: &Pod, look: Look) {
        let (pods, name, params) = (self.pods(pod), name(pod), PatchParams::default());
        let at = Timestamp::from_second((self.clock)().as_second()).expect("a time");
        let status = look.status(at);
        loop {
            let Ok(now) = answered(|| pods.get(name)).await else { return };
            let phase = now.status.as_ref().and_then(|status| status.phase.as_deref());
            let has_ended = matches!(phase, Some("Succeeded" | "Failed"));
            if has_ended || now.metadata.uid != pod.metadata.uid {
                return;
            }
            let version = now.metadata.resource_version;
            let guard = json!({"uid": pod.metadata.uid, "resourceVersion": version});
            let patch = Patch::Merge(json!({"metadata": guard, "status": status}));
            match answered(|| pods.patch_status(name, &params, &patch)).await {
                Err(kube::Error::Api(refusal)) if refusal.code == CONFLICT => {}
                _ => return,
            }
        }
    }

    fn pods(&self, pod: &Pod) -> Api<Pod> {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        Api::namespaced(self.client.clone(), namespace)
    }

    fn length(&self, span: Span) -> Duration {
        match span {
            Span::Exactly(length) => length,
            Span::Long => self.long,
        }
    }
}

/// How a Pod looks.
struct Look {
    exit_code: Option<i32>,
    condition: Option<&'static str>,
    restarts: i32,
}

impl Look {
    fn running(restarts: i32) -> Self {
        Look { exit_code: None, condition: None, restarts }
    }

    fn ended(exit_code: i32) -> Self {
        Look { exit_code: Some(exit_code), condition: None, restarts: 0 }
    }

    fn status(&self, now: Timestamp) -> Value {
        let phase = match self.exit_code {
            None => "Running",
            Some(0) => "Succeeded",
            Some(_) => "Failed",
        };
        let is_ready = self.exit_code.is_none();
        let mut conditions =
            vec![json!({"type": "Ready", "status": if is_ready { "True" } else { "False" }})];
        conditions.extend(self.condition.map(|kind| json!({"type": kind, "status": "True"})));
        let state = match self.exit_code {
            Some(code) => json!({"terminated": {
                "exitCode": code, "reason": "Done", "finishedAt": now.to_string(),
            }}),
            None => json!({"running": {}}),
        };
        json!({
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": [{
                "name": "main", "image": "i", "imageID": "i", "ready": is_ready,
                "restartCount": self.restarts, "state": state,
            }],
        })
    }
}

fn name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::task::{Context, Poll};

    use http::{Method, Request, Response};
    use kube::client::Body;
    use tokio::sync::Barrier;
    use tower_service::Service;

    use super::*;

    /// An API with one Pod, which the first two readers see before either of them can write.
    #[derive(Clone)]
    struct OnePod {
        reads: Arc<AtomicUsize>,
        both: Arc<Barrier>,
        /// The phases that were written. Their number is the Pod's version.
        phases: Arc<Mutex<Vec<String>>>,
    }

    impl OnePod {
        fn new() -> Self {
            let both = Arc::new(Barrier::new(2));
            OnePod { reads: Arc::default(), both, phases: Arc::default() }
        }

        fn pod(&self) -> Value {
            let phases = self.phases.lock().expect("nobody panics here");
            json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {
                    "name": "p", "namespace": "default", "uid": "u",
                    "resourceVersion": phases.len().to_string(),
                },
                "status": {"phase": phases.last().map_or("Pending", |phase| phase)},
            })
        }

        async fn read(&self) -> (u16, Value) {
            let seen = self.pod();
            if self.reads.fetch_add(1, Ordering::Relaxed) < 2 {
                self.both.wait().await;
            }
            (200, seen)
        }

        fn write(&self, patch: &Value) -> (u16, Value) {
            let version = &patch["metadata"]["resourceVersion"];
            if !version.is_null() && *version != self.pod()["metadata"]["resourceVersion"] {
                let status = json!({
                    "apiVersion": "v1", "kind": "Status", "status": "Failure",
                    "reason": "Conflict", "message": "at another version", "code": CONFLICT,
                });
                return (CONFLICT, status);
            }
            let phase = patch["status"]["phase"].as_str().expect("a phase").to_owned();
            self.phases.lock().expect("nobody panics here").push(phase);
            (200, self.pod())
        }
    }

    impl Service<Request<Body>> for OnePod {
        type Response = Response<Body>;
        type Error = Infallible;
        type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<Body>) -> Self::Future {
            let api = self.clone();
            Box::pin(async move {
                let (code, answer) = if request.method() == Method::PATCH {
                    let body = request.into_body().collect_bytes().await.expect("a body");
                    api.write(&serde_json::from_slice(&body).expect("JSON"))
                } else {
                    api.read().await
                };
                let body = Body::from(serde_json::to_vec(&answer).expect("JSON"));
                Ok(Response::builder().status(code).body(body).expect("an answer"))
            })
        }
    }

    fn node(api: &OnePod) -> (Node, Pod) {
        let clock: Time = Arc::new(|| Timestamp::UNIX_EPOCH);
        let node = Node::new(Client::new(api.clone(), "default"), clock, Duration::ZERO);
        (node, serde_json::from_value(api.pod()).expect("a Pod"))
    }

    #[tokio::test]
    async fn a_pod_that_ends_while_it_is_deleted_ends_once() {
        let api = OnePod::new();
        let (node, pod) = node(&api);
        tokio::join!(
            node.set_status(&pod, Look::ended(0)),
            node.set_status(&pod, Look::ended(143)),
        );
        let phases = api.phases.lock().expect("nobody panics here");
        assert_eq!(phases.len(), 1, "{phases:?}");
    }

    #[tokio::test]
    async fn a_pod_that_has_changed_ends_all_the_same() {
        let api = OnePod::new();
        let (node, pod) = node(&api);
        tokio::join!(
            node.set_status(&pod, Look::running(0)),
            node.set_status(&pod, Look::ended(143)),
        );
        let phases = api.phases.lock().expect("nobody panics here");
        assert_eq!(phases.last().map(String::as_str), Some("Failed"), "{phases:?}");
    }
}
