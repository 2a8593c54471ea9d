//! Whole tables: what stands around the rows.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use stint_apiserver::table::{self, Column, kind, partial_object_metadata};

const NOW: &str = "2026-05-01T12:00:00Z";

fn pod(phase: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"a": "1"}, "creationTimestamp": NOW},
        "spec": {"containers": [{"name": "c"}]},
        "status": {"phase": phase},
    })
}

fn row(object: &Value, shown: Value) -> Value {
    let now: Timestamp = NOW.parse().expect("a time");
    let printed = kind::of("v1", "Pod").expect("Pods have a table").print(object, now);
    let printed = printed.expect("a Pod");
    table::row(printed.cells, printed.conditions, shown)
}

#[test]
fn a_table_has_the_metadata_of_its_list() {
    let metadata = ListMeta {
        continue_: Some("next".to_owned()),
        remaining_item_count: Some(3),
        resource_version: Some("70".to_owned()),
        ..ListMeta::default()
    };
    const COLUMN: Column = Column { description: "d", ..table::NAME };
    assert_eq!(
        table::table(
            Some(&[COLUMN]),
            &metadata,
            vec![table::row(vec![json!("p")], &[], json!(null))]
        ),
        json!({
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": {"continue": "next", "remainingItemCount": 3, "resourceVersion": "70"},
            "columnDefinitions": [
                {"name": "Name", "type": "string", "format": "name", "description": "d", "priority": 0},
            ],
            "rows": [{"cells": ["p"], "object": null}],
        })
    );
}

#[test]
fn a_later_table_of_a_watch_has_no_columns() {
    let table = table::table(None, &ListMeta::default(), Vec::new());
    assert_eq!(table["columnDefinitions"], Value::Null);
    assert_eq!(table["metadata"], json!({}));
    assert_eq!(table["rows"], json!([]));
}

#[test]
fn a_row_takes_any_part_of_its_object_along() {
    let pod = pod("Running");
    assert_eq!(
        row(&pod, partial_object_metadata(&pod))["object"],
        json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": {"name": "p", "labels": {"a": "1"}, "creationTimestamp": NOW},
        })
    );
    assert_eq!(row(&pod, pod.clone())["object"], pod);
    assert_eq!(row(&pod, json!(null)).get("object"), Some(&Value::Null));
}

#[test]
fn only_a_finished_pod_has_a_condition() {
    let condition = |reason: &str, message: &str| json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]);
    let conditions = |phase: &str| row(&pod(phase), json!(null)).get("conditions").cloned();
    assert_eq!(conditions("Running"), None);
    assert_eq!(
        conditions("Succeeded"),
        Some(condition("Succeeded", "The pod has completed successfully."))
    );
    assert_eq!(conditions("Failed"), Some(condition("Failed", "The pod failed.")));
}

#[test]
fn a_kind_without_a_table_has_none() {
    assert!(kind::of("batch/v1", "CronJob").is_none());
    assert!(kind::of("v1", "Job").is_none());
}

#[test]
fn an_object_of_another_shape_is_refused() {
    let now: Timestamp = NOW.parse().expect("a time");
    let pods = kind::of("v1", "Pod").expect("Pods have a table");
    assert!(pods.print(&json!({"apiVersion": "v1", "kind": "Pod", "spec": 1}), now).is_err());
}
