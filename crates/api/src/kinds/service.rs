//! A Service: a name for Pods, with or without an address of its own.
//!
//! The address of a Service that has one comes from the caller: this room has no memory
//! of those that are taken. Node ports are not given out: a Service of type NodePort or
//! LoadBalancer has those that its writer asks for. The cluster has IPv4 addresses only.

mod addresses;
mod load_balancer;
mod ports;
mod traffic;

use std::borrow::Cow;
use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    ClientIPConfig, Service, ServiceSpec, ServiceStatus, SessionAffinityConfig,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use self::addresses::{default_ip_families, fill_addresses, keep_addresses, wrong_with_families};
use self::load_balancer::{validate_class, validate_ingress, validate_source_ranges};
use self::ports::validate_ports;
use super::{keep_identity, meta_field, once, shown, validate_meta_update_of_any_kind};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;
use crate::ip_address::{validate_endpoint_ip, validate_ip};
use crate::prepare::reset_server_fields;
use crate::validation::object_meta::{
    MetaRules, validate_labels, validate_object_meta_by, validate_object_meta_update_by,
};
use crate::validation::{items, push_invalid, text, validate_one_of};

/// Whether a PUT may create a Service.
pub const CREATES_ON_UPDATE: bool = true;
/// Whether a Service may be updated without a resourceVersion.
pub const UPDATES_UNCONDITIONALLY: bool = true;

/// The cluster IP of a headless Service.
pub const HEADLESS: &str = "None";

const CLUSTER_IP: &str = "ClusterIP";
const NODE_PORT: &str = "NodePort";
const LOAD_BALANCER: &str = "LoadBalancer";
const EXTERNAL_NAME: &str = "ExternalName";
const TYPES: [&str; 4] = [CLUSTER_IP, EXTERNAL_NAME, LOAD_BALANCER, NODE_PORT];
const CLIENT_IP: &str = "ClientIP";
const NO_AFFINITY: &str = "None";
/// Three hours: how long a client stays with its Pod unless the Service says otherwise.
const AFFINITY_SECONDS: i32 = 10_800;
/// A day.
const AFFINITY_MAX_SECONDS: i32 = 86_400;
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";

/// A Service's name is part of host names; since 1.36 it may begin with a digit.
const RULES: MetaRules = MetaRules { name: identifier::dns1123_label, ..MetaRules::NAMESPACED };

/// Prepares a new Service: defaults set, no status, IP families chosen, and an address
/// from `allocate` if the Service needs one and names none. Without an address to give
/// the Service stays without.
pub fn prepare_for_create(service: &mut Service, allocate: &mut dyn FnMut() -> Option<String>) {
    reset_server_fields(&mut service.metadata);
    service.status = Some(empty_status());
    set_defaults(service);
    let spec = service.spec.get_or_insert_default();
    keep_addresses(spec, None);
    if default_ip_families(spec, None).is_empty() {
        fill_addresses(spec, allocate);
    }
}

/// Prepares an update: the status stays, and so do addresses and node ports that the
/// request does not mention. What the new type has no use for goes.
pub fn prepare_for_update(
    new: &mut Service,
    old: &Service,
    allocate: &mut dyn FnMut() -> Option<String>,
) {
    keep_identity(&mut new.metadata, &old.metadata);
    new.status.clone_from(&old.status);
    set_defaults(new);
    let no_spec = ServiceSpec::default();
    let old_spec = old.spec.as_ref().unwrap_or(&no_spec);
    let spec = new.spec.get_or_insert_default();
    ports::keep_node_ports(spec, old_spec);
    keep_addresses(spec, Some(old_spec));
    let is_right = default_ip_families(spec, Some(old_spec)).is_empty();
    if is_right && is_external_name(old_spec) {
        fill_addresses(spec, allocate);
    }
    addresses::drop_addresses(spec, old_spec);
    traffic::drop_unused(spec, old_spec);
    if text(&spec.type_) != LOAD_BALANCER {
        let status = new.status.get_or_insert_with(empty_status);
        status.load_balancer = empty_status().load_balancer;
    }
}

