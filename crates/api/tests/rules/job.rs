//! The rules of Jobs, row by row: `rules/job/*.yaml`.

use stint_rules::job::KEYS;

use crate::judge;

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
    judge::run(&format!("job/{file}"), at_least, &KEYS);
}
