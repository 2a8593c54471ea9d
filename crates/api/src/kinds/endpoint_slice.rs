//! An EndpointSlice: some of the addresses and ports behind a Service.
//!
//! `deprecatedTopology` cannot be written through discovery.k8s.io/v1, and is dropped.

use std::borrow::Cow;
use std::collections::BTreeSet;

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointHints, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{PROTOCOLS, keep_identity, meta_field, once, validate_meta_update_of_any_kind};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;
use crate::ip_address::{
    is_ipv4, is_ipv6, validate_canonical_ip, validate_endpoint_ip, validate_ip,
};
use crate::prepare::reset_server_fields;
use crate::semantic_equality::{json, semantically_equal};
use crate::validation::object_meta::{MetaRules, validate_object_meta, validate_same};
use crate::validation::{items, push_invalid, text, validate_one_of};

/// Whether a PUT may create an EndpointSlice.
pub const CREATES_ON_UPDATE: bool = false;
/// Whether an EndpointSlice may be updated without a resourceVersion.
pub const UPDATES_UNCONDITIONALLY: bool = true;

const ADDRESS_TYPES: [&str; 3] = ["FQDN", "IPv4", "IPv6"];
// Upstream's limits.
const MAX_ENDPOINTS: usize = 1000;
const MAX_ADDRESSES: usize = 100;
const MAX_PORTS: usize = 20_000;
const MAX_HINTS: usize = 8;

/// Prepares a new EndpointSlice: generation 1, ports have a name and speak TCP.
pub fn prepare_for_create(slice: &mut EndpointSlice) {
    set_defaults(slice);
    reset_server_fields(&mut slice.metadata);
    slice.metadata.generation = Some(1);
    drop_topology(slice);
}

/// Prepares an update. The generation grows with any change outside the metadata, and
/// with a change of the labels.
pub fn prepare_for_update(new: &mut EndpointSlice, old: &EndpointSlice) {
    set_defaults(new);
    keep_identity(&mut new.metadata, &old.metadata);
    if has_changed(new, old) {
        new.metadata.generation = Some(old.metadata.generation.unwrap_or(0).saturating_add(1));
    }
    if !semantically_equal(&json(&new.endpoints), &json(&old.endpoints)) {
        drop_topology(new);
    }
}

/// Validates a prepared new EndpointSlice.
pub fn validate_create(slice: &EndpointSlice) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate(slice, &mut errors);
    validate_endpoints(slice, &mut errors);
    errors
}

/// Validates a prepared update against the stored EndpointSlice. Endpoints that were
/// stored under older rules may stay.
pub fn validate_update(new: &EndpointSlice, old: &EndpointSlice) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let rules = MetaRules::NAMESPACED;
    validate_meta_update_of_any_kind(&rules, &new.metadata, &old.metadata, &mut errors);
    validate(new, &mut errors);
    let mut endpoint_errors = Vec::new();
    validate_endpoints(new, &mut endpoint_errors);
    let is_unchanged = || semantically_equal(&json(&new.endpoints), &json(&old.endpoints));
    if !endpoint_errors.is_empty() && !is_unchanged() {
        errors.extend(endpoint_errors);
    }
    let at = Path::field("addressType");
    validate_same(&new.address_type, &old.address_type, &at, &mut errors);
    once(errors)
}

/// What a field selector sees of an EndpointSlice.
pub fn field<'a>(slice: &'a EndpointSlice, name: &str) -> Option<Cow<'a, str>> {
    meta_field(&slice.metadata, name)
}

/// Fills in what the API server fills in, whoever writes. To do it again changes nothing.
pub fn set_defaults(slice: &mut EndpointSlice) {
    for port in slice.ports.iter_mut().flatten() {
        port.name.get_or_insert_default();
        port.protocol.get_or_insert_with(|| "TCP".to_owned());
    }
}

fn drop_topology(slice: &mut EndpointSlice) {
    for endpoint in slice.endpoints.iter_mut().flatten() {
        endpoint.deprecated_topology = None;
    }
}

fn has_changed(new: &EndpointSlice, old: &EndpointSlice) -> bool {
    let bare = |slice: &EndpointSlice| {
        let labels = slice.metadata.labels.clone();
        let metadata = ObjectMeta { labels, ..ObjectMeta::default() };
        json(EndpointSlice { metadata, ..slice.clone() })
    };
    !semantically_equal(&bare(new), &bare(old))
}

fn validate(slice: &EndpointSlice, errors: &mut Vec<FieldError>) {
    validate_object_meta(&slice.metadata, &Path::field("metadata"), errors);
    validate_one_of(&slice.address_type, &ADDRESS_TYPES, &Path::field("addressType"), errors);
    validate_ports(items(&slice.ports), &Path::field("ports"), errors);
}

