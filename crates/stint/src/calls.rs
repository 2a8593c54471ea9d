//! The calls that are made to an API server, and what it tells by itself.

use futures_util::{AsyncBufReadExt, StreamExt, pin_mut};
use http::{Method, Request};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::core::WatchEvent;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;
use tokio::sync::mpsc::Sender;
use tokio::time::{Duration, sleep};

use crate::job_text::{MAX_LINE_BYTES, TAIL_LINES};
use crate::last_lines::LastLines;
use crate::pod_sight::PodSight;
use crate::printable::{MAX_MESSAGE_CHARS, printable};
use crate::progress::Failure;
use crate::reach::told;

/// How long to wait before a watch that ended is begun again.
const REWATCH: Duration = Duration::from_millis(100);

/// Why a call failed.
#[derive(Debug, Error)]
pub(crate) enum CallError {
    /// The API server does not take it; these are its words.
    #[error("{message}")]
    Refused { code: u16, message: String },
    #[error("the API server did not answer: {}", told(.0))]
    Unanswered(#[source] kube::Error),
    #[error("cannot write a request: {0}")]
    Request(#[from] http::Error),
}

impl CallError {
    /// Whether there is something of that name already.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, CallError::Refused { code: 409, .. })
    }

    /// Whether it is understood, and not possible.
    pub(crate) fn is_invalid(&self) -> bool {
        matches!(self, CallError::Refused { code: 422, .. })
    }

    fn is_absent(&self) -> bool {
        matches!(self, CallError::Refused { code: 404, .. })
    }
}

/// Makes calls.
#[derive(Clone)]
pub(crate) struct Calls {
    client: Client,
}

impl Calls {
    pub(crate) fn new(client: Client) -> Self {
        Calls { client }
    }

    pub(crate) async fn create(&self, path: &str, object: &Value) -> Result<Value, CallError> {
        self.send(Method::POST, &format!("{path}?fieldValidation=Strict"), JSON, object).await
    }

    pub(crate) async fn replace(&self, path: &str, object: &Value) -> Result<Value, CallError> {
        self.send(Method::PUT, &format!("{path}?fieldValidation=Strict"), JSON, object).await
    }

    pub(crate) async fn merge(&self, path: &str, patch: &Value) -> Result<Value, CallError> {
        self.send(Method::PATCH, path, MERGE_PATCH, patch).await
    }

