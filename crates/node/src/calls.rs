//! The calls of a node to the API, and what their answers mean. Nothing is retried here.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::path;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many calls are made at once: enough to share a commit of the store, few enough for one
/// server.
const CALLS_AT_ONCE: usize = 128;

/// Which Pod is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodRef {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl PodRef {
    pub(crate) fn of(pod: &Pod) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let meta = &pod.metadata;
        PodRef { namespace: text(&meta.namespace), name: text(&meta.name), uid: text(&meta.uid) }
    }
}

/// Whether a Pod is deleted and waits for its node to remove it. One that has no time left goes
/// without it, as soon as no finalizer keeps it.
pub(crate) fn awaits_removal(pod: &Pod) -> bool {
    let meta = &pod.metadata;
    meta.deletion_timestamp.is_some() && meta.deletion_grace_period_seconds != Some(0)
}

/// Why a call came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// There is no such object, or another one has its name.
    #[error("not found")]
    NotFound,
    /// There is one already.
    #[error("it exists already")]
    Exists,
    /// The server refuses, and would again.
    #[error("{0}")]
    Refused(String),
    /// Nobody knows, or later perhaps.
    #[error("{0}")]
    Lost(String),
}

/// What of an answer decides what a node does next.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Head {
    #[serde(default)]
    pub(crate) metadata: HeadMeta,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct HeadMeta {
    uid: Option<String>,
    deletion_timestamp: Option<String>,
    deletion_grace_period_seconds: Option<i64>,
}

impl HeadMeta {
    /// Whether the Pod is deleted and waits for its node. One that has no time left goes without
    /// it, as soon as no finalizer keeps it.
    pub(crate) fn awaits_removal(&self) -> bool {
        self.deletion_timestamp.is_some() && self.deletion_grace_period_seconds != Some(0)
    }
}

/// Carries calls to the API.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    client: ClientOf,
    room: Arc<Semaphore>,
}

#[derive(Clone)]
struct ClientOf(Client);

impl std::fmt::Debug for ClientOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl Calls {
    pub(crate) fn new(client: Client) -> Self {
        Calls { client: ClientOf(client), room: Arc::new(Semaphore::new(CALLS_AT_ONCE)) }
    }

    pub(crate) fn client(&self) -> Client {
        self.client.0.clone()
    }

    /// Writes what is said of a Pod. What others have said of it stays.
    pub(crate) async fn write_status(
        &self,
        pod: &PodRef,
        status: &PodStatus,
    ) -> Result<Head, CallError> {
        let mut patch = json!({"metadata": {"uid": pod.uid}, "status": status});
        // Conditions are merged by their type, so what one does not say any more is taken back.
        for condition in patch["status"]["conditions"].as_array_mut().into_iter().flatten() {
            for field in ["reason", "message"] {
                if condition[field].is_null() {
                    condition[field] = Value::Null;
                }
            }
        }
        // Addresses are merged, too, and a Pod that another node process has prepared before has
        // another one.
        for list in ["podIPs", "hostIPs"] {
            if let Some(addresses) = patch["status"][list].as_array_mut() {
                addresses.insert(0, json!({"$patch": "replace"}));
            }
        }
        let path = format!("{}/status", path::object(&pod.namespace, "pods", &pod.name));
        let body =
            self.send_for(Method::PATCH, &path, path::STRATEGIC, &patch, path::METADATA).await?;
        read(&body)
    }

    /// Removes a Pod that has ended.
    pub(crate) async fn remove(&self, pod: &PodRef) -> Result<(), CallError> {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid},
        });
        let path = path::object(&pod.namespace, "pods", &pod.name);
        self.send_for(Method::DELETE, &path, path::JSON, &options, path::METADATA).await.map(drop)
    }

    /// Whether a Pod is known not to be there: another one may have its name.
    pub(crate) async fn is_gone(&self, pod: &PodRef) -> bool {
        match self.get::<Head>(&path::object(&pod.namespace, "pods", &pod.name)).await {
            Ok(Some(head)) => head.metadata.uid.is_some_and(|uid| uid != pod.uid),
            Ok(None) => true,
            Err(_) => false,
        }
    }

    /// An object, if there is one.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Option<T>, CallError> {
        match self.send(Method::GET, path, path::JSON, &Value::Null).await {
            Ok(body) => read(&body).map(Some),
            Err(CallError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Any other call.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        content: &str,
        body: &Value,
    ) -> Result<Bytes, CallError> {
        self.send_for(method, path, content, body, path::JSON).await
    }

    /// A call for an answer of some media type.
    async fn send_for(
        &self,
        method: Method,
        path: &str,
        content: &str,
        body: &Value,
        answer: &str,
    ) -> Result<Bytes, CallError> {
        let body = match body {
            Value::Null => Vec::new(),
            body => serde_json::to_vec(body).expect("JSON is JSON"),
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::ACCEPT, answer)
            .header(http::header::CONTENT_TYPE, content)
            .body(Body::from(body))
            .expect("paths are made of names that the API has accepted");
        let _place = self.room.acquire().await.expect("it is never closed");
        match tokio::time::timeout(PATIENCE, exchange(&self.client.0, request)).await {
            Ok(answer) => answer,
            Err(_) => Err(CallError::Lost("no answer in time".to_owned())),
        }
    }
}

async fn exchange(client: &Client, request: Request<Body>) -> Result<Bytes, CallError> {
    let lost = |error: kube::Error| CallError::Lost(error.to_string());
    let answer = client.send(request).await.map_err(lost)?;
    let code = answer.status();
    let body = answer.into_body().collect_bytes().await.map_err(lost)?;
    if code.is_success() { Ok(body) } else { Err(failure(code.as_u16(), &body)) }
}

/// What an answer means that is not a success.
fn failure(code: u16, body: &[u8]) -> CallError {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Status {
        reason: Option<String>,
        message: Option<String>,
    }
    let status: Status = serde_json::from_slice(body).unwrap_or_default();
    let message = status.message.unwrap_or_else(|| format!("answered with {code}"));
    match code {
        404 => CallError::NotFound,
        409 if status.reason.as_deref() == Some("AlreadyExists") => CallError::Exists,
        // Nothing is written with a version, so the only conflict is one of uids, or one that
        // another try settles: which it is shows when one looks.
        409 => CallError::Lost(message),
        401 | 403 | 429 => CallError::Lost(message),
        400..500 => CallError::Refused(message),
        _ => CallError::Lost(message),
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, CallError> {
    serde_json::from_slice(body).map_err(|error| CallError::Lost(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_would_be_refused_again_is_refused() {
        let lost = |text: &str| CallError::Lost(text.to_owned());
        let rows = [
            (404, "NotFound", CallError::NotFound),
            (409, "AlreadyExists", CallError::Exists),
            (409, "Conflict", lost("m")),
            (422, "Invalid", CallError::Refused("m".to_owned())),
            (429, "TooManyRequests", lost("m")),
            (403, "Forbidden", lost("m")),
            (500, "InternalError", lost("m")),
        ];
        for (code, reason, expected) in rows {
            let body = format!(r#"{{"reason":"{reason}","message":"m"}}"#);
            assert_eq!(failure(code, body.as_bytes()), expected, "{code}");
        }
        assert_eq!(failure(503, b"<html>"), lost("answered with 503"));
    }
}
