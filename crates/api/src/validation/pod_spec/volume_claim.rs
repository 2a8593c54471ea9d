//! Ephemeral volumes: the claim that is made for the Pod.
//!
//! Which storage there is to claim is not known here.

use k8s_openapi::api::core::v1::{
    EphemeralVolumeSource, PersistentVolumeClaimSpec, TypedLocalObjectReference,
    TypedObjectReference,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;

use super::{items, push_invalid, text};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;
use crate::quantity::Quantity;
use crate::validation::label_selector::validate_label_selector;
use crate::validation::object_meta::{validate_annotations, validate_labels};
use crate::validation::{validate_given, validate_one_of_or_empty};

const ACCESS_MODES: [&str; 4] =
    ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Validates an ephemeral volume.
pub(super) fn validate_ephemeral(
    source: &EphemeralVolumeSource,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let template_path = path.child("volumeClaimTemplate");
    let Some(template) = &source.volume_claim_template else {
        errors.push(FieldError::required(&template_path, ""));
        return;
    };
    if let Some(meta) = &template.metadata {
        validate_template_meta(meta, &template_path.child("metadata"), errors);
    }
    validate_claim_spec(&template.spec, &template_path.child("spec"), errors);
}

/// A claim's template has labels and annotations and nothing else.
fn validate_template_meta(meta: &ObjectMeta, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    validate_annotations(meta.annotations.as_ref(), &path.child("annotations"), errors);
    validate_labels(meta.labels.as_ref(), &path.child("labels"), errors);
    let is_set = |field: &Option<String>| !text(field).is_empty();
    let fields = [
        ("name", is_set(&meta.name)),
        ("generateName", is_set(&meta.generate_name)),
        ("namespace", is_set(&meta.namespace)),
        ("selfLink", is_set(&meta.self_link)),
        ("uID", is_set(&meta.uid)),
        ("resourceVersion", is_set(&meta.resource_version)),
        ("generation", meta.generation.unwrap_or(0) != 0),
        ("creationTimestamp", meta.creation_timestamp.is_some()),
        ("deletionTimestamp", meta.deletion_timestamp.is_some()),
        ("deletionGracePeriodSeconds", meta.deletion_grace_period_seconds.is_some()),
        ("ownerReferences", !items(&meta.owner_references).is_empty()),
        ("finalizers", !items(&meta.finalizers).is_empty()),
        ("managedFields", !items(&meta.managed_fields).is_empty()),
    ];
    for (field, set) in fields {
        if set {
            errors.push(FieldError::forbidden(&path.child(field), "cannot be set"));
        }
    }
}

fn validate_claim_spec(
    spec: &PersistentVolumeClaimSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let modes = items(&spec.access_modes);
    let modes_path = path.child("accessModes");
    if modes.is_empty() {
        let detail = "at least 1 access mode is required";
        errors.push(FieldError::required(&modes_path, detail));
    }
    if let Some(selector) = &spec.selector {
        validate_label_selector(selector, &path.child("selector"), errors);
    }
    for mode in modes {
        validate_one_of_or_empty(mode, &ACCESS_MODES, &modes_path, errors);
    }
    let known = |mode: &&String| ACCESS_MODES.contains(&mode.as_str());
    let mut known_modes = modes.iter().filter(known);
    let has_single_pod = modes.iter().any(|mode| mode == "ReadWriteOncePod");
    if has_single_pod && known_modes.any(|mode| mode != "ReadWriteOncePod") {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(&modes_path, detail));
    }
    validate_storage(spec, &path.child("resources"), errors);
    validate_class(text(&spec.storage_class_name), &path.child("storageClassName"), errors);
    if let Some(mode) = &spec.volume_mode {
        let at = path.child("volumeMode");
        validate_one_of_or_empty(mode, &["Block", "Filesystem"], &at, errors);
    }
    validate_data_sources(spec, path, errors);
    let class = text(&spec.volume_attributes_class_name);
    validate_class(class, &path.child("volumeAttributesClassName"), errors);
}

fn validate_storage(
    spec: &PersistentVolumeClaimSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let at = path.key("storage");
    let resources = spec.resources.as_ref();
    let requests = resources.and_then(|resources| resources.requests.as_ref());
    let Some(storage) = requests.and_then(|requests| requests.get("storage")) else {
        errors.push(FieldError::required(&at, ""));
        return;
    };
    match storage.0.trim().parse::<Quantity>() {
        Ok(amount) if amount.is_negative() || amount.is_zero() => {
            let detail = "must be greater than zero";
            errors.push(FieldError::invalid(&at, amount.to_string(), detail));
        }
        Ok(_) => {}
        Err(error) => errors.push(FieldError::invalid(&at, &storage.0, error.to_string())),
    }
}

fn validate_class(name: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !name.is_empty() {
        push_invalid(path, name, identifier::dns1123_subdomain(name), errors);
    }
}

fn validate_data_sources(
    spec: &PersistentVolumeClaimSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if let Some(source) = &spec.data_source {
        let at = path.child("dataSource");
        validate_data_source(&source.name, &source.kind, text(&source.api_group), &at, errors);
    }
    if let Some(source) = &spec.data_source_ref {
        let at = path.child("dataSourceRef");
        validate_data_source(&source.name, &source.kind, text(&source.api_group), &at, errors);
        let namespace = text(&source.namespace);
        if !namespace.is_empty() {
            let wrong = identifier::dns1123_label(namespace);
            push_invalid(&at.child("namespace"), namespace, wrong, errors);
        }
    }
    if let (Some(source), Some(reference)) = (&spec.data_source, &spec.data_source_ref) {
        let detail = if !text(&reference.namespace).is_empty() {
            "may not be specified when dataSourceRef.namespace is specified"
        } else if !is_same_source(source, reference) {
            "must match dataSourceRef"
        } else {
            return;
        };
        // Upstream passes a path for the value, which prints as an empty object.
        errors.push(FieldError::invalid(path, json!({}), detail));
    }
}

fn validate_data_source(
    name: &str,
    kind: &str,
    group: &str,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    validate_given(name, &path.child("name"), errors);
    validate_given(kind, &path.child("kind"), errors);
    if group.is_empty() {
        if kind != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(FieldError::invalid(path, kind, detail));
        }
    } else {
        let wrong = identifier::dns1123_subdomain(group);
        push_invalid(&path.child("apiGroup"), group, wrong, errors);
    }
}

fn is_same_source(source: &TypedLocalObjectReference, other: &TypedObjectReference) -> bool {
    source.api_group == other.api_group && source.kind == other.kind && source.name == other.name
}
