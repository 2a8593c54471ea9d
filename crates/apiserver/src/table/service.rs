//! Services as rows.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec, ServiceStatus};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{AGE, Column, NAME, NONE, duration, or, selector, text};

/// The columns.
pub static COLUMNS: &[Column] = &[
    NAME,
    Column::new(
        "Type",
        "type determines how the Service is exposed. Defaults to ClusterIP. Valid options are \
         ExternalName, ClusterIP, NodePort, and LoadBalancer. \"ClusterIP\" allocates a \
         cluster-internal IP address for load-balancing to endpoints. Endpoints are determined \
         by the selector or if that is not specified, by manual construction of an Endpoints \
         object or EndpointSlice objects. If clusterIP is \"None\", no virtual IP is allocated \
         and the endpoints are published as a set of endpoints rather than a virtual IP. \
         \"NodePort\" builds on ClusterIP and allocates a port on every node which routes to the \
         same endpoints as the clusterIP. \"LoadBalancer\" builds on NodePort and creates an \
         external load-balancer (if supported in the current cloud) which routes to the same \
         endpoints as the clusterIP. \"ExternalName\" aliases this service to the specified \
         externalName. Several other fields do not apply to ExternalName services. More info: \
         https://kubernetes.io/docs/concepts/services-networking/service/#publishing-services-service-types",
    ),
    Column::new(
        "Cluster-IP",
        "clusterIP is the IP address of the service and is usually assigned randomly. If an \
         address is specified manually, is in-range (as per system configuration), and is not in \
         use, it will be allocated to the service; otherwise creation of the service will fail. \
         This field may not be changed through updates unless the type field is also being \
         changed to ExternalName (which requires this field to be blank) or the type field is \
         being changed from ExternalName (in which case this field may optionally be specified, \
         as describe above).  Valid values are \"None\", empty string (\"\"), or a valid IP \
         address. Setting this to \"None\" makes a \"headless service\" (no virtual IP), which \
         is useful when direct endpoint connections are preferred and proxying is not required.  \
         Only applies to types ClusterIP, NodePort, and LoadBalancer. If this field is specified \
         when creating a Service of type ExternalName, creation will fail. This field will be \
         wiped when updating a Service to type ExternalName. More info: \
         https://kubernetes.io/docs/concepts/services-networking/service/#virtual-ips-and-service-proxies",
    ),
    Column::new(
        "External-IP",
        "externalIPs is a list of IP addresses for which nodes in the cluster will also accept \
         traffic for this service.  These IPs are not managed by Kubernetes.  The user is \
         responsible for ensuring that traffic arrives at a node with this IP.  A common example \
         is external load-balancers that are not part of the Kubernetes system.",
    ),
    Column::new(
        "Port(s)",
        "The list of ports that are exposed by this service. More info: \
         https://kubernetes.io/docs/concepts/services-networking/service/#virtual-ips-and-service-proxies",
    ),
    AGE,
    Column::wide(
        "Selector",
        "Route service traffic to pods with label keys and values matching this selector. If \
         empty or not present, the service is assumed to have an external process managing its \
         endpoints, which Kubernetes will not modify. Only applies to types ClusterIP, NodePort, \
         and LoadBalancer. Ignored if type is ExternalName. More info: \
         https://kubernetes.io/docs/concepts/services-networking/service/",
    ),
];

/// The cells of a Service.
pub fn cells(service: &Service, now: Timestamp) -> Vec<Value> {
    let metadata = &service.metadata;
    let (no_spec, no_status) = (ServiceSpec::default(), ServiceStatus::default());
    let spec = service.spec.as_ref().unwrap_or(&no_spec);
    let status = service.status.as_ref().unwrap_or(&no_status);
    vec![
        json!(text(&metadata.name)),
        json!(service_type(spec)),
        json!(cluster_ip(spec)),
        json!(external_ip(spec, status)),
        json!(or(&ports(spec), NONE)),
        json!(duration::since(metadata.creation_timestamp.as_ref(), now)),
        json!(selector::of_labels(spec.selector.as_ref())),
    ]
}

fn service_type(spec: &ServiceSpec) -> &str {
    or(text(&spec.type_), "ClusterIP")
}

fn cluster_ip(spec: &ServiceSpec) -> &str {
    match spec.cluster_ips.iter().flatten().next() {
        Some(first) => first,
        None => or(text(&spec.cluster_ip), NONE),
    }
}

fn external_ip(spec: &ServiceSpec, status: &ServiceStatus) -> String {
    let external_ips = spec.external_ips.as_deref().unwrap_or_default();
    match service_type(spec) {
        "ClusterIP" | "NodePort" => or(&external_ips.join(","), NONE).to_owned(),
        "LoadBalancer" => {
            let mut ips = ingress(status);
            ips.extend(external_ips.iter().map(String::as_str));
            or(&ips.join(","), "<pending>").to_owned()
        }
        "ExternalName" => text(&spec.external_name).to_owned(),
        _ => duration::UNKNOWN.to_owned(),
    }
}

/// Where the load balancer is, each place once and in order.
fn ingress(status: &ServiceStatus) -> Vec<&str> {
    let points = status.load_balancer.iter().flat_map(|balancer| balancer.ingress.iter().flatten());
    let places: BTreeSet<&str> = points
        .map(|point| or(text(&point.ip), text(&point.hostname)))
        .filter(|place| !place.is_empty())
        .collect();
    places.into_iter().collect()
}

fn ports(spec: &ServiceSpec) -> String {
    let ports: Vec<String> = spec.ports.iter().flatten().map(port).collect();
    ports.join(",")
}

fn port(port: &ServicePort) -> String {
    let (number, protocol) = (port.port, or(text(&port.protocol), "TCP"));
    match port.node_port {
        Some(node_port) if node_port > 0 => format!("{number}:{node_port}/{protocol}"),
        _ => format!("{number}/{protocol}"),
    }
}
