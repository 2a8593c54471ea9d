//! Each remedy against an error that the validators really make, so that a rule that
//! is reworded or moved cannot lose its remedy unnoticed.

use k8s_openapi::api::batch::v1::Job;
use serde_json::{Value, json};

use super::*;
use crate::feature_gates::FeatureGates;
use crate::field_path::Path;
use crate::prepare::prepare_for_create;
use crate::validation::job::validate_job;

/// The error that starts so, of a small valid Job after a merge patch (RFC 7396).
fn error_of(patch: Value, start: &str) -> FieldError {
    let mut job = json!({
        "metadata": {"name": "x", "namespace": "default", "uid": "1"},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "busybox"}],
        }}},
    });
    merge(&mut job, patch);
    let mut job: Job = serde_json::from_value(job).expect("a Job");
    prepare_for_create(&mut job, &FeatureGates::default());
    let errors = validate_job(&job);
    let found = errors.iter().find(|error| error.to_string().starts_with(start));
    found.unwrap_or_else(|| panic!("no {start:?} in {errors:#?}")).clone()
}

fn merge(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    target.remove(&key);
                } else {
                    merge(target.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (target, patch) => *target = patch,
    }
}

/// A patch of the spec.
fn spec(fields: Value) -> Value {
    json!({"spec": fields})
}

/// A patch of the Pod's spec.
fn pod(fields: Value) -> Value {
    spec(json!({"template": {"spec": fields}}))
}

/// A Pod whose container is this one, complete but for what the row is about.
fn container(fields: Value) -> Value {
    let mut container = json!({"name": "main", "image": "busybox"});
    merge(&mut container, fields);
    pod(json!({"containers": [container]}))
}

/// An Indexed Job with five indexes.
fn indexed(fields: Value) -> Value {
    let mut all = json!({"completionMode": "Indexed", "completions": 5});
    merge(&mut all, fields);
    spec(all)
}

fn failure_rule(rule: Value) -> Value {
    spec(json!({"podFailurePolicy": {"rules": [rule]}}))
}

fn success_rule(rule: Value) -> Value {
    indexed(json!({"successPolicy": {"rules": [rule]}}))
}

/// A patch, the error it leads to and the start of the help that comes with it.
type Row = (Value, &'static str, &'static str);

fn job_rows() -> Vec<Row> {
    let requires_indexed = "set completionMode: Indexed";
    vec![
        (json!({"metadata": {"name": null}}), "metadata.name: Required", "add a name"),
        (
            {
                let mut job = indexed(json!({}));
                merge(&mut job, json!({"metadata": {"name": "x".repeat(62)}}));
                job
            },
            "metadata.name: Invalid value: \"xxx",
            "Pods are called NAME-INDEX",
        ),
        (json!({"metadata": {"name": "_"}}), "metadata.name: Invalid", "use lower case letters"),
        (
            json!({"metadata": {"name": "My_Job"}}),
            "metadata.name: Invalid value: \"My_Job\"",
            "did you mean \"my-job\"?",
        ),
        (
            json!({"metadata": {"generateName": "My_Job-"}}),
            "metadata.generateName: Invalid value: \"My_Job-\"",
            "did you mean \"my-job-\"?",
        ),
        (
            indexed(json!({"completions": null, "parallelism": 2})),
            "spec.completions: Required",
            "set completions to the number",
        ),
        (
            indexed(json!({"maxFailedIndexes": 1})),
            "spec.backoffLimitPerIndex: Required",
            "set backoffLimitPerIndex",
        ),
        (
            indexed(json!({"completions": 100_001, "backoffLimitPerIndex": 1})),
            "spec.maxFailedIndexes: Required",
            "set maxFailedIndexes to at most 10000",
        ),
        (
            spec(json!({"backoffLimitPerIndex": 1})),
            "spec.backoffLimitPerIndex: Invalid",
            requires_indexed,
        ),
        (spec(json!({"maxFailedIndexes": 1})), "spec.maxFailedIndexes: Invalid", requires_indexed),
        (
            spec(json!({"successPolicy": {"rules": []}})),
            "spec.successPolicy: Invalid",
            requires_indexed,
        ),
        (spec(json!({"managedBy": "me"})), "spec.managedBy: Invalid", "write DOMAIN/NAME"),
        (
            spec(json!({
                "podReplacementPolicy": "TerminatingOrFailed",
                "podFailurePolicy": {"rules": []},
            })),
            "spec.podReplacementPolicy: Unsupported",
            "use Failed",
        ),
        (
            spec(json!({"completionMode": "indexd"})),
            "spec.completionMode: Unsupported",
            "did you mean \"Indexed\"?",
        ),
        (spec(json!({"manualSelector": true})), "spec.selector: Required", "set a selector"),
        (
            spec(json!({"selector": {"matchLabels": {"a": "b"}}})),
            "spec.selector: Invalid",
            "remove the selector",
        ),
        (
            spec(json!({"manualSelector": true, "selector": {"matchLabels": {"a": "b"}}})),
            "spec.template.metadata.labels: Invalid",
            "give the template the labels",
        ),
        (
            spec(json!({"template": {"metadata": {"labels": {"job-name": "other"}}}})),
            "spec.template.metadata.labels[job-name]: Invalid",
            "remove this label",
        ),
        (
            json!({"metadata": {"name": "x".repeat(64)}}),
            "spec.template.labels: Invalid",
            "labels take up to 63",
        ),
    ]
}