fn validate_ports(ports: &[EndpointPort], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if ports.len() > MAX_PORTS {
        errors.push(FieldError::too_many(path, ports.len(), MAX_PORTS));
        return;
    }
    let mut names = BTreeSet::new();
    for (i, port) in ports.iter().enumerate() {
        let here = path.index(i);
        let (name, name_path) = (text(&port.name), here.child("name"));
        if !name.is_empty() {
            push_invalid(&name_path, name, identifier::dns1123_label(name), errors);
        }
        if !names.insert(name) {
            errors.push(FieldError::duplicate(&name_path, name));
        }
        let (protocol, protocol_path) = (text(&port.protocol), here.child("protocol"));
        if port.protocol.is_none() {
            errors.push(FieldError::required(&protocol_path, ""));
        } else if !PROTOCOLS.contains(&protocol) {
            errors.push(FieldError::not_supported(&protocol_path, protocol, &PROTOCOLS));
        }
        if let Some(protocol) = &port.app_protocol {
            let wrong = identifier::qualified_name(protocol);
            push_invalid(&here.child("appProtocol"), protocol, wrong, errors);
        }
    }
}

fn validate_endpoints(slice: &EndpointSlice, errors: &mut Vec<FieldError>) {
    let path = Path::field("endpoints");
    let endpoints = items(&slice.endpoints);
    if endpoints.len() > MAX_ENDPOINTS {
        errors.push(FieldError::too_many(&path, endpoints.len(), MAX_ENDPOINTS));
        return;
    }
    for (i, endpoint) in endpoints.iter().enumerate() {
        validate_endpoint(endpoint, &slice.address_type, &path.index(i), errors);
    }
}

fn validate_endpoint(
    endpoint: &Endpoint,
    address_type: &str,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let addresses = path.child("addresses");
    let count = endpoint.addresses.len();
    if count == 0 {
        errors.push(FieldError::required(&addresses, "must contain at least 1 address"));
    } else if count > MAX_ADDRESSES {
        errors.push(FieldError::too_many(&addresses, count, MAX_ADDRESSES));
    }
    for (i, address) in endpoint.addresses.iter().enumerate() {
        validate_address(address, address_type, &addresses, i, errors);
    }
    if let Some(name) = &endpoint.node_name {
        push_invalid(&path.child("nodeName"), name, identifier::dns1123_subdomain(name), errors);
    }
    if let Some(name) = &endpoint.hostname {
        push_invalid(&path.child("hostname"), name, identifier::dns1123_label(name), errors);
    }
    if let Some(hints) = &endpoint.hints {
        validate_hints(hints, &path.child("hints"), errors);
    }
}

/// Only IPv6 addresses, which came later, must be spelled canonically. Upstream reports
/// an address of the wrong family at the list.
fn validate_address(
    address: &str,
    address_type: &str,
    addresses: &Path<'_>,
    index: usize,
    errors: &mut Vec<FieldError>,
) {
    let here = addresses.index(index);
    let count = errors.len();
    let is_family = match address_type {
        "IPv4" => {
            validate_ip(address, &BTreeSet::new(), &here, errors);
            is_ipv4(address)
        }
        "IPv6" => {
            validate_canonical_ip(address, &here, errors);
            is_ipv6(address)
        }
        "FQDN" => return validate_domain(address, &here, errors),
        _ => return,
    };
    if errors.len() > count {
        return;
    }
    if !is_family {
        let detail = format!("must be an {address_type} address");
        errors.push(FieldError::invalid(addresses, address, detail));
    }
    validate_endpoint_ip(address, &here, errors);
}

/// A domain of at least two labels, with or without the dot at its end.
fn validate_domain(domain: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if domain.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let domain = domain.strip_suffix('.').unwrap_or(domain);
    let wrong = identifier::dns1123_subdomain(domain);
    if !wrong.is_empty() {
        errors.push(FieldError::invalid(path, domain, wrong.join(",")));
    } else if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid(path, domain, detail));
    } else {
        let bad = |label: &&str| !identifier::dns1123_label(label).is_empty();
        if let Some(label) = domain.split('.').find(bad) {
            let wrong = identifier::dns1123_label(label);
            errors.push(FieldError::invalid(path, label, wrong.join(",")));
        }
    }
}

/// Upstream says nothing of the nodes when there are too many zones.
fn validate_hints(hints: &EndpointHints, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let zones = path.child("forZones");
    let names = items(&hints.for_zones).iter().map(|zone| zone.name.as_str()).collect();
    if validate_hint_names(names, identifier::label_value, &zones, errors) {
        let nodes = path.child("forNodes");
        let names = items(&hints.for_nodes).iter().map(|node| node.name.as_str()).collect();
        validate_hint_names(names, identifier::dns1123_subdomain, &nodes, errors);
    }
}

/// Validates the names of one kind of hint, and says whether they were few enough.
fn validate_hint_names(
    names: Vec<&str>,
    rule: fn(&str) -> Vec<String>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) -> bool {
    if names.len() > MAX_HINTS {
        errors.push(FieldError::too_many(path, names.len(), MAX_HINTS));
        return false;
    }
    for (i, &name) in names.iter().enumerate() {
        let item = path.index(i);
        let here = item.child("name");
        if names[..i].contains(&name) {
            errors.push(FieldError::duplicate(&here, name));
        }
        push_invalid(&here, name, rule(name), errors);
    }
    true
}
