//! The rules of Jobs, row by row: tests/rules/job/*.yaml.
//!
//! Every row goes the way a request goes: decode, default, prepare, validate.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use k8s_openapi::api::batch::v1::Job;
use serde_json::{Map, Value, json};
use stint_api::defaults::job::default_job;
use stint_api::feature_gates::FeatureGates;
use stint_api::field_error::FieldError;
use stint_api::prepare;
use stint_api::validation::job::validate_job;
use stint_api::validation::job_status::validate_job_status_update;
use stint_api::validation::job_update::validate_job_update;

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

/// Runs every row of a file and reports all that fail. `at_least` guards against a
/// file that has lost its rows.
fn run(file: &str, at_least: usize) {
    let rows = read(&format!("job/{file}"));
    let rows = rows.as_array().expect("a file of rows is a list");
    assert!(rows.len() >= at_least, "{file} has only {} rows", rows.len());
    let mut report = String::new();
    for row in rows {
        let outcome = Outcome::of(row);
        let expected: Vec<String> = serde_json::from_value(row["errors"].clone())
            .unwrap_or_else(|error| panic!("{}: errors: {error}", row["name"]));
        if !same(&expected, &outcome.errors) {
            writeln!(report, "\n{}", row["name"]).unwrap();
            expected.iter().for_each(|line| writeln!(report, "  expected {line}").unwrap());
            outcome.errors.iter().for_each(|line| writeln!(report, "  got      {line}").unwrap());
        }
        for part in ["spec", "metadata"] {
            for (field, expected) in row[part].as_object().into_iter().flatten() {
                let actual = &outcome.stored[part][field];
                if actual != expected {
                    writeln!(report, "\n{}", row["name"]).unwrap();
                    writeln!(report, "  {part}.{field}: {expected} != {actual}").unwrap();
                }
            }
        }
    }
    assert!(report.is_empty(), "rows of {file} that do not hold:\n{report}");
}

/// `TEMPLATE` in an expectation stands for a Pod template, whatever it is.
fn same(expected: &[String], errors: &[String]) -> bool {
    expected.len() == errors.len()
        && expected.iter().zip(errors).all(|(expected, error)| {
            match expected.split_once("TEMPLATE") {
                Some((head, tail)) => error.starts_with(head) && error.ends_with(tail),
                None => expected == error,
            }
        })
}

/// What came of a request.
struct Outcome {
    errors: Vec<String>,
    stored: Value,
}

impl Outcome {
    fn of(row: &Value) -> Self {
        let gates = |key: &str| {
            let text = row[key].as_str().unwrap_or_default();
            FeatureGates::parse(text).unwrap_or_else(|error| panic!("{}: {error}", row["name"]))
        };
        let known = [
            "name",
            "job",
            "errors",
            "differs",
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
        for key in row.as_object().expect("a row is an object").keys() {
            assert!(known.contains(&key.as_str()), "{}: unknown key {key}", row["name"]);
        }
        if row.get("new").is_some() {
            Self::of_update(row, &gates("createGates"), &gates("gates"))
        } else if row.get("status").is_some() {
            Self::of_status_update(row, &gates("gates"))
        } else {
            let (mut job, errors) = create(&row["job"], &gates("gates"));
            default_job(&mut job, &gates("gates"));
            Self::new(&job, errors)
        }
    }

    fn of_update(row: &Value, create_gates: &FeatureGates, gates: &FeatureGates) -> Self {
        let old = stored(row, &row["old"], create_gates);
        let mut new = serde_json::to_value(&old).unwrap();
        merge(&mut new, &expand(&row["new"]));
        let mut new: Job = typed(new);
        prepare::prepare_for_update(&mut new, &old, gates);
        let errors = validate_job_update(&new, &old);
        Self::new(&new, errors)
    }

    fn of_status_update(row: &Value, gates: &FeatureGates) -> Self {
        let mut old = stored(row, &row["job"], &FeatureGates::default());
        if let Some(count) = row["scaleTo"].as_i64() {
            let spec = old.spec.as_mut().unwrap();
            spec.completions = Some(count as i32);
            spec.parallelism = Some(count as i32);
        }
        let mut new = old.clone();
        new.status = Some(typed(row["status"].clone()));
        prepare::prepare_for_status_update(&mut new, &old);
        let errors = validate_job_status_update(&new, &old, gates);
        Self::new(&new, errors)
    }

    fn new(job: &Job, errors: Vec<FieldError>) -> Self {
        Self {
            errors: errors.iter().map(ToString::to_string).collect(),
            stored: serde_json::to_value(job).unwrap(),
        }
    }
}

/// The Job as it stands in the store before the update.
fn stored(row: &Value, patch: &Value, gates: &FeatureGates) -> Job {
    let (mut job, errors) = create(patch, gates);
    assert!(errors.is_empty(), "{}: the stored Job is invalid: {errors:?}", row["name"]);
    job.metadata.resource_version = Some("1".to_owned());
    if !row["oldStatus"].is_null() {
        job.status = Some(typed(row["oldStatus"].clone()));
    }
    job
}

fn create(patch: &Value, gates: &FeatureGates) -> (Job, Vec<FieldError>) {
    let mut job = read("base.yaml");
    if !patch.is_null() {
        merge(&mut job, &expand(patch));
    }
    let mut job: Job = typed(job);
    let mut once = job.clone();
    default_job(&mut once, gates);
    let mut twice = once.clone();
    default_job(&mut twice, gates);
    assert_eq!(once, twice, "defaults are not idempotent");
    job.metadata.uid = Some(UID.to_owned());
    prepare::prepare_for_create(&mut job, gates);
    let errors = validate_job(&job);
    (job, errors)
}

fn typed<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the rows are well typed")
}

fn read(file: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/rules").join(file);
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Writes out what rows abbreviate: `{$list: 20, of: x}`, `{$range: [1, 9]}` and
/// `{$text: 64, of: a}`.
fn expand(value: &Value) -> Value {
    match value {
        Value::Object(map) => match (map.get("$list"), map.get("$range"), map.get("$text")) {
            (Some(count), None, None) => {
                let count = count.as_u64().expect("$list is a count") as usize;
                Value::Array(vec![expand(&map["of"]); count])
            }
            (None, Some(range), None) => {
                let [first, last] =
                    [&range[0], &range[1]].map(|end| end.as_i64().expect("a number"));
                json!((first..=last).collect::<Vec<_>>())
            }
            (None, None, Some(count)) => {
                let count = count.as_u64().expect("$text is a count") as usize;
                json!(map["of"].as_str().expect("a text").repeat(count))
            }
            _ => map
                .iter()
                .map(|(key, value)| (key.clone(), expand(value)))
                .collect::<Map<_, _>>()
                .into(),
        },
        Value::Array(items) => items.iter().map(expand).collect(),
        _ => value.clone(),
    }
}

/// RFC 7386.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let target = target.as_object_mut().expect("it was just made one");
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key).or_insert(Value::Null), value);
        }
    }
}
