//! What is wrong with a change to a Pod. Hardly anything of its spec may change.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, Pod, PodSchedulingGate, PodSpec, Toleration};

use super::super::object_meta::validate_object_meta_update;
use super::super::pod_spec::toleration::validate_tolerations;
use super::{
    gated, items, text, validate_annotations_update, validate_metadata_and_spec,
    without_repetitions,
};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;
use crate::semantic_equality::{differences, json, semantically_equal};

/// What upstream says may be changed.
const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,\
    `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
/// So many changed fields are named; a change of more is another Pod.
const FIELDS_NAMED_MAX: usize = 10;

/// Validates a changed Pod, prepared for the update, against the stored one. Where
/// upstream shows a diff of its own types, the fields are named that may not change.
pub fn validate_pod_update(new: &Pod, old: &Pod) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let none = PodSpec::default();
    let new_spec = new.spec.as_ref().unwrap_or(&none);
    let old_spec = old.spec.as_ref().unwrap_or(&none);
    let metadata = Path::field("metadata");
    validate_object_meta_update(&new.metadata, &old.metadata, &metadata, &mut errors);
    validate_metadata_and_spec(new, new_spec, &mut errors);
    validate_annotations_update(new, old, new_spec, &mut errors);
    validate_spec(new_spec, old_spec, &Path::field("spec"), &mut errors);
    without_repetitions(errors)
}

fn validate_spec(new: &PodSpec, old: &PodSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let lists = [
        ("containers", new.containers.as_slice(), old.containers.as_slice()),
        ("initContainers", items(&new.init_containers), items(&old.init_containers)),
    ];
    for (field, new, old) in lists {
        if !validate_containers(new, old, &path.child(field), errors) {
            return;
        }
    }
    let (new_deadline, old_deadline) = (new.active_deadline_seconds, old.active_deadline_seconds);
    let at = path.child("activeDeadlineSeconds");
    if !validate_deadline(new_deadline, old_deadline, &at, errors) {
        return;
    }
    let at = path.child("tolerations");
    validate_kept_tolerations(items(&new.tolerations), items(&old.tolerations), &at, errors);
    let (new_gates, old_gates) = (items(&new.scheduling_gates), items(&old.scheduling_gates));
    validate_no_new_gates(new_gates, old_gates, &path.child("schedulingGates"), errors);
    if new == old {
        return;
    }
    let mut changed = with_updatable_fields_of(old, new.clone());
    if !old_gates.is_empty() {
        gated::validate_and_take_back(&mut changed, old, path, errors);
    }
    let (changed, old) = (json(&changed), json(old));
    if !semantically_equal(&changed, &old) {
        let fields = differences(&changed, &old, path.to_field_path(), FIELDS_NAMED_MAX);
        let fields: Vec<String> = fields.iter().map(ToString::to_string).collect();
        let detail = format!(
            "pod updates may not change fields other than {UPDATABLE}\nchanged: {}",
            fields.join(", ")
        );
        errors.push(FieldError::forbidden(path, detail));
    }
}

/// Whether the lists are alike enough for the rest to be judged.
fn validate_containers(
    new: &[Container],
    old: &[Container],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) -> bool {
    if new.len() != old.len() {
        let detail = "pod updates may not add or remove containers";
        errors.push(FieldError::forbidden(path, detail));
    }
    new.len() == old.len()
}

/// A deadline may be set and brought forward. Whether the rest is to be judged.
fn validate_deadline(
    new: Option<i64>,
    old: Option<i64>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) -> bool {
    let before = errors.len();
    match (new, old) {
        (Some(new), old) => {
            for detail in identifier::in_range(new, 0, i32::MAX.into()) {
                errors.push(FieldError::invalid(path, new, detail));
            }
            if errors.len() == before && old.is_some_and(|old| old < new) {
                let detail = "must be less than or equal to previous value";
                errors.push(FieldError::invalid(path, new, detail));
            }
            errors.len() == before
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(path, None::<i64>, detail));
            true
        }
        (None, None) => true,
    }
}

/// Tolerations may be added, and of those that are there the seconds may change.
fn validate_kept_tolerations(
    new: &[Toleration],
    old: &[Toleration],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    // All of a toleration but its seconds.
    fn taint(toleration: &Toleration) -> [&str; 4] {
        let Toleration { key, operator, value, effect, toleration_seconds: _ } = toleration;
        [text(key), text(operator), text(value), text(effect)]
    }
    let kept: BTreeSet<_> = new.iter().map(taint).collect();
    if old.iter().all(|old| kept.contains(&taint(old))) {
        validate_tolerations(new, path, errors);
    } else {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden(path, detail));
    }
}

fn validate_no_new_gates(
    new: &[PodSchedulingGate],
    old: &[PodSchedulingGate],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let mut added: BTreeMap<&str, usize> =
        new.iter().enumerate().map(|(i, gate)| (gate.name.as_str(), i)).collect();
    for gate in old {
        added.remove(gate.name.as_str());
    }
    for (gate, i) in added {
        let detail = format!("only deletion is allowed, but found new scheduling gate '{gate}'");
        errors.push(FieldError::forbidden(&path.index(i).child("name"), detail));
    }
}

/// A spec with the fields of `old` that may be updated, so that only others can differ.
fn with_updatable_fields_of(old: &PodSpec, mut spec: PodSpec) -> PodSpec {
    let pairs =
        spec.containers.iter_mut().zip(&old.containers).chain(
            spec.init_containers.iter_mut().flatten().zip(old.init_containers.iter().flatten()),
        );
    for (container, old) in pairs {
        container.image.clone_from(&old.image);
    }
    spec.active_deadline_seconds = old.active_deadline_seconds;
    spec.scheduling_gates.clone_from(&old.scheduling_gates);
    spec.tolerations.clone_from(&old.tolerations);
    let was_negative = old.termination_grace_period_seconds.is_some_and(|seconds| seconds < 0);
    if was_negative && spec.termination_grace_period_seconds == Some(1) {
        spec.termination_grace_period_seconds = old.termination_grace_period_seconds;
    }
    spec
}
