//! Nodes as rows.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Node, NodeStatus};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::duration::UNKNOWN;
use super::{AGE, Column, NAME, NONE, duration, or, text};

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE_LABEL: &str = "kubernetes.io/role";

/// The columns.
pub static COLUMNS: &[Column] = &[
    NAME,
    Column::new("Status", "The status of the node"),
    Column::new("Roles", "The roles of the node"),
    AGE,
    Column::new("Version", "Kubelet Version reported by the node."),
    Column::wide(
        "Internal-IP",
        "List of addresses reachable to the node. Queried from cloud provider, if available. \
         More info: https://kubernetes.io/docs/reference/node/node-status/#addresses Note: This \
         field is declared as mergeable, but the merge key is not sufficiently unique, which can \
         cause data corruption when it is merged. Callers should instead use a full-replacement \
         patch. See https://pr.k8s.io/79391 for an example. Consumers should assume that \
         addresses can change during the lifetime of a Node. However, there are some exceptions \
         where this may not be possible, such as Pods that inherit a Node's address in its own \
         status or consumers of the downward API (status.hostIP).",
    ),
    Column::wide(
        "External-IP",
        "List of addresses reachable to the node. Queried from cloud provider, if available. \
         More info: https://kubernetes.io/docs/reference/node/node-status/#addresses Note: This \
         field is declared as mergeable, but the merge key is not sufficiently unique, which can \
         cause data corruption when it is merged. Callers should instead use a full-replacement \
         patch. See https://pr.k8s.io/79391 for an example. Consumers should assume that \
         addresses can change during the lifetime of a Node. However, there are some exceptions \
         where this may not be possible, such as Pods that inherit a Node's address in its own \
         status or consumers of the downward API (status.hostIP).",
    ),
    Column::wide(
        "OS-Image",
        "OS Image reported by the node from /etc/os-release (e.g. Debian GNU/Linux 7 (wheezy)).",
    ),
    Column::wide(
        "Kernel-Version",
        "Kernel Version reported by the node from 'uname -r' (e.g. 3.16.0-0.bpo.4-amd64).",
    ),
    Column::wide(
        "Container-Runtime",
        "ContainerRuntime Version reported by the node through runtime remote API (e.g. \
         containerd://1.4.2).",
    ),
];

/// The cells of a Node.
pub fn cells(node: &Node, now: Timestamp) -> Vec<Value> {
    let metadata = &node.metadata;
    let no_status = NodeStatus::default();
    let status = node.status.as_ref().unwrap_or(&no_status);
    let info = status.node_info.clone().unwrap_or_default();
    let mut kernel = or(&info.kernel_version, UNKNOWN).to_owned();
    if !info.architecture.is_empty() {
        kernel.push_str(&format!(" ({})", info.architecture));
    }
    vec![
        json!(text(&metadata.name)),
        json!(readiness(node, status)),
        json!(or(&roles(node), NONE)),
        json!(duration::since(metadata.creation_timestamp.as_ref(), now)),
        json!(info.kubelet_version),
        json!(address(status, "InternalIP")),
        json!(address(status, "ExternalIP")),
        json!(or(&info.os_image, UNKNOWN)),
        json!(kernel),
        json!(or(&info.container_runtime_version, UNKNOWN)),
    ]
}

fn readiness(node: &Node, status: &NodeStatus) -> String {
    // Of conditions with the same type the last one counts.
    let ready = status.conditions.iter().flatten().rfind(|condition| condition.type_ == "Ready");
    let word = match ready.map(|condition| condition.status.as_str()) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let unschedulable = node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false);
    if unschedulable { format!("{word},SchedulingDisabled") } else { word.to_owned() }
}

/// The roles in the labels `node-role.kubernetes.io/<role>` and `kubernetes.io/role=<role>`.
fn roles(node: &Node) -> String {
    let labels = node.metadata.labels.iter().flatten();
    let roles: BTreeSet<&str> = labels
        .filter_map(|(key, value)| {
            key.strip_prefix(ROLE_PREFIX).or((key == ROLE_LABEL).then_some(value))
        })
        .filter(|role| !role.is_empty())
        .collect();
    Vec::from_iter(roles).join(",")
}

fn address<'a>(status: &'a NodeStatus, address_type: &str) -> &'a str {
    let mut addresses = status.addresses.iter().flatten();
    addresses.find(|address| address.type_ == address_type).map_or(NONE, |found| &found.address)
}
