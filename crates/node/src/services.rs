//! The names of services and of their Pods, as lines of hosts files: what DNS would say in a
//! cluster that has it. It must not know who reads them.
//!
//! Which Pods a service has is worked out here: the API lets no EndpointSlice hold the addresses
//! that Pods have on this node, which are loopback addresses. Slices count for the addresses of
//! others.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::net::Ipv4Addr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;

use crate::hosts::CLUSTER_DOMAIN;

/// The label that says which service a slice is of.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// The services of all namespaces.
#[derive(Debug, Default)]
pub(crate) struct Services {
    /// By namespace, and then by the slice's name.
    slices: HashMap<String, BTreeMap<String, Vec<Endpoint>>>,
    /// By namespace, and then by the service's name.
    selections: HashMap<String, BTreeMap<String, Selection>>,
    /// By namespace, and then by uid.
    members: HashMap<String, BTreeMap<String, Member>>,
    lines: HashMap<String, Arc<str>>,
}

/// Which Pods a service has.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Selection {
    labels: BTreeMap<String, String>,
    takes_unready: bool,
}

/// A Pod of this node that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    labels: BTreeMap<String, String>,
    hostname: Option<String>,
    subdomain: Option<String>,
    address: Ipv4Addr,
    is_ready: bool,
}

impl Member {
    pub(crate) fn of(pod: &Pod, address: Ipv4Addr, is_ready: bool) -> Self {
        let spec = pod.spec.as_ref();
        let given = |text: Option<&String>| text.cloned().filter(|text| !text.is_empty());
        Member {
            labels: pod.metadata.labels.clone().unwrap_or_default(),
            hostname: given(spec.and_then(|spec| spec.hostname.as_ref())),
            subdomain: given(spec.and_then(|spec| spec.subdomain.as_ref())),
            address,
            is_ready,
        }
    }
}

impl Selection {
    /// None for a service whose addresses somebody else knows.
    fn of(service: &Service) -> Option<Self> {
        let spec = service.spec.as_ref()?;
        let labels = spec.selector.clone().filter(|selector| !selector.is_empty())?;
        Some(Selection { labels, takes_unready: spec.publish_not_ready_addresses == Some(true) })
    }

    fn takes(&self, member: &Member) -> bool {
        let mut labels = self.labels.iter();
        (member.is_ready || self.takes_unready)
            && labels.all(|(key, value)| member.labels.get(key) == Some(value))
    }

    fn endpoint(&self, service: &str, member: &Member) -> Option<Endpoint> {
        // As the endpoints controller: a Pod has a name of its own in the service that it names
        // as its subdomain.
        let is_own = member.subdomain.as_deref() == Some(service);
        self.takes(member).then(|| Endpoint {
            service: service.to_owned(),
            address: member.address.to_string(),
            hostname: member.hostname.clone().filter(|_| is_own),
        })
    }
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
        if of_namespace.is_empty() {
            self.slices.remove(namespace);
        }
        if had {
            self.lines.remove(namespace);
        }
        had
    }

    /// Takes in a service; whether the lines of its namespace may have changed.
    pub(crate) fn observe_service(&mut self, service: &Service) -> bool {
        let meta = &service.metadata;
        let (namespace, name) = (text(&meta.namespace), text(&meta.name));
        let selection = Selection::of(service);
        let of_namespace = self.selections.entry(namespace.to_owned()).or_default();
        let has_changed = of_namespace.get(name) != selection.as_ref();
        match selection {
            Some(selection) => drop(of_namespace.insert(name.to_owned(), selection)),
            None => drop(of_namespace.remove(name)),
        }
        if has_changed {
            self.lines.remove(namespace);
        }
        has_changed
    }

    /// A service is gone; whether the lines of its namespace may have changed.
    pub(crate) fn forget_service(&mut self, namespace: &str, name: &str) -> bool {
        let of_namespace = self.selections.get_mut(namespace);
        let had = of_namespace.is_some_and(|services| services.remove(name).is_some());
        if had {
            self.lines.remove(namespace);
        }
        had
    }

    /// All services that are known, by namespace and name.
    pub(crate) fn known_services(&self) -> BTreeSet<(String, String)> {
        let each = self.selections.iter();
        each.flat_map(|(namespace, services)| {
            services.keys().map(move |name| (namespace.clone(), name.clone()))
        })
        .collect()
    }

    /// A Pod runs, or does not any more; whether the lines of its namespace have changed.
    pub(crate) fn set_member(
        &mut self,
        namespace: &str,
        uid: &str,
        member: Option<Member>,
    ) -> bool {
        let members = self.members.entry(namespace.to_owned()).or_default();
        let new = member.clone();
        let old = match member {
            Some(member) => members.insert(uid.to_owned(), member),
            None => members.remove(uid),
        };
        if members.is_empty() {
            self.members.remove(namespace);
        }
        let services = self.selections.get(namespace);
        let has_changed = services.into_iter().flatten().any(|(name, selection)| {
            let endpoint = |it: &Option<Member>| selection.endpoint(name, it.as_ref()?);
            endpoint(&old) != endpoint(&new)
        });
        if has_changed {
            self.lines.remove(namespace);
        }
        has_changed
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
        let slices = self.slices.get(namespace).into_iter().flat_map(|it| it.values().flatten());
        let mut endpoints: BTreeSet<Endpoint> = slices.cloned().collect();
        let members = self.members.get(namespace);
        for (name, selection) in self.selections.get(namespace).into_iter().flatten() {
            let members = members.into_iter().flat_map(BTreeMap::values);
            endpoints.extend(members.filter_map(|member| selection.endpoint(name, member)));
        }
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

    #[test]
    fn a_service_names_the_pods_that_it_selects() {
        let mut services = Services::default();
        let member = |labels: Value, subdomain: &str, last: u8, is_ready: bool| {
            let pod = json!({"metadata": {"labels": labels},
                "spec": {"containers": [], "hostname": "h", "subdomain": subdomain}});
            let pod = serde_json::from_value(pod).expect("a Pod");
            Some(Member::of(&pod, Ipv4Addr::new(127, 64, 0, last), is_ready))
        };
        let service: Service = serde_json::from_value(json!({
            "metadata": {"name": "svc", "namespace": "ns"},
            "spec": {"clusterIP": "None", "selector": {"a": "b"}},
        }))
        .expect("a service");
        assert!(!services.set_member("ns", "1", member(json!({"a": "b"}), "svc", 1, true)));
        assert!(services.observe_service(&service) && !services.observe_service(&service));
        assert!(services.set_member("ns", "2", member(json!({"a": "b", "c": "d"}), "x", 2, true)));
        assert!(!services.set_member("ns", "3", member(json!({"a": "x"}), "svc", 3, true)));
        assert!(!services.set_member("ns", "4", member(json!({"a": "b"}), "svc", 4, false)));
        let names = |services: &mut Services| -> Vec<String> {
            let lines = services.lines("ns");
            let name = |line: &str| line.split('\t').take(2).collect::<Vec<_>>().join(" ");
            lines.lines().map(name).collect()
        };
        assert_eq!(names(&mut services), ["127.64.0.1 h.svc", "127.64.0.1 svc", "127.64.0.2 svc"]);
        assert!(services.set_member("ns", "4", member(json!({"a": "b"}), "svc", 4, true)));
        assert!(services.set_member("ns", "1", None));
        assert_eq!(names(&mut services), ["127.64.0.2 svc", "127.64.0.4 h.svc", "127.64.0.4 svc"]);
        assert!(services.forget_service("ns", "svc") && names(&mut services).is_empty());
    }

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
    }
}
