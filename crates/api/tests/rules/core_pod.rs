//! The rules of Pods, row by row: `rules/core_pod/*.yaml`.

use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;
use stint_rules::pod::{Answer, KEYS, create, update};
use stint_rules::rows;

use crate::judge;

#[test]
fn creating_a_pod() {
    run("create.yaml", 30);
}

#[test]
fn defaults_and_admission() {
    run("defaults.yaml", 30);
}

#[test]
fn updating_a_pod() {
    run("update.yaml", 40);
}

#[test]
fn updating_a_pods_status() {
    run("status.yaml", 40);
}

#[test]
fn binding_a_pod() {
    run("binding.yaml", 10);
}

#[test]
fn deleting_a_pod() {
    run("delete.yaml", 8);
}

/// The rows of templates hold every field that a spec can have.
#[test]
fn any_template_can_be_judged_as_a_pod_and_changing_nothing_is_always_allowed() {
    let (mut accepted, mut last) = (0, Pod::default());
    for file in rows::files("pod") {
        for row in rows::read(&file).as_array().expect("a file of rows is a list") {
            let mut body = rows::read("base_pod.yaml");
            rows::patch(&mut body["metadata"], &row["template"]["metadata"]);
            rows::patch(&mut body["spec"], &row["template"]["spec"]);
            rows::patch(&mut body["spec"], &row["pod"]);
            if let Some(patch) = row.get("container") {
                rows::patch(&mut body["spec"]["containers"][0], patch);
            }
            let Answer { mut stored, errors } = create(&body);
            stored.metadata.resource_version = Some("1".to_owned());
            update(&json(&stored), &last);
            if errors.is_empty() {
                let answer = update(&json(&stored), &stored);
                assert!(answer.errors.is_empty(), "{}: {:?}", row["name"], answer.errors);
                assert_eq!(answer.stored, stored, "{}", row["name"]);
                accepted += 1;
            }
            last = stored;
        }
    }
    assert!(accepted > 80, "few templates make a valid Pod: {accepted}");
}

fn run(file: &str, at_least: usize) {
    judge::run(&format!("core_pod/{file}"), at_least, &KEYS);
}

fn json(pod: &Pod) -> Value {
    serde_json::to_value(pod).expect("a Pod is JSON")
}
