//! A label selector: whether it is well formed, and which labels it matches.
//!
//! It does not know whose labels they are.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use super::object_meta::validate_labels;
use super::{items, push_invalid};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;

/// Validates a selector.
pub fn validate_label_selector(
    selector: &LabelSelector,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    validate_labels(selector.match_labels.as_ref(), &path.child("matchLabels"), errors);
    let expressions = path.child("matchExpressions");
    for (i, requirement) in items(&selector.match_expressions).iter().enumerate() {
        validate_requirement(requirement, &expressions.index(i), errors);
    }
}

/// Whether the selector matches these labels. An empty selector matches
/// everything; an operator nobody knows matches nothing.
pub fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let equal = selector.match_labels.iter().flatten();
    equal.into_iter().all(|(key, value)| labels.get(key) == Some(value))
        && items(&selector.match_expressions)
            .iter()
            .all(|requirement| requirement_matches(requirement, labels))
}

fn validate_requirement(
    requirement: &LabelSelectorRequirement,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let values = items(&requirement.values);
    let values_path = path.child("values");
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
            &values_path,
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
            &values_path,
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => errors.push(FieldError::invalid(
            &path.child("operator"),
            other,
            "not a valid selector operator",
        )),
    }
    let key = &requirement.key;
    let wrong = identifier::qualified_name(key);
    push_invalid(&path.child("key"), key, wrong, errors);
    for (i, value) in values.iter().enumerate() {
        push_invalid(&values_path.index(i), value, identifier::label_value(value), errors);
    }
}

fn requirement_matches(
    requirement: &LabelSelectorRequirement,
    labels: &BTreeMap<String, String>,
) -> bool {
    let label = labels.get(&requirement.key);
    let listed = label.is_some_and(|value| items(&requirement.values).contains(value));
    match requirement.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => label.is_some(),
        "DoesNotExist" => label.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn selector(value: Value) -> LabelSelector {
        serde_json::from_value(value).expect("a LabelSelector")
    }

    #[test]
    fn a_selector_matches_as_kubernetes_says() {
        let labels: BTreeMap<String, String> =
            serde_json::from_value(json!({"app": "web", "tier": "1"})).expect("labels");
        let one = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        let rows = [
            (json!({}), true),
            (json!({"matchLabels": {"app": "web"}}), true),
            (json!({"matchLabels": {"app": "web", "tier": "2"}}), false),
            (json!({"matchLabels": {"none": ""}}), false),
            (one("app", "In", &["web", "db"]), true),
            (one("app", "In", &["db"]), false),
            (one("none", "In", &["db"]), false),
            (one("app", "NotIn", &["web"]), false),
            (one("none", "NotIn", &["web"]), true),
            (one("app", "Exists", &[]), true),
            (one("none", "Exists", &[]), false),
            (one("app", "DoesNotExist", &[]), false),
            (one("none", "DoesNotExist", &[]), true),
            (one("app", "Near", &[]), false),
        ];
        for (value, expected) in rows {
            assert_eq!(matches(&selector(value.clone()), &labels), expected, "{value}");
        }
    }

    #[test]
    fn a_requirement_has_values_where_its_operator_takes_them() {
        let value = json!({"matchExpressions": [
            {"key": "a", "operator": "In"},
            {"key": "a", "operator": "Exists", "values": ["x"]},
            {"key": "a", "operator": "Near", "values": ["x", "ok"]},
            {"key": "a", "operator": "In", "values": ["ok", "-"]},
        ]});
        let mut errors = Vec::new();
        validate_label_selector(&selector(value), &Path::field("selector"), &mut errors);
        let errors: Vec<String> = errors.iter().map(FieldError::to_string).collect();
        assert_eq!(
            errors[..3],
            [
                "selector.matchExpressions[0].values: Required value: must be specified when \
                 `operator` is 'In' or 'NotIn'",
                "selector.matchExpressions[1].values: Forbidden: may not be specified when \
                 `operator` is 'Exists' or 'DoesNotExist'",
                "selector.matchExpressions[2].operator: Invalid value: \"Near\": not a valid \
                 selector operator",
            ]
        );
        assert!(errors[3].starts_with("selector.matchExpressions[3].values[1]: Invalid value"));
        assert_eq!(errors.len(), 4);
    }
}
