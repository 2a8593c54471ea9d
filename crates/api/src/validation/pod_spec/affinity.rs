//! Which nodes and which other Pods a Pod wants to be near or away from.
//!
//! Which nodes and Pods there are is not known here.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{
    Affinity, NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm, PodAffinityTerm,
    WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::{items, push_invalid};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;
use crate::validation::label_selector::validate_label_selector;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Validates `affinity`.
pub(super) fn validate_affinity(
    affinity: Option<&Affinity>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Some(affinity) = affinity else { return };
    if let Some(node) = &affinity.node_affinity {
        validate_node_affinity(node, &path.child("nodeAffinity"), errors);
    }
    if let Some(near) = &affinity.pod_affinity {
        let here = path.child("podAffinity");
        let required = items(&near.required_during_scheduling_ignored_during_execution);
        validate_pod_terms(required, &here.child(REQUIRED), errors);
        let preferred = items(&near.preferred_during_scheduling_ignored_during_execution);
        validate_weighted_terms(preferred, &here.child(PREFERRED), errors);
    }
    if let Some(away) = &affinity.pod_anti_affinity {
        let here = path.child("podAntiAffinity");
        let required = items(&away.required_during_scheduling_ignored_during_execution);
        validate_pod_terms(required, &here.child(REQUIRED), errors);
        let preferred = items(&away.preferred_during_scheduling_ignored_during_execution);
        validate_weighted_terms(preferred, &here.child(PREFERRED), errors);
    }
}

/// Keys whose values are taken from the Pod: they need a selector to add to,
/// and must not be in it with other values already.
pub(super) fn validate_label_keys(
    match_keys: &[String],
    mismatch_keys: &[String],
    selector: Option<&LabelSelector>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let match_path = path.child("matchLabelKeys");
    validate_key_list(match_keys, selector, &match_path, errors);
    let mismatch_path = path.child("mismatchLabelKeys");
    validate_key_list(mismatch_keys, selector, &mismatch_path, errors);
    if let Some(selector) = selector {
        validate_keys_are_free(match_keys, selector, path, errors);
    }
    let mismatch_keys: BTreeSet<&String> = mismatch_keys.iter().collect();
    for (i, key) in match_keys.iter().enumerate() {
        if mismatch_keys.contains(key) {
            let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
            errors.push(FieldError::invalid(&match_path.index(i), key, detail));
        }
    }
}

fn validate_node_affinity(affinity: &NodeAffinity, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(required) = &affinity.required_during_scheduling_ignored_during_execution {
        let required_path = path.child(REQUIRED);
        let terms_path = required_path.child("nodeSelectorTerms");
        if required.node_selector_terms.is_empty() {
            let detail = "must have at least one node selector term";
            errors.push(FieldError::required(&terms_path, detail));
        }
        for (i, term) in required.node_selector_terms.iter().enumerate() {
            validate_node_term(term, true, &terms_path.index(i), errors);
        }
    }
    let preferred = items(&affinity.preferred_during_scheduling_ignored_during_execution);
    let preferred_path = path.child(PREFERRED);
    for (i, term) in preferred.iter().enumerate() {
        let here = preferred_path.index(i);
        validate_weight(term.weight, &here, errors);
        // A preference for a value no node can have does no harm.
        validate_node_term(&term.preference, false, &here.child("preference"), errors);
    }
}

fn validate_weight(weight: i32, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !(1..=100).contains(&weight) {
        let at = path.child("weight");
        errors.push(FieldError::invalid(&at, weight, "must be in the range 1-100"));
    }
}

fn validate_node_term(
    term: &NodeSelectorTerm,
    checks_values: bool,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let expressions_path = path.child("matchExpressions");
    for (i, requirement) in items(&term.match_expressions).iter().enumerate() {
        let here = expressions_path.index(i);
        validate_node_requirement(requirement, checks_values, &here, errors);
    }
    let fields_path = path.child("matchFields");
    for (i, requirement) in items(&term.match_fields).iter().enumerate() {
        validate_node_field(requirement, &fields_path.index(i), errors);
    }
}

