//! The rules of Pod templates, row by row: `rules/pod/*.yaml`.
//!
//! The patches of a row apply in the order `job`, `template`, `pod`, `container`. The
//! errors are those of the whole Job. `defaulted` lists what the API server makes of
//! parts of the template.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::{Value, json};
use stint_api::defaults::pod_template::default_pod_template;
use stint_api::feature_gates::FeatureGates;

use crate::case::Played;
use crate::exchange::{self, Exchange, JOBS};
use crate::{job, rows};

/// The keys that a row may have.
pub const KEYS: [&str; 6] = ["job", "template", "pod", "container", "defaulted", "stored"];

/// Plays a row.
pub fn play(row: &Value) -> Played {
    let body = body(row);
    let answer = job::create(&body, &FeatureGates::default());
    let template = &answer.stored.spec.as_ref().expect("a prepared Job has a spec").template;
    check_defaults_settle(row, template);
    Played {
        exchange: Exchange::only(exchange::create(JOBS, &body)),
        stored: serde_json::to_value(&answer.stored).expect("a Job is JSON"),
        errors: answer.errors.iter().map(ToString::to_string).collect(),
    }
}

fn body(row: &Value) -> Value {
    let mut job = rows::read("base.yaml");
    rows::patch(&mut job, &row["job"]);
    rows::patch(&mut job["spec"]["template"], &row["template"]);
    rows::patch(&mut job["spec"]["template"]["spec"], &row["pod"]);
    if let Some(patch) = row.get("container") {
        rows::patch(&mut job["spec"]["template"]["spec"]["containers"][0], patch);
    }
    job
}

fn check_defaults_settle(row: &Value, template: &PodTemplateSpec) {
    let mut again = template.clone();
    default_pod_template(&mut again);
    assert_eq!(again, *template, "{}: defaulting twice is not once", row["name"]);
}

/// The row with what is `defaulted` said in the words of Job rows.
pub fn with_stored(row: &Value) -> Value {
    let mut row = row.clone();
    if let Some(template) = row.get("defaulted").cloned() {
        row["stored"] = json!({"spec": {"template": template}});
    }
    row
}
