//! What is read of Services and Pods, and what a Pod is to a Service that selects it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    ContainerPort, ObjectReference, PodCondition, PodIP, ServicePort, ServiceSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::Deserialize;
use serde::de::IgnoredAny;
use stint_api::kinds::service::HEADLESS;

use crate::sight::{Sight, has_ended};

/// A Service: there are few.
pub(super) type ServiceSight = Sight<ServiceSpec, IgnoredAny>;

/// A Pod as Services see it.
pub(super) type PodSight = Sight<PodSpecSight, PodStatusSight>;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodSpecSight {
    containers: Vec<ContainerSight>,
    init_containers: Option<Vec<ContainerSight>>,
    node_name: Option<String>,
    hostname: Option<String>,
    subdomain: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ContainerSight {
    ports: Option<Vec<ContainerPort>>,
    restart_policy: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodStatusSight {
    phase: Option<String>,
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
    #[serde(rename = "podIPs")]
    pod_ips: Option<Vec<PodIP>>,
    conditions: Option<Vec<PodCondition>>,
}

/// A family of addresses, as Services and slices name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        }
    }

    fn has(self, address: &str) -> bool {
        address.contains(':') == (self == Family::V6)
    }
}

/// A Pod that can be behind a Service: it has an address, and has not ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Backend {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) reference: ObjectReference,
    pub(super) node_name: Option<String>,
    hostname: Option<String>,
    subdomain: Option<String>,
    addresses: Vec<String>,
    pub(super) is_ready: bool,
    pub(super) is_terminating: bool,
    named_ports: Vec<ContainerPort>,
}

/// A port of a Service on a Pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) number: i32,
    pub(super) protocol: String,
    pub(super) app_protocol: Option<String>,
}

impl Backend {
    /// What a Pod is to Services; nothing if it has no address or has ended.
    pub(super) fn read(pod: PodSight) -> Option<Self> {
        let Sight { metadata, spec, status, .. } = pod;
        if has_ended(status.phase.as_deref()) {
            return None;
        }
        let listed = status.pod_ips.into_iter().flatten().map(|address| address.ip);
        let mut addresses: Vec<String> = listed.collect();
        if addresses.is_empty() {
            addresses.extend(status.pod_ip);
        }
        addresses.retain(|address| !address.is_empty());
        if addresses.is_empty() {
            return None;
        }
        let is_sidecar =
            |container: &ContainerSight| container.restart_policy.as_deref() == Some("Always");
        let sidecars = spec.init_containers.into_iter().flatten().filter(is_sidecar);
        let ports = spec.containers.into_iter().chain(sidecars).flat_map(|it| it.ports);
        let is_named = |port: &ContainerPort| port.name.is_some();
        let mut conditions = status.conditions.iter().flatten();
        Some(Backend {
            reference: reference(&metadata),
            node_name: spec.node_name.filter(|node| !node.is_empty()),
            hostname: spec.hostname.filter(|hostname| !hostname.is_empty()),
            subdomain: spec.subdomain,
            addresses,
            is_ready: conditions.any(|it| it.type_ == "Ready" && it.status == "True"),
            is_terminating: metadata.deletion_timestamp.is_some(),
            named_ports: ports.flatten().filter(is_named).collect(),
            labels: metadata.labels.unwrap_or_default(),
        })
    }

    /// Its addresses of a family.
    pub(super) fn addresses(&self, family: Family) -> Vec<String> {
        self.addresses.iter().filter(|address| family.has(address)).cloned().collect()
    }

    /// Its name within a Service, if it asks to be called so there.
    pub(super) fn hostname(&self, service: &ServiceSight) -> Option<String> {
        let hostname = self.hostname.clone()?;
        (self.subdomain.is_some() && self.subdomain == service.metadata.name).then_some(hostname)
    }

    /// The ports of a Service on this Pod. One that the Pod has no name for is left out.
    pub(super) fn ports(&self, service: &ServiceSight) -> Vec<Port> {
        let ports = service.spec.ports.iter().flatten();
        let mut ports: Vec<Port> = ports.filter_map(|port| self.port(port)).collect();
        ports.sort();
        ports
    }

    fn port(&self, port: &ServicePort) -> Option<Port> {
        let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
        let number = match &port.target_port {
            Some(IntOrString::Int(0)) | None => port.port,
            Some(IntOrString::Int(number)) => *number,
            Some(IntOrString::String(name)) => {
                let is_it = |offered: &&ContainerPort| {
                    offered.name.as_ref() == Some(name)
                        && offered.protocol.as_deref().unwrap_or("TCP") == protocol
                };
                self.named_ports.iter().find(is_it)?.container_port
            }
        };
        let name = port.name.clone().unwrap_or_default();
        Some(Port { name, number, protocol, app_protocol: port.app_protocol.clone() })
    }
}

fn reference(meta: &ObjectMeta) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".to_owned()),
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        ..ObjectReference::default()
    }
}

impl ServiceSight {
    /// The labels of the Pods behind it; none if others say what is behind it.
    pub(super) fn selector(&self) -> Option<&BTreeMap<String, String>> {
        let is_external = self.spec.type_.as_deref() == Some("ExternalName");
        let selector = self.spec.selector.as_ref().filter(|selector| !selector.is_empty());
        selector.filter(|_| !is_external)
    }

    pub(super) fn selects(&self, backend: &Backend) -> bool {
        let has = |(key, value): (&String, &String)| backend.labels.get(key) == Some(value);
        self.selector().is_some_and(|selector| selector.iter().all(has))
    }

    pub(super) fn is_headless(&self) -> bool {
        matches!(self.spec.cluster_ip.as_deref(), None | Some("" | HEADLESS))
    }

    /// Whether Pods that are not ready are told all the same.
    pub(super) fn tells_all(&self) -> bool {
        self.spec.publish_not_ready_addresses == Some(true)
    }

    /// The families of its addresses, the first one first.
    pub(super) fn families(&self) -> Vec<Family> {
        let family = |name: &String| if name == "IPv6" { Family::V6 } else { Family::V4 };
        let families: Vec<Family> = self.spec.ip_families.iter().flatten().map(family).collect();
        if families.is_empty() { vec![Family::V4] } else { families }
    }
}