fn validate_node_requirement(
    requirement: &NodeSelectorRequirement,
    checks_values: bool,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let values = items(&requirement.values);
    let values_path = path.child("values");
    match (requirement.operator.as_str(), values.len()) {
        ("In" | "NotIn", 0) => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(&values_path, detail));
        }
        ("Exists" | "DoesNotExist", 1..) => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(&values_path, detail));
        }
        ("Gt" | "Lt", count) if count != 1 => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.push(FieldError::required(&values_path, detail));
        }
        ("In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt", _) => {}
        (operator, _) => {
            let at = path.child("operator");
            errors.push(FieldError::invalid(&at, operator, "not a valid selector operator"));
        }
    }
    let wrong = identifier::qualified_name(&requirement.key);
    push_invalid(&path.child("key"), &requirement.key, wrong, errors);
    for (i, value) in values.iter().enumerate().filter(|_| checks_values) {
        push_invalid(&values_path.index(i), value, identifier::label_value(value), errors);
    }
}

/// The one field of a node that can be asked for is its name.
fn validate_node_field(
    requirement: &NodeSelectorRequirement,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let values = items(&requirement.values);
    let values_path = path.child("values");
    match requirement.operator.as_str() {
        "In" | "NotIn" => {
            if values.len() != 1 {
                let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                errors.push(FieldError::required(&values_path, detail));
            }
        }
        operator => {
            let at = path.child("operator");
            errors.push(FieldError::invalid(&at, operator, "not a valid selector operator"));
        }
    }
    if requirement.key != "metadata.name" {
        let at = path.child("key");
        let detail = "not a valid field selector key";
        errors.push(FieldError::invalid(&at, &requirement.key, detail));
        return;
    }
    for (i, name) in values.iter().enumerate() {
        push_invalid(&values_path.index(i), name, identifier::dns1123_subdomain(name), errors);
    }
}

fn validate_pod_terms(terms: &[PodAffinityTerm], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (i, term) in terms.iter().enumerate() {
        validate_pod_term(term, &path.index(i), errors);
    }
}

fn validate_weighted_terms(
    terms: &[WeightedPodAffinityTerm],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    for (i, term) in terms.iter().enumerate() {
        let here = path.index(i);
        validate_weight(term.weight, &here, errors);
        validate_pod_term(&term.pod_affinity_term, &here.child("podAffinityTerm"), errors);
    }
}

fn validate_pod_term(term: &PodAffinityTerm, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(selector) = &term.label_selector {
        validate_label_selector(selector, &path.child("labelSelector"), errors);
    }
    if let Some(selector) = &term.namespace_selector {
        validate_label_selector(selector, &path.child("namespaceSelector"), errors);
    }
    for name in items(&term.namespaces) {
        // Upstream writes the field in the singular and without an index.
        push_invalid(&path.child("namespace"), name, identifier::dns1123_label(name), errors);
    }
    validate_label_keys(
        items(&term.match_label_keys),
        items(&term.mismatch_label_keys),
        term.label_selector.as_ref(),
        path,
        errors,
    );
    let at = path.child("topologyKey");
    if term.topology_key.is_empty() {
        errors.push(FieldError::required(&at, "can not be empty"));
    }
    let wrong = identifier::qualified_name(&term.topology_key);
    push_invalid(&at, &term.topology_key, wrong, errors);
}

fn validate_key_list(
    keys: &[String],
    selector: Option<&LabelSelector>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if keys.is_empty() {
        return;
    }
    if selector.is_none() {
        let detail = "must not be specified when labelSelector is not set";
        errors.push(FieldError::forbidden(path, detail));
        return;
    }
    for (i, key) in keys.iter().enumerate() {
        push_invalid(&path.index(i), key, identifier::qualified_name(key), errors);
    }
}

/// Upstream expects the selector to hold each key once, having put it there
/// itself; only a second mention is an error, reported at the term.
fn validate_keys_are_free(
    match_keys: &[String],
    selector: &LabelSelector,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let labels = selector.match_labels.iter().flatten();
    let mut seen: BTreeSet<&String> = labels.map(|(key, _)| key).collect();
    // Of two that are the same the later counts.
    let match_keys: BTreeMap<&String, usize> =
        match_keys.iter().enumerate().map(|(i, key)| (key, i)).collect();
    for expression in items(&selector.match_expressions) {
        let key = &expression.key;
        if let Some(&i) = match_keys.get(key)
            && seen.contains(key)
        {
            let detail = "exists in both matchLabelKeys and labelSelector";
            errors.push(FieldError::invalid(&path.index(i), key, detail));
        }
        seen.insert(key);
    }
}