/// Prepares an update of the status, which keeps the spec. Defaults of the status follow
/// the spec of the request.
pub fn prepare_for_status_update(new: &mut Service, old: &Service) {
    keep_identity(&mut new.metadata, &old.metadata);
    set_defaults(new);
    new.spec.clone_from(&old.spec);
}

/// Validates a prepared new Service. What is wrong with its addresses is said alone, as
/// the API server stops there.
pub fn validate_create(service: &Service) -> Vec<FieldError> {
    let no_spec = ServiceSpec::default();
    let spec = service.spec.as_ref().unwrap_or(&no_spec);
    let mut errors = wrong_with_families(spec, None);
    ports::validate_node_port_range(spec, &[], &mut errors);
    if errors.is_empty() {
        let metadata = Path::field("metadata");
        validate_object_meta_by(&RULES, &service.metadata, &metadata, &mut errors);
        validate(service, None, &mut errors);
    }
    errors
}

/// Validates a prepared update against the stored Service.
pub fn validate_update(new: &Service, old: &Service) -> Vec<FieldError> {
    let no_spec = ServiceSpec::default();
    let spec = new.spec.as_ref().unwrap_or(&no_spec);
    let old_spec = old.spec.as_ref().unwrap_or(&no_spec);
    let mut errors = wrong_with_families(spec, Some(old_spec));
    ports::validate_node_port_range(spec, items(&old_spec.ports), &mut errors);
    if errors.is_empty() {
        validate_meta_update(new, old, &mut errors);
        addresses::validate_change(spec, old_spec, &mut errors);
        load_balancer::validate_class_change(spec, old_spec, &mut errors);
        validate_class(spec, &mut errors);
        traffic::validate_health_check_change(spec, old_spec, &mut errors);
        validate(new, Some(old), &mut errors);
    }
    once(errors)
}

/// Validates a prepared update of the status.
pub fn validate_status_update(new: &Service, old: &Service) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_meta_update(new, old, &mut errors);
    validate_ingress(new, old, &mut errors);
    once(errors)
}

/// What a field selector sees of a Service.
pub fn field<'a>(service: &'a Service, name: &str) -> Option<Cow<'a, str>> {
    let spec = service.spec.as_ref();
    match name {
        "spec.clusterIP" => spec.map_or(Some("".into()), |spec| shown(&spec.cluster_ip)),
        "spec.type" => spec.map_or(Some("".into()), |spec| shown(&spec.type_)),
        _ => meta_field(&service.metadata, name),
    }
}

fn empty_status() -> ServiceStatus {
    ServiceStatus { load_balancer: Some(Default::default()), ..ServiceStatus::default() }
}

/// Fills in what the API server fills in, whoever writes. To do it again changes nothing.
pub fn set_defaults(service: &mut Service) {
    let spec = service.spec.get_or_insert_default();
    default_text(&mut spec.session_affinity, NO_AFFINITY);
    default_affinity_config(spec);
    default_text(&mut spec.type_, CLUSTER_IP);
    for port in spec.ports.iter_mut().flatten() {
        default_text(&mut port.protocol, "TCP");
        let is_unset = match &port.target_port {
            None | Some(IntOrString::Int(0)) => true,
            Some(IntOrString::String(name)) => name.is_empty(),
            Some(IntOrString::Int(_)) => false,
        };
        if is_unset {
            port.target_port = Some(IntOrString::Int(port.port));
        }
    }
    if traffic::is_reachable_from_outside(spec) {
        default_text(&mut spec.external_traffic_policy, traffic::CLUSTER);
    }
    let type_ = text(&spec.type_);
    if matches!(type_, CLUSTER_IP | NODE_PORT | LOAD_BALANCER) {
        spec.internal_traffic_policy.get_or_insert_with(|| traffic::CLUSTER.to_owned());
    }
    if text(&spec.type_) == LOAD_BALANCER {
        spec.allocate_load_balancer_node_ports.get_or_insert(true);
        load_balancer::default_ip_modes(&mut service.status);
    }
}

