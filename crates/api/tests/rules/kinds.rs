//! The rules of kinds beside Jobs and Pods, row by row: `rules/kinds/*.yaml`.

use k8s_openapi::api::events::v1::Event;
use stint_api::kinds::event::{from_events_v1, to_events_v1};
use stint_rules::kinds::KEYS;
use stint_rules::rows;

use crate::judge;

#[test]
fn config_maps() {
    run("config_map", 20);
}

#[test]
fn secrets() {
    run("secret", 30);
}

#[test]
fn service_accounts() {
    run("service_account", 5);
}

#[test]
fn endpoints() {
    run("endpoints", 10);
}

#[test]
fn endpoint_slices() {
    run("endpoint_slice", 30);
}

#[test]
fn leases() {
    run("lease", 15);
}

#[test]
fn limit_ranges() {
    run("limit_range", 25);
}

#[test]
fn resource_quotas() {
    run("resource_quota", 35);
}

#[test]
fn nodes() {
    run("node", 30);
}

#[test]
fn namespaces() {
    run("namespace", 20);
}

#[test]
fn events() {
    run("event", 20);
}

#[test]
fn events_of_the_newer_api() {
    let base = &rows::read("kinds_base.yaml")["events_v1"];
    let event: Event = serde_json::from_value(base.clone()).expect("an Event");
    assert_eq!(to_events_v1(from_events_v1(event.clone())), event, "a way there and back");
    run("events_v1", 15);
}

#[test]
fn services() {
    run("service", 60);
}

fn run(file: &str, at_least: usize) {
    judge::run(&format!("kinds/{file}.yaml"), at_least, &KEYS);
}
