//! The rules of Pods, row by row: `rules/core_pod/*.yaml`.
//!
//! Every row goes the way a request goes: decode, default, admit, prepare, validate. What
//! stands in the store before a request got there the same way.

use k8s_openapi::api::core::v1::{Binding, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stint_api::binding::bind;
use stint_api::defaults::pod::default_pod;
use stint_api::pod_deletion::begin_deletion;
use stint_api::prepare::pod::{
    admit_pod, admit_pod_update, prepare_pod_for_create, prepare_pod_for_status_update,
    prepare_pod_for_update,
};
use stint_api::validation::binding::validate_binding;
use stint_api::validation::pod::{
    validate_pod_create, validate_pod_status_update, validate_pod_update,
};

use crate::case::Played;
use crate::exchange::{self, Exchange, PODS};
use crate::rows;

/// The uid that created Pods get, and that rows expect in messages.
const UID: &str = "UID";
/// When everything happens.
const NOW: &str = "2026-01-01T00:00:00Z";

/// The keys that a row may have.
pub const KEYS: [&str; 13] = [
    "pod",
    "container",
    "node",
    "oldStatus",
    "deleted",
    "new",
    "newContainer",
    "status",
    "metadata",
    "bind",
    "delete",
    "reason",
    "stored",
];

/// What is stored, and what is wrong with it.
#[derive(Debug)]
pub struct Answer {
    /// The Pod.
    pub stored: Pod,
    /// The errors.
    pub errors: Vec<String>,
}

/// Plays a row.
pub fn play(row: &Value) -> Played {
    let (exchange, answer) = ask(row);
    Played { exchange, stored: json(&answer.stored), errors: answer.errors }
}

fn ask(row: &Value) -> (Exchange, Answer) {
    let body = body(row);
    let is_update = ["new", "newContainer", "status", "bind", "delete"];
    if !is_update.iter().any(|key| row.get(key).is_some()) {
        let answer = create(&body);
        return (Exchange::only(exchange::create(PODS, &body)), answer);
    }
    let before = Before::of(row, &body);
    let (old, mut body) = (before.pod.clone(), json(&before.pod));
    let (request, answer) = if let Some(binding) = row.get("bind") {
        let binding = binding_body(binding);
        (exchange::bind(PODS, &body, &binding), bind_to(&binding, &old))
    } else if let Some(options) = row.get("delete") {
        (exchange::delete(PODS, &body, options), delete(options, &old))
    } else if let Some(status) = row.get("status") {
        body = with_status(&old, status);
        rows::patch(&mut body["metadata"], &row["metadata"]);
        (exchange::update_status(PODS, &body), update_status(&body, &old))
    } else {
        rows::patch(&mut body, &row["new"]);
        rows::patch(&mut body["spec"]["containers"][0], &row["newContainer"]);
        (exchange::update(PODS, &body), update(&body, &old))
    };
    (before.then(request), answer)
}

/// The Pod that stands in the store before a request, and the requests that led there.
struct Before {
    pod: Pod,
    requests: Vec<Value>,
}

impl Before {
    /// Creates a Pod, binds it to `node`, gives it `oldStatus` and, if it is `deleted`,
    /// begins to delete it. Every step must be allowed.
    fn of(row: &Value, body: &Value) -> Self {
        let mut before = Self { pod: Pod::default(), requests: Vec::new() };
        before.take(row, create(body), exchange::create(PODS, body));
        before.pod.metadata.resource_version = Some("1".to_owned());
        let stored = |before: &Self| (before.pod.clone(), json(&before.pod));
        if let Some(node) = row.get("node") {
            let (old, body) = stored(&before);
            let binding = binding_body(&json!({"target": {"name": node}}));
            before.take(row, bind_to(&binding, &old), exchange::bind(PODS, &body, &binding));
        }
        if let Some(status) = row.get("oldStatus") {
            let (old, _) = stored(&before);
            let body = with_status(&old, status);
            before.take(row, update_status(&body, &old), exchange::update_status(PODS, &body));
        }
        if let Some(options) = row.get("deleted") {
            let (old, body) = stored(&before);
            before.take(row, delete(options, &old), exchange::delete(PODS, &body, options));
        }
        before
    }

    fn take(&mut self, row: &Value, answer: Answer, request: Value) {
        assert!(answer.errors.is_empty(), "{}: on the way to it: {:?}", row["name"], answer.errors);
        self.pod = answer.stored;
        self.requests.push(request);
    }

    fn then(self, request: Value) -> Exchange {
        let before = exchange::body(&json(&self.pod));
        Exchange { setup: self.requests, before: Some(before), request }
    }
}

/// The base Pod, patched.
fn body(row: &Value) -> Value {
    let mut pod = rows::read("base_pod.yaml");
    rows::patch(&mut pod, &row["pod"]);
    if let Some(patch) = row.get("container") {
        rows::patch(&mut pod["spec"]["containers"][0], patch);
    }
    pod
}

/// The request that gives a stored Pod a status. Its spec is not the stored one, because
/// that must not matter.
fn with_status(pod: &Pod, status: &Value) -> Value {
    let mut body = json(pod);
    body["spec"] = json!({"containers": []});
    body["status"] = json!({});
    rows::patch(&mut body["status"], status);
    body
}

fn binding_body(patch: &Value) -> Value {
    let mut binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "base", "namespace": "default"},
        "target": {},
    });
    rows::patch(&mut binding, patch);
    binding
}