fn default_affinity_config(spec: &mut ServiceSpec) {
    match text(&spec.session_affinity) {
        NO_AFFINITY => spec.session_affinity_config = None,
        CLIENT_IP => {
            let config = spec.session_affinity_config.as_ref();
            let client_ip = config.and_then(|config| config.client_ip.as_ref());
            if client_ip.and_then(|client_ip| client_ip.timeout_seconds).is_none() {
                let client_ip = ClientIPConfig { timeout_seconds: Some(AFFINITY_SECONDS) };
                let client_ip = Some(client_ip);
                spec.session_affinity_config = Some(SessionAffinityConfig { client_ip });
            }
        }
        _ => {}
    }
}

fn default_text(field: &mut Option<String>, value: &str) {
    if text(field).is_empty() {
        *field = Some(value.to_owned());
    }
}

/// What the stored Service says, and may say again.
fn known(stored: Option<&Vec<String>>) -> BTreeSet<&str> {
    stored.into_iter().flatten().map(String::as_str).collect()
}

fn is_external_name(spec: &ServiceSpec) -> bool {
    text(&spec.type_) == EXTERNAL_NAME
}

fn is_headless(spec: &ServiceSpec) -> bool {
    items(&spec.cluster_ips) == [HEADLESS]
}

fn validate_meta_update(new: &Service, old: &Service, errors: &mut Vec<FieldError>) {
    let metadata = Path::field("metadata");
    validate_meta_update_of_any_kind(&RULES, &new.metadata, &old.metadata, errors);
    validate_object_meta_update_by(&RULES, &new.metadata, &old.metadata, &metadata, errors);
}

/// What a Service must be, new or changed, in upstream's order.
fn validate(service: &Service, old: Option<&Service>, errors: &mut Vec<FieldError>) {
    validate_topology_annotations(service, errors);
    let (no_spec, path) = (ServiceSpec::default(), Path::field("spec"));
    let spec = service.spec.as_ref().unwrap_or(&no_spec);
    let old_spec = old.map(|old| old.spec.as_ref().unwrap_or(&no_spec));
    if items(&spec.ports).is_empty() && !is_headless(spec) && !is_external_name(spec) {
        errors.push(FieldError::required(&path.child("ports"), ""));
    }
    validate_type(spec, &path, errors);
    validate_ports(spec, &path, errors);
    validate_labels(spec.selector.as_ref(), &path.child("selector"), errors);
    validate_affinity(spec, &path, errors);
    addresses::validate(spec, old_spec, errors);
    let external_ips = path.child("externalIPs");
    let known_ips = known(old_spec.and_then(|old| old.external_ips.as_ref()));
    for (i, ip) in items(&spec.external_ips).iter().enumerate() {
        let (here, count) = (external_ips.index(i), errors.len());
        validate_ip(ip, &known_ips, &here, errors);
        if errors.len() == count {
            validate_endpoint_ip(ip, &here, errors);
        }
    }
    validate_one_of(text(&spec.type_), &TYPES, &path.child("type"), errors);
    ports::validate_node_ports(spec, &path, errors);
    ports::validate_unique_ports(spec, &path, errors);
    validate_source_ranges(service, old, errors);
    let allocates = path.child("allocateLoadBalancerNodePorts");
    if spec.allocate_load_balancer_node_ports.is_some() && text(&spec.type_) != LOAD_BALANCER {
        errors.push(FieldError::forbidden(&allocates, load_balancer::ONLY_LOAD_BALANCER));
    }
    validate_class(spec, errors);
    traffic::validate(spec, &path, errors);
}

fn validate_topology_annotations(service: &Service, errors: &mut Vec<FieldError>) {
    let annotations = service.metadata.annotations.as_ref();
    let annotation = |key: &str| annotations.and_then(|annotations| annotations.get(key));
    if let (Some(mode), Some(hints)) = (annotation(TOPOLOGY_MODE), annotation(TOPOLOGY_HINTS))
        && mode != hints
    {
        let detail = format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified");
        let metadata = Path::field("metadata");
        let annotations = metadata.child("annotations");
        errors.push(FieldError::invalid(&annotations.key(TOPOLOGY_MODE), mode, detail));
    }
}

