//! What is wrong with a Pod template.

use k8s_openapi::api::core::v1::PodTemplateSpec;

use super::object_meta::{validate_annotations, validate_labels};
use crate::field_error::FieldError;
use crate::field_path::Path;

/// Validates a defaulted Pod template, in upstream's order of errors.
pub fn validate_pod_template(
    template: &PodTemplateSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let metadata = path.child("metadata");
    let meta = template.metadata.clone().unwrap_or_default();
    validate_labels(meta.labels.as_ref(), &metadata.child("labels"), errors);
    validate_annotations(
        meta.annotations.as_ref(),
        &metadata.child("annotations"),
        errors,
    );
}