fn policy_rows() -> Vec<Row> {
    vec![
        (
            failure_rule(json!({"action": "FailIndex"})),
            "spec.podFailurePolicy.rules[0].action: Invalid",
            "set backoffLimitPerIndex, or",
        ),
        (
            failure_rule(json!({
                "action": "Ignore",
                "onExitCodes": {"operator": "In", "values": [1]},
                "onPodConditions": [{"type": "DisruptionTarget"}],
            })),
            "spec.podFailurePolicy.rules[0]: Invalid",
            "keep one of",
        ),
        (
            failure_rule(json!({"action": "Ignore"})),
            "spec.podFailurePolicy.rules[0]: Invalid",
            "add onExitCodes",
        ),
        (
            failure_rule(json!({
                "action": "Ignore",
                "onExitCodes": {"operator": "In", "values": [2, 1]},
            })),
            "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid",
            "list the values from",
        ),
        (
            failure_rule(json!({
                "action": "Ignore",
                "onExitCodes": {"operator": "In", "values": [0]},
            })),
            "spec.podFailurePolicy.rules[0].onExitCodes.values[0]: Invalid",
            "leave 0 out",
        ),
        (
            failure_rule(json!({
                "action": "Ignore",
                "onExitCodes": {"operator": "In", "values": [1, 1]},
            })),
            "spec.podFailurePolicy.rules[0].onExitCodes.values[1]: Duplicate",
            "list each exit code once",
        ),
        (
            success_rule(json!({})),
            "spec.successPolicy.rules[0]: Required",
            "set succeededIndexes, succeededCount",
        ),
        (
            success_rule(json!({"succeededIndexes": "2,1"})),
            "spec.successPolicy.rules[0].succeededIndexes: Invalid",
            "list each index once",
        ),
        (
            success_rule(json!({"succeededIndexes": "5"})),
            "spec.successPolicy.rules[0].succeededIndexes: Invalid",
            "indexes go from 0",
        ),
        (
            success_rule(json!({"succeededIndexes": "1;2"})),
            "spec.successPolicy.rules[0].succeededIndexes: Invalid",
            "write indexes and intervals",
        ),
    ]
}

