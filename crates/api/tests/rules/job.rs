//! The rules of Jobs, row by row: `rules/job/*.yaml`.
//!
//! Every row goes the way a request goes: decode, prepare, validate.

use k8s_openapi::api::batch::v1::Job;
use serde::de::DeserializeOwned;
use serde_json::Value;
use stint_api::defaults::job::default_job;
use stint_api::feature_gates::FeatureGates;
use stint_api::field_error::FieldError;
use stint_api::prepare;
use stint_api::validation::job::validate_job;
use stint_api::validation::job_status::validate_job_status_update;
use stint_api::validation::job_update::validate_job_update;

use crate::rows;

/// The uid that created Jobs get, and that rows expect in messages.
const UID: &str = "UID";

#[test]
fn creating_a_job() {
    run("create.yaml", 55);
}

#[test]
fn defaults() {
    run("defaults.yaml", 12);
}

#[test]
fn pod_failure_policies() {
    run("pod_failure_policy.yaml", 20);
}

#[test]
fn success_policies() {
    run("success_policy.yaml", 15);
}

#[test]
fn updating_a_job() {
    run("update.yaml", 25);
}

#[test]
fn updating_a_status() {
    run("status.yaml", 40);
}

#[test]
fn feature_gates() {
    run("gates.yaml", 10);
}

fn run(file: &str, at_least: usize) {
    let keys = [
        "job",
        "old",
        "oldStatus",
        "new",
        "status",
        "scaleTo",
        "gates",
        "createGates",
        "spec",
        "metadata",
    ];
    rows::run(&format!("job/{file}"), at_least, &keys, |row, report| {
        let (job, errors) = answer(row);
        let stored = serde_json::to_value(job).expect("a Job is JSON");
        for part in ["spec", "metadata"] {
            for (field, expected) in row[part].as_object().into_iter().flatten() {
                let path = format!("{part}.{field}");
                rows::compare(&path, expected, &stored[part][field], report);
            }
        }
        errors.iter().map(ToString::to_string).collect()
    });
}

/// What is stored, and what is wrong with it.
fn answer(row: &Value) -> (Job, Vec<FieldError>) {
    let gates = |key: &str| {
        let text = row[key].as_str().unwrap_or_default();
        FeatureGates::parse(text).unwrap_or_else(|error| panic!("{}: {error}", row["name"]))
    };
    if row.get("new").is_some() {
        update(row, &gates("createGates"), &gates("gates"))
    } else if row.get("status").is_some() {
        update_status(row, &gates("gates"))
    } else {
        let (mut job, errors) = create(&row["job"], &gates("gates"));
        // A Job is defaulted once more on its way into the store.
        default_job(&mut job, &gates("gates"));
        (job, errors)
    }
}

fn create(patch: &Value, gates: &FeatureGates) -> (Job, Vec<FieldError>) {
    let mut job = rows::read("base.yaml");
    rows::patch(&mut job, patch);
    let mut job: Job = typed(job);
    check_defaults_settle(&job, gates);
    job.metadata.uid = Some(UID.to_owned());
    prepare::prepare_for_create(&mut job, gates);
    let errors = validate_job(&job);
    (job, errors)
}

fn check_defaults_settle(job: &Job, gates: &FeatureGates) {
    let mut once = job.clone();
    default_job(&mut once, gates);
    let mut twice = once.clone();
    default_job(&mut twice, gates);
    assert_eq!(once, twice, "defaulting twice is not once");
}

fn update(
    row: &Value,
    create_gates: &FeatureGates,
    gates: &FeatureGates,
) -> (Job, Vec<FieldError>) {
    let old = stored(row, &row["old"], create_gates);
    let mut new = serde_json::to_value(&old).expect("a Job is JSON");
    rows::patch(&mut new, &row["new"]);
    let mut new: Job = typed(new);
    prepare::prepare_for_update(&mut new, &old, gates);
    assert_eq!(new.status, old.status, "{}: an update changed the status", row["name"]);
    let errors = validate_job_update(&new, &old);
    (new, errors)
}

fn update_status(row: &Value, gates: &FeatureGates) -> (Job, Vec<FieldError>) {
    let mut old = stored(row, &row["job"], &FeatureGates::default());
    if let Some(count) = row["scaleTo"].as_i64() {
        let spec = old.spec.as_mut().expect("a stored Job has a spec");
        spec.completions = Some(count as i32);
        spec.parallelism = Some(count as i32);
    }
    let mut new = old.clone();
    new.spec = Some(Default::default());
    new.status = Some(typed(row["status"].clone()));
    prepare::prepare_for_status_update(&mut new, &old);
    assert_eq!(new.spec, old.spec, "{}: a status update changed the spec", row["name"]);
    let errors = validate_job_status_update(&new, &old, gates);
    (new, errors)
}

/// The Job as it stands in the store before an update.
fn stored(row: &Value, patch: &Value, gates: &FeatureGates) -> Job {
    let (mut job, errors) = create(patch, gates);
    assert!(errors.is_empty(), "{}: the stored Job is invalid: {errors:?}", row["name"]);
    job.metadata.resource_version = Some("1".to_owned());
    if !row["oldStatus"].is_null() {
        job.status = Some(typed(row["oldStatus"].clone()));
    }
    job
}

fn typed<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the rows are well typed")
}
