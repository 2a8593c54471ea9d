//! The addresses of a Service and their families: what is kept, filled in and allowed.
//!
//! Upstream does part of this while it hands out addresses, and stops at the first part
//! that finds errors. So do [`wrong_with_families`] and its caller.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::ServiceSpec;

use super::{HEADLESS, is_external_name, is_headless, known};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::ip_address::{is_ipv4, is_ipv6, validate_ip};
use crate::validation::{items, text};

const IPV4: &str = "IPv4";
const IPV6: &str = "IPv6";
const FAMILIES: [&str; 2] = [IPV4, IPV6];
const SINGLE_STACK: &str = "SingleStack";
const PREFER_DUAL_STACK: &str = "PreferDualStack";
const REQUIRE_DUAL_STACK: &str = "RequireDualStack";
const POLICIES: [&str; 3] = [PREFER_DUAL_STACK, REQUIRE_DUAL_STACK, SINGLE_STACK];
/// One address of each family.
const MAX_ADDRESSES: usize = 2;
const ONCE_SET: &str = "may not change once set";

/// Brings the one address and the list in line, and keeps those of the stored Service
/// that the request leaves out.
pub(super) fn keep_addresses(spec: &mut ServiceSpec, old: Option<&ServiceSpec>) {
    let Some(old) = old else {
        if has_address(spec) && items(&spec.cluster_ips).is_empty() {
            spec.cluster_ips = spec.cluster_ip.clone().map(|address| vec![address]);
        }
        return;
    };
    if !is_external_name(old) && !is_external_name(spec) {
        if !has_address(spec) {
            spec.cluster_ip.clone_from(&old.cluster_ip);
        }
        if items(&spec.cluster_ips).is_empty() {
            spec.cluster_ips.clone_from(&old.cluster_ips);
        }
    }
    let is_same = text(&spec.cluster_ip) == text(&old.cluster_ip);
    if is_same && items(&spec.cluster_ips).is_empty() {
        spec.cluster_ips.clone_from(&old.cluster_ips);
    }
    if !is_same && items(&spec.cluster_ips) == items(&old.cluster_ips) {
        let address = spec.cluster_ip.clone().filter(|address| !address.is_empty());
        spec.cluster_ips = address.map(|address| vec![address]);
    }
}

/// Takes an address for a Service that needs one and names none.
pub(super) fn fill_addresses(spec: &mut ServiceSpec, allocate: &mut dyn FnMut() -> Option<String>) {
    if is_external_name(spec) || !items(&spec.cluster_ips).is_empty() {
        return;
    }
    if let Some(address) = allocate() {
        spec.cluster_ips = Some(vec![address.clone()]);
        spec.cluster_ip = Some(address);
    }
}

/// Drops addresses and families where the Service has become a mere name, unless the
/// request has changed them too.
pub(super) fn drop_addresses(spec: &mut ServiceSpec, old: &ServiceSpec) {
    if is_external_name(old) || !is_external_name(spec) {
        return;
    }
    let is_same = text(&spec.cluster_ip) == text(&old.cluster_ip);
    if is_same && items(&spec.cluster_ips) == items(&old.cluster_ips) {
        spec.cluster_ip = None;
        spec.cluster_ips = None;
    }
    if items(&spec.ip_families) == items(&old.ip_families) {
        spec.ip_families = None;
    }
    if text(&spec.ip_family_policy) == text(&old.ip_family_policy) {
        spec.ip_family_policy = None;
    }
}

/// What stands in the way of choosing families for a Service that has been prepared.
pub(super) fn wrong_with_families(
    spec: &ServiceSpec,
    old: Option<&ServiceSpec>,
) -> Vec<FieldError> {
    default_ip_families(&mut spec.clone(), old)
}

