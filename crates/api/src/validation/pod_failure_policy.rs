//! What is wrong with a Pod failure policy.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::{
    JobSpec, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyOnPodConditionsPattern,
    PodFailurePolicyRule,
};

use super::{items, push_invalid, text};
use crate::closed_set::{ConditionStatus, ExitCodeOperator, PodFailurePolicyAction};
use crate::field_error::{FieldError, quote};
use crate::field_path::Path;
use crate::identifier;

/// The most rules a policy may have.
const MAX_RULES: usize = 20;
/// The most exit codes a rule may list: every one there is but 0.
const MAX_EXIT_CODES: usize = 255;
/// The most condition patterns a rule may list.
const MAX_PATTERNS: usize = 20;

// Reasons that `remedy` recognises an error by.
pub(crate) const REQUIRES_LIMIT_PER_INDEX: &str = "requires the backoffLimitPerIndex to be set";
pub(crate) const BOTH_CONDITIONS: &str =
    "specifying both OnExitCodes and OnPodConditions is not supported";
pub(crate) const NO_CONDITION: &str =
    "specifying one of OnExitCodes and OnPodConditions is required";
pub(crate) const NOT_ORDERED: &str = "must be ordered";

/// Validates `spec.podFailurePolicy`, if there is one.
pub(super) fn validate_pod_failure_policy(
    spec: &JobSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Some(policy) = &spec.pod_failure_policy else {
        return;
    };
    let rules = path.child("rules");
    if policy.rules.len() > MAX_RULES {
        errors.push(FieldError::too_many(&rules, policy.rules.len(), MAX_RULES));
    }
    let containers = container_names(spec);
    let per_index = spec.backoff_limit_per_index.is_some();
    for (index, rule) in policy.rules.iter().enumerate() {
        validate_rule(rule, per_index, &containers, &rules.index(index), errors);
    }
}

fn validate_rule(
    rule: &PodFailurePolicyRule,
    per_index: bool,
    containers: &BTreeSet<&str>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let action = path.child("action");
    match PodFailurePolicyAction::parse(&rule.action) {
        None => push_unsupported(&rule.action, PodFailurePolicyAction::NAMES, &action, errors),
        Some(PodFailurePolicyAction::FailIndex) if !per_index => {
            errors.push(FieldError::invalid(&action, &rule.action, REQUIRES_LIMIT_PER_INDEX));
        }
        Some(_) => {}
    }
    if let Some(requirement) = &rule.on_exit_codes {
        validate_exit_codes(requirement, containers, &path.child("onExitCodes"), errors);
    }
    let patterns = items(&rule.on_pod_conditions);
    validate_patterns(patterns, &path.child("onPodConditions"), errors);
    match (rule.on_exit_codes.is_some(), !patterns.is_empty()) {
        (true, true) => errors.push(FieldError::invalid_without_value(path, BOTH_CONDITIONS)),
        (false, false) => errors.push(FieldError::invalid_without_value(path, NO_CONDITION)),
        (true, false) | (false, true) => {}
    }
}

fn validate_exit_codes(
    requirement: &PodFailurePolicyOnExitCodesRequirement,
    containers: &BTreeSet<&str>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let operator = ExitCodeOperator::parse(&requirement.operator);
    if operator.is_none() {
        let here = path.child("operator");
        push_unsupported(&requirement.operator, ExitCodeOperator::NAMES, &here, errors);
    }
    if let Some(name) = &requirement.container_name
        && !containers.contains(name.as_str())
    {
        let detail = "must be one of the container or initContainer names in the pod template";
        errors.push(FieldError::invalid(&path.child("containerName"), name, detail));
    }
    let here = path.child("values");
    let values = &requirement.values;
    if values.is_empty() {
        errors.push(FieldError::invalid(&here, values, "at least one value is required"));
    } else if values.len() > MAX_EXIT_CODES {
        errors.push(FieldError::too_many(&here, values.len(), MAX_EXIT_CODES));
    }
    let mut seen = BTreeSet::new();
    for (index, value) in values.iter().enumerate() {
        if operator == Some(ExitCodeOperator::In) && *value == 0 {
            let detail = "must not be 0 for the In operator";
            errors.push(FieldError::invalid(&here.index(index), value, detail));
        }
        if !seen.insert(value) {
            errors.push(FieldError::duplicate(&here.index(index), value));
        }
    }
    if !values.is_sorted() {
        errors.push(FieldError::invalid(&here, values, NOT_ORDERED));
    }
}

fn validate_patterns(
    patterns: &[PodFailurePolicyOnPodConditionsPattern],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if patterns.len() > MAX_PATTERNS {
        errors.push(FieldError::too_many(path, patterns.len(), MAX_PATTERNS));
    }
    for (index, pattern) in patterns.iter().enumerate() {
        let here = path.index(index);
        let wrong = identifier::qualified_name(&pattern.type_);
        push_invalid(&here.child("type"), &pattern.type_, wrong, errors);
        let status = text(&pattern.status);
        if ConditionStatus::parse(status).is_none() {
            push_unsupported(status, ConditionStatus::NAMES, &here.child("status"), errors);
        }
    }
}

/// A value that must be one of `names`: an empty one is missing, any other is not
/// supported.
fn push_unsupported(value: &str, names: &[&str], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    errors.push(if value.is_empty() {
        let quoted: Vec<String> = names.iter().map(|name| quote(name)).collect();
        FieldError::required(path, format!("valid values: [{}]", quoted.join(" ")))
    } else {
        FieldError::not_supported(path, value, names)
    });
}

fn container_names(spec: &JobSpec) -> BTreeSet<&str> {
    let pod = spec.template.spec.iter();
    pod.flat_map(|pod| pod.containers.iter().chain(items(&pod.init_containers)))
        .map(|container| container.name.as_str())
        .collect()
}
