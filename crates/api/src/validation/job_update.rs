//! What is wrong with a change to a Job (job-semantics section 3, "Updates").

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{Affinity, Container, PodSpec, PodTemplateSpec};
use serde_json::Value;

use super::IMMUTABLE;
use super::job::{self, LabelPrefix, is_indexed};
use super::object_meta::validate_object_meta_update;
use crate::closed_set::JobConditionType;
use crate::condition;
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::names::label;
use crate::semantic_equality::{json, semantically_equal};

/// Validates a changed Job, prepared for the update, against the stored one.
pub fn validate_job_update(new: &Job, old: &Job) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let no_spec = JobSpec::default();
    let old_spec = old.spec.as_ref().unwrap_or(&no_spec);
    let new_spec = new.spec.as_ref().unwrap_or(&no_spec);
    job::validate(new, label_prefix(old_spec), &mut errors);
    validate_object_meta_update(
        &new.metadata,
        &old.metadata,
        &Path::field("metadata"),
        &mut errors,
    );
    let path = Path::field("spec");
    validate_completions(new_spec, old_spec, &path, &mut errors);
    let mut immutable = |here: &Path<'_>, new: Value, old: Value| {
        if !semantically_equal(&new, &old) {
            errors.push(FieldError::invalid(here, new, IMMUTABLE));
        }
    };
    immutable(&path.child("selector"), json(&new_spec.selector), json(&old_spec.selector));
    validate_template(new_spec, old, old_spec, &path.child("template"), &mut immutable);
    for (name, new, old) in [
        ("completionMode", json(&new_spec.completion_mode), json(&old_spec.completion_mode)),
        (
            "podFailurePolicy",
            json(&new_spec.pod_failure_policy),
            json(&old_spec.pod_failure_policy),
        ),
        (
            "backoffLimitPerIndex",
            json(new_spec.backoff_limit_per_index),
            json(old_spec.backoff_limit_per_index),
        ),
        ("managedBy", json(&new_spec.managed_by), json(&old_spec.managed_by)),
        ("successPolicy", json(&new_spec.success_policy), json(&old_spec.success_policy)),
    ] {
        immutable(&path.child(name), new, old);
    }
    errors
}

fn label_prefix(old: &JobSpec) -> LabelPrefix {
    let labels = old.template.metadata.as_ref().and_then(|meta| meta.labels.as_ref());
    let had = |key: &str| labels.is_some_and(|labels| labels.contains_key(key));
    if had(label::JOB_NAME) && had(label::CONTROLLER_UID) {
        LabelPrefix::Required
    } else {
        LabelPrefix::Optional
    }
}

/// Completions may change only for an elastic Indexed Job, together with parallelism.
fn validate_completions(
    new: &JobSpec,
    old: &JobSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if new.completions == old.completions {
        return;
    }
    let here = path.child("completions");
    if !is_indexed(new) {
        errors.push(FieldError::invalid(&here, new.completions, IMMUTABLE));
    } else if new.completions.is_some() && new.completions != new.parallelism {
        let detail = "can only be modified in tandem with spec.parallelism";
        errors.push(FieldError::invalid(&here, new.completions, detail));
    }
}

/// The template never changes, except for scheduling directives and resources while
/// the Job is suspended and has no Pods.
fn validate_template(
    new_spec: &JobSpec,
    old: &Job,
    old_spec: &JobSpec,
    path: &Path<'_>,
    immutable: &mut impl FnMut(&Path<'_>, Value, Value),
) {
    let new = &new_spec.template;
    if !template_is_mutable(old, old_spec) {
        immutable(path, json(new), json(&old_spec.template));
        return;
    }
    let mut allowed = old_spec.template.clone();
    take_scheduling_directives(&mut allowed, new);
    take_resources(&mut allowed, new);
    immutable(&path.child("spec"), json(&new.spec), json(&allowed.spec));
}

/// Suspended, not started or seen to be suspended, and nothing active.
fn template_is_mutable(old: &Job, old_spec: &JobSpec) -> bool {
    let status = old.status.as_ref();
    let not_started = status.is_none_or(|status| status.start_time.is_none());
    let seen_suspended = condition::is_true(condition::of(status), JobConditionType::Suspended);
    let active = status.and_then(|status| status.active).unwrap_or(0);
    old_spec.suspend == Some(true) && (not_started || seen_suspended) && active == 0
}

fn take_scheduling_directives(allowed: &mut PodTemplateSpec, new: &PodTemplateSpec) {
    let no_spec = PodSpec::default();
    let from = new.spec.as_ref().unwrap_or(&no_spec);
    let to = allowed.spec.get_or_insert_default();
    take_node_affinity(&mut to.affinity, from.affinity.as_ref());
    to.node_selector.clone_from(&from.node_selector);
    to.tolerations.clone_from(&from.tolerations);
    to.scheduling_gates.clone_from(&from.scheduling_gates);
}

fn take_node_affinity(to: &mut Option<Affinity>, from: Option<&Affinity>) {
    match (to.as_mut(), from) {
        (Some(affinity), Some(from)) => affinity.node_affinity.clone_from(&from.node_affinity),
        (None, Some(from)) => {
            let node_affinity = from.node_affinity.clone();
            *to = Some(Affinity { node_affinity, ..Affinity::default() });
        }
        (Some(affinity), None) => {
            affinity.node_affinity = None;
            if *affinity == Affinity::default() {
                *to = None;
            }
        }
        (None, None) => {}
    }
}

fn take_resources(allowed: &mut PodTemplateSpec, new: &PodTemplateSpec) {
    let (Some(to), Some(from)) = (&mut allowed.spec, &new.spec) else {
        return;
    };
    take_container_resources(&mut to.containers, &from.containers);
    if let (Some(to), Some(from)) = (&mut to.init_containers, &from.init_containers) {
        take_container_resources(to, from);
    }
}

fn take_container_resources(to: &mut [Container], from: &[Container]) {
    if to.len() != from.len() {
        return;
    }
    for (to, from) in to.iter_mut().zip(from).filter(|(to, from)| to.name == from.name) {
        to.resources.clone_from(&from.resources);
    }
}