fn validate_type(spec: &ServiceSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match text(&spec.type_) {
        type_ @ (LOAD_BALANCER | NODE_PORT) if is_headless(spec) => {
            let detail = format!("may not be set to 'None' for {type_} services");
            let cluster_ips = path.child("clusterIPs");
            errors.push(FieldError::invalid(&cluster_ips.index(0), HEADLESS, detail));
        }
        EXTERNAL_NAME => {
            for (field, is_set) in [
                ("clusterIPs", !items(&spec.cluster_ips).is_empty()),
                ("ipFamilies", !items(&spec.ip_families).is_empty()),
                ("ipFamilyPolicy", spec.ip_family_policy.is_some()),
            ] {
                if is_set {
                    let detail = "may not be set for ExternalName services";
                    errors.push(FieldError::forbidden(&path.child(field), detail));
                }
            }
            let (name, at) = (text(&spec.external_name), path.child("externalName"));
            // A name may say by a trailing dot that it is complete.
            match name.strip_suffix('.').unwrap_or(name) {
                "" => errors.push(FieldError::required(&at, "")),
                name => push_invalid(&at, name, identifier::dns1123_subdomain(name), errors),
            }
        }
        _ => {}
    }
}

fn validate_affinity(spec: &ServiceSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let affinity = text(&spec.session_affinity);
    let affinities = [CLIENT_IP, NO_AFFINITY];
    validate_one_of(affinity, &affinities, &path.child("sessionAffinity"), errors);
    let config = spec.session_affinity_config.as_ref();
    let client_ip = config.and_then(|config| config.client_ip.as_ref());
    let timeout = client_ip.and_then(|client_ip| client_ip.timeout_seconds);
    // Defaulting leaves no other case: without affinity there is no configuration, and
    // with it there is a timeout.
    if affinity == CLIENT_IP
        && let Some(timeout) = timeout
        && !(1..=AFFINITY_MAX_SECONDS).contains(&timeout)
    {
        let config = path.child("sessionAffinityConfig");
        let client_ip = config.child("clientIP");
        let at = client_ip.child("timeoutSeconds");
        let detail = format!("must be greater than 0 and less than {AFFINITY_MAX_SECONDS}");
        errors.push(FieldError::invalid(&at, timeout, detail));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn service(spec: serde_json::Value) -> Service {
        let value = json!({"metadata": {"name": "a", "namespace": "b"}, "spec": spec});
        serde_json::from_value(value).expect("a Service")
    }

    #[test]
    fn only_a_service_that_needs_an_address_gets_one() {
        let ports = json!([{"port": 80}]);
        for (spec, expected, asked) in [
            (json!({"ports": ports}), Some("10.0.0.7"), 1),
            (json!({"ports": ports, "clusterIP": "10.0.0.9"}), Some("10.0.0.9"), 0),
            (json!({"clusterIP": "None", "selector": {"a": "b"}}), Some("None"), 0),
            (json!({"type": "ExternalName", "externalName": "a.b"}), None, 0),
        ] {
            let mut service = service(spec);
            let mut asks = 0;
            prepare_for_create(&mut service, &mut || {
                asks += 1;
                Some("10.0.0.7".to_owned())
            });
            assert_eq!(validate_create(&service), []);
            let spec = service.spec.expect("a spec");
            assert_eq!((spec.cluster_ip.as_deref(), asks), (expected, asked));
            assert_eq!(
                spec.cluster_ips.as_deref().unwrap_or(&[]).first(),
                spec.cluster_ip.as_ref()
            );
        }
    }

    #[test]
    fn a_service_is_selected_by_its_address_and_type() {
        let service = service(json!({"clusterIP": "None", "type": "ClusterIP"}));
        assert_eq!(field(&service, "spec.clusterIP").as_deref(), Some("None"));
        assert_eq!(field(&service, "spec.type").as_deref(), Some("ClusterIP"));
        assert_eq!(field(&Service::default(), "spec.type").as_deref(), Some(""));
        assert_eq!(field(&service, "metadata.namespace").as_deref(), Some("b"));
        assert_eq!(field(&service, "spec.ports"), None);
    }
}
