//! What is wrong with a Job (job-semantics section 3), in the order in which the API
//! server reports it.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::{Job, JobSpec};

use super::object_meta::validate_object_meta;
use super::pod_failure_policy::validate_pod_failure_policy;
use super::pod_template::validate_pod_template;
use super::success_policy::validate_success_policy;
use super::{label_selector, text, validate_non_negative};
use crate::closed_set::{CompletionMode, JobRestartPolicy, PodReplacementPolicy};
use crate::field_error::{FieldError, quote};
use crate::field_path::Path;
use crate::identifier;
use crate::names::label;

/// The highest parallelism of an Indexed Job; it bounds the gaps in completedIndexes.
const MAX_INDEXED_PARALLELISM: i32 = 100_000;
/// The highest number of failed indexes a Job may allow.
const MAX_FAILED_INDEXES: i32 = 100_000;
/// Above so many completions a Job with backoffLimitPerIndex has tighter limits, so that
/// both lists of indexes fit into one object (KEP-3850, "The Job object too big").
const HIGH_COMPLETIONS: i32 = 100_000;
/// The parallelism allowed above [`HIGH_COMPLETIONS`].
const HIGH_COMPLETIONS_MAX_PARALLELISM: i32 = 10_000;
/// The failed indexes allowed above [`HIGH_COMPLETIONS`].
const HIGH_COMPLETIONS_MAX_FAILED_INDEXES: i32 = 10_000;
/// The longest managedBy, in bytes.
const MAX_MANAGED_BY_BYTES: usize = 63;

// Reasons that `remedy` recognises an error by.
pub(crate) const REQUIRES_INDEXED: &str = "requires indexed completion mode";
pub(crate) const SELECTOR_NOT_GENERATED: &str = "`selector` not auto-generated";
pub(crate) const SELECTOR_DOES_NOT_MATCH: &str = "`selector` does not match template `labels`";
pub(crate) const NO_HOSTNAME: &str = "will not able to create pod with invalid DNS label";

/// Validates a new Job that has its defaults, its selector and its uid.
pub fn validate_job(job: &Job) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate(job, LabelPrefix::Required, &mut errors);
    errors
}

/// Whether the template must have the prefixed labels. Jobs from before those existed
/// can be updated without them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LabelPrefix {
    Required,
    Optional,
}

pub(super) fn validate(job: &Job, label_prefix: LabelPrefix, errors: &mut Vec<FieldError>) {
    let metadata = Path::field("metadata");
    validate_object_meta(&job.metadata, &metadata, errors);
    let no_spec = JobSpec::default();
    let spec = job.spec.as_ref().unwrap_or(&no_spec);
    validate_generated_selector(job, spec, label_prefix, errors);
    let path = Path::field("spec");
    validate_spec(spec, &path, errors);
    validate_selector(spec, &path, errors);
    validate_longest_hostname(text(&job.metadata.name), spec, &metadata.child("name"), errors);
}

fn validate_generated_selector(
    job: &Job,
    spec: &JobSpec,
    label_prefix: LabelPrefix,
    errors: &mut Vec<FieldError>,
) {
    let (false, Some(selector)) = (spec.manual_selector == Some(true), &spec.selector) else {
        return;
    };
    let (name, uid) = (text(&job.metadata.name), text(&job.metadata.uid));
    if uid.is_empty() {
        errors.push(FieldError::required(&Path::field("metadata").child("uid"), ""));
    }
    let mut expected = vec![(label::LEGACY_CONTROLLER_UID, uid), (label::LEGACY_JOB_NAME, name)];
    if label_prefix == LabelPrefix::Required {
        expected.extend([(label::CONTROLLER_UID, uid), (label::JOB_NAME, name)]);
    }
    let no_labels = BTreeMap::new();
    let labels = template_labels(spec).unwrap_or(&no_labels);
    let path = Path::field("spec");
    let path = path.child("template");
    let path = path.child("metadata");
    let path = path.child("labels");
    for (key, value) in &expected {
        let detail = format!("must be '{value}'");
        match labels.get(*key) {
            None => errors.push(FieldError::required(&path.key(key), detail)),
            Some(actual) if actual != value => {
                errors.push(FieldError::invalid(&path.key(key), labels, detail));
            }
            Some(_) => {}
        }
    }
    let generated =
        expected.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    if is_well_formed(selector) && !label_selector::matches(selector, &generated) {
        let path = Path::field("spec");
        let path = path.child("selector");
        errors.push(FieldError::invalid(&path, selector, SELECTOR_NOT_GENERATED));
    }
}

