//! The slices of a Service: which endpoints stand where, so that little is written when little
//! changes.

use std::collections::BTreeMap;

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::backend::{Backend, Family, Port, ServiceSight};

/// The label of the Service that a slice belongs to.
pub(super) const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// The label of who keeps a slice, and our value: the one of upstream's controller, whose place
/// this takes.
pub(super) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
pub(super) const MANAGER: &str = "endpointslice-controller.k8s.io";

/// The label of what belongs to a Service without an address.
pub(super) const HEADLESS: &str = "service.kubernetes.io/headless";

/// How many endpoints a slice has at most: as upstream.
pub(super) const MOST: usize = 100;

/// What is to be written.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Changes {
    pub(super) create: Vec<EndpointSlice>,
    pub(super) update: Vec<EndpointSlice>,
    pub(super) delete: Vec<EndpointSlice>,
}

/// Endpoints that can stand in one slice: of one family and with the same ports.
struct Group {
    family: Family,
    ports: Vec<EndpointPort>,
    endpoints: BTreeMap<String, Endpoint>,
}

/// What is to be written so that a Service's slices tell of these Pods. A Service without Pods
/// has one slice that says so.
pub(super) fn changes(
    service: &ServiceSight,
    backends: &[Backend],
    existing: Vec<EndpointSlice>,
) -> Changes {
    let mut changes = Changes::default();
    let metadata = metadata(service);
    let mut existing = existing;
    existing.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    let groups = groups(service, backends);
    let is_empty = groups.is_empty();
    for group in groups {
        let is_its = |slice: &mut EndpointSlice| {
            slice.address_type == group.family.as_str()
                && slice.ports.as_deref().unwrap_or_default() == group.ports
        };
        let own: Vec<EndpointSlice> = existing.extract_if(.., is_its).collect();
        fill(group, own, &metadata, &mut changes);
    }
    let mut spare = existing.into_iter();
    if is_empty {
        let kept = spare.next();
        let empty = EndpointSlice {
            metadata: metadata.clone(),
            address_type: service.families()[0].as_str().to_owned(),
            endpoints: Some(Vec::new()),
            ports: Some(Vec::new()),
        };
        match kept {
            Some(old) => {
                let address_type = old.address_type.clone();
                let ports = old.ports.clone();
                put(old, EndpointSlice { address_type, ports, ..empty }, &mut changes);
            }
            None => changes.create.push(empty),
        }
    }
    changes.delete.extend(spare);
    changes
}

fn groups(service: &ServiceSight, backends: &[Backend]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for family in service.families() {
        for backend in backends {
            let addresses = backend.addresses(family);
            if addresses.is_empty() {
                continue;
            }
            let ports: Vec<EndpointPort> = backend.ports(service).iter().map(port).collect();
            let is_its = |group: &Group| group.family == family && group.ports == ports;
            let place = groups.iter().position(is_its).unwrap_or_else(|| {
                groups.push(Group { family, ports, endpoints: BTreeMap::new() });
                groups.len() - 1
            });
            let endpoint = endpoint(service, backend, addresses);
            groups[place].endpoints.insert(id(&endpoint).to_owned(), endpoint);
        }
    }
    groups
}

/// Spreads a group over the slices that it has: who has a place keeps it, who is new takes the
/// first that is free. When more than half of the places would be free all are given out anew.
fn fill(group: Group, own: Vec<EndpointSlice>, metadata: &ObjectMeta, changes: &mut Changes) {
    let Group { family, ports, endpoints: mut wanted } = group;
    let needed = wanted.len().div_ceil(MOST);
    let is_sparse = own.len() > 2 * needed;
    let mut places: Vec<(EndpointSlice, Vec<Endpoint>)> = Vec::new();
    for slice in own {
        let old = slice.endpoints.as_deref().unwrap_or_default();
        let kept = if is_sparse {
            Vec::new()
        } else {
            old.iter().filter_map(|endpoint| wanted.remove(id(endpoint))).collect()
        };
        places.push((slice, kept));
    }
    let mut new = wanted.into_values();
    for (_, endpoints) in &mut places {
        let free = MOST.saturating_sub(endpoints.len());
        endpoints.extend(new.by_ref().take(free));
    }
    let slice = |endpoints: Vec<Endpoint>| EndpointSlice {
        metadata: metadata.clone(),
        address_type: family.as_str().to_owned(),
        endpoints: Some(endpoints),
        ports: Some(ports.clone()),
    };
    for (old, endpoints) in places {
        if endpoints.is_empty() {
            changes.delete.push(old);
        } else {
            put(old, slice(endpoints), changes);
        }
    }
    loop {
        let rest: Vec<Endpoint> = new.by_ref().take(MOST).collect();
        if rest.is_empty() {
            return;
        }
        changes.create.push(slice(rest));
    }
}

/// Updates a slice, unless it is as it should be.
fn put(mut old: EndpointSlice, new: EndpointSlice, changes: &mut Changes) {
    let is_same = old.endpoints.as_deref().unwrap_or_default()
        == new.endpoints.as_deref().unwrap_or_default()
        && old.metadata.labels == new.metadata.labels
        && old.metadata.owner_references == new.metadata.owner_references;
    if is_same {
        return;
    }
    old.metadata.labels = new.metadata.labels;
    old.metadata.owner_references = new.metadata.owner_references;
    changes.update.push(EndpointSlice { metadata: old.metadata, ..new });
}

/// What makes an endpoint the same: the Pod that it stands for.
fn id(endpoint: &Endpoint) -> &str {
    let reference = endpoint.target_ref.as_ref();
    reference.and_then(|reference| reference.uid.as_deref()).unwrap_or_default()
}

fn endpoint(service: &ServiceSight, backend: &Backend, addresses: Vec<String>) -> Endpoint {
    let is_ready = backend.is_ready && !backend.is_terminating;
    Endpoint {
        addresses,
        conditions: Some(EndpointConditions {
            ready: Some(service.tells_all() || is_ready),
            serving: Some(backend.is_ready),
            terminating: Some(backend.is_terminating),
        }),
        hostname: backend.hostname(service),
        node_name: backend.node_name.clone(),
        target_ref: Some(backend.reference.clone()),
        ..Endpoint::default()
    }
}

fn port(port: &Port) -> EndpointPort {
    EndpointPort {
        name: Some(port.name.clone()),
        port: Some(port.number),
        protocol: Some(port.protocol.clone()),
        app_protocol: port.app_protocol.clone(),
    }
}

fn metadata(service: &ServiceSight) -> ObjectMeta {
    let name = service.metadata.name.clone().unwrap_or_default();
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.remove(HEADLESS);
    if service.is_headless() {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(SERVICE_NAME.to_owned(), name.clone());
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    ObjectMeta {
        generate_name: Some(format!("{name}-")),
        namespace: service.metadata.namespace.clone(),
        labels: Some(labels),
        owner_references: Some(vec![OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Service".to_owned(),
            name,
            uid: service.metadata.uid.clone().unwrap_or_default(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }]),
        ..ObjectMeta::default()
    }
}

#[cfg(test)]
mod tests;