fn pod_rows() -> Vec<Row> {
    vec![
        (
            pod(json!({"restartPolicy": null})),
            "spec.template.spec.restartPolicy: Required",
            "set restartPolicy: Never (",
        ),
        (
            {
                let mut job = pod(json!({"restartPolicy": "OnFailure"}));
                merge(&mut job, spec(json!({"podFailurePolicy": {"rules": []}})));
                job
            },
            "spec.template.spec.restartPolicy: Invalid",
            "set restartPolicy: Never",
        ),
        (
            // A Pod may have Always, and is told so first: no help for a Job.
            pod(json!({"restartPolicy": "always"})),
            "spec.template.spec.restartPolicy: Unsupported value: \"always\": supported values: \"Always\"",
            "a Job takes Never or OnFailure",
        ),
        (
            pod(json!({"restartPolicy": "never"})),
            "spec.template.spec.restartPolicy: Unsupported",
            "did you mean \"Never\"?",
        ),
        (
            pod(json!({"containers": []})),
            "spec.template.spec.containers: Required",
            "add at least one container",
        ),
        (
            pod(json!({"volumes": [{"name": "a", "emptyDir": {}}, {"name": "a", "emptyDir": {}}]})),
            "spec.template.spec.volumes[1].name: Duplicate",
            "give each volume a name",
        ),
        (
            container(json!({"name": ""})),
            "spec.template.spec.containers[0].name: Required",
            "add a name, such as",
        ),
        (
            container(json!({"name": "Main.One"})),
            "spec.template.spec.containers[0].name: Invalid",
            "did you mean \"main-one\"?",
        ),
        (
            pod(json!({"initContainers": [{"name": "main", "image": "busybox"}]})),
            "spec.template.spec.initContainers[0].name: Duplicate",
            "give each container a name",
        ),
        (
            container(json!({"image": null})),
            "spec.template.spec.containers[0].image: Required",
            "name an image",
        ),
        (
            container(json!({"env": [{"name": "A=1"}]})),
            "spec.template.spec.containers[0].env[0].name: Invalid",
            "write NAME=VALUE",
        ),
        (
            container(json!({"volumeMounts": [{"name": "data", "mountPath": "/data"}]})),
            "spec.template.spec.containers[0].volumeMounts[0].name: Not found",
            "spec.template.spec.volumes needs",
        ),
        (
            container(json!({"volumeDevices": [{"name": "disk", "devicePath": "/disk"}]})),
            "spec.template.spec.containers[0].volumeDevices[0].name: Not found",
            "spec.template.spec.volumes needs",
        ),
        (
            container(json!({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}})),
            "spec.template.spec.containers[0].resources.requests: Invalid",
            "change one of the two",
        ),
        (
            container(json!({"resources": {"requests": {"acme.io/gpu": "1"}}})),
            "spec.template.spec.containers[0].resources.limits: Required",
            "set a limit of the same amount",
        ),
        (
            container(json!({"resources": {"limits": {"gpu": "1"}}})),
            "spec.template.spec.containers[0].resources.limits[gpu]: Invalid",
            "use cpu, memory",
        ),
    ]
}

#[test]
fn every_remedy_belongs_to_an_error_of_the_validators() {
    let mut used: Vec<&Remedy> = Vec::new();
    for (patch, start, help) in job_rows().into_iter().chain(policy_rows()).chain(pod_rows()) {
        let error = error_of(patch, start);
        let told = remedy(&error).unwrap_or_default();
        assert!(told.starts_with(help), "{error}\n{told}");
        used.extend(find(&error, &shape(&error.path)).filter(|remedy| remedy.help == told));
    }
    let is_used = |remedy: &Remedy| used.iter().any(|used| std::ptr::eq(*used, remedy));
    let unused: Vec<&Remedy> = REMEDIES.iter().filter(|remedy| !is_used(remedy)).collect();
    assert!(unused.is_empty(), "remedies without a row: {unused:#?}");
}

#[test]
fn a_field_of_the_same_name_elsewhere_has_no_remedy() {
    let rows = [
        (
            pod(json!({"volumes": [{"name": "a", "rbd": {"monitors": ["b"], "image": ""}}]})),
            "spec.template.spec.volumes[0].rbd.image: Required",
        ),
        (
            container(json!({"resources": {"limits": {"cpu": "-1"}}})),
            "spec.template.spec.containers[0].resources.limits[cpu]: Invalid",
        ),
        (
            container(json!({"env": [{"name": "\u{e9}"}]})),
            "spec.template.spec.containers[0].env[0].name: Invalid",
        ),
        (spec(json!({"managedBy": "a.io/".repeat(20)})), "spec.managedBy: Too long"),
    ];
    for (patch, start) in rows {
        let error = error_of(patch, start);
        assert_eq!(remedy(&error), None, "{error}");
    }
}

#[test]
fn only_a_near_miss_of_a_closed_set_is_named() {
    let spec = Path::field("spec");
    let mode = spec.child("completionMode");
    // The values count, not how the message quotes them.
    let far = FieldError::not_supported(&mode, "Elastic", &["NonIndexed", "Indexed"]);
    assert_eq!(remedy(&far), None);
    let quoted = FieldError::not_supported(&mode, "a\"b", &["a\"c"]);
    assert_eq!(remedy(&quoted).as_deref(), Some("did you mean \"a\\\"c\"?"));
}

#[test]
fn a_name_is_mended_only_if_nothing_gets_lost() {
    let rows = [
        ("My Job", Some("my-job")),
        ("-a_.b-", Some("a-b")),
        ("fine", None),
        ("caf\u{e9}", None),
        ("__", None),
    ];
    for (name, expected) in rows {
        assert_eq!(as_dns_label(name).as_deref(), expected, "{name}");
    }
    assert_eq!(as_dns_label(&"A".repeat(64)), None);
}
