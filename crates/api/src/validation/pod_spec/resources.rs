//! What a container asks for and may use: resource names, amounts, and that no
//! request is above its limit.
//!
//! How much there is to give is not known here.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{ResourceClaim, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as QuantityText;

use super::{items, push_invalid, text};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;
use crate::quantity::Quantity;
use crate::resource_list::{HUGE_PAGES, ResourceList, is_huge_page};
use crate::validation::NOT_NEGATIVE;

/// A rule about a resource's name.
type NameRule = fn(&str, &Path<'_>, &mut Vec<FieldError>);

/// Resources that are counted, not measured.
const COUNTED: [&str; 9] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];
/// Resources that are measured, and known without a domain.
const MEASURED: [&str; 11] = [
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "storage",
];

/// How much is said of the claims that there are, to each who names another.
const MAX_KNOWN_CLAIMS_BYTES: usize = 1024;

/// Validates `resources` of a container.
pub(super) fn validate_container_resources(
    requirements: &ResourceRequirements,
    claim_names: &BTreeSet<&str>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    validate_requirements(requirements, container_resource_name, claim_names, path, errors);
}

/// Validates `overhead`, whose amounts upstream reports as limits.
pub(super) fn validate_overhead(
    overhead: &ResourceList,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let requirements =
        ResourceRequirements { limits: Some(overhead.clone()), ..ResourceRequirements::default() };
    validate_container_resources(&requirements, &BTreeSet::new(), path, errors);
}

/// Validates names, amounts, requests against limits, and claims.
pub(super) fn validate_requirements(
    requirements: &ResourceRequirements,
    name_rule: NameRule,
    claim_names: &BTreeSet<&str>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let (limits_path, requests_path) = (path.child("limits"), path.child("requests"));
    let limits =
        validate_amounts(&requirements.limits, name_rule, &limits_path, errors, |_, _, _| {});
    validate_amounts(
        &requirements.requests,
        name_rule,
        &requests_path,
        errors,
        |name, request, errors| {
            validate_request(name, request, limits.get(name), &limits_path, &requests_path, errors);
        },
    );
    let mut names = requirements.limits.iter().chain(&requirements.requests);
    let mut other_names = requirements.limits.iter().chain(&requirements.requests);
    let has_huge_pages = names.any(|list| list.keys().any(|name| is_huge_page(name)));
    let has_cpu_or_memory =
        other_names.any(|list| list.contains_key("cpu") || list.contains_key("memory"));
    if has_huge_pages && !has_cpu_or_memory {
        let detail = "HugePages require cpu or memory";
        errors.push(FieldError::forbidden(path, detail));
    }
    validate_claims(items(&requirements.claims), claim_names, &path.child("claims"), errors);
}

/// Validates one amount of a resource: readable, not negative, and whole if it is counted.
pub(crate) fn validate_amount(
    name: &str,
    amount: &QuantityText,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) -> Option<Quantity> {
    let amount = match amount.0.trim().parse::<Quantity>() {
        Ok(amount) => amount,
        Err(error) => {
            errors.push(FieldError::invalid(path, &amount.0, error.to_string()));
            return None;
        }
    };
    if amount.is_negative() {
        errors.push(FieldError::invalid(path, amount.to_string(), NOT_NEGATIVE));
    }
    let is_counted = COUNTED.contains(&name) || is_extended(name);
    if is_counted && !amount.clone().round_up_to_milli().is_integer() {
        errors.push(FieldError::invalid(path, amount.to_string(), "must be an integer"));
    }
    Some(amount)
}

/// A resource name that is known, or has a domain.
pub(crate) fn known_resource_name(name: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let wrong = identifier::qualified_name(name);
    if wrong.is_empty() && !name.contains('/') && !is_standard(name) {
        let detail = "must be a standard resource type or fully qualified";
        errors.push(FieldError::invalid(path, name, detail));
    }
    push_invalid(path, name, wrong, errors);
}

/// A resource name that a container may ask for.
pub(crate) fn container_resource_name(name: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    known_resource_name(name, path, errors);
    if !name.contains('/') {
        if !matches!(name, "cpu" | "memory" | "ephemeral-storage") && !is_huge_page(name) {
            let detail = "must be a standard resource for containers";
            errors.push(FieldError::invalid(path, name, detail));
        }
    } else if !is_native(name) && !is_extended(name) {
        let detail = "doesn't follow extended resource name standard";
        errors.push(FieldError::invalid(path, name, detail));
    }
}

