//! The Endpoints of a Service: all of its addresses in one object, for those who still read it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints};

use super::backend::{Backend, Port, ServiceSight};
use super::slices::HEADLESS;

/// The label of who keeps Endpoints, and our value: the one of upstream's controller.
pub(super) const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
pub(super) const MANAGER: &str = "endpoint-controller";

/// How many addresses are told: as upstream, since the object is read as a whole.
const MOST: usize = 1000;

/// The annotation of Endpoints that do not tell all, and its value.
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
const TRUNCATED: &str = "truncated";

/// The Endpoints that a Service should have, made of those that it has; none if these are
/// right.
pub(super) fn update(
    service: &ServiceSight,
    backends: &[Backend],
    existing: Option<Endpoints>,
) -> Option<Endpoints> {
    let (subsets, is_truncated) = subsets(service, backends);
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.remove(HEADLESS);
    if service.is_headless() {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    let is_new = existing.is_none();
    let mut endpoints = existing.unwrap_or_default();
    let meta = &mut endpoints.metadata;
    let annotations = meta.annotations.get_or_insert_default();
    let was_truncated = annotations.get(OVER_CAPACITY).is_some_and(|text| text == TRUNCATED);
    let is_right = !is_new
        && was_truncated == is_truncated
        && meta.labels.as_ref() == Some(&labels)
        && endpoints.subsets.as_deref().unwrap_or_default() == subsets;
    if is_right {
        return None;
    }
    if is_truncated {
        annotations.insert(OVER_CAPACITY.to_owned(), TRUNCATED.to_owned());
    } else {
        annotations.remove(OVER_CAPACITY);
    }
    meta.labels = Some(labels);
    meta.name.clone_from(&service.metadata.name);
    endpoints.subsets = Some(subsets);
    Some(endpoints)
}

/// The addresses by their ports, and whether some are left out: ready ones come first.
fn subsets(service: &ServiceSight, backends: &[Backend]) -> (Vec<EndpointSubset>, bool) {
    let family = service.families()[0];
    let (mut ready, mut not_ready) = (Vec::new(), Vec::new());
    for backend in backends {
        let Some(ip) = backend.addresses(family).into_iter().next() else { continue };
        let ports = backend.ports(service);
        let has_no_port = ports.is_empty() && service.spec.ports.iter().flatten().next().is_some();
        if has_no_port || (backend.is_terminating && !service.tells_all()) {
            continue;
        }
        let address = EndpointAddress {
            ip,
            hostname: backend.hostname(service),
            node_name: backend.node_name.clone(),
            target_ref: Some(backend.reference.clone()),
        };
        let is_ready = service.tells_all() || backend.is_ready;
        if is_ready { &mut ready } else { &mut not_ready }.push((ports, address));
    }
    let order = |(_, address): &(Vec<Port>, EndpointAddress)| {
        (address.ip.clone(), address.target_ref.as_ref().and_then(|it| it.uid.clone()))
    };
    ready.sort_by_key(order);
    not_ready.sort_by_key(order);
    let is_truncated = ready.len() + not_ready.len() > MOST;
    ready.truncate(MOST);
    not_ready.truncate(MOST - ready.len());
    let mut by_ports: BTreeMap<Vec<Port>, EndpointSubset> = BTreeMap::new();
    for (ports, address) in ready {
        let subset = by_ports.entry(ports).or_default();
        subset.addresses.get_or_insert_default().push(address);
    }
    for (ports, address) in not_ready {
        let subset = by_ports.entry(ports).or_default();
        subset.not_ready_addresses.get_or_insert_default().push(address);
    }
    let subsets = by_ports.into_iter().map(|(ports, subset)| {
        let ports: Vec<EndpointPort> = ports.iter().map(port).collect();
        EndpointSubset { ports: (!ports.is_empty()).then_some(ports), ..subset }
    });
    (subsets.collect(), is_truncated)
}

fn port(port: &Port) -> EndpointPort {
    EndpointPort {
        name: (!port.name.is_empty()).then(|| port.name.clone()),
        port: port.number,
        protocol: Some(port.protocol.clone()),
        app_protocol: port.app_protocol.clone(),
    }
}
