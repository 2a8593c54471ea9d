//! What a Service asks of a load balancer, and what one has given it.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service, ServiceSpec, ServiceStatus};

use super::LOAD_BALANCER;
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;
use crate::ip_address::{is_ip, validate_cidr, validate_ip};
use crate::validation::{items, push_invalid, text};

/// What is said of a field that other types have no use for.
pub(super) const ONLY_LOAD_BALANCER: &str = "may only be used when `type` is 'LoadBalancer'";
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const VIP: &str = "VIP";
const IP_MODES: [&str; 2] = ["Proxy", VIP];

/// Traffic to an address comes from it unless the status says otherwise.
pub(super) fn default_ip_modes(status: &mut Option<ServiceStatus>) {
    let balancer = status.as_mut().and_then(|status| status.load_balancer.as_mut());
    let Some(balancer) = balancer else {
        return;
    };
    for ingress in balancer.ingress.iter_mut().flatten() {
        if !text(&ingress.ip).is_empty() {
            ingress.ip_mode.get_or_insert_with(|| VIP.to_owned());
        }
    }
}

/// Validates who may come in, which a field says or, of old, an annotation.
pub(super) fn validate_source_ranges(
    service: &Service,
    old: Option<&Service>,
    errors: &mut Vec<FieldError>,
) {
    let no_spec = ServiceSpec::default();
    let spec = service.spec.as_ref().unwrap_or(&no_spec);
    let old_spec = old.and_then(|old| old.spec.as_ref()).unwrap_or(&no_spec);
    let is_balanced = text(&spec.type_) == LOAD_BALANCER;
    let ranges = items(&spec.load_balancer_source_ranges);
    if !ranges.is_empty() {
        let path = Path::field("spec");
        // Upstream writes the field with a capital.
        let list = path.child("LoadBalancerSourceRanges");
        if !is_balanced {
            errors.push(FieldError::forbidden(&list, ONLY_LOAD_BALANCER));
        }
        let stored = items(&old_spec.load_balancer_source_ranges);
        let known = stored.iter().map(|range| range.trim()).collect();
        for (i, range) in ranges.iter().enumerate() {
            validate_cidr(range.trim(), &known, &list.index(i), errors);
        }
        return;
    }
    let Some(ranges) = annotation(service) else {
        return;
    };
    let metadata = Path::field("metadata");
    let annotations = metadata.child("annotations");
    let here = annotations.key(SOURCE_RANGES);
    if !is_balanced {
        errors.push(FieldError::forbidden(&here, ONLY_LOAD_BALANCER));
    }
    let is_new = old.and_then(annotation) != Some(ranges);
    if is_new && !ranges.trim().is_empty() {
        for range in ranges.split(',') {
            validate_cidr(range.trim(), &BTreeSet::new(), &here, errors);
        }
    }
}

/// Validates which load balancer is asked for.
pub(super) fn validate_class(spec: &ServiceSpec, errors: &mut Vec<FieldError>) {
    let Some(class) = &spec.load_balancer_class else {
        return;
    };
    let path = Path::field("spec");
    let at = path.child("loadBalancerClass");
    if text(&spec.type_) == LOAD_BALANCER {
        push_invalid(&at, class, identifier::qualified_name(class), errors);
    } else {
        errors.push(FieldError::forbidden(&at, ONLY_LOAD_BALANCER));
    }
}

/// Validates that the load balancer stays the same.
pub(super) fn validate_class_change(
    spec: &ServiceSpec,
    old: &ServiceSpec,
    errors: &mut Vec<FieldError>,
) {
    let both = [spec, old].iter().all(|spec| text(&spec.type_) == LOAD_BALANCER);
    if both && spec.load_balancer_class != old.load_balancer_class {
        let path = Path::field("spec");
        let at = path.child("loadBalancerClass");
        let detail = "may not change once set";
        errors.push(FieldError::invalid(&at, &spec.load_balancer_class, detail));
    }
}

/// Validates where a load balancer takes traffic in.
pub(super) fn validate_ingress(new: &Service, old: &Service, errors: &mut Vec<FieldError>) {
    let status = Path::field("status");
    let balancer = status.child("loadBalancer");
    let list = balancer.child("ingress");
    let type_ = new.spec.as_ref().map_or("", |spec| text(&spec.type_));
    if type_ != LOAD_BALANCER {
        if !ingress(new).is_empty() {
            let detail = "may only be used when `spec.type` is 'LoadBalancer'";
            errors.push(FieldError::forbidden(&list, detail));
        }
        return;
    }
    let known = ingress(old).iter().map(|old| text(&old.ip)).collect();
    for (i, ingress) in ingress(new).iter().enumerate() {
        validate_one_ingress(ingress, &known, &list.index(i), errors);
    }
}

fn validate_one_ingress(
    ingress: &LoadBalancerIngress,
    known: &BTreeSet<&str>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let ip = text(&ingress.ip);
    if !ip.is_empty() {
        validate_ip(ip, known, &path.child("ip"), errors);
    }
    let at = path.child("ipMode");
    match &ingress.ip_mode {
        None if !ip.is_empty() => {
            errors.push(FieldError::required(&at, "must be specified when `ip` is set"));
        }
        Some(_) if ip.is_empty() => {
            errors.push(FieldError::forbidden(&at, "may not be specified when `ip` is not set"));
        }
        Some(mode) if !IP_MODES.contains(&mode.as_str()) => {
            errors.push(FieldError::not_supported(&at, mode, &IP_MODES));
        }
        _ => {}
    }
    let (hostname, at) = (text(&ingress.hostname), path.child("hostname"));
    if !hostname.is_empty() {
        push_invalid(&at, hostname, identifier::dns1123_subdomain(hostname), errors);
        if is_ip(hostname) {
            let detail = "must be a DNS name, not an IP address";
            errors.push(FieldError::invalid(&at, hostname, detail));
        }
    }
}

fn annotation(service: &Service) -> Option<&String> {
    service.metadata.annotations.as_ref()?.get(SOURCE_RANGES)
}

fn ingress(service: &Service) -> &[LoadBalancerIngress] {
    let status = service.status.as_ref();
    let balancer = status.and_then(|status| status.load_balancer.as_ref());
    balancer.map_or(&[], |balancer| items(&balancer.ingress))
}