/// Validates each amount of a list, then does with it what the list asks for.
fn validate_amounts<'a>(
    list: &'a Option<ResourceList>,
    name_rule: NameRule,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
    also: impl Fn(&str, &Quantity, &mut Vec<FieldError>),
) -> BTreeMap<&'a str, Quantity> {
    let mut amounts = BTreeMap::new();
    for (name, amount) in list.iter().flatten() {
        let here = path.key(name);
        name_rule(name, &here, errors);
        let Some(amount) = validate_amount(name, amount, &here, errors) else {
            continue;
        };
        also(name, &amount, errors);
        if is_huge_page(name) && !is_whole_pages(name, &amount) {
            let detail = format!("{amount} is not positive integer multiple of {name}");
            errors.push(FieldError::invalid(&here, amount.to_string(), detail));
        }
        amounts.insert(name.as_str(), amount);
    }
    amounts
}

/// Upstream reports a request above its limit at the list of requests.
fn validate_request(
    name: &str,
    request: &Quantity,
    limit: Option<&Quantity>,
    limits_path: &Path<'_>,
    requests_path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let can_overcommit = can_overcommit(name);
    let relation = match limit {
        Some(limit) if request != limit && !can_overcommit => "equal to",
        Some(limit) if request > limit => "less than or equal to",
        None if !can_overcommit => {
            let detail = "Limit must be set for non overcommitable resources";
            errors.push(FieldError::required(limits_path, detail));
            return;
        }
        _ => return,
    };
    if let Some(limit) = limit {
        let detail = format!("must be {relation} {name} limit of {limit}");
        errors.push(FieldError::invalid(requests_path, request.to_string(), detail));
    }
}

fn validate_claims(
    claims: &[ResourceClaim],
    claim_names: &BTreeSet<&str>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let mut seen: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (i, claim) in claims.iter().enumerate() {
        let here = path.index(i);
        let (name, request) = (claim.name.as_str(), text(&claim.request));
        if name.is_empty() {
            errors.push(FieldError::required(&here, ""));
            continue;
        }
        if seen.contains(&(name, "")) {
            // All requests of that claim are taken already.
            errors.push(FieldError::duplicate(&here, name));
        } else {
            if !request.is_empty() {
                let wrong = identifier::dns1123_label(request);
                push_invalid(&here.child("request"), request, wrong, errors);
            }
            if seen.contains(&(name, request)) {
                errors.push(FieldError::duplicate(&here, format!("{name}/{request}")));
            } else if request.is_empty() {
                for _ in seen.range((name, "")..).take_while(|(other, _)| *other == name) {
                    errors.push(FieldError::duplicate(&here, name));
                }
            }
            seen.insert((name, request));
        }
        if !claim_names.contains(name) {
            let mut error = FieldError::not_found(&here, name);
            error.detail = "must be one of the names in pod.spec.resourceClaims".to_owned();
            error.detail.push_str(&known_claims(claim_names));
            errors.push(error);
        }
    }
}

/// The names that a claim could have had, as many as are worth reading: every claim that is
/// not known names them all.
fn known_claims(names: &BTreeSet<&str>) -> String {
    if names.is_empty() {
        return " which is empty".to_owned();
    }
    let mut text = ": ".to_owned();
    for (i, name) in names.iter().enumerate() {
        let separator = if i == 0 { "" } else { ", " };
        text.push_str(separator);
        if text.len() + name.len() > MAX_KNOWN_CLAIMS_BYTES {
            text.push_str("...");
            break;
        }
        text.push_str(name);
    }
    text
}

fn is_standard(name: &str) -> bool {
    COUNTED.contains(&name)
        || MEASURED.contains(&name)
        || is_huge_page(name)
        || name.starts_with("requests.hugepages-")
}

/// Whether more of the resource may be promised than there is: a request may be below its limit.
pub(crate) fn can_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// Whether the resource is Kubernetes' own.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether the resource is a device or the like, counted by someone else.
pub(crate) fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && identifier::qualified_name(&format!("requests.{name}")).is_empty()
}

fn is_whole_pages(name: &str, amount: &Quantity) -> bool {
    let size = name.strip_prefix(HUGE_PAGES).and_then(|size| size.parse::<Quantity>().ok());
    size.is_some_and(|size| {
        let is_size = !size.is_negative() && !size.is_zero() && size.is_integer();
        is_size && amount.value() % size.value() == 0
    })
}
