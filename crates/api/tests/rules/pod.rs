//! The rules of Pod templates, row by row: `rules/pod/*.yaml`.
//!
//! The patches of a row apply in the order `job`, `template`, `pod`, `container`.
//! `defaulted` lists what the API server makes of parts of the template.
//!
//! With `STINT_POD_RULES_DUMP` set to a file, each row's errors and defaulted template
//! are written there as JSON lines, for comparison with a real server.

use std::cell::RefCell;
use std::fs;
use std::io::Write;

use k8s_openapi::api::batch::v1::Job;
use serde_json::{Value, json};
use stint_api::defaults::pod_template::default_pod_template;
use stint_api::field_path::Path;
use stint_api::validation::pod_template::validate_pod_template;

use crate::rows;

#[test]
fn every_row_gets_the_errors_it_lists() {
    let dump = std::env::var_os("STINT_POD_RULES_DUMP")
        .map(|path| RefCell::new(fs::File::create(path).expect("the dump file can be made")));
    let keys = ["job", "template", "pod", "container", "defaulted"];
    let files = rows::files("pod");
    assert!(files.len() >= 10, "rules/pod has lost files: {files:?}");
    for file in files {
        rows::run(&file, 5, &keys, |row, report| {
            let (errors, template) = judge(row);
            if let Some(defaulted) = row.get("defaulted") {
                rows::compare("template", defaulted, &template, report);
            }
            if let Some(dump) = &dump {
                let line = json!({"file": file, "name": row["name"], "errors": errors,
                    "template": template});
                writeln!(dump.borrow_mut(), "{line}").expect("the dump file can be written");
            }
            errors
        });
    }
}

/// The errors of a row's template, and the template after defaulting.
fn judge(row: &Value) -> (Vec<String>, Value) {
    let mut job = rows::read("base.yaml");
    rows::patch(&mut job, &row["job"]);
    rows::patch(&mut job["spec"]["template"], &row["template"]);
    rows::patch(&mut job["spec"]["template"]["spec"], &row["pod"]);
    if let Some(patch) = row.get("container") {
        rows::patch(&mut job["spec"]["template"]["spec"]["containers"][0], patch);
    }
    let job: Job = serde_json::from_value(job)
        .unwrap_or_else(|error| panic!("{}: not a Job: {error}", row["name"]));
    let mut template = job.spec.expect("a Job has a spec").template;
    default_pod_template(&mut template);
    let mut again = template.clone();
    default_pod_template(&mut again);
    assert_eq!(again, template, "{}: defaulting twice is not once", row["name"]);
    let mut errors = Vec::new();
    let spec = Path::field("spec");
    validate_pod_template(&template, &spec.child("template"), &mut errors);
    let errors = errors.iter().map(ToString::to_string).collect();
    (errors, serde_json::to_value(template).expect("a template is JSON"))
}
