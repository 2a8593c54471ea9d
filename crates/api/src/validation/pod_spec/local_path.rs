//! Paths inside a volume or a node: relative, and never climbing.
//!
//! Which file system they lead into, this does not know.

use crate::field_error::FieldError;
use crate::field_path::Path;

/// A path that stays below where it starts and does not look like one of the
/// files the kubelet keeps for itself (`..data`).
pub(super) fn validate_local_path(value: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    validate_descending_path(value, path, errors);
    if value.starts_with("..") && !value.starts_with("../") {
        errors.push(FieldError::invalid(path, value, "must not start with '..'"));
    }
}

/// A path that stays below where it starts.
pub(super) fn validate_descending_path(value: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if value.starts_with('/') {
        errors.push(FieldError::invalid(path, value, "must be a relative path"));
    }
    validate_no_backsteps(value, path, errors);
}

/// A path without `..`.
pub(super) fn validate_no_backsteps(value: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if has_backsteps(value) {
        errors.push(FieldError::invalid(path, value, "must not contain '..'"));
    }
}

/// Whether a step of the path is `..`.
pub(super) fn has_backsteps(value: &str) -> bool {
    value.split('/').any(|step| step == "..")
}
