//! What is wrong with a binding of a Pod to a node.

use k8s_openapi::api::core::v1::Binding;

use super::text;
use crate::field_error::FieldError;
use crate::field_path::Path;

/// Validates a binding. Whether the Pod can be bound, [`crate::binding::bind`] says.
pub fn validate_binding(binding: &Binding) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let target = Path::field("target");
    let kind = text(&binding.target.kind);
    if !kind.is_empty() && kind != "Node" {
        let supported = ["Node", "<empty>"];
        errors.push(FieldError::not_supported(&target.child("kind"), kind, &supported));
    }
    if text(&binding.target.name).is_empty() {
        errors.push(FieldError::required(&target.child("name"), ""));
    }
    errors
}