/// Fills in the policy and the families, as far as nothing is wrong with them.
pub(super) fn default_ip_families(
    spec: &mut ServiceSpec,
    old: Option<&ServiceSpec>,
) -> Vec<FieldError> {
    if is_external_name(spec) || old.is_some_and(|old| still_prefers_dual_stack(spec, old)) {
        return Vec::new();
    }
    let has_no_pods = text(&spec.cluster_ip) == HEADLESS
        && spec.selector.as_ref().is_none_or(|selector| selector.is_empty());
    if spec.ip_family_policy.is_none() {
        let old_policy = old.and_then(|old| old.ip_family_policy.clone());
        let policy = if has_no_pods { REQUIRE_DUAL_STACK } else { SINGLE_STACK };
        spec.ip_family_policy = old_policy.or_else(|| Some(policy.to_owned()));
    }
    let mut errors = Vec::new();
    validate(spec, old, &mut errors);
    if !errors.is_empty() {
        return errors;
    }
    if let Some(old) = old {
        release_second(spec, old, &mut errors);
    }
    validate_policy(spec, &mut errors);
    infer_families(spec, &mut errors);
    if !errors.is_empty() {
        return errors;
    }
    let is_single_stack = text(&spec.ip_family_policy) == SINGLE_STACK;
    let families = spec.ip_families.get_or_insert_default();
    if has_no_pods {
        // Who has no address and no Pods of its own may name any family.
        if families.is_empty() {
            families.push(IPV4.to_owned());
        }
        if families.len() == 1 && !is_single_stack {
            let other = if families[0] == IPV4 { IPV6 } else { IPV4 };
            families.push(other.to_owned());
        }
        return errors;
    }
    let path = Path::field("spec");
    if text(&spec.ip_family_policy) == REQUIRE_DUAL_STACK {
        let detail = "this cluster is not configured for dual-stack services";
        let at = path.child("ipFamilyPolicy");
        errors.push(FieldError::invalid(&at, REQUIRE_DUAL_STACK, detail));
    }
    for (i, family) in families.iter().enumerate().filter(|(_, family)| *family != IPV4) {
        let at = path.child("ipFamilies");
        errors.push(FieldError::invalid(&at.index(i), family, "not configured on this cluster"));
    }
    if errors.is_empty() && families.is_empty() {
        families.push(IPV4.to_owned());
    }
    errors
}

/// Validates addresses, families and policy, each alone and together.
pub(super) fn validate(
    spec: &ServiceSpec,
    old: Option<&ServiceSpec>,
    errors: &mut Vec<FieldError>,
) {
    if is_external_name(spec) {
        return;
    }
    let path = Path::field("spec");
    let at = path.child("clusterIPs");
    let addresses = items(&spec.cluster_ips);
    match (text(&spec.cluster_ip), addresses.first()) {
        ("", None) => {}
        ("", Some(_)) => {
            let detail = "must be empty when `clusterIP` is not specified";
            errors.push(FieldError::invalid(&at, addresses, detail));
        }
        (_, None) => errors.push(FieldError::required(&at, "")),
        (one, Some(first)) if one == first => {}
        (_, Some(_)) => {
            let detail = "first value must match `clusterIP`";
            errors.push(FieldError::invalid(&at, addresses, detail));
        }
    }
    validate_families(spec, &path, errors);
    let count = errors.len();
    let known = known(old.and_then(|old| old.cluster_ips.as_ref()));
    for (i, address) in addresses.iter().enumerate() {
        if i > 0 || address != HEADLESS {
            validate_ip(address, &known, &at.index(i), errors);
        } else if addresses.len() > 1 {
            let detail = "'None' must be the first and only value";
            errors.push(FieldError::invalid(&at, addresses, detail));
        }
    }
    let is_readable = errors.len() == count;
    if addresses.len() > MAX_ADDRESSES {
        errors.push(FieldError::invalid(&at, addresses, "may only hold up to 2 values"));
    }
    if is_readable {
        validate_stacks(spec, &at, errors);
    }
}

