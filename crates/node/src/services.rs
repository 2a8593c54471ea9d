//! The names of services, as lines of hosts files: what DNS would say in a cluster that has it. They
//! are those of EndpointSlices, which the cluster keeps for services that select Pods and others may
//! write. It must not know who reads them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::sync::Arc;

use k8s_openapi::api::discovery::v1::EndpointSlice;

use crate::hosts::CLUSTER_DOMAIN;

/// The label that says which service a slice is of.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// The services of all namespaces.
#[derive(Debug, Default)]
pub(crate) struct Services {
    /// By namespace, and then by the slice's name.
    slices: HashMap<String, BTreeMap<String, Vec<Endpoint>>>,
    lines: HashMap<String, Arc<str>>,
}

/// An address of a service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Endpoint {
    service: String,
    address: String,
    hostname: Option<String>,
}

impl Services {
    /// Takes in a slice; whether the lines of its namespace have changed.
    pub(crate) fn observe(&mut self, slice: &EndpointSlice) -> bool {
        let meta = &slice.metadata;
        let (namespace, name) = (text(&meta.namespace), text(&meta.name));
        let endpoints = endpoints(slice);
        let of_namespace = self.slices.entry(namespace.to_owned()).or_default();
        let is_same = match of_namespace.get(name) {
            Some(known) => *known == endpoints,
            None => endpoints.is_empty(),
        };
        of_namespace.insert(name.to_owned(), endpoints);
        if !is_same {
            self.lines.remove(namespace);
        }
        !is_same
    }

    /// A slice is gone; whether the lines of its namespace have changed.
    pub(crate) fn forget(&mut self, namespace: &str, name: &str) -> bool {
        let Some(of_namespace) = self.slices.get_mut(namespace) else { return false };
        let had = of_namespace.remove(name).is_some_and(|endpoints| !endpoints.is_empty());
        let is_last = of_namespace.is_empty();
        if is_last {
            self.slices.remove(namespace);
        }
        if had || is_last {
            self.lines.remove(namespace);
        }
        had
    }

    /// All slices that are known, by namespace and name.
    pub(crate) fn known(&self) -> BTreeSet<(String, String)> {
        let each = self.slices.iter();
        each.flat_map(|(namespace, slices)| {
            slices.keys().map(move |name| (namespace.clone(), name.clone()))
        })
        .collect()
    }

    /// The lines of a namespace.
    pub(crate) fn lines(&mut self, namespace: &str) -> Arc<str> {
        if let Some(lines) = self.lines.get(namespace) {
            return lines.clone();
        }
        // Only namespaces with services have an entry: others come and go by the thousand.
        let Some(slices) = self.slices.get(namespace) else { return Arc::default() };
        let endpoints: BTreeSet<Endpoint> = slices.values().flatten().cloned().collect();
        let lines: Arc<str> = written(namespace, &endpoints).into();
        self.lines.insert(namespace.to_owned(), lines.clone());
        lines
    }
}

fn endpoints(slice: &EndpointSlice) -> Vec<Endpoint> {
    let labels = slice.metadata.labels.as_ref();
    let Some(service) = labels.and_then(|labels| labels.get(SERVICE_NAME)) else {
        return Vec::new();
    };
    let mut endpoints = Vec::new();
    for endpoint in slice.endpoints.iter().flatten() {
        // As DNS does it: what is not ready is not named.
        let conditions = endpoint.conditions.as_ref();
        if conditions.and_then(|conditions| conditions.ready) == Some(false) {
            continue;
        }
        let hostname = endpoint.hostname.clone().filter(|name| !name.is_empty());
        for address in &endpoint.addresses {
            let (service, address) = (service.clone(), address.clone());
            endpoints.push(Endpoint { service, address, hostname: hostname.clone() });
        }
    }
    endpoints
}

fn written(namespace: &str, endpoints: &BTreeSet<Endpoint>) -> String {
    let mut text = String::new();
    let mut line = |address: &str, name: &str| {
        writeln!(
            text,
            "{address}\t{name}\t{name}.{namespace}\t{name}.{namespace}.svc\t\
             {name}.{namespace}.svc.{CLUSTER_DOMAIN}"
        )
        .expect("a text can be written to");
    };
    for endpoint in endpoints {
        let Endpoint { service, address, hostname } = endpoint;
        if let Some(hostname) = hostname {
            line(address, &format!("{hostname}.{service}"));
        }
        line(address, service);
    }
    text
}

fn text(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn slice(name: &str, endpoints: Value) -> EndpointSlice {
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "ns", "labels": {SERVICE_NAME: "svc"}},
            "addressType": "IPv4", "endpoints": endpoints,
        }))
        .expect("a slice")
    }

    #[test]
    fn every_ready_address_has_the_names_that_dns_would_give() {
        let mut services = Services::default();
        let endpoints = json!([
            {"addresses": ["127.64.0.1"], "hostname": "work-0"},
            {"addresses": ["127.64.0.2"], "conditions": {"ready": true}},
            {"addresses": ["127.64.0.3"], "conditions": {"ready": false}, "hostname": "late"},
        ]);
        assert!(services.observe(&slice("a", endpoints.clone())));
        assert!(!services.observe(&slice("a", endpoints)));
        let lines = services.lines("ns");
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(
            lines,
            [
                "127.64.0.1\twork-0.svc\twork-0.svc.ns\twork-0.svc.ns.svc\t\
                 work-0.svc.ns.svc.cluster.local",
                "127.64.0.1\tsvc\tsvc.ns\tsvc.ns.svc\tsvc.ns.svc.cluster.local",
                "127.64.0.2\tsvc\tsvc.ns\tsvc.ns.svc\tsvc.ns.svc.cluster.local",
            ]
        );
        assert_eq!(&*services.lines("other"), "");
        assert!(services.forget("ns", "a") && !services.forget("ns", "a"));
        assert_eq!(&*services.lines("ns"), "");
        assert!(services.lines.is_empty(), "nothing is kept of namespaces without services");
        assert!(!services.observe(&slice("empty", json!([]))));
        assert_eq!(&*services.lines("ns"), "");
        assert!(!services.forget("ns", "empty"));
        assert!(services.lines.is_empty() && services.slices.is_empty());
    }
}
