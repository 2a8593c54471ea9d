//! Endpoints: the addresses and ports behind a Service, all in one object. EndpointSlices
//! have taken their place; some clients still read them.

use std::borrow::Cow;
use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints};

use super::{PROTOCOLS, keep_identity, meta_field, once, validate_meta_update_of_any_kind};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;
use crate::ip_address::{validate_endpoint_ip, validate_ip};
use crate::prepare::reset_server_fields;
use crate::semantic_equality::{json, semantically_equal};
use crate::validation::object_meta::{
    MetaRules, validate_object_meta, validate_object_meta_update,
};
use crate::validation::{items, push_invalid, text, validate_one_of};

/// Whether a PUT may create Endpoints.
pub const CREATES_ON_UPDATE: bool = true;
/// Whether Endpoints may be updated without a resourceVersion.
pub const UPDATES_UNCONDITIONALLY: bool = true;

/// Prepares new Endpoints: ports speak TCP unless they say otherwise.
pub fn prepare_for_create(endpoints: &mut Endpoints) {
    set_defaults(endpoints);
    reset_server_fields(&mut endpoints.metadata);
}

/// Prepares an update.
pub fn prepare_for_update(new: &mut Endpoints, old: &Endpoints) {
    set_defaults(new);
    keep_identity(&mut new.metadata, &old.metadata);
}

/// Validates prepared new Endpoints.
pub fn validate_create(endpoints: &Endpoints) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_object_meta(&endpoints.metadata, &Path::field("metadata"), &mut errors);
    validate_subsets(items(&endpoints.subsets), &mut errors);
    errors
}

/// Validates a prepared update against the stored Endpoints. Subsets that were stored
/// under older rules may stay.
pub fn validate_update(new: &Endpoints, old: &Endpoints) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let metadata = Path::field("metadata");
    let rules = MetaRules::NAMESPACED;
    validate_meta_update_of_any_kind(&rules, &new.metadata, &old.metadata, &mut errors);
    validate_object_meta_update(&new.metadata, &old.metadata, &metadata, &mut errors);
    validate_object_meta(&new.metadata, &metadata, &mut errors);
    let mut subset_errors = Vec::new();
    validate_subsets(items(&new.subsets), &mut subset_errors);
    if !subset_errors.is_empty() && !semantically_equal(&json(&new.subsets), &json(&old.subsets)) {
        errors.extend(subset_errors);
    }
    once(errors)
}

/// What a field selector sees of Endpoints.
pub fn field<'a>(endpoints: &'a Endpoints, name: &str) -> Option<Cow<'a, str>> {
    meta_field(&endpoints.metadata, name)
}

/// Fills in what the API server fills in, whoever writes. To do it again changes nothing.
pub fn set_defaults(endpoints: &mut Endpoints) {
    let subsets = endpoints.subsets.iter_mut().flatten();
    for port in subsets.flat_map(|subset| subset.ports.iter_mut().flatten()) {
        if text(&port.protocol).is_empty() {
            port.protocol = Some("TCP".to_owned());
        }
    }
}

fn validate_subsets(subsets: &[EndpointSubset], errors: &mut Vec<FieldError>) {
    let path = Path::field("subsets");
    for (i, subset) in subsets.iter().enumerate() {
        let here = path.index(i);
        let (ready, not_ready) = (items(&subset.addresses), items(&subset.not_ready_addresses));
        if ready.is_empty() && not_ready.is_empty() {
            let detail = "must specify `addresses` or `notReadyAddresses`";
            errors.push(FieldError::required(&here, detail));
        }
        for (field, addresses) in [("addresses", ready), ("notReadyAddresses", not_ready)] {
            let path = here.child(field);
            for (i, address) in addresses.iter().enumerate() {
                validate_address(address, &path.index(i), errors);
            }
        }
        let ports = items(&subset.ports);
        for (i, port) in ports.iter().enumerate() {
            validate_port(port, ports.len() > 1, &here.child("ports").index(i), errors);
        }
    }
}

fn validate_address(address: &EndpointAddress, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let ip = path.child("ip");
    validate_ip(&address.ip, &BTreeSet::new(), &ip, errors);
    let hostname = text(&address.hostname);
    if !hostname.is_empty() {
        let wrong = identifier::dns1123_label(hostname);
        push_invalid(&path.child("hostname"), hostname, wrong, errors);
    }
    if let Some(name) = &address.node_name {
        push_invalid(&path.child("nodeName"), name, identifier::dns1123_subdomain(name), errors);
    }
    validate_endpoint_ip(&address.ip, &ip, errors);
}

fn validate_port(
    port: &EndpointPort,
    requires_name: bool,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let name = text(&port.name);
    if !name.is_empty() {
        push_invalid(&path.child("name"), name, identifier::dns1123_label(name), errors);
    } else if requires_name {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    for detail in identifier::port_number(port.port.into()) {
        errors.push(FieldError::invalid(&path.child("port"), port.port, detail));
    }
    validate_one_of(text(&port.protocol), &PROTOCOLS, &path.child("protocol"), errors);
    if let Some(protocol) = &port.app_protocol {
        let wrong = identifier::qualified_name(protocol);
        push_invalid(&path.child("appProtocol"), protocol, wrong, errors);
    }
}