/// Validates what becomes of addresses and families. They may come and go in second
/// place, not in first, but for a Service that is or becomes a mere name.
pub(super) fn validate_change(spec: &ServiceSpec, old: &ServiceSpec, errors: &mut Vec<FieldError>) {
    if is_external_name(spec) || is_external_name(old) {
        return;
    }
    let path = Path::field("spec");
    if !(is_headless(spec) && is_headless(old)) {
        validate_address_change(spec, old, &path, errors);
    }
    if !is_headless(spec) && !is_headless(old) {
        validate_family_change(spec, old, &path, errors);
    }
}

fn has_address(spec: &ServiceSpec) -> bool {
    !text(&spec.cluster_ip).is_empty()
}

/// Whether a Service that takes one family or two, as it comes, is left as it was.
fn still_prefers_dual_stack(spec: &ServiceSpec, old: &ServiceSpec) -> bool {
    text(&spec.ip_family_policy) == PREFER_DUAL_STACK
        && old.ip_family_policy.as_deref().is_none_or(|policy| policy == PREFER_DUAL_STACK)
        && spec.type_ == old.type_
        && super::TYPES.contains(&text(&spec.type_))
        && items(&spec.cluster_ips) == items(&old.cluster_ips)
        && items(&spec.ip_families) == items(&old.ip_families)
}

/// Lets the second address and family go when the policy becomes SingleStack.
fn release_second(spec: &mut ServiceSpec, old: &ServiceSpec, errors: &mut Vec<FieldError>) {
    let policy = text(&spec.ip_family_policy).to_owned();
    for (new, old, what) in [
        (&mut spec.cluster_ips, &old.cluster_ips, "cluster IP"),
        (&mut spec.ip_families, &old.ip_families, "IP family"),
    ] {
        let (count, old_count) = (items(new).len(), items(old).len());
        if policy == SINGLE_STACK {
            if items(new) == items(old)
                && let Some(new) = new
            {
                new.truncate(1);
            }
        } else if count > 0 && count < old_count {
            let path = Path::field("spec");
            let detail = format!("must be 'SingleStack' to release the secondary {what}");
            errors.push(FieldError::invalid(&path.child("ipFamilyPolicy"), &policy, detail));
        }
    }
}

fn validate_policy(spec: &ServiceSpec, errors: &mut Vec<FieldError>) {
    if text(&spec.ip_family_policy) != SINGLE_STACK {
        return;
    }
    let path = Path::field("spec");
    let counts = [("cluster IPs", &spec.cluster_ips), ("IP families", &spec.ip_families)];
    for (what, list) in counts {
        if items(list).len() == MAX_ADDRESSES {
            let detail = format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            );
            let at = path.child("ipFamilyPolicy");
            errors.push(FieldError::invalid(&at, SINGLE_STACK, detail));
        }
    }
}

/// Adds the families of addresses that are there.
fn infer_families(spec: &mut ServiceSpec, errors: &mut Vec<FieldError>) {
    if is_headless(spec) {
        return;
    }
    let addresses = items(&spec.cluster_ips);
    let families = spec.ip_families.get_or_insert_default();
    for (i, address) in addresses.iter().enumerate().skip(families.len()) {
        if is_ipv4(address) {
            families.push(IPV4.to_owned());
        } else {
            let path = Path::field("spec");
            let at = path.child("clusterIPs");
            let detail = "IPv6 is not configured on this cluster";
            errors.push(FieldError::invalid(&at.index(i), addresses, detail));
        }
    }
}

fn validate_families(spec: &ServiceSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let at = path.child("ipFamilies");
    let mut seen = BTreeSet::new();
    for (i, family) in items(&spec.ip_families).iter().enumerate() {
        if !FAMILIES.contains(&family.as_str()) {
            errors.push(FieldError::not_supported(&at.index(i), family, &FAMILIES));
        }
        if !seen.insert(family) {
            errors.push(FieldError::duplicate(&at.index(i), family));
        }
    }
    if let Some(policy) = &spec.ip_family_policy
        && !POLICIES.contains(&policy.as_str())
    {
        let at = path.child("ipFamilyPolicy");
        errors.push(FieldError::not_supported(&at, policy, &POLICIES));
    }
}