/// Creates a Pod.
pub fn create(body: &Value) -> Answer {
    let mut pod: Pod = typed(body.clone());
    default_pod(&mut pod);
    check_defaults_settle(&pod);
    if let Err(error) = admit_pod(&mut pod) {
        return Answer { stored: pod, errors: vec![error.to_string()] };
    }
    pod.metadata.uid = Some(UID.to_owned());
    pod.metadata.creation_timestamp = Some(now());
    prepare_pod_for_create(&mut pod, &now());
    let errors = validate_pod_create(&pod).iter().map(ToString::to_string).collect();
    check_defaults_settle(&pod);
    Answer { stored: pod, errors }
}

fn check_defaults_settle(pod: &Pod) {
    let mut again = pod.clone();
    default_pod(&mut again);
    assert_eq!(again, *pod, "defaulting twice is not once");
}

/// Updates a Pod.
pub fn update(body: &Value, old: &Pod) -> Answer {
    let mut new: Pod = typed(body.clone());
    default_pod(&mut new);
    admit_pod_update(&mut new, old);
    prepare_pod_for_update(&mut new, old);
    let errors = validate_pod_update(&new, old).iter().map(ToString::to_string).collect();
    Answer { stored: new, errors }
}

fn update_status(body: &Value, old: &Pod) -> Answer {
    let mut new: Pod = typed(body.clone());
    prepare_pod_for_status_update(&mut new, old);
    assert_eq!(new.spec, old.spec, "a status update changed the spec");
    let errors = validate_pod_status_update(&new, old).iter().map(ToString::to_string).collect();
    Answer { stored: new, errors }
}

fn bind_to(body: &Value, old: &Pod) -> Answer {
    let binding: Binding = typed(body.clone());
    let mut pod = old.clone();
    let mut errors: Vec<String> =
        validate_binding(&binding).iter().map(ToString::to_string).collect();
    if errors.is_empty()
        && let Err(error) = bind(&mut pod, &binding, &now())
    {
        errors.push(error.to_string());
    }
    Answer { stored: pod, errors }
}

fn delete(options: &Value, old: &Pod) -> Answer {
    let mut pod = old.clone();
    begin_deletion(&mut pod, options["gracePeriodSeconds"].as_i64(), &now());
    Answer { stored: pod, errors: Vec::new() }
}

fn now() -> Time {
    typed(json!(NOW))
}

fn typed<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the rows are well typed")
}

fn json(pod: &Pod) -> Value {
    serde_json::to_value(pod).expect("a Pod is JSON")
}
