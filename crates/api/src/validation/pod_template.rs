//! What is wrong with a Pod template, in the order the API server says it.
//!
//! It sees the template after defaulting and knows nothing of who owns it.

use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};

use super::items;
use super::object_meta::{validate_annotations, validate_labels};
use super::pod_spec::{annotation, validate_pod_spec};
use crate::field_error::FieldError;
use crate::field_path::Path;

/// Validates a defaulted Pod template, in upstream's order of errors.
///
/// Upstream leaves `metadata` out of the paths of labels and annotations.
pub fn validate_pod_template(
    template: &PodTemplateSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let no_spec = PodSpec::default();
    let spec = template.spec.as_ref().unwrap_or(&no_spec);
    let metadata = template.metadata.as_ref();
    let annotations = metadata.and_then(|meta| meta.annotations.as_ref());
    let labels = metadata.and_then(|meta| meta.labels.as_ref());
    let annotations_path = path.child("annotations");
    let spec_path = path.child("spec");

    validate_labels(labels, &path.child("labels"), errors);
    validate_annotations(annotations, &annotations_path, errors);
    if let Some(annotations) = annotations {
        annotation::validate_pod_annotations(annotations, spec, &annotations_path, errors);
    }
    validate_pod_spec(spec, None, &spec_path, errors);
    if let Some(annotations) = annotations {
        annotation::validate_profiles_match(annotations, spec, &spec_path, errors);
    }
    if !items(&spec.ephemeral_containers).is_empty() {
        let at = spec_path.child("ephemeralContainers");
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(&at, detail));
    }
}
