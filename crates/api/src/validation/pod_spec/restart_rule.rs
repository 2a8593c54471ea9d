//! A container's own restart policy and the rules that go with it.
//!
//! The Pod's restart policy is another field, judged with the Pod.

use k8s_openapi::api::core::v1::{Container, ContainerRestartRule};

use super::items;
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::validation::validate_one_of_or_empty;

const POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];
const ACTIONS: [&str; 2] = ["Restart", "RestartAllContainers"];
const OPERATORS: [&str; 2] = ["In", "NotIn"];
const POLICY_MISSING: &str = "must specify restartPolicy when restart rules are used";
const MAX_RULES: usize = 20;
/// Upstream takes as many as there are exit codes that mean failure.
const MAX_EXIT_CODES: usize = 255;

/// Validates `restartPolicy` and `restartPolicyRules` of one container.
pub(super) fn validate_restart_policy(
    container: &Container,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let rules = items(&container.restart_policy_rules);
    let policy_path = path.child("restartPolicy");
    match &container.restart_policy {
        Some(policy) => validate_one_of_or_empty(policy, &POLICIES, &policy_path, errors),
        None if rules.is_empty() => {}
        None => {
            errors.push(FieldError::required(&policy_path, POLICY_MISSING));
        }
    }
    validate_rules(rules, path, errors);
}

/// The same of an init container, of whose rules nothing more is said while
/// the policy is missing.
pub(super) fn validate_init_restart_policy(
    container: &Container,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let policy_is_missing = container.restart_policy.is_none();
    let rules = items(&container.restart_policy_rules);
    if policy_is_missing && !rules.is_empty() {
        let at = path.child("restartPolicy");
        errors.push(FieldError::required(&at, POLICY_MISSING));
    } else {
        validate_restart_policy(container, path, errors);
    }
}

fn validate_rules(rules: &[ContainerRestartRule], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let rules_path = path.child("restartPolicyRules");
    if rules.len() > MAX_RULES {
        errors.push(FieldError::too_many(&rules_path, rules.len(), MAX_RULES));
    }
    for (i, rule) in rules.iter().enumerate() {
        validate_rule(rule, &rules_path.index(i), errors);
    }
}

fn validate_rule(rule: &ContainerRestartRule, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    validate_one_of_or_empty(&rule.action, &ACTIONS, &path.child("action"), errors);
    let codes_path = path.child("exitCodes");
    let Some(codes) = &rule.exit_codes else {
        errors.push(FieldError::required(&codes_path, "must be specified"));
        return;
    };
    let at = codes_path.child("operator");
    validate_one_of_or_empty(&codes.operator, &OPERATORS, &at, errors);
    let count = items(&codes.values).len();
    if count > MAX_EXIT_CODES {
        let at = codes_path.child("values");
        errors.push(FieldError::too_many(&at, count, MAX_EXIT_CODES));
    }
}
