//! A ResourceQuota: how much of what its namespace may have. What is there already, and what of
//! it counts, is not known here.

use std::borrow::Cow;
use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    ResourceQuota, ResourceQuotaSpec, ResourceQuotaStatus, ScopedResourceSelectorRequirement,
};

use super::{
    keep_identity, meta_field, once, validate_meta_of_any_kind, validate_meta_update_of_any_kind,
};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::prepare::reset_server_fields;
use crate::resource_list::{ResourceList, is_huge_page, round_up};
use crate::validation::object_meta::{
    MetaRules, validate_object_meta, validate_object_meta_update,
};
use crate::validation::pod_spec::{known_resource_name, validate_amount};
use crate::validation::{IMMUTABLE, items, text};

/// Whether a PUT may create a ResourceQuota.
pub const CREATES_ON_UPDATE: bool = false;
/// Whether a ResourceQuota may be updated without a resourceVersion.
pub const UPDATES_UNCONDITIONALLY: bool = true;

/// The scopes there are.
const SCOPES: [&str; 7] = [
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
];

/// Scopes of which no two can be met at once.
const OPPOSITES: [[&str; 2]; 2] =
    [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];

/// What a quota may limit that has no domain, but for memory in large pages.
const LIMITED: [&str; 19] = [
    "configmaps",
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

/// What of these the scopes of Pods are for.
const OF_PODS: [&str; 7] =
    ["cpu", "limits.cpu", "limits.memory", "memory", "pods", "requests.cpu", "requests.memory"];

/// What of these the scope of volume claims is for.
const OF_CLAIMS: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];

/// Prepares a new ResourceQuota, of which nothing is used yet.
pub fn prepare_for_create(quota: &mut ResourceQuota) {
    set_defaults(quota);
    reset_server_fields(&mut quota.metadata);
    quota.status = Some(ResourceQuotaStatus::default());
}

/// Prepares an update, which keeps the status.
pub fn prepare_for_update(new: &mut ResourceQuota, old: &ResourceQuota) {
    set_defaults(new);
    keep_identity(&mut new.metadata, &old.metadata);
    new.status.clone_from(&old.status);
}

/// Prepares an update of the status, which keeps the spec.
pub fn prepare_for_status_update(new: &mut ResourceQuota, old: &ResourceQuota) {
    set_defaults(new);
    keep_identity(&mut new.metadata, &old.metadata);
    new.spec.clone_from(&old.spec);
}

/// Validates a prepared new ResourceQuota.
pub fn validate_create(quota: &ResourceQuota) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_object_meta(&quota.metadata, &Path::field("metadata"), &mut errors);
    validate_spec(quota, &mut errors);
    validate_status(quota, &mut errors);
    if errors.is_empty() {
        validate_meta_of_any_kind(&MetaRules::NAMESPACED, &quota.metadata, &mut errors);
    }
    errors
}

/// Validates a prepared update against the stored ResourceQuota.
pub fn validate_update(new: &ResourceQuota, old: &ResourceQuota) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_meta_update(new, old, &mut errors);
    validate_spec(new, &mut errors);
    let scopes = |quota: &ResourceQuota| -> BTreeSet<String> {
        quota.spec.iter().flat_map(|spec| items(&spec.scopes)).cloned().collect()
    };
    if scopes(new) != scopes(old) {
        let spec = Path::field("spec");
        let now = new.spec.as_ref().and_then(|spec| spec.scopes.as_ref());
        errors.push(FieldError::invalid(&spec.child("scopes"), now, IMMUTABLE));
    }
    once(errors)
}

/// Validates a prepared update of the status.
pub fn validate_status_update(new: &ResourceQuota, old: &ResourceQuota) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_meta_update(new, old, &mut errors);
    if text(&new.metadata.resource_version).is_empty() {
        errors.push(FieldError::required(&Path::field("resourceVersion"), ""));
    }
    validate_status(new, &mut errors);
    once(errors)
}

/// What a field selector sees of a ResourceQuota.
pub fn field<'a>(quota: &'a ResourceQuota, name: &str) -> Option<Cow<'a, str>> {
    meta_field(&quota.metadata, name)
}

/// Fills in what the API server fills in, whoever writes. To do it again changes nothing.
pub fn set_defaults(quota: &mut ResourceQuota) {
    if let Some(spec) = &mut quota.spec {
        round_up(&mut spec.hard);
    }
    if let Some(status) = &mut quota.status {
        round_up(&mut status.hard);
        round_up(&mut status.used);
    }
}

fn validate_meta_update(new: &ResourceQuota, old: &ResourceQuota, errors: &mut Vec<FieldError>) {
    let rules = MetaRules::NAMESPACED;
    validate_meta_update_of_any_kind(&rules, &new.metadata, &old.metadata, errors);
    let metadata = Path::field("metadata");
    validate_object_meta_update(&new.metadata, &old.metadata, &metadata, errors);
}

