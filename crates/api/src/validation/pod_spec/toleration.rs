//! Which taints a Pod tolerates.
//!
//! Which taints there are is not known here.

use k8s_openapi::api::core::v1::Toleration;

use super::{push_invalid, text};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;
use crate::validation::validate_one_of_or_empty;

/// Validates `tolerations`.
pub(in crate::validation) fn validate_tolerations(
    tolerations: &[Toleration],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    for (i, toleration) in tolerations.iter().enumerate() {
        validate_toleration(toleration, &path.index(i), errors);
    }
}

fn validate_toleration(toleration: &Toleration, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let (key, operator) = (text(&toleration.key), text(&toleration.operator));
    let (value, effect) = (text(&toleration.value), text(&toleration.effect));
    let (operator_path, effect_path) = (path.child("operator"), path.child("effect"));
    if !key.is_empty() {
        push_invalid(&path.child("key"), key, identifier::qualified_name(key), errors);
    } else if operator != "Exists" {
        let detail = "operator must be Exists when `key` is empty, which means \"match all values \
            and all keys\"";
        errors.push(FieldError::invalid(&operator_path, operator, detail));
    }
    if toleration.toleration_seconds.is_some() && effect != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(&effect_path, effect, detail));
    }
    validate_operator(operator, value, &operator_path, errors);
    if !effect.is_empty() {
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        validate_one_of_or_empty(effect, &effects, &effect_path, errors);
    }
}

fn validate_operator(operator: &str, value: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match operator {
        "" | "Equal" => {
            let wrong = identifier::label_value(value);
            if !wrong.is_empty() {
                let error = FieldError::invalid(path, value, wrong.join(";"));
                errors.push(error);
            }
        }
        "Exists" => {
            if !value.is_empty() {
                let detail = "value must be empty when `operator` is 'Exists'";
                errors.push(FieldError::invalid(path, value, detail));
            }
        }
        // The comparisons are behind a feature gate that is off; upstream lists
        // them as supported all the same.
        "Lt" | "Gt" => {
            let supported = ["Equal", "Exists", "Lt", "Gt"];
            errors.push(FieldError::not_supported(path, operator, &supported));
        }
        _ => {
            let supported = ["Equal", "Exists"];
            errors.push(FieldError::not_supported(path, operator, &supported));
        }
    }
}
