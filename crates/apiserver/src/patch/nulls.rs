//! Nulls of a patch that lands where nothing was: there is nothing to delete.
//!
//! It must not know which kind of patch it is.

use serde_json::Value;

/// Drops every field that is null, at any depth, also within lists. RFC 7386 would keep
/// those within lists; kube-apiserver does not. Items of lists that are null stay.
pub(super) fn prune(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(prune);
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
