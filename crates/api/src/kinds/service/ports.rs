//! The ports of a Service, and those of them that are open on every node.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::json;

use super::{CLUSTER_IP, LOAD_BALANCER, NODE_PORT};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;
use crate::kinds::PROTOCOLS;
use crate::validation::{items, push_invalid, text, validate_one_of};

/// The ports that nodes may open; an API server's default.
const NODE_PORTS: std::ops::RangeInclusive<i32> = 30_000..=32_767;

/// Keeps node ports that the request leaves out, by the names of the ports.
pub(super) fn keep_node_ports(spec: &mut ServiceSpec, old: &ServiceSpec) {
    if !needs_node_ports(spec) || !needs_node_ports(old) {
        return;
    }
    let open: BTreeSet<i32> = items(&spec.ports).iter().map(node_port).collect();
    let by_name: BTreeMap<&str, i32> =
        items(&old.ports).iter().map(|port| (text(&port.name), node_port(port))).collect();
    for port in spec.ports.iter_mut().flatten().filter(|port| node_port(port) == 0) {
        let known = by_name.get(text(&port.name)).copied().unwrap_or(0);
        if known != 0 && !open.contains(&known) {
            port.node_port = Some(known);
        }
    }
}

/// Validates each port by itself.
pub(super) fn validate_ports(spec: &ServiceSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let list = path.child("ports");
    let ports = items(&spec.ports);
    let mut names = BTreeSet::new();
    for (i, port) in ports.iter().enumerate() {
        let here = list.index(i);
        let (name, name_path) = (text(&port.name), here.child("name"));
        if !name.is_empty() {
            push_invalid(&name_path, name, identifier::dns1123_label(name), errors);
            if !names.insert(name) {
                errors.push(FieldError::duplicate(&name_path, name));
            }
        } else if ports.len() > 1 {
            errors.push(FieldError::required(&name_path, ""));
        }
        for detail in identifier::port_number(port.port.into()) {
            errors.push(FieldError::invalid(&here.child("port"), port.port, detail));
        }
        validate_one_of(text(&port.protocol), &PROTOCOLS, &here.child("protocol"), errors);
        validate_target(port, &here.child("targetPort"), errors);
        if let Some(protocol) = &port.app_protocol {
            let wrong = identifier::qualified_name(protocol);
            push_invalid(&here.child("appProtocol"), protocol, wrong, errors);
        }
    }
}

/// Validates that nodes open ports only for Services that are reached through them, each
/// for one.
pub(super) fn validate_node_ports(
    spec: &ServiceSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let list = path.child("ports");
    let open = || items(&spec.ports).iter().enumerate().filter(|(_, port)| node_port(port) != 0);
    if text(&spec.type_) == CLUSTER_IP {
        for (i, _) in open() {
            let here = list.index(i);
            let detail = "may not be used when `type` is 'ClusterIP'";
            errors.push(FieldError::forbidden(&here.child("nodePort"), detail));
        }
    }
    let mut seen = BTreeSet::new();
    for (i, port) in open() {
        if !seen.insert((text(&port.protocol), node_port(port))) {
            let here = list.index(i);
            errors.push(FieldError::duplicate(&here.child("nodePort"), node_port(port)));
        }
    }
}

/// Validates that no two ports are the same to a client.
pub(super) fn validate_unique_ports(
    spec: &ServiceSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let list = path.child("ports");
    let mut seen = BTreeSet::new();
    for (i, port) in items(&spec.ports).iter().enumerate() {
        let protocol = text(&port.protocol);
        if !seen.insert((protocol, port.port)) {
            let value = json!({"port": port.port, "protocol": protocol});
            errors.push(FieldError::duplicate(&list.index(i), value));
        }
    }
}

/// Validates that the first port that nodes would newly open may be opened.
pub(super) fn validate_node_port_range(
    spec: &ServiceSpec,
    old: &[ServicePort],
    errors: &mut Vec<FieldError>,
) {
    if !matches!(text(&spec.type_), NODE_PORT | LOAD_BALANCER) || !errors.is_empty() {
        return;
    }
    let known: BTreeSet<i32> = old.iter().map(node_port).collect();
    let is_out = |port: i32| port != 0 && !NODE_PORTS.contains(&port) && !known.contains(&port);
    let ports = items(&spec.ports).iter().map(node_port).enumerate();
    if let Some((i, port)) = ports.into_iter().find(|(_, port)| is_out(*port)) {
        let path = Path::field("spec");
        let list = path.child("ports");
        let here = list.index(i);
        let detail = "provided port is not in the valid range. The range of valid ports is \
             30000-32767";
        errors.push(FieldError::invalid(&here.child("nodePort"), port, detail));
    }
}

/// The port that nodes open for this one; 0: none.
pub(super) fn node_port(port: &ServicePort) -> i32 {
    port.node_port.unwrap_or(0)
}

fn needs_node_ports(spec: &ServiceSpec) -> bool {
    match text(&spec.type_) {
        NODE_PORT => true,
        LOAD_BALANCER => spec.allocate_load_balancer_node_ports != Some(false),
        _ => false,
    }
}

fn validate_target(port: &ServicePort, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match &port.target_port {
        Some(IntOrString::Int(number)) => {
            for detail in identifier::port_number((*number).into()) {
                errors.push(FieldError::invalid(path, number, detail));
            }
        }
        Some(IntOrString::String(name)) => {
            push_invalid(path, name, identifier::port_name(name), errors);
        }
        // Defaulting gives every port a target.
        None => {}
    }
}
