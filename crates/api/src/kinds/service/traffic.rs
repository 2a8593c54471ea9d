//! Where the traffic of a Service may come from and go to.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::ServiceSpec;

use super::ports::node_port;
use super::{CLUSTER_IP, LOAD_BALANCER, NODE_PORT};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;
use crate::validation::{items, text, validate_one_of};

/// Traffic goes to any Pod of the cluster.
pub(super) const CLUSTER: &str = "Cluster";
const LOCAL: &str = "Local";
const POLICIES: [&str; 2] = [CLUSTER, LOCAL];
const DISTRIBUTIONS: [&str; 3] = ["PreferClose", "PreferSameZone", "PreferSameNode"];

/// Whether the Service can be reached from outside of the cluster.
pub(super) fn is_reachable_from_outside(spec: &ServiceSpec) -> bool {
    match text(&spec.type_) {
        LOAD_BALANCER | NODE_PORT => true,
        CLUSTER_IP => !items(&spec.external_ips).is_empty(),
        _ => false,
    }
}

/// Drops what the new type has no use for, unless the request has changed it too.
pub(super) fn drop_unused(spec: &mut ServiceSpec, old: &ServiceSpec) {
    let opens = |spec: &ServiceSpec| matches!(text(&spec.type_), NODE_PORT | LOAD_BALANCER);
    let open = |spec: &ServiceSpec| -> BTreeSet<i32> {
        items(&spec.ports).iter().map(node_port).filter(|&port| port != 0).collect()
    };
    if opens(old) && !opens(spec) && open(spec).is_subset(&open(old)) {
        spec.ports.iter_mut().flatten().for_each(|port| port.node_port = None);
    }
    let is_same_check =
        spec.health_check_node_port.unwrap_or(0) == old.health_check_node_port.unwrap_or(0);
    if needs_health_check(old) && !needs_health_check(spec) && is_same_check {
        spec.health_check_node_port = None;
    }
    let was_balanced = text(&old.type_) == LOAD_BALANCER;
    if was_balanced && text(&spec.type_) != LOAD_BALANCER {
        if spec.allocate_load_balancer_node_ports == old.allocate_load_balancer_node_ports {
            spec.allocate_load_balancer_node_ports = None;
        }
        if spec.load_balancer_class == old.load_balancer_class {
            spec.load_balancer_class = None;
        }
    }
    let has_left = is_reachable_from_outside(old) && !is_reachable_from_outside(spec);
    if has_left && text(&spec.external_traffic_policy) == text(&old.external_traffic_policy) {
        spec.external_traffic_policy = None;
    }
}

/// Validates the policies for traffic from outside and inside.
pub(super) fn validate(spec: &ServiceSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let (policy, at) = (text(&spec.external_traffic_policy), path.child("externalTrafficPolicy"));
    if is_reachable_from_outside(spec) {
        validate_one_of(policy, &POLICIES, &at, errors);
    } else if !policy.is_empty() {
        let detail = "may only be set for externally-accessible services";
        errors.push(FieldError::invalid(&at, policy, detail));
    }
    let port = spec.health_check_node_port.unwrap_or(0);
    let at = path.child("healthCheckNodePort");
    if port != 0 && !needs_health_check(spec) {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` \
             is 'Local'";
        errors.push(FieldError::invalid(&at, port, detail));
    } else if port != 0 {
        for detail in identifier::port_number(port.into()) {
            errors.push(FieldError::invalid(&at, port, detail));
        }
    }
    if let Some(policy) = &spec.internal_traffic_policy
        && !POLICIES.contains(&policy.as_str())
    {
        let at = path.child("internalTrafficPolicy");
        errors.push(FieldError::not_supported(&at, policy, &POLICIES));
    }
    if let Some(distribution) = &spec.traffic_distribution
        && !DISTRIBUTIONS.contains(&distribution.as_str())
    {
        let at = path.child("trafficDistribution");
        errors.push(FieldError::not_supported(&at, distribution, &DISTRIBUTIONS));
    }
}

/// Validates that the port for health checks stays as long as there is one.
pub(super) fn validate_health_check_change(
    spec: &ServiceSpec,
    old: &ServiceSpec,
    errors: &mut Vec<FieldError>,
) {
    let is_same =
        spec.health_check_node_port.unwrap_or(0) == old.health_check_node_port.unwrap_or(0);
    if needs_health_check(old) && needs_health_check(spec) && !is_same {
        let path = Path::field("spec");
        let at = path.child("healthCheckNodePort");
        errors.push(FieldError::forbidden(&at, "field is immutable"));
    }
}

fn needs_health_check(spec: &ServiceSpec) -> bool {
    text(&spec.type_) == LOAD_BALANCER && text(&spec.external_traffic_policy) == LOCAL
}