    /// The object, if there is one.
    pub(crate) async fn get(&self, path: &str) -> Result<Option<Value>, CallError> {
        match self.send(Method::GET, path, JSON, &Value::Null).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All objects of a list, page by page. The path may have a query.
    pub(crate) async fn list<T: DeserializeOwned>(&self, path: &str) -> Result<Vec<T>, CallError> {
        let separator = if path.contains('?') { '&' } else { '?' };
        let mut all = Vec::new();
        let mut token = String::new();
        loop {
            let page = format!("{path}{separator}limit={PAGE}{token}");
            let request = Request::get(page).body(Vec::new())?;
            let page: Page<T> = self.client.request(request).await.map_err(refusal)?;
            all.extend(page.items);
            if page.metadata.r#continue.is_empty() {
                return Ok(all);
            }
            token = format!("&continue={}", page.metadata.r#continue);
        }
    }

    /// Removes an object, and then what it owns.
    pub(crate) async fn delete(&self, path: &str) -> Result<(), CallError> {
        let path = format!("{path}?propagationPolicy=Background");
        match self.send(Method::DELETE, &path, JSON, &Value::Null).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_absent() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The last lines that the containers of a failure wrote; none if they cannot be had.
    pub(crate) async fn tail(&self, failure: &Failure) -> Vec<String> {
        let mut lines = Vec::new();
        for (container, run) in failure.containers() {
            lines.push(self.tail_of(failure, container, run).await);
        }
        failure.named_lines(lines)
    }

    async fn tail_of(&self, failure: &Failure, container: &str, run: Option<u32>) -> Vec<String> {
        let Failure { namespace, pod, .. } = failure;
        let mut path = format!(
            "/api/v1/namespaces/{namespace}/pods/{pod}/log?container={container}\
             &tailLines={TAIL_LINES}"
        );
        // Only stint heeds it; it is in order, should another run have begun since.
        if let Some(run) = run {
            path += &format!("&run={run}");
        }
        if failure.goes_on {
            let last = self.last_lines(&format!("{path}&previous=true")).await;
            if !last.is_empty() {
                return last.told();
            }
        }
        self.last_lines(&path).await.told()
    }

    /// The last lines of a log; none if it cannot be had. A limit on its bytes would cut off the end, where
    /// one of them is long: all of it comes by, and little is held.
    async fn last_lines(&self, path: &str) -> LastLines {
        let mut last = LastLines::new(TAIL_LINES, MAX_LINE_BYTES);
        let Ok(request) = Request::get(path).body(Vec::new()) else { return last };
        if let Ok(text) = self.client.request_stream(request).await {
            pin_mut!(text);
            while let Ok(bytes) = text.fill_buf().await
                && !bytes.is_empty()
            {
                let taken = bytes.len();
                last.push(bytes);
                text.consume_unpin(taken);
            }
        }
        last
    }

    /// A failure with what its Pod's Events say of it: of a container that was ended since a probe
    /// or a hook of it failed nobody else does.
    pub(crate) async fn explained(&self, failure: &Failure) -> Failure {
        let mut failure = failure.clone();
        let is_ended = ["(signal 9)", "(signal 15)"].iter().any(|it| failure.why.contains(it));
        if is_ended && let Some(cause) = cause(&failure, &self.events(&failure.uid).await) {
            failure.why = format!("{}: {cause}", failure.why);
        }
        failure
    }

    /// The latest warning about the object with this uid, as its reason and message.
    pub(crate) async fn warning(&self, uid: &str) -> Option<String> {
        let events = self.events(uid).await;
        events.iter().rfind(|event| event.r#type == "Warning").map(EventSight::sentence)
    }

    /// The Events of the object with this uid, the latest last; none if they cannot be had.
    async fn events(&self, uid: &str) -> Vec<EventSight> {
        let path = format!("/api/v1/events?fieldSelector=involvedObject.uid%3D{uid}");
        let Ok(Some(list)) = self.get(&path).await else { return Vec::new() };
        let Ok(page) = serde_json::from_value::<Page<EventSight>>(list) else { return Vec::new() };
        let mut events = page.items;
        events.sort_by_key(|event| event.last_timestamp.as_ref().map(|time| time.0));
        events
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> Result<Value, CallError> {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", content_type).body(body)?;
        self.client.request(request).await.map_err(refusal)
    }
}

/// An Event, as far as anything is said of it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EventSight {
    r#type: String,
    reason: String,
    message: String,
    last_timestamp: Option<Time>,
}

impl EventSight {
    fn sentence(&self) -> String {
        format!("{}: {}", self.reason, self.message)
    }

    /// Whether it happened, for the last time, between these times, whole seconds that they are.
    fn is_within(&self, (start, end): (Timestamp, Timestamp)) -> bool {
        let seconds = start.as_second()..=end.as_second() + 1;
        self.last_timestamp.as_ref().is_some_and(|time| seconds.contains(&time.0.as_second()))
    }
}

/// What has ended a container, by the Events while it ran: a hook that failed, or a probe that
/// failed so often that the container was to be stopped.
fn cause(failure: &Failure, events: &[EventSight]) -> Option<String> {
    let (container, ran) = (failure.container.as_deref()?, failure.ran?);
    let of_run = || events.iter().filter(|event| event.is_within(ran));
    if let Some(hook) = of_run().rfind(|event| event.reason == "FailedPostStartHook") {
        return Some(hook.sentence());
    }
    let probe = of_run().rev().filter(|event| event.reason == "Killing").find_map(|event| {
        let rest = event.message.strip_prefix(&format!("Container {container} failed "))?;
        ["liveness", "startup"].into_iter().find(|probe| rest.starts_with(probe))
    })?;
    let is_of_probe = |event: &&EventSight| {
        event.reason == "Unhealthy" && event.message.to_lowercase().starts_with(probe)
    };
    of_run().rfind(is_of_probe).map(EventSight::sentence)
}

fn refusal(error: kube::Error) -> CallError {
    match error {
        kube::Error::Api(status) => {
            let message = printable(&status.message, MAX_MESSAGE_CHARS);
            CallError::Refused { code: status.code, message }
        }
        error => CallError::Unanswered(error),
    }
}

/// How many objects are asked for at once, as by kubectl.
const PAGE: u32 = 500;

/// A part of a list.
#[derive(Deserialize)]
struct Page<T> {
    #[serde(default)]
    metadata: PageMetadata,
    items: Vec<T>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PageMetadata {
    r#continue: String,
}

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// What was seen, and whether for the last time.
#[derive(Debug)]
pub(crate) enum Seen {
    Job(Box<Job>, bool),
    Pod(Box<PodSight>, bool),
    /// A watch cannot be had; it is tried again.
    Lost(String),
}

/// All Jobs.
pub(crate) const JOBS: &str = "/apis/batch/v1/jobs";

/// All Pods. Where hardly any is of no Job, to read that costs less than to have each of them judged by
/// its labels, at every change.
pub(crate) const PODS: &str = "/api/v1/pods";

/// All Pods of Jobs.
pub(crate) const JOB_PODS: &str = "/api/v1/pods?labelSelector=batch.kubernetes.io/controller-uid";

/// Tells of the Jobs of a list, and what becomes of them.
pub(crate) async fn watch_jobs(client: Client, path: &str, seen: Sender<Seen>) {
    watch(client, path, seen, |job: Job, is_gone| Seen::Job(Box::new(job), is_gone)).await;
}

/// Tells of the Pods of a list, and what becomes of them.
pub(crate) async fn watch_pods(client: Client, path: &str, seen: Sender<Seen>) {
    watch(client, path, seen, |pod: PodSight, is_gone| Seen::Pod(Box::new(pod), is_gone)).await;
}

/// Watches until nobody listens. A watch that ends is begun anew, with all there is.
async fn watch<T: Clone + DeserializeOwned>(
    client: Client,
    path: &str,
    seen: Sender<Seen>,
    wrap: impl Fn(T, bool) -> Seen,
) {
    let separator = if path.contains('?') { '&' } else { '?' };
    let path = format!("{path}{separator}watch=true");
    loop {
        let Ok(request) = Request::get(&path).body(Vec::new()) else { return };
        match client.request_events::<T>(request).await {
            Ok(events) => {
                pin_mut!(events);
                while let Some(Ok(event)) = events.next().await {
                    let news = match event {
                        WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                            wrap(object, false)
                        }
                        WatchEvent::Deleted(object) => wrap(object, true),
                        WatchEvent::Bookmark(_) => continue,
                        WatchEvent::Error(_) => break,
                    };
                    if seen.send(news).await.is_err() {
                        return;
                    }
                }
            }
            Err(error) => {
                let lost = Seen::Lost(refusal(error).to_string());
                if seen.send(lost).await.is_err() {
                    return;
                }
            }
        }
        sleep(REWATCH).await;
    }
}
