//! The rules of Jobs, row by row: `rules/job/*.yaml`.
//!
//! Every row goes the way a request goes: decode, prepare, validate. What stands in the
//! store before an update got there the same way, unless the row is `unreachable`.

use k8s_openapi::api::batch::v1::Job;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stint_api::defaults::job::default_job;
use stint_api::feature_gates::FeatureGates;
use stint_api::field_error::FieldError;
use stint_api::prepare;
use stint_api::validation::job::validate_job;
use stint_api::validation::job_status::validate_job_status_update;
use stint_api::validation::job_update::validate_job_update;

use crate::case::Played;
use crate::exchange::{self, Exchange, JOBS};
use crate::rows;

/// The uid that created Jobs get, and that rows expect in messages.
const UID: &str = "UID";

/// The keys that a row may have.
pub const KEYS: [&str; 11] = [
    "job",
    "old",
    "oldStatus",
    "meanwhile",
    "unreachable",
    "new",
    "status",
    "metadata",
    "gates",
    "createGates",
    "stored",
];

/// What is stored, and what is wrong with it.
pub(crate) struct Answer {
    pub(crate) stored: Job,
    pub(crate) errors: Vec<FieldError>,
}

/// Plays a row.
pub fn play(row: &Value) -> Played {
    let (exchange, answer) = ask(row);
    let errors = answer.errors.iter().map(ToString::to_string).collect();
    Played { exchange, stored: json(&answer.stored), errors }
}

fn ask(row: &Value) -> (Exchange, Answer) {
    let gates = gates(row, "gates");
    if row.get("new").is_some() {
        let before = Before::of(row, &row["old"]);
        let mut body = json(&before.job);
        rows::patch(&mut body, &row["new"]);
        let answer = update(&body, &before.job, &gates);
        (before.then(exchange::update(JOBS, &body)), answer)
    } else if row.get("status").is_some() {
        let before = Before::of(row, &row["job"]);
        let mut body = with_status(&before.job, &row["status"]);
        rows::patch(&mut body["metadata"], &row["metadata"]);
        let answer = update_status(&body, &before.job, &gates);
        (before.then(exchange::update_status(JOBS, &body)), answer)
    } else {
        let body = body(&row["job"]);
        let answer = create(&body, &gates);
        (Exchange::only(exchange::create(JOBS, &body)), answer)
    }
}

/// The Job that stands in the store before an update, and the requests that led there.
struct Before {
    job: Job,
    requests: Vec<Value>,
    unreachable: bool,
}

impl Before {
    /// Creates a Job, gives it `oldStatus` and changes it by `meanwhile`. Every step must
    /// be allowed; of an `unreachable` row one must not be, and it is taken all the same.
    fn of(row: &Value, patch: &Value) -> Self {
        let gates = gates(row, "createGates");
        let created = body(patch);
        let Answer { stored, mut errors } = create(&created, &gates);
        assert!(errors.is_empty(), "{}: the stored Job is invalid: {errors:?}", row["name"]);
        let unreachable = row.get("unreachable").is_some();
        let mut before =
            Self { job: stored, requests: vec![exchange::create(JOBS, &created)], unreachable };
        before.job.metadata.resource_version = Some("1".to_owned());
        if let Some(status) = row.get("oldStatus") {
            let body = with_status(&before.job, status);
            let answer = update_status(&body, &before.job, &gates);
            before.take(answer, exchange::update_status(JOBS, &body), &mut errors);
        }
        if let Some(patch) = row.get("meanwhile") {
            let mut body = json(&before.job);
            rows::patch(&mut body, patch);
            let answer = update(&body, &before.job, &gates);
            before.take(answer, exchange::update(JOBS, &body), &mut errors);
        }
        let refused = !errors.is_empty();
        assert_eq!(refused, unreachable, "{}: on the way to it: {errors:?}", row["name"]);
        before
    }

    fn take(&mut self, answer: Answer, request: Value, errors: &mut Vec<FieldError>) {
        self.job = answer.stored;
        self.requests.push(request);
        errors.extend(answer.errors);
    }

    fn then(self, request: Value) -> Exchange {
        let before = exchange::body(&json(&self.job));
        let requests = if self.unreachable { Vec::new() } else { self.requests };
        Exchange { setup: requests, before: Some(before), request }
    }
}

/// The base Job, patched.
fn body(patch: &Value) -> Value {
    let mut job = rows::read("base.yaml");
    rows::patch(&mut job, patch);
    job
}

/// The request that gives a stored Job a status. Its spec is not the stored one, because
/// that must not matter.
fn with_status(job: &Job, status: &Value) -> Value {
    let mut body = json(job);
    body["spec"] = json!({"template": {}});
    body["status"] = status.clone();
    body
}

pub(crate) fn create(body: &Value, gates: &FeatureGates) -> Answer {
    let mut job: Job = typed(body.clone());
    check_defaults_settle(&job, gates);
    job.metadata.uid = Some(UID.to_owned());
    prepare::prepare_for_create(&mut job, gates);
    let errors = validate_job(&job);
    // A Job is defaulted once more on its way into the store.
    default_job(&mut job, gates);
    Answer { stored: job, errors }
}

fn check_defaults_settle(job: &Job, gates: &FeatureGates) {
    let mut once = job.clone();
    default_job(&mut once, gates);
    let mut twice = once.clone();
    default_job(&mut twice, gates);
    assert_eq!(once, twice, "defaulting twice is not once");
}

fn update(body: &Value, old: &Job, gates: &FeatureGates) -> Answer {
    let mut new: Job = typed(body.clone());
    prepare::prepare_for_update(&mut new, old, gates);
    let errors = validate_job_update(&new, old);
    Answer { stored: new, errors }
}

fn update_status(body: &Value, old: &Job, gates: &FeatureGates) -> Answer {
    let mut new: Job = typed(body.clone());
    prepare::prepare_for_status_update(&mut new, old);
    assert_eq!(new.spec, old.spec, "a status update changed the spec");
    let errors = validate_job_status_update(&new, old, gates);
    Answer { stored: new, errors }
}

fn gates(row: &Value, key: &str) -> FeatureGates {
    let text = row[key].as_str().unwrap_or_default();
    FeatureGates::parse(text).unwrap_or_else(|error| panic!("{}: {error}", row["name"]))
}

fn typed<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the rows are well typed")
}

fn json(job: &Job) -> Value {
    serde_json::to_value(job).expect("a Job is JSON")
}
