//! Parsing Jobs into views.

use serde_json::{Value, json};

use super::*;
use crate::closed_set::{ConditionStatus, ExitCodeOperator, PodFailurePolicyAction};

/// A minimal Job as the API returns it, with `spec` merged in.
fn view(spec: Value, status: Value) -> Result<JobView, JobViewError> {
    let mut job = json!({
        "metadata": {"name": "x", "namespace": "ns", "uid": "u"},
        "spec": {
            "selector": {"matchLabels": {}},
            "template": {"spec": {"restartPolicy": "Never", "containers": []}},
        },
        "status": status,
    });
    for (key, value) in spec.as_object().expect("a spec is an object") {
        job["spec"][key] = value.clone();
    }
    JobView::parse(&serde_json::from_value(job).expect("the test's own Job is well typed"))
}

#[test]
fn absent_fields_have_their_defaults() {
    let job = view(json!({}), Value::Null).unwrap();
    assert_eq!(job.parallelism, 1);
    assert_eq!(job.completion, Completion::Count(1));
    assert_eq!(job.backoff_limit, 6);
    assert_eq!(job.managed_by, ManagedBy::BuiltIn);
    assert_eq!(job.replacement, PodReplacementPolicy::TerminatingOrFailed);
    assert!(!job.suspended);
    assert!(!job.status.is_finished());
}

#[test]
fn completion_is_a_queue_a_count_or_indexes() {
    let of = |spec: Value| view(spec, Value::Null).map(|job| job.completion);
    assert_eq!(of(json!({"parallelism": 3})), Ok(Completion::WorkQueue));
    assert_eq!(of(json!({"completions": 3})), Ok(Completion::Count(3)));
    let indexed = json!({
        "completions": 4, "completionMode": "Indexed", "backoffLimitPerIndex": 2,
        "maxFailedIndexes": 1,
        "successPolicy": {"rules": [{"succeededIndexes": "0,2-3", "succeededCount": 1}]},
    });
    let job = view(indexed, Value::Null).unwrap();
    assert_eq!(job.backoff_limit, UNLIMITED_BACKOFF);
    let Completion::Indexed(indexed) = job.completion else { panic!("{:?}", job.completion) };
    assert_eq!(indexed.completions, 4);
    assert_eq!(
        indexed.backoff_per_index,
        Some(BackoffPerIndex { limit: 2, max_failed_indexes: Some(1) })
    );
    let rule = &indexed.success_policy.unwrap().rules[0];
    assert_eq!(rule.count, Some(1));
    assert_eq!(rule.indexes.as_ref().map(ToString::to_string).as_deref(), Some("0,2,3"));
}

#[test]
fn what_cannot_be_understood_is_named() {
    let error = |spec: Value| view(spec, Value::Null).unwrap_err().to_string();
    assert_eq!(error(json!({"completionMode": "Elastic"})), "unknown completion mode \"Elastic\"");
    assert_eq!(error(json!({"completionMode": "Indexed"})), "spec.completions is missing");
    assert_eq!(error(json!({"completions": -1})), "spec.completions is negative: -1");
    assert_eq!(
        error(json!({"podReplacementPolicy": "Never"})),
        "spec.podReplacementPolicy: unknown value \"Never\""
    );
}

#[test]
fn a_failure_policy_makes_only_failed_pods_replaceable_by_default() {
    let policy = json!({"podFailurePolicy": {"rules": [
        {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [3, 40]}},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
    ]}});
    let job = view(policy, Value::Null).unwrap();
    assert_eq!(job.replacement, PodReplacementPolicy::Failed);
    let rules = job.failure_policy.unwrap().rules;
    assert_eq!(rules[0].action, PodFailurePolicyAction::FailJob);
    let PodFailureRequirement::OnExitCodes(codes) = &rules[0].requirement else { panic!() };
    assert_eq!(codes.operator, ExitCodeOperator::NotIn);
    assert_eq!(
        [0, 1, 3, 40, 41].map(|code| codes.matches(code)),
        [false, true, false, false, true]
    );
    let pattern = ConditionPattern {
        condition_type: "DisruptionTarget".to_owned(),
        status: ConditionStatus::True,
    };
    assert_eq!(rules[1].requirement, PodFailureRequirement::OnPodConditions(vec![pattern]));
}

#[test]
fn a_corrupted_status_is_read_as_far_as_it_makes_sense() {
    let spec = json!({"completions": 5, "completionMode": "Indexed", "backoffLimitPerIndex": 1});
    let status = json!({
        "active": -3, "failed": 2, "completedIndexes": "0,x,3-9", "failedIndexes": "1",
        "uncountedTerminatedPods": {"failed": ["a"]},
        "conditions": [{"type": "Failed", "status": "True"}],
    });
    let status = view(spec, status).unwrap().status;
    assert_eq!((status.active, status.failed), (0, 2));
    assert_eq!(status.completed_indexes.to_string(), "0,3,4");
    assert_eq!(status.failed_indexes.as_ref().map(ToString::to_string).as_deref(), Some("1"));
    assert_eq!(status.uncounted_failed, ["a"]);
    assert!(status.is_finished());
}

#[test]
fn a_scaled_down_job_keeps_the_part_of_its_success_policy_that_is_left() {
    let spec = json!({"completions": 3, "completionMode": "Indexed",
                      "successPolicy": {"rules": [{"succeededIndexes": "1-9"}]}});
    let job = view(spec, Value::Null).unwrap();
    let Completion::Indexed(indexed) = job.completion else { panic!("{:?}", job.completion) };
    let rule = &indexed.success_policy.unwrap().rules[0];
    assert_eq!(rule.indexes.as_ref().map(ToString::to_string).as_deref(), Some("1,2"));
}

#[test]
fn another_controllers_name_is_kept() {
    let of = |name: &str| view(json!({"managedBy": name}), Value::Null).unwrap().managed_by;
    assert_eq!(of("kubernetes.io/job-controller"), ManagedBy::BuiltIn);
    assert_eq!(of("example.com/x"), ManagedBy::External("example.com/x".to_owned()));
}
