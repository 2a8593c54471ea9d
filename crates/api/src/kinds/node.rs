//! A Node: its taints, the networks of its Pods, what it has and what of that it gives.
//!
//! `configSource` and `status.config` belong to a feature that Kubernetes has removed:
//! they are dropped.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, NodeSpec, NodeStatus, Taint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as QuantityText;

use super::{
    CLUSTER_WIDE, keep_identity, leave_namespace, once, shown, validate_meta_update_of_any_kind,
};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;
use crate::ip_address::{is_dual_stack, validate_cidr};
use crate::prepare::reset_server_fields;
use crate::resource_list::round_up;
use crate::validation::object_meta::{validate_object_meta_by, validate_object_meta_update_by};
use crate::validation::pod_spec::validate_amount;
use crate::validation::{items, push_invalid, text};

/// Whether a PUT may create a Node.
pub const CREATES_ON_UPDATE: bool = false;
/// Whether a Node may be updated without a resourceVersion.
pub const UPDATES_UNCONDITIONALLY: bool = true;

const TAINT_EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
/// The name of a feature is at most as long as a DNS subdomain.
const FEATURE_MAX_BYTES: usize = 253;

/// Prepares a new Node, whose status may be given at once.
pub fn prepare_for_create(node: &mut Node) {
    set_defaults(node);
    reset_server_fields(&mut node.metadata);
    leave_namespace(&mut node.metadata);
    if let Some(spec) = &mut node.spec {
        spec.config_source = None;
    }
    if let Some(status) = &mut node.status {
        status.config = None;
    }
}

/// Prepares an update, which keeps the status.
pub fn prepare_for_update(new: &mut Node, old: &Node) {
    set_defaults(new);
    keep_identity(&mut new.metadata, &old.metadata);
    leave_namespace(&mut new.metadata);
    if let Some(spec) = &mut new.spec {
        spec.config_source = None;
    }
    new.status.clone_from(&old.status);
}

/// Prepares an update of the status, which keeps the spec.
pub fn prepare_for_status_update(new: &mut Node, old: &Node) {
    set_defaults(new);
    keep_identity(&mut new.metadata, &old.metadata);
    leave_namespace(&mut new.metadata);
    new.spec.clone_from(&old.spec);
    if let Some(status) = &mut new.status {
        status.config = None;
    }
}

/// Validates a prepared new Node.
pub fn validate_create(node: &Node) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate(node, &mut errors);
    errors
}

/// Validates a prepared update against the stored Node.
pub fn validate_update(new: &Node, old: &Node) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_meta_update_of_any_kind(&CLUSTER_WIDE, &new.metadata, &old.metadata, &mut errors);
    validate(new, &mut errors);
    validate_change(new, old, &mut errors);
    once(errors)
}

/// Validates a prepared update of the status.
pub fn validate_status_update(new: &Node, old: &Node) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_meta_update_of_any_kind(&CLUSTER_WIDE, &new.metadata, &old.metadata, &mut errors);
    validate_change(new, old, &mut errors);
    once(errors)
}

/// What a field selector sees of a Node.
pub fn field<'a>(node: &'a Node, name: &str) -> Option<Cow<'a, str>> {
    match name {
        "metadata.name" => shown(&node.metadata.name),
        "spec.unschedulable" => {
            let unschedulable = node.spec.as_ref().and_then(|spec| spec.unschedulable);
            Some(Cow::Borrowed(if unschedulable == Some(true) { "true" } else { "false" }))
        }
        _ => None,
    }
}

/// Fills in what the API server fills in, whoever writes. To do it again changes nothing.
pub fn set_defaults(node: &mut Node) {
    if let Some(spec) = &mut node.spec {
        default_pod_cidrs(spec);
    }
    let Some(status) = &mut node.status else {
        return;
    };
    if status.allocatable.is_none() {
        status.allocatable.clone_from(&status.capacity);
    }
    round_up(&mut status.capacity);
    round_up(&mut status.allocatable);
}

/// The one network and the list of networks say the same; the one is what counts.
fn default_pod_cidrs(spec: &mut NodeSpec) {
    let first = items(&spec.pod_cidrs).first().cloned();
    match (text(&spec.pod_cidr), first) {
        ("", first) => spec.pod_cidr = first,
        (one, Some(first)) if one == first => {}
        (one, _) => spec.pod_cidrs = Some(vec![one.to_owned()]),
    }
}

fn validate(node: &Node, errors: &mut Vec<FieldError>) {
    let metadata = Path::field("metadata");
    validate_object_meta_by(&CLUSTER_WIDE, &node.metadata, &metadata, errors);
    let (no_spec, no_status) = (NodeSpec::default(), NodeStatus::default());
    let spec = node.spec.as_ref().unwrap_or(&no_spec);
    let status = node.status.as_ref().unwrap_or(&no_status);
    // Upstream reports taints and swap below the metadata.
    validate_taints(items(&spec.taints), &metadata.child("taints"), errors);
    validate_resources(status, errors);
    let swap = status.node_info.as_ref().and_then(|info| info.swap.as_ref());
    if let Some(capacity) = swap.and_then(|swap| swap.capacity).filter(|&capacity| capacity <= 0) {
        let swap = metadata.child("nodeSwapStatus");
        let at = swap.child("capacity");
        errors.push(FieldError::invalid(&at, capacity, "must be greater than zero"));
    }
    validate_features(items(&status.declared_features), errors);
    validate_pod_cidrs(items(&spec.pod_cidrs), errors);
}

