//! What becomes of bodies, right and wrong; they never reach a store.

use super::*;
use k8s_openapi::api::batch::v1::Job;
use serde_json::json;

const JOBS: Names = Names {
    group: "batch",
    version: "v1",
    kind: "Job",
    plural: "jobs",
    singular: "job",
    short_names: &[],
    categories: &[],
    is_namespaced: true,
};

fn read(text: &str, validation: FieldValidation) -> Result<Decoded<Job>, Status> {
    body(text.as_bytes(), Format::Json, validation, &JOBS)
}

#[test]
fn unknown_and_repeated_fields_are_ignored_warned_of_or_refused() {
    let text = r#"{"spec":{"completions":1,"completions":2,"paralelism":3,"template":{}}}"#;
    assert!(read(text, FieldValidation::Ignore).expect("taken").warnings.is_empty());
    let warned = read(text, FieldValidation::Warn).expect("taken");
    assert_eq!(
        warned.warnings,
        [r#"duplicate field "spec.completions""#, r#"unknown field "spec.paralelism""#]
    );
    let refused = read(text, FieldValidation::Strict).expect_err("refused");
    assert_eq!(refused.code(), 400);
    assert_eq!(
        refused.message(),
        r#"Job in version "v1" cannot be handled as a Job: strict decoding error: duplicate field "spec.completions", unknown field "spec.paralelism""#
    );
}

#[test]
fn a_body_of_another_type_is_refused() {
    let other = read(r#"{"apiVersion":"v1","kind":"Pod"}"#, FieldValidation::Warn);
    assert_eq!(
        other.expect_err("refused").message(),
        "the API version in the data (v1) does not match the expected API version (batch/v1)"
    );
    let kind = read(r#"{"apiVersion":"batch/v1","kind":"Pod"}"#, FieldValidation::Warn);
    assert!(kind.expect_err("refused").message().starts_with("Pod in version"));
    for broken in ["", "{", "[]", "7", "\"x\"", "{\"spec\":7}", "{}{}"] {
        let status = read(broken, FieldValidation::Ignore).expect_err(broken);
        assert_eq!(status.code(), 400, "{broken}: {}", status.message());
    }
}

#[test]
fn what_is_yaml_is_no_json() {
    let template = r#""spec":{"template":{"spec":{"containers":null}}}"#;
    for broken in [
        "metadata: {name: a}",
        "{metadata: {name: a}}",
        "{'metadata': {'name': 'a'}}",
        r#"{"metadata":{"name":"a",}}"#,
        r#"{"metadata":{"labels":}}"#,
        r#"{"metadata":{"name":"a"}} # a"#,
        "{\"metadata\":{\"name\":\"a\nb\"}}",
        // What comes first is a null where the type has none.
        &format!("{{{template},}}"),
        &format!("{{{template}}} # a"),
    ] {
        for validation in [FieldValidation::Ignore, FieldValidation::Warn] {
            let status = read(broken, validation).expect_err(broken);
            assert_eq!(status.code(), 400, "{broken}");
            assert!(status.message().contains("json parse error: "), "{}", status.message());
        }
    }
}

#[test]
fn the_last_of_a_repeated_field_counts() {
    let text = r#"{"metadata":{"name":"a","name":"b"},"spec":{"template":{}}}"#;
    for validation in [FieldValidation::Ignore, FieldValidation::Warn] {
        let job = read(text, validation).expect("taken").object;
        assert_eq!(job.metadata.name.as_deref(), Some("b"), "{validation:?}");
    }
}

#[test]
fn the_repeated_fields_of_a_patch_are_named() {
    let repeated = |body: &str| repeated_fields(body.as_bytes(), FieldValidation::Warn);
    assert_eq!(repeated(r#"{"a":{"b":1,"c":2}}"#), [""; 0]);
    let twice = r#"{"a":{"b":1,"b":2}}"#;
    assert_eq!(repeated(twice), [r#"duplicate field "a.b""#]);
    assert_eq!(repeated_fields(twice.as_bytes(), FieldValidation::Ignore), [""; 0]);
}

#[test]
fn null_is_absent() {
    let text = r#"{"metadata":null,"spec":{"template":{"spec":{"containers":null}}}}"#;
    let job = read(text, FieldValidation::Strict).expect("taken").object;
    assert!(job.spec.expect("there is a spec").template.spec.expect("a Pod").containers.is_empty());
}

#[test]
fn yaml_is_read_as_kubernetes_does() {
    let text = "spec:\n  suspend: yes\n  template: {}\n";
    let job = body::<Job>(text.as_bytes(), Format::Yaml, FieldValidation::Strict, &JOBS);
    assert_eq!(job.expect("taken").object.spec.expect("a spec").suspend, Some(true));
}

#[test]
fn a_patched_object_names_what_its_type_does_not_have() {
    let value = json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "foo": 1}]}}}});
    let warned = patched::<Job>(value.clone(), &[], FieldValidation::Warn).expect("taken");
    assert_eq!(warned.warnings, [r#"unknown field "spec.template.spec.containers[0].foo""#]);
    let refused = patched::<Job>(value, &[], FieldValidation::Strict).expect_err("refused");
    assert_eq!(refused.code(), 422);
    let mistyped =
        patched::<Job>(json!({"spec": {"completions": "x"}}), &[], FieldValidation::Warn);
    assert_eq!(mistyped.expect_err("refused").code(), 422);
}
