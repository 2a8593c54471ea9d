//! What is wrong with a new status of a Pod.
//!
//! Containers are told apart by their names; statuses of containers that the Pod does not
//! have are let pass, as upstream lets them.

use k8s_openapi::api::core::v1::{Pod, PodCondition, PodSpec, PodStatus};

use super::super::object_meta::{validate_object_meta_update, validate_same};
use super::super::pod_spec::network::{is_ipv4, validate_ip};
use super::super::push_invalid;
use super::claim_status::{validate_claim_statuses, validate_extended_claim_status};
use super::container_status::{validate_statuses, validate_transitions};
use super::{items, text, validate_annotations_update, without_repetitions};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;

const NOT_A_GENERATION: &str = "must be a non-negative integer";
const ONE_EACH: &str = "may specify no more than one IP for each IP family";
/// Conditions that are known by a name that is no qualified one.
const SYSTEM_CONDITIONS: [&str; 3] = ["PodScheduled", "Ready", "Initialized"];

/// Validates a new status, prepared for the update, against the stored Pod.
pub fn validate_pod_status_update(new: &Pod, old: &Pod) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (no_spec, none) = (PodSpec::default(), PodStatus::default());
    let spec = old.spec.as_ref().unwrap_or(&no_spec);
    let new_status = new.status.as_ref().unwrap_or(&none);
    let old_status = old.status.as_ref().unwrap_or(&none);
    let metadata = Path::field("metadata");
    validate_object_meta_update(&new.metadata, &old.metadata, &metadata, &mut errors);
    validate_annotations_update(new, old, spec, &mut errors);
    let path = Path::field("status");
    validate_conditions(items(&new_status.conditions), &path.child("conditions"), &mut errors);
    validate_nomination(new_status, old_status, spec, &path, &mut errors);
    let generation = new_status.observed_generation.unwrap_or(0);
    if generation < 0 {
        let at = path.child("observedGeneration");
        errors.push(FieldError::invalid(&at, generation, NOT_A_GENERATION));
    }
    let (new_class, old_class) = (text(&new_status.qos_class), text(&old_status.qos_class));
    validate_same(new_class, old_class, &path.child("qosClass"), &mut errors);
    validate_transitions(new_status, old_status, spec, &path, &mut errors);
    validate_claim_statuses(new_status, spec, &path.child("resourceClaimStatuses"), &mut errors);
    let at = path.child("extendedResourceClaimStatus");
    validate_extended_claim_status(new_status, spec, &at, &mut errors);
    validate_pod_ips(new_status, old_status, &path.child("podIPs"), &mut errors);
    validate_host_ips(new_status, old_status, &path.child("hostIPs"), &mut errors);
    validate_statuses(new_status, spec, &path, &mut errors);
    without_repetitions(errors)
}

fn validate_conditions(conditions: &[PodCondition], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (i, condition) in conditions.iter().enumerate() {
        let here = path.index(i);
        let generation = condition.observed_generation.unwrap_or(0);
        if generation < 0 {
            let at = here.child("observedGeneration");
            errors.push(FieldError::invalid(&at, generation, NOT_A_GENERATION));
        }
        if !SYSTEM_CONDITIONS.contains(&condition.type_.as_str()) {
            // Upstream writes this field with a capital letter.
            let wrong = identifier::qualified_name(&condition.type_);
            push_invalid(&here.child("Type"), &condition.type_, wrong, errors);
        }
    }
}

/// A Pod may be meant for a node until it has one.
fn validate_nomination(
    new: &PodStatus,
    old: &PodStatus,
    spec: &PodSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let nominated = text(&new.nominated_node_name);
    if nominated.is_empty() || nominated == text(&old.nominated_node_name) {
        return;
    }
    let at = path.child("nominatedNodeName");
    push_invalid(&at, nominated, identifier::dns1123_subdomain(nominated), errors);
    if !text(&spec.node_name).is_empty() {
        let detail = "may not be set on pods that are already bound to a node";
        errors.push(FieldError::forbidden(&at, detail));
    }
}

fn validate_pod_ips(
    new: &PodStatus,
    old: &PodStatus,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let ips = items(&new.pod_ips);
    let texts: Vec<&str> = ips.iter().map(|ip| ip.ip.as_str()).collect();
    let kept: Vec<&str> = items(&old.pod_ips).iter().map(|ip| ip.ip.as_str()).collect();
    if !validate_ips(&texts, &kept, path, errors) {
        errors.push(FieldError::invalid(path, ips, ONE_EACH));
    }
}

fn validate_host_ips(
    new: &PodStatus,
    old: &PodStatus,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let ips = items(&new.host_ips);
    let texts: Vec<&str> = ips.iter().map(|ip| ip.ip.as_str()).collect();
    let kept: Vec<&str> = items(&old.host_ips).iter().map(|ip| ip.ip.as_str()).collect();
    if let Some(first) = texts.first()
        && text(&new.host_ip) != *first
    {
        let at = path.index(0);
        errors.push(FieldError::invalid(&at.child("ip"), first, "must be equal to `hostIP`"));
    }
    if !validate_ips(&texts, &kept, path, errors) {
        errors.push(FieldError::invalid(path, ips, ONE_EACH));
    }
}

/// Validates addresses that were not there before; whether there is at most one of each
/// family.
fn validate_ips(
    ips: &[&str],
    kept: &[&str],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) -> bool {
    for (i, ip) in ips.iter().enumerate() {
        if !kept.contains(ip) {
            validate_ip(ip, &path.index(i), errors);
        }
    }
    if ips.len() < 2 {
        return true;
    }
    if let Some(i) = ips.iter().position(|ip| is_ipv4(ip).is_none()) {
        let detail =
            format!("failed to check for dual stack with error:invalid IP[{i}]: {}", ips[i]);
        errors.push(FieldError::internal(path, detail));
        return false;
    }
    ips.len() == 2 && is_ipv4(ips[0]) != is_ipv4(ips[1])
}
