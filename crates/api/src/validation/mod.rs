//! What is wrong with an object: every error at once, each with its path.
//!
//! A validator takes a piece of an object, the path it stands at and the list
//! of errors so far, and adds to the list in the order the API server would.
//! It sees fields after defaulting, knows the one object it is given, and
//! neither repairs nor refuses anything itself.

pub mod binding;
pub mod job;
pub mod job_status;
pub mod job_update;
pub mod label_selector;
pub mod object_meta;
pub mod pod;
pub(crate) mod pod_failure_policy;
pub(crate) mod pod_spec;
pub mod pod_template;
mod success_policy;

use crate::field_error::FieldError;
use crate::field_path::Path;

/// What every number that counts something is told when it is below zero.
pub(crate) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// What every field is told that an update may not change.
pub(crate) const IMMUTABLE: &str = "field is immutable";

/// From how many errors on those of single texts are not looked for any more. Whoever tells them
/// names a thousand; a body can hold some hundred thousand texts, each with several errors that are
/// longer than it is.
pub(crate) const MAX_ERRORS: usize = 10_000;

/// Says of one value each thing that is wrong with it.
pub(crate) fn push_invalid(
    path: &Path<'_>,
    value: &str,
    wrong: Vec<String>,
    errors: &mut Vec<FieldError>,
) {
    if errors.len() >= MAX_ERRORS {
        return;
    }
    for detail in wrong {
        errors.push(FieldError::invalid(path, value, detail));
    }
}

/// A number that must not be below zero.
pub(crate) fn validate_non_negative(value: i64, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if value < 0 {
        errors.push(FieldError::invalid(path, value, NOT_NEGATIVE));
    }
}

/// The text of a field that Go models as a plain string: absent is empty.
pub(crate) fn text(field: &Option<String>) -> &str {
    field.as_deref().unwrap_or("")
}

/// The items of a field that Go models as a plain list: absent is empty.
pub(crate) fn items<T>(field: &Option<Vec<T>>) -> &[T] {
    field.as_deref().unwrap_or(&[])
}

/// A required field with a closed set of values.
pub(crate) fn validate_one_of(
    value: &str,
    supported: &[&str],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else {
        validate_one_of_or_empty(value, supported, path, errors);
    }
}

/// A closed set of values where the empty text is reported like any other stranger.
fn validate_one_of_or_empty(
    value: &str,
    supported: &[&str],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if !supported.contains(&value) {
        errors.push(FieldError::not_supported(path, value, supported));
    }
}

/// A text that must not be empty.
pub(crate) fn validate_given(value: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
}
