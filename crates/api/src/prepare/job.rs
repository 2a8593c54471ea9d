//! What becomes of a Job between a request and validation: its defaults are set, what
//! a client may not write is reset, what a feature gate has turned off is dropped.

use k8s_openapi::api::batch::v1::{Job, JobSpec};

use super::{drop_disabled_pod_fields, reset_server_fields};
use crate::closed_set::PodFailurePolicyAction;
use crate::defaults::job::{default_job, default_labels, generate_selector};
use crate::feature_gates::{FeatureGates, Gate};
use crate::semantic_equality::{json, semantically_equal};

/// Prepares a new Job, which has its name and uid already: defaults set, no status,
/// generation 1, selector and labels generated, fields of disabled features dropped.
///
/// A Job without labels of its own gets those of its template, the generated ones
/// included. Where the template has only generated ones, that happens when the valid
/// Job is defaulted once more on its way into the store, so that a bad label is not
/// reported twice.
pub fn prepare_for_create(job: &mut Job, gates: &FeatureGates) {
    let had_labels = job.metadata.labels.as_ref().is_some_and(|labels| !labels.is_empty());
    default_job(job, gates);
    let has_template_labels = job.metadata.labels.as_ref().is_some_and(|labels| !labels.is_empty());
    generate_selector(job);
    if !had_labels && has_template_labels {
        job.metadata.labels = None;
        default_labels(job);
    }
    job.status = None;
    job.metadata.generation = Some(1);
    reset_server_fields(&mut job.metadata);
    drop_disabled_fields(job.spec.get_or_insert_default(), gates);
}

/// Prepares an update of the spec: defaults are set, the status stays, and the generation
/// grows with any change. A field of a disabled feature may be kept, but not added.
pub fn prepare_for_update(new: &mut Job, old: &Job, gates: &FeatureGates) {
    default_job(new, gates);
    new.status.clone_from(&old.status);
    let none = JobSpec::default();
    let old_spec = old.spec.as_ref().unwrap_or(&none);
    let new_spec = new.spec.get_or_insert_default();
    if !gates.enabled(Gate::JobSuccessPolicy) && old_spec.success_policy.is_none() {
        new_spec.success_policy = None;
    }
    // FailIndex rules stay whatever the gate says: the Pod failure policy is immutable.
    if !gates.enabled(Gate::JobBackoffLimitPerIndex) {
        if old_spec.backoff_limit_per_index.is_none() {
            new_spec.backoff_limit_per_index = None;
        }
        if old_spec.max_failed_indexes.is_none() {
            new_spec.max_failed_indexes = None;
        }
    }
    if !gates.enabled(Gate::JobPodReplacementPolicy) && old_spec.pod_replacement_policy.is_none() {
        new_spec.pod_replacement_policy = None;
    }
    if let Some(pod) = &mut new_spec.template.spec {
        drop_disabled_pod_fields(pod);
    }
    let old_generation = old.metadata.generation;
    let is_unchanged = semantically_equal(&json(new_spec), &json(old_spec));
    new.metadata.generation = if is_unchanged {
        old_generation
    } else {
        Some(old_generation.unwrap_or(0).saturating_add(1))
    };
}

/// Prepares an update of the status: the spec and everything that grows with it stays.
pub fn prepare_for_status_update(new: &mut Job, old: &Job) {
    new.spec.clone_from(&old.spec);
    new.metadata.generation = old.metadata.generation;
}

/// Drops what the feature gates have turned off, as happens to a new Job.
pub fn drop_disabled_fields(spec: &mut JobSpec, gates: &FeatureGates) {
    if !gates.enabled(Gate::JobManagedBy) {
        spec.managed_by = None;
    }
    if !gates.enabled(Gate::JobSuccessPolicy) {
        spec.success_policy = None;
    }
    if !gates.enabled(Gate::JobBackoffLimitPerIndex) {
        spec.backoff_limit_per_index = None;
        spec.max_failed_indexes = None;
        if let Some(policy) = &mut spec.pod_failure_policy {
            let fail_index = PodFailurePolicyAction::FailIndex.as_str();
            policy.rules.retain(|rule| rule.action != fail_index);
        }
    }
    if !gates.enabled(Gate::JobPodReplacementPolicy) {
        spec.pod_replacement_policy = None;
    }
    if let Some(pod) = &mut spec.template.spec {
        drop_disabled_pod_fields(pod);
    }
}