/// Two addresses are of two families, and each is of the family that is named beside it.
fn validate_stacks(spec: &ServiceSpec, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    let addresses = items(&spec.cluster_ips);
    if addresses.len() > 1 {
        let has_both = addresses.iter().any(|address| is_ipv4(address))
            && addresses.iter().any(|address| is_ipv6(address));
        if !has_both {
            let detail = "may specify no more than one IP for each IP family";
            errors.push(FieldError::invalid(at, addresses, detail));
        }
    }
    if is_headless(spec) {
        return;
    }
    for (i, (address, family)) in addresses.iter().zip(items(&spec.ip_families)).enumerate() {
        let is_right = match family.as_str() {
            IPV4 => !is_ipv6(address),
            IPV6 => is_ipv6(address),
            _ => true,
        };
        if !is_right {
            let detail = format!("expected an {family} value as indicated by `ipFamilies[{i}]`");
            errors.push(FieldError::invalid(&at.index(i), address, detail));
        }
    }
}

fn validate_address_change(
    spec: &ServiceSpec,
    old: &ServiceSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let at = path.child("clusterIPs");
    let (new_list, old_list) = (items(&spec.cluster_ips), items(&old.cluster_ips));
    if new_list.len() == old_list.len() {
        for (i, _) in new_list.iter().zip(old_list).enumerate().filter(|(_, (new, old))| new != old)
        {
            errors.push(FieldError::invalid(&at.index(i), new_list, ONCE_SET));
        }
        return;
    }
    if new_list.is_empty() {
        let detail = "primary clusterIP can not be unset";
        errors.push(FieldError::invalid(&at.index(0), new_list, detail));
    } else if !old_list.is_empty() && new_list[0] != old_list[0] {
        errors.push(FieldError::invalid(&at.index(0), new_list, ONCE_SET));
    }
    let has_released = new_list.len() == 1 && old_list.len() > 1;
    if has_released && text(&spec.ip_family_policy) != SINGLE_STACK {
        let detail = "must be set to 'SingleStack' when releasing the secondary clusterIP";
        let at = path.child("ipFamilyPolicy");
        errors.push(FieldError::invalid(&at, &spec.ip_family_policy, detail));
    }
}

/// Upstream prints the addresses where it means the families, and so does this.
fn validate_family_change(
    spec: &ServiceSpec,
    old: &ServiceSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let list = path.child("ipFamilies");
    let at = list.index(0);
    let (new_list, old_list) = (items(&spec.ip_families), items(&old.ip_families));
    if new_list.len() == old_list.len() {
        for _ in new_list.iter().zip(old_list).filter(|(new, old)| new != old) {
            errors.push(FieldError::invalid(&at, new_list, ONCE_SET));
        }
        return;
    }
    let addresses = items(&spec.cluster_ips);
    if new_list.len() < old_list.len() && addresses.is_empty() {
        errors.push(FieldError::invalid(&at, new_list, "primary ipFamily can not be unset"));
    }
    if let (Some(new), Some(old)) = (new_list.first(), old_list.first())
        && new != old
    {
        errors.push(FieldError::invalid(&at, addresses, ONCE_SET));
    }
    let has_released = new_list.len() == 1 && old_list.len() > 1;
    if has_released && text(&spec.ip_family_policy) != SINGLE_STACK {
        let detail = "must be set to 'SingleStack' when releasing the secondary ipFamily";
        let at = path.child("ipFamilyPolicy");
        errors.push(FieldError::invalid(&at, &spec.ip_family_policy, detail));
    }
}
