//! One row on a server: what leads to it, the request, and what is left behind taken away.

use http::Request;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use stint_requests::placeholder::replace_uids;
use stint_rules::case::Case;

use super::verdict;
use crate::cluster::Cluster;

/// What stands in rows for the uid that the server gives.
const UID: &str = "UID";

/// What stands in rows for the version of what is stored.
const VERSION: &str = "VERSION";

/// The uid of what no request leads to.
const WRITTEN_UID: &str = "8d5a1c1e-64a4-4c52-9d4e-0d8a4f2f9b11";

/// How often something is asked to go: deleted, its finalizers taken, and seen gone.
const ROUNDS: usize = 4;

/// Where rows are replayed.
pub(super) struct Replay<'a> {
    pub(super) client: Client,
    pub(super) cluster: &'a Cluster,
}

/// An answer.
pub(super) struct Answer {
    /// 0 if there is none, and only words for why.
    pub(super) code: u16,
    pub(super) body: Value,
}

/// What the server has made of an object.
#[derive(Default)]
struct Known {
    uid: String,
    version: String,
}

/// Whether a row leaves something in the store. Others are dry runs of a create.
pub(super) fn leaves_something(case: &Case) -> bool {
    let exchange = &case.played.exchange;
    exchange.before.is_some() || is_binding(&exchange.request)
}

impl Replay<'_> {
    /// Replays a row; what of it does not hold.
    pub(super) async fn judge(&self, case: &Case) -> Vec<String> {
        let mut found = Vec::new();
        let known = self.set_up(case, &mut found).await;
        if found.is_empty() {
            let answer = self.ask(case, &known).await;
            found = verdict::judge(case, &answer);
        }
        if leaves_something(case) {
            self.clear(&object_path(case)).await;
        }
        found
    }

    /// Brings the store where the row begins.
    async fn set_up(&self, case: &Case, found: &mut Vec<String>) -> Known {
        let exchange = &case.played.exchange;
        let is_older = case.text("gates") != case.text("createGates");
        if let Some(before) = &exchange.before
            && (case.text("unreachable").is_some() || is_older)
        {
            let known = Known { uid: WRITTEN_UID.to_owned(), version: String::new() };
            self.cluster.store("/registry/jobs/default/base", &known.fill(before)).await;
            return known;
        }
        let mut known = Known::default();
        for request in &exchange.setup {
            let answer = self.send(request, &known, "").await;
            if !(200..300).contains(&answer.code) {
                found.push(format!("  on the way to it: {} {}", answer.code, answer.body));
            }
            known.learn(&answer.body);
        }
        known
    }

    /// Sends the request in question.
    async fn ask(&self, case: &Case, known: &Known) -> Answer {
        let request = &case.played.exchange.request;
        let is_binding = is_binding(request);
        let options = if is_binding { "" } else { "?dryRun=All" };
        let mut answer = self.send(request, known, options).await;
        if is_binding && answer.code < 300 {
            answer = self.get(&object_path(case)).await;
        }
        Answer { body: hide(&answer.body, request), ..answer }
    }

    async fn send(&self, request: &Value, known: &Known, options: &str) -> Answer {
        let (method, path) = (text(&request["method"]), text(&request["path"]));
        let body = request.get("body").map(|body| known.fill(body));
        self.call(method, &format!("{path}{options}"), "application/json", body.as_ref()).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, "application/json", None).await
    }

    /// Merges a patch into an object.
    pub(super) async fn patch(&self, path: &str, patch: &Value) -> Answer {
        self.call("PATCH", path, "application/merge-patch+json", Some(patch)).await
    }

    /// Takes an object away, whoever wants to keep it.
    async fn clear(&self, path: &str) {
        for _ in 0..ROUNDS {
            let options = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
            self.call("DELETE", path, "application/json", Some(&options)).await;
            let left = self.get(path).await;
            if left.code == 404 {
                return;
            }
            self.patch(path, &json!({"metadata": {"finalizers": null}})).await;
            if left.body["kind"] == "Namespace" {
                let mut body = left.body;
                body["spec"] = json!({});
                body["metadata"] = json!({"name": body["metadata"]["name"]});
                let path = format!("{path}/finalize");
                self.call("PUT", &path, "application/json", Some(&body)).await;
            }
        }
        panic!("{path} does not go: {}", self.get(path).await.body);
    }

    async fn call(&self, method: &str, path: &str, kind: &str, body: Option<&Value>) -> Answer {
        let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, kind);
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = request.body(Body::from(body)).expect("a request");
        let failed = |error: String| Answer { code: 0, body: error.into() };
        let answer = match self.client.send(request).await {
            Ok(answer) => answer,
            Err(error) => return failed(error.to_string()),
        };
        let code = answer.status().as_u16();
        let body = match answer.into_body().collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return failed(error.to_string()),
        };
        let body = serde_json::from_slice(&body)
            .unwrap_or_else(|_| String::from_utf8_lossy(&body).into_owned().into());
        Answer { code, body }
    }
}

impl Known {
    /// Takes in what the server says of an object.
    fn learn(&mut self, object: &Value) {
        let metadata = &object["metadata"];
        if let Some(uid) = metadata["uid"].as_str() {
            uid.clone_into(&mut self.uid);
        }
        if let Some(version) = metadata["resourceVersion"].as_str() {
            version.clone_into(&mut self.version);
        }
    }

    /// What is sent, with what the row cannot know.
    fn fill(&self, value: &Value) -> Value {
        map_texts(value, &|text| match text {
            UID => self.uid.clone(),
            VERSION => self.version.clone(),
            other => other.to_owned(),
        })
    }
}

/// An answer in the words of the row: uids that the server made up are no others'.
fn hide(answer: &Value, request: &Value) -> Value {
    let sent = request.to_string();
    map_texts(answer, &|text| {
        replace_uids(text, |uid| if sent.contains(uid) { uid.to_owned() } else { UID.to_owned() })
    })
}

fn map_texts(value: &Value, change: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => change(text).into(),
        Value::Array(items) => items.iter().map(|item| map_texts(item, change)).collect(),
        Value::Object(members) => {
            let members =
                members.iter().map(|(key, value)| (key.clone(), map_texts(value, change)));
            Value::Object(members.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn is_binding(request: &Value) -> bool {
    text(&request["path"]).ends_with("/binding")
}

/// Where the object of a row is.
fn object_path(case: &Case) -> String {
    let exchange = &case.played.exchange;
    match exchange.setup.first() {
        Some(create) => {
            format!("{}/{}", text(&create["path"]), text(&create["body"]["metadata"]["name"]))
        }
        None => {
            let path = text(&exchange.request["path"]);
            path.trim_end_matches("/status").trim_end_matches("/binding").to_owned()
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("requests of rows are whole")
}
