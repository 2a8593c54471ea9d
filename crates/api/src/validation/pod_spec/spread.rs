//! How evenly Pods spread over zones, nodes and the like.
//!
//! Which zones there are is not known here.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::TopologySpreadConstraint;

use super::affinity::validate_label_keys;
use super::items;
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::validation::label_selector::validate_label_selector;
use crate::validation::validate_one_of_or_empty;

const ABOVE_ZERO: &str = "must be greater than zero";

/// Validates `topologySpreadConstraints`.
pub(super) fn validate_spread(
    constraints: &[TopologySpreadConstraint],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    // Of each kind the last one is not reported as a duplicate.
    let kind = |constraint: &'_ TopologySpreadConstraint| {
        (constraint.topology_key.clone(), constraint.when_unsatisfiable.clone())
    };
    let mut seen = BTreeSet::new();
    let mut is_repeated: Vec<bool> =
        constraints.iter().rev().map(|constraint| !seen.insert(kind(constraint))).collect();
    is_repeated.reverse();
    for (i, (constraint, is_repeated)) in constraints.iter().zip(is_repeated).enumerate() {
        validate_constraint(constraint, is_repeated, &path.index(i), errors);
    }
}

fn validate_constraint(
    constraint: &TopologySpreadConstraint,
    is_repeated: bool,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if constraint.max_skew <= 0 {
        let at = path.child("maxSkew");
        errors.push(FieldError::invalid(&at, constraint.max_skew, ABOVE_ZERO));
    }
    let (key, action) = (&constraint.topology_key, &constraint.when_unsatisfiable);
    if key.is_empty() {
        let at = path.child("topologyKey");
        errors.push(FieldError::required(&at, "can not be empty"));
    }
    let actions = ["DoNotSchedule", "ScheduleAnyway"];
    validate_one_of_or_empty(action, &actions, &path.child("whenUnsatisfiable"), errors);
    if is_repeated {
        let at = path.child("{topologyKey, whenUnsatisfiable}");
        errors.push(FieldError::duplicate(&at, format!("{{{key}, {action}}}")));
    }
    validate_min_domains(constraint, &path.child("minDomains"), errors);
    let policies = [
        ("nodeAffinityPolicy", &constraint.node_affinity_policy),
        ("nodeTaintsPolicy", &constraint.node_taints_policy),
    ];
    for (field, policy) in policies {
        if let Some(policy) = policy {
            validate_one_of_or_empty(policy, &["Honor", "Ignore"], &path.child(field), errors);
        }
    }
    let selector = constraint.label_selector.as_ref();
    validate_label_keys(items(&constraint.match_label_keys), &[], selector, path, errors);
    if let Some(selector) = selector {
        validate_label_selector(selector, &path.child("labelSelector"), errors);
    }
}

fn validate_min_domains(
    constraint: &TopologySpreadConstraint,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Some(domains) = constraint.min_domains else {
        return;
    };
    if domains <= 0 {
        errors.push(FieldError::invalid(path, domains, ABOVE_ZERO));
    }
    let action = &constraint.when_unsatisfiable;
    if action != "DoNotSchedule" {
        let detail =
            format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
        errors.push(FieldError::invalid(path, domains, detail));
    }
}
