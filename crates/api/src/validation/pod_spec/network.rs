//! What a Pod says of names and addresses: DNS, host names, host ports.
//!
//! Whether a name resolves or a port is free is not known here.

use std::net::{Ipv4Addr, Ipv6Addr};

use k8s_openapi::api::core::v1::{HostAlias, PodSpec};

use super::{items, push_invalid, text, validate_one_of};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;

/// What a resolver's library takes (`MAXNS`).
const NAMESERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
const SEARCHES_MAX_BYTES: usize = 2048;
/// What Linux takes for a host name.
const HOSTNAME_MAX_BYTES: usize = 64;

/// Validates that with the host's network every host port is the container's port. In a
/// template (`is_pod` is false) it may also be absent: it is filled in in the Pod.
pub(super) fn validate_host_network_ports(
    spec: &PodSpec,
    is_pod: bool,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if spec.host_network != Some(true) {
        return;
    }
    let containers_path = path.child("containers");
    for (i, container) in spec.containers.iter().enumerate() {
        let container_path = containers_path.index(i);
        let ports_path = container_path.child("ports");
        for (j, port) in items(&container.ports).iter().enumerate() {
            let host_port = port.host_port.unwrap_or(0);
            if (is_pod || host_port != 0) && host_port != port.container_port {
                let here = ports_path.index(j);
                let detail = "must match `containerPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(&here.child("hostPort"), host_port, detail));
            }
        }
    }
}

/// Validates `dnsPolicy`.
pub(super) fn validate_dns_policy(policy: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    validate_one_of(policy, &policies, path, errors);
}

/// Validates `dnsConfig`, which `dnsPolicy: None` requires.
pub(super) fn validate_dns_config(spec: &PodSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let has_no_policy = text(&spec.dns_policy) == "None";
    let Some(config) = &spec.dns_config else {
        if has_no_policy {
            let detail = "must provide `dnsConfig` when `dnsPolicy` is None";
            errors.push(FieldError::required(path, detail));
        }
        return;
    };
    let (servers, searches) = (items(&config.nameservers), items(&config.searches));
    let servers_path = path.child("nameservers");
    if has_no_policy && servers.is_empty() {
        let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        errors.push(FieldError::required(&servers_path, detail));
        return;
    }
    if servers.len() > NAMESERVERS_MAX {
        let detail = format!("must not have more than {NAMESERVERS_MAX} nameservers");
        errors.push(FieldError::invalid(&servers_path, servers, detail));
    }
    for (i, server) in servers.iter().enumerate() {
        validate_ip(server, &servers_path.index(i), errors);
    }
    validate_searches(searches, &path.child("searches"), errors);
    let options_path = path.child("options");
    for (i, option) in items(&config.options).iter().enumerate() {
        if text(&option.name).is_empty() {
            let at = options_path.index(i);
            errors.push(FieldError::required(&at, "must not be empty"));
        }
    }
}

/// Validates `hostnameOverride`; `path` is the Pod's spec.
pub(super) fn validate_hostname_override(
    spec: &PodSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Some(hostname) = &spec.hostname_override else {
        return;
    };
    let at = path.child("hostnameOverride");
    if spec.set_hostname_as_fqdn == Some(true) {
        let detail = "may not be specified when setHostnameAsFQDN is true";
        errors.push(FieldError::forbidden(&at, detail));
    }
    if spec.host_network == Some(true) {
        let detail = "may not be specified when hostNetwork is true";
        errors.push(FieldError::forbidden(&at, detail));
    }
    if hostname.len() > HOSTNAME_MAX_BYTES {
        errors.push(FieldError::too_long(&at, HOSTNAME_MAX_BYTES));
    }
    push_invalid(&at, hostname, identifier::dns1123_subdomain(hostname), errors);
}

/// Validates `hostAliases`.
pub(super) fn validate_host_aliases(
    aliases: &[HostAlias],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    for (i, alias) in aliases.iter().enumerate() {
        let here = path.index(i);
        validate_ip(&alias.ip, &here.child("ip"), errors);
        let names_path = here.child("hostnames");
        for (j, name) in items(&alias.hostnames).iter().enumerate() {
            let wrong = identifier::dns1123_subdomain(name);
            push_invalid(&names_path.index(j), name, wrong, errors);
        }
    }
}

fn validate_searches(searches: &[String], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if searches.len() > SEARCHES_MAX {
        let detail = format!("must not have more than {SEARCHES_MAX} search paths");
        errors.push(FieldError::invalid(path, searches, detail));
    }
    if searches.join(" ").len() > SEARCHES_MAX_BYTES {
        let detail = format!(
            "must not have more than {SEARCHES_MAX_BYTES} characters (including spaces) in the \
             search list"
        );
        errors.push(FieldError::invalid(path, searches, detail));
    }
    for (i, search) in searches.iter().enumerate() {
        if search != "." {
            let domain = search.strip_suffix('.').unwrap_or(search);
            let wrong = identifier::dns1123_subdomain_with_underscore(domain);
            push_invalid(&path.index(i), domain, wrong, errors);
        }
    }
}

/// An IP address in any form that has one meaning.
pub(in crate::validation) fn validate_ip(
    value: &str,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let detail = match value.parse::<Ipv6Addr>() {
        Ok(address) if address.to_ipv4_mapped().is_some() => {
            "must not be an IPv4-mapped IPv6 address"
        }
        Ok(_) => return,
        Err(_) if value.parse::<Ipv4Addr>().is_ok() => return,
        Err(_) if is_ipv4_with_zeros(value) => "must not have leading 0s",
        Err(_) => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
    };
    errors.push(FieldError::invalid(path, value, detail));
}

/// Whether an address is of the fourth version, however sloppily it is written; none if it
/// is no address. One of the fourth version mapped into the sixth is of the fourth.
pub(in crate::validation) fn is_ipv4(value: &str) -> Option<bool> {
    match value.parse::<Ipv6Addr>() {
        Ok(address) => Some(address.to_ipv4_mapped().is_some()),
        Err(_) => is_ipv4_with_zeros(value).then_some(true),
    }
}

/// Whether it would be an IPv4 address if leading zeros were nothing.
fn is_ipv4_with_zeros(value: &str) -> bool {
    let octets: Vec<&str> = value.split('.').collect();
    let is_octet = |octet: &&str| {
        octet.bytes().all(|b| b.is_ascii_digit())
            && octet.parse::<u32>().is_ok_and(|number| number <= 255)
    };
    octets.len() == 4 && octets.iter().all(is_octet)
}
