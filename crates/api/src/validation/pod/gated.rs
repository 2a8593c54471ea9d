//! What may change in a Pod that scheduling gates hold back (KEP-3838): where it may run
//! can be narrowed down.

use k8s_openapi::api::core::v1::{
    Affinity, NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm, PodSpec,
};

use super::items;
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::semantic_equality::{json, semantically_equal};

/// Validates the changes that only a gated Pod may make, and takes them back in `new`, so
/// that only other changes are left.
pub(super) fn validate_and_take_back(
    new: &mut PodSpec,
    old: &PodSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    validate_node_selector(new, old, &path.child("nodeSelector"), errors);
    new.node_selector.clone_from(&old.node_selector);
    let affinity_path = path.child("affinity");
    let (new_affinity, old_affinity) = (node_affinity(new), node_affinity(old));
    if !semantically_equal(&json(new_affinity), &json(old_affinity)) {
        let at = affinity_path.child("nodeAffinity");
        validate_node_affinity(new_affinity, old_affinity, &at, errors);
        take_back_node_affinity(new, old);
    }
}

fn node_affinity(spec: &PodSpec) -> Option<&NodeAffinity> {
    spec.affinity.as_ref()?.node_affinity.as_ref()
}

fn validate_node_selector(
    new: &PodSpec,
    old: &PodSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let kept = new.node_selector.clone().unwrap_or_default();
    let mut labels = old.node_selector.iter().flatten();
    if !labels.all(|(key, value)| kept.get(key) == Some(value)) {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        errors.push(FieldError::invalid(path, &new.node_selector, detail));
    }
}

fn validate_node_affinity(
    new: Option<&NodeAffinity>,
    old: Option<&NodeAffinity>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Some(old_terms) = required_terms(old) else {
        return;
    };
    let new_terms = required_terms(new);
    let required_path = path.child("requiredDuringSchedulingIgnoredDuringExecution");
    let at = required_path.child("nodeSelectorTerms");
    let new_list = new_terms.unwrap_or_default();
    if !old_terms.is_empty() && old_terms.len() != new_list.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(FieldError::invalid(&at, new_terms, detail));
        return;
    }
    for (i, (new, old)) in new_list.iter().zip(old_terms).enumerate() {
        if !has_only_additions(new, old) {
            let detail = "only additions are allowed (no mutations or deletions)";
            errors.push(FieldError::invalid(&at.index(i), new, detail));
        }
    }
}

fn required_terms(affinity: Option<&NodeAffinity>) -> Option<&[NodeSelectorTerm]> {
    let required = affinity?.required_during_scheduling_ignored_during_execution.as_ref()?;
    Some(&required.node_selector_terms)
}

/// A term that asks for nothing matches no node, so that anything would widen it.
fn has_only_additions(new: &NodeSelectorTerm, old: &NodeSelectorTerm) -> bool {
    let (new_labels, new_fields) = (items(&new.match_expressions), items(&new.match_fields));
    let (old_labels, old_fields) = (items(&old.match_expressions), items(&old.match_fields));
    if old_labels.is_empty() && old_fields.is_empty() {
        return new_labels.is_empty() && new_fields.is_empty();
    }
    starts_with(new_labels, old_labels) && starts_with(new_fields, old_fields)
}

fn starts_with(new: &[NodeSelectorRequirement], old: &[NodeSelectorRequirement]) -> bool {
    new.len() >= old.len() && semantically_equal(&json(&new[..old.len()]), &json(old))
}

fn take_back_node_affinity(new: &mut PodSpec, old: &PodSpec) {
    let old_affinity = node_affinity(old).cloned();
    let is_only_of_nodes = |affinity: &Affinity| {
        affinity.pod_affinity.is_none() && affinity.pod_anti_affinity.is_none()
    };
    match &mut new.affinity {
        None => {
            new.affinity = Some(Affinity { node_affinity: old_affinity, ..Affinity::default() });
        }
        Some(affinity) if old.affinity.is_none() && is_only_of_nodes(affinity) => {
            new.affinity = None;
        }
        Some(affinity) => affinity.node_affinity = old_affinity,
    }
}
