//! The rules of Pod templates, row by row: `rules/pod/*.yaml`.
//!
//! The patches of a row apply in the order `job`, `template`, `pod`, `container`. The
//! errors are those of the whole Job. `defaulted` lists what the API server makes of
//! parts of the template.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::{Value, json};
use stint_api::defaults::pod_template::default_pod_template;
use stint_api::feature_gates::FeatureGates;

use crate::dump::{self, Exchange, JOBS};
use crate::{job, rows};

#[test]
fn every_row_gets_the_errors_it_lists() {
    let keys = ["job", "template", "pod", "container", "defaulted"];
    let files = rows::files("pod");
    assert!(files.len() >= 10, "rules/pod has lost files: {files:?}");
    for file in files {
        rows::run(&file, 5, &keys, |row, report| {
            let body = body(row);
            let answer = job::create(&body, &FeatureGates::default());
            let template = answer.stored.spec.expect("a prepared Job has a spec").template;
            check_defaults_settle(row, &template);
            if let Some(defaulted) = row.get("defaulted") {
                let template = serde_json::to_value(template).expect("a template is JSON");
                rows::compare("template", defaulted, &template, report);
            }
            dump::write(&file, &with_stored(row), &Exchange::only(dump::create(JOBS, &body)));
            answer.errors.iter().map(ToString::to_string).collect()
        });
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
fn with_stored(row: &Value) -> Value {
    let mut row = row.clone();
    if let Some(template) = row.get("defaulted").cloned() {
        row["stored"] = json!({"spec": {"template": template}});
    }
    row
}