fn validate_change(new: &Node, old: &Node, errors: &mut Vec<FieldError>) {
    let metadata = Path::field("metadata");
    validate_object_meta_update_by(&CLUSTER_WIDE, &new.metadata, &old.metadata, &metadata, errors);
    let (no_spec, no_status) = (NodeSpec::default(), NodeStatus::default());
    let new_spec = new.spec.as_ref().unwrap_or(&no_spec);
    let old_spec = old.spec.as_ref().unwrap_or(&no_spec);
    let status = new.status.as_ref().unwrap_or(&no_status);
    validate_resources(status, errors);
    validate_features(items(&status.declared_features), errors);
    let mut seen = BTreeSet::new();
    for (i, address) in items(&status.addresses).iter().enumerate() {
        if !seen.insert((&address.type_, &address.address)) {
            let path = Path::field("status");
            let addresses = path.child("addresses");
            errors.push(FieldError::duplicate(&addresses.index(i), address));
        }
    }
    let spec = Path::field("spec");
    let mut forbid = |field: &'static str, detail: &str| {
        errors.push(FieldError::forbidden(&spec.child(field), detail));
    };
    let cidrs = items(&old_spec.pod_cidrs);
    if !cidrs.is_empty() && cidrs != items(&new_spec.pod_cidrs) {
        forbid("podCIDRs", "node updates may not change podCIDR except from \"\" to valid");
    }
    let provider = text(&old_spec.provider_id);
    if !provider.is_empty() && provider != text(&new_spec.provider_id) {
        forbid("providerID", "node updates may not change providerID except from \"\" to valid");
    }
    validate_taints(items(&new_spec.taints), &metadata.child("taints"), errors);
    if text(&new_spec.external_id) != text(&old_spec.external_id) {
        errors.push(FieldError::forbidden(&spec.child("externalID"), "may not be updated"));
    }
}

fn validate_taints(taints: &[Taint], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (i, taint) in taints.iter().enumerate() {
        let here = path.index(i);
        let wrong = identifier::qualified_name(&taint.key);
        push_invalid(&here.child("key"), &taint.key, wrong, errors);
        let value = text(&taint.value);
        let wrong = identifier::label_value(value);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(&here.child("value"), value, wrong.join(";")));
        }
        let (effect, effect_path) = (taint.effect.as_str(), here.child("effect"));
        if effect.is_empty() {
            errors.push(FieldError::required(&effect_path, ""));
        } else if !TAINT_EFFECTS.contains(&effect) {
            errors.push(FieldError::not_supported(&effect_path, effect, &TAINT_EFFECTS));
        }
        if !seen.insert((effect, taint.key.as_str())) {
            let mut error = FieldError::duplicate(&here, taint);
            error.detail = "taints must be unique by key and effect pair".to_owned();
            errors.push(error);
        }
    }
}

fn validate_resources(status: &NodeStatus, errors: &mut Vec<FieldError>) {
    let path = Path::field("status");
    let no_amounts: BTreeMap<String, QuantityText> = BTreeMap::new();
    let lists = [("capacity", &status.capacity), ("allocatable", &status.allocatable)];
    for (field, amounts) in lists {
        let list = path.child(field);
        for (name, amount) in amounts.as_ref().unwrap_or(&no_amounts) {
            validate_amount(name, amount, &list.member(name), errors);
        }
    }
}

fn validate_features(features: &[String], errors: &mut Vec<FieldError>) {
    let status = Path::field("status");
    let path = status.child("declaredFeatures");
    for (i, feature) in features.iter().enumerate() {
        if let Some(detail) = wrong_with_feature(feature) {
            errors.push(FieldError::invalid(&path.index(i), feature, detail));
        }
        match features.get(i + 1) {
            Some(next) if next == feature => {
                errors.push(FieldError::duplicate(&path.index(i + 1), next));
            }
            Some(next) if next < feature => {
                let detail = "list must be sorted alphabetically";
                errors.push(FieldError::invalid(&path.index(i + 1), next, detail));
            }
            _ => {}
        }
    }
}

/// `MyFeature` or `MyFeature/mySubFeature`.
fn wrong_with_feature(feature: &str) -> Option<String> {
    let detail = if feature.len() > FEATURE_MAX_BYTES {
        "must be no more than 253 characters"
    } else {
        let is_segment = |segment: &str| {
            segment.bytes().all(|b| b.is_ascii_alphanumeric())
                && segment.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
        };
        let is_upper = feature.bytes().next().is_some_and(|b| b.is_ascii_uppercase());
        if is_upper && feature.split('/').all(is_segment) {
            return None;
        }
        "must start with an UpperCamelCase segment, with subsequent segments separated by '/' \
         (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters \
         and slashes"
    };
    Some(format!("invalid feature name {}: {detail}", crate::field_error::quote(feature)))
}

fn validate_pod_cidrs(cidrs: &[String], errors: &mut Vec<FieldError>) {
    let spec = Path::field("spec");
    let path = spec.child("podCIDRs");
    for (i, cidr) in cidrs.iter().enumerate() {
        validate_cidr(cidr, &BTreeSet::new(), &path.index(i), errors);
    }
    if cidrs.len() > 2 || (cidrs.len() == 2 && !is_dual_stack(cidrs)) {
        let detail = "may specify no more than one CIDR for each IP family";
        errors.push(FieldError::invalid(&path, cidrs, detail));
    }
}