fn validate_spec(spec: &JobSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    validate_counts(spec, path, errors);
    if let Some(managed_by) = &spec.managed_by {
        let here = path.child("managedBy");
        identifier::domain_prefixed_path(managed_by, &here, errors);
        if managed_by.len() > MAX_MANAGED_BY_BYTES {
            errors.push(FieldError::too_long(&here, MAX_MANAGED_BY_BYTES));
        }
    }
    validate_completion_mode(spec, path, errors);
    if spec.pod_failure_policy.is_some() {
        validate_pod_failure_policy(spec, &path.child("podFailurePolicy"), errors);
    }
    if let Some(policy) = &spec.success_policy {
        let here = path.child("successPolicy");
        if is_indexed(spec) {
            validate_success_policy(policy, spec.completions, &here, errors);
        } else {
            errors.push(FieldError::invalid(&here, policy, REQUIRES_INDEXED));
        }
    }
    validate_replacement(spec, &path.child("podReplacementPolicy"), errors);
    let template = path.child("template");
    validate_pod_template(&spec.template, &template, errors);
    validate_restart_policy(spec, &template.child("spec").child("restartPolicy"), errors);
}

fn validate_counts(spec: &JobSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (name, count) in [
        ("parallelism", spec.parallelism.map(i64::from)),
        ("completions", spec.completions.map(i64::from)),
        ("activeDeadlineSeconds", spec.active_deadline_seconds),
        ("backoffLimit", spec.backoff_limit.map(i64::from)),
        ("ttlSecondsAfterFinished", spec.ttl_seconds_after_finished.map(i64::from)),
        ("backoffLimitPerIndex", spec.backoff_limit_per_index.map(i64::from)),
        ("maxFailedIndexes", spec.max_failed_indexes.map(i64::from)),
    ] {
        if let Some(count) = count {
            validate_non_negative(count, &path.child(name), errors);
        }
    }
    if spec.max_failed_indexes.is_some() && spec.backoff_limit_per_index.is_none() {
        let detail = "when maxFailedIndexes is specified";
        errors.push(FieldError::required(&path.child("backoffLimitPerIndex"), detail));
    }
}

fn validate_completion_mode(spec: &JobSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mode = spec.completion_mode.as_deref();
    match mode.map(CompletionMode::parse) {
        Some(Some(CompletionMode::Indexed)) => validate_indexed(spec, path, errors),
        None | Some(Some(CompletionMode::NonIndexed)) => validate_non_indexed(spec, path, errors),
        Some(None) => errors.push(FieldError::not_supported(
            &path.child("completionMode"),
            mode,
            CompletionMode::NAMES,
        )),
    }
}

fn validate_indexed(spec: &JobSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let completions = path.child("completions");
    let parallelism = path.child("parallelism");
    let max_failed = path.child("maxFailedIndexes");
    if spec.completions.is_none() {
        let detail = format!("when completion mode is {}", CompletionMode::Indexed);
        errors.push(FieldError::required(&completions, detail));
    }
    if let Some(count) = spec.parallelism.filter(|&count| count > MAX_INDEXED_PARALLELISM) {
        let detail = format!(
            "must be less than or equal to {MAX_INDEXED_PARALLELISM} when completion mode is {}",
            CompletionMode::Indexed
        );
        errors.push(FieldError::invalid(&parallelism, count, detail));
    }
    if let (Some(max), Some(count)) = (spec.max_failed_indexes, spec.completions)
        && max > count
    {
        let detail = "must be less than or equal to completions";
        errors.push(FieldError::invalid(&max_failed, max, detail));
    }
    if let Some(max) = spec.max_failed_indexes.filter(|&max| max > MAX_FAILED_INDEXES) {
        let detail = format!("must be less than or equal to {MAX_FAILED_INDEXES}");
        errors.push(FieldError::invalid(&max_failed, max, detail));
    }
    if spec.backoff_limit_per_index.is_some()
        && spec.completions.is_some_and(|count| count > HIGH_COMPLETIONS)
    {
        validate_high_completions(spec, &parallelism, &max_failed, errors);
    }
}

