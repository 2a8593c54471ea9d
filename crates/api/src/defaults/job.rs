//! What the API server fills in in a Job (job-semantics section 2).

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::pod_template::default_pod_template;
use crate::closed_set::{CompletionMode, ConditionStatus, PodReplacementPolicy};
use crate::feature_gates::{FeatureGates, Gate};
use crate::names::label;
use crate::view::{DEFAULT_BACKOFF_LIMIT, UNLIMITED_BACKOFF};

/// Fills in every default of a Job and of its Pod template. Doing it twice changes
/// nothing more.
pub fn default_job(job: &mut Job, gates: &FeatureGates) {
    let spec = job.spec.get_or_insert_default();
    default_counts(spec);
    spec.completion_mode.get_or_insert_with(|| CompletionMode::NonIndexed.to_string());
    spec.suspend.get_or_insert(false);
    spec.manual_selector.get_or_insert(false);
    default_failure_patterns(spec);
    if gates.enabled(Gate::JobPodReplacementPolicy) {
        default_replacement(spec);
    }
    default_pod_template(&mut spec.template);
    default_labels(job);
}

/// Gives a Job without labels those of its template.
pub fn default_labels(job: &mut Job) {
    let template = job.spec.as_ref().and_then(|spec| spec.template.metadata.as_ref());
    let Some(labels) = template.and_then(|meta| meta.labels.as_ref()) else {
        return;
    };
    if job.metadata.labels.as_ref().is_none_or(BTreeMap::is_empty) {
        job.metadata.labels = Some(labels.clone());
    }
}

/// Writes the selector and the labels that make a Job's Pods its own, from its name
/// and uid, unless the user manages the selector. What the user wrote stays; where it
/// conflicts, validation says so.
pub fn generate_selector(job: &mut Job) {
    let name = job.metadata.name.clone().unwrap_or_default();
    let uid = job.metadata.uid.clone().unwrap_or_default();
    let spec = job.spec.get_or_insert_default();
    if spec.manual_selector == Some(true) {
        return;
    }
    let labels = spec.template.metadata.get_or_insert_default().labels.get_or_insert_default();
    for (key, value) in [
        (label::LEGACY_JOB_NAME, &name),
        (label::JOB_NAME, &name),
        (label::LEGACY_CONTROLLER_UID, &uid),
        (label::CONTROLLER_UID, &uid),
    ] {
        labels.entry(key.to_owned()).or_insert_with(|| value.clone());
    }
    let selector: &mut LabelSelector = spec.selector.get_or_insert_default();
    let match_labels = selector.match_labels.get_or_insert_default();
    match_labels.entry(label::CONTROLLER_UID.to_owned()).or_insert(uid);
}

fn default_counts(spec: &mut JobSpec) {
    if spec.completions.is_none() && spec.parallelism.is_none() {
        spec.completions = Some(1);
    }
    spec.parallelism.get_or_insert(1);
    let backoff_limit = match spec.backoff_limit_per_index {
        Some(_) => UNLIMITED_BACKOFF,
        None => DEFAULT_BACKOFF_LIMIT,
    };
    spec.backoff_limit.get_or_insert(backoff_limit as i32);
}

fn default_replacement(spec: &mut JobSpec) {
    let policy = match spec.pod_failure_policy {
        Some(_) => PodReplacementPolicy::Failed,
        None => PodReplacementPolicy::TerminatingOrFailed,
    };
    spec.pod_replacement_policy.get_or_insert_with(|| policy.to_string());
}

fn default_failure_patterns(spec: &mut JobSpec) {
    let rules = spec.pod_failure_policy.iter_mut().flat_map(|policy| &mut policy.rules);
    for pattern in rules.flat_map(|rule| rule.on_pod_conditions.iter_mut().flatten()) {
        if pattern.status.as_deref().unwrap_or("").is_empty() {
            pattern.status = Some(ConditionStatus::True.to_string());
        }
    }
}
