//! What is wrong with a Pod, when it is created and when it is changed.
//!
//! Its spec is judged as that of a template is, and by a few rules more. Errors are those
//! of kube-apiserver, each said once: of an update it repeats some up to four times.

mod claim_status;
mod container_status;
mod gated;
mod status;
mod update;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};

pub use status::validate_pod_status_update;
pub use update::validate_pod_update;

use super::object_meta::validate_object_meta;
use super::pod_spec::{annotation, validate_pod_spec};
use super::{items, text};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::names::annotation::{APP_ARMOR_PREFIX, MIRROR};

type Annotations = BTreeMap<String, String>;

/// Validates a new Pod, prepared for its creation.
pub fn validate_pod_create(pod: &Pod) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let no_spec = PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&no_spec);
    validate_metadata_and_spec(pod, spec, &mut errors);
    let path = Path::field("spec");
    if !items(&spec.ephemeral_containers).is_empty() {
        let at = path.child("ephemeralContainers");
        errors.push(FieldError::forbidden(&at, "cannot be set on create"));
    }
    if !text(&spec.node_name).is_empty() && !items(&spec.scheduling_gates).is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(&path.child("nodeName"), detail));
    }
    if let Some(annotations) = &pod.metadata.annotations {
        annotation::validate_profiles_match(annotations, spec, &path, &mut errors);
    }
    errors
}

/// What holds for a Pod at any time.
fn validate_metadata_and_spec(pod: &Pod, spec: &PodSpec, errors: &mut Vec<FieldError>) {
    let (metadata, path) = (Path::field("metadata"), Path::field("spec"));
    validate_object_meta(&pod.metadata, &metadata, errors);
    if let Some(annotations) = &pod.metadata.annotations {
        let at = metadata.child("annotations");
        annotation::validate_pod_annotations(annotations, spec, &at, errors);
    }
    validate_pod_spec(spec, Some(&pod.metadata), &path, errors);
    if text(&spec.service_account_name).is_empty() {
        forbid_tokens(spec, &path, errors);
    }
    validate_images(&spec.containers, &path.child("containers"), errors);
    validate_images(items(&spec.init_containers), &path.child("initContainers"), errors);
}

/// Without a service account there is nobody to have a token of.
fn forbid_tokens(spec: &PodSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let volumes_path = path.child("volumes");
    for (i, volume) in items(&spec.volumes).iter().enumerate() {
        let volume_path = volumes_path.index(i);
        let projected_path = volume_path.child("projected");
        let sources_path = projected_path.child("sources");
        let sources = volume.projected.iter().flat_map(|projected| items(&projected.sources));
        for (j, source) in sources.enumerate() {
            if source.service_account_token.is_some() {
                let here = sources_path.index(j);
                let detail = "must not be specified when serviceAccountName is not set";
                errors.push(FieldError::forbidden(&here.child("serviceAccountToken"), detail));
            }
        }
    }
}

fn validate_images(containers: &[Container], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (i, container) in containers.iter().enumerate() {
        let image = text(&container.image);
        if image.trim() != image {
            let detail = "must not have leading or trailing whitespace";
            errors.push(FieldError::invalid(&path.index(i).child("image"), image, detail));
        }
    }
}

/// Annotations that a Pod keeps as they were, and those that mean something.
fn validate_annotations_update(new: &Pod, old: &Pod, spec: &PodSpec, errors: &mut Vec<FieldError>) {
    let none = Annotations::new();
    let metadata = Path::field("metadata");
    let path = metadata.child("annotations");
    let new = new.metadata.annotations.as_ref().unwrap_or(&none);
    let old = old.metadata.annotations.as_ref().unwrap_or(&none);
    let mut forbid = |key: &str, verb: &str| {
        let at = path.key(key);
        if key.starts_with(APP_ARMOR_PREFIX) {
            errors.push(FieldError::forbidden(&at, format!("may not {verb} AppArmor annotations")));
        }
        if key == MIRROR {
            errors
                .push(FieldError::forbidden(&at, format!("may not {verb} mirror pod annotation")));
        }
    };
    for (key, _) in old.iter().filter(|(key, value)| new.get(*key) != Some(value)) {
        forbid(key, "remove or update");
    }
    for key in new.keys().filter(|key| !old.contains_key(*key)) {
        forbid(key, "add");
    }
    annotation::validate_pod_annotations(new, spec, &path, errors);
}

/// Each error once, where it was said first.
fn without_repetitions(mut errors: Vec<FieldError>) -> Vec<FieldError> {
    let mut seen = BTreeSet::new();
    errors.retain(|error| seen.insert(error.to_string()));
    errors
}