fn validate_spec(quota: &ResourceQuota, errors: &mut Vec<FieldError>) {
    let Some(spec) = &quota.spec else { return };
    let path = Path::field("spec");
    validate_amounts(&spec.hard, &path.child("hard"), errors);
    validate_scopes(spec, &path, errors);
    validate_scope_selector(spec, &path, errors);
}

fn validate_status(quota: &ResourceQuota, errors: &mut Vec<FieldError>) {
    let Some(status) = &quota.status else { return };
    let path = Path::field("status");
    validate_amounts(&status.hard, &path.child("hard"), errors);
    validate_amounts(&status.used, &path.child("used"), errors);
}

fn validate_amounts(amounts: &Option<ResourceList>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (name, amount) in amounts.iter().flatten() {
        let here = path.key(name);
        known_resource_name(name, &here, errors);
        if !name.contains('/') && !is_limited(name) {
            let detail = "must be a standard resource for quota";
            errors.push(FieldError::invalid(&here, name, detail));
        }
        validate_amount(name, amount, &here, errors);
    }
}

/// Validates scopes that stand by themselves. Each thing that is wrong is said once, for it is said
/// of the whole list.
fn validate_scopes(spec: &ResourceQuotaSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let (scopes, path) = (items(&spec.scopes), path.child("scopes"));
    let given: BTreeSet<&str> = scopes.iter().map(String::as_str).collect();
    let mut refuse = |detail| errors.push(FieldError::invalid(&path, scopes, detail));
    if given.iter().any(|scope| !SCOPES.contains(scope)) {
        refuse("unsupported scope");
    }
    if reach_beyond(&given, &spec.hard) {
        refuse("unsupported scope applied to resource");
    }
    if are_opposed(&given) {
        refuse("conflicting scopes");
    }
}

/// Validates scopes that are told more of than their name.
fn validate_scope_selector(
    spec: &ResourceQuotaSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Some(selector) = &spec.scope_selector else { return };
    let (requirements, path) = (items(&selector.match_expressions), path.child("scopeSelector"));
    let path = path.child("matchExpressions");
    for requirement in requirements {
        let scope = requirement.scope_name.as_str();
        if !SCOPES.contains(&scope) {
            let here = path.child("scopeName");
            errors.push(FieldError::invalid(&here, scope, "unsupported scope"));
        }
        validate_requirement(requirement, &path, errors);
    }
    let given = requirements.iter().map(|requirement| requirement.scope_name.as_str()).collect();
    if reach_beyond(&given, &spec.hard) {
        let detail = "unsupported scope applied to resource";
        errors.push(FieldError::invalid(&path, selector, detail));
    }
    if are_opposed(&given) {
        let scopes = spec.scopes.as_ref();
        errors.push(FieldError::invalid(&path, scopes, "conflicting scopes"));
    }
}

fn validate_requirement(
    requirement: &ScopedResourceSelectorRequirement,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let (scope, operator) = (requirement.scope_name.as_str(), requirement.operator.as_str());
    let has_values = !matches!(scope, "PriorityClass" | "VolumeAttributesClass");
    if SCOPES.contains(&scope) && has_values && operator != "Exists" {
        let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                      ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                      ResourceQuotaScopeNotBestEffort or \
                      ResourceQuotaScopeCrossNamespacePodAffinity";
        errors.push(FieldError::invalid(&path.child("operator"), operator, detail));
    }
    let values = items(&requirement.values);
    match operator {
        "In" | "NotIn" if values.is_empty() => {
            let detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope \
                          selector";
            errors.push(FieldError::required(&path.child("values"), detail));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope \
                          selector";
            errors.push(FieldError::invalid(&path.child("values"), values, detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ => {
            let detail = "not a valid selector operator";
            errors.push(FieldError::invalid(&path.child("operator"), operator, detail));
        }
    }
}

/// Whether something is limited that one of the scopes is not for.
fn reach_beyond(scopes: &BTreeSet<&str>, hard: &Option<ResourceList>) -> bool {
    let is_for = |scope: &str, name: &str| match scope {
        "Terminating"
        | "NotTerminating"
        | "NotBestEffort"
        | "PriorityClass"
        | "CrossNamespacePodAffinity" => OF_PODS.contains(&name),
        "BestEffort" => name == "pods",
        "VolumeAttributesClass" => OF_CLAIMS.contains(&name),
        _ => true,
    };
    let given: Vec<&str> = SCOPES.into_iter().filter(|scope| scopes.contains(scope)).collect();
    hard.iter()
        .flatten()
        .map(|(name, _)| name)
        .any(|name| is_limited(name) && given.iter().any(|scope| !is_for(scope, name)))
}

/// Whether there are scopes that exclude each other.
fn are_opposed(scopes: &BTreeSet<&str>) -> bool {
    OPPOSITES.iter().any(|pair| pair.iter().all(|scope| scopes.contains(scope)))
}

/// Whether a quota may limit a resource that has no domain.
fn is_limited(name: &str) -> bool {
    LIMITED.contains(&name)
        || is_huge_page(name)
        || name.strip_prefix("requests.").is_some_and(is_huge_page)
}