fn validate_high_completions(
    spec: &JobSpec,
    parallelism: &Path<'_>,
    max_failed: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let at_most = |limit: i32| {
        format!(
            "must be less than or equal to {limit} when completions are above {HIGH_COMPLETIONS} and used with backoff limit per index"
        )
    };
    if spec.max_failed_indexes.is_none() {
        let detail = format!("must be specified when completions is above {HIGH_COMPLETIONS}");
        errors.push(FieldError::required(max_failed, detail));
    }
    if let Some(count) = spec.parallelism.filter(|&count| count > HIGH_COMPLETIONS_MAX_PARALLELISM)
    {
        let detail = at_most(HIGH_COMPLETIONS_MAX_PARALLELISM);
        errors.push(FieldError::invalid(parallelism, count, detail));
    }
    if let Some(max) =
        spec.max_failed_indexes.filter(|&max| max > HIGH_COMPLETIONS_MAX_FAILED_INDEXES)
    {
        let detail = at_most(HIGH_COMPLETIONS_MAX_FAILED_INDEXES);
        errors.push(FieldError::invalid(max_failed, max, detail));
    }
}

fn validate_non_indexed(spec: &JobSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (name, value) in [
        ("backoffLimitPerIndex", spec.backoff_limit_per_index),
        ("maxFailedIndexes", spec.max_failed_indexes),
    ] {
        if let Some(value) = value {
            errors.push(FieldError::invalid(&path.child(name), value, REQUIRES_INDEXED));
        }
    }
}

fn validate_replacement(spec: &JobSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(policy) = &spec.pod_replacement_policy else {
        return;
    };
    let failed = PodReplacementPolicy::Failed.as_str();
    let terminating_or_failed = PodReplacementPolicy::TerminatingOrFailed.as_str();
    let supported: &[&str] = match spec.pod_failure_policy {
        Some(_) => &[failed],
        None => &[failed, terminating_or_failed],
    };
    if !supported.contains(&policy.as_str()) {
        errors.push(FieldError::not_supported(path, policy, supported));
    }
}

fn validate_restart_policy(spec: &JobSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let policy = spec.template.spec.as_ref().map_or("", |spec| text(&spec.restart_policy));
    let never = JobRestartPolicy::Never.as_str();
    match JobRestartPolicy::parse(policy) {
        // Always is what a Pod defaults to, so it is what absent looks like here.
        None if policy.is_empty() || policy == "Always" => {
            let names: Vec<String> =
                JobRestartPolicy::NAMES.iter().map(|name| quote(name)).collect();
            let detail = format!("valid values: {}", names.join(", "));
            errors.push(FieldError::required(path, detail));
        }
        None => errors.push(FieldError::not_supported(path, policy, JobRestartPolicy::NAMES)),
        Some(JobRestartPolicy::OnFailure) if spec.pod_failure_policy.is_some() => {
            let detail =
                format!("only {} is supported when podFailurePolicy is specified", quote(never));
            errors.push(FieldError::invalid(path, policy, detail));
        }
        Some(JobRestartPolicy::OnFailure | JobRestartPolicy::Never) => {}
    }
}

fn validate_selector(spec: &JobSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let no_labels = BTreeMap::new();
    let labels = template_labels(spec).unwrap_or(&no_labels);
    let matches = match &spec.selector {
        None => {
            errors.push(FieldError::required(&path.child("selector"), ""));
            false
        }
        Some(selector) => {
            label_selector::validate_label_selector(selector, &path.child("selector"), errors);
            !is_well_formed(selector) || label_selector::matches(selector, labels)
        }
    };
    if !matches {
        let template = path.child("template");
        let here = template.child("metadata");
        let labels = template_labels(spec);
        errors.push(FieldError::invalid(&here.child("labels"), labels, SELECTOR_DOES_NOT_MATCH));
    }
}

/// The Pods of an Indexed Job are called `JOB-INDEX`, which must be a hostname.
fn validate_longest_hostname(
    name: &str,
    spec: &JobSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Some(completions) = spec.completions.filter(|&count| is_indexed(spec) && count > 0) else {
        return;
    };
    let hostname = format!("{name}-{}", completions - 1);
    if !identifier::dns1123_label(&hostname).is_empty() {
        let detail = format!("{NO_HOSTNAME}: {hostname}");
        errors.push(FieldError::invalid(path, name, detail));
    }
}

pub(super) fn is_indexed(spec: &JobSpec) -> bool {
    spec.completion_mode.as_deref() == Some(CompletionMode::Indexed.as_str())
}

fn is_well_formed(
    selector: &k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector,
) -> bool {
    let mut errors = Vec::new();
    label_selector::validate_label_selector(selector, &Path::field("selector"), &mut errors);
    errors.is_empty()
}

fn template_labels(spec: &JobSpec) -> Option<&BTreeMap<String, String>> {
    spec.template.metadata.as_ref()?.labels.as_ref()
}
