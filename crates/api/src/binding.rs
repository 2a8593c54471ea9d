//! Binding a Pod to a node: the subresource `binding`.

use k8s_openapi::api::core::v1::{Binding, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::pod_conditions::set_scheduled;

/// Why a Pod cannot be bound. kube-apiserver answers each as a Conflict, of the resource
/// `pods/binding`, with this message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// The Pod is on its way out.
    #[error("pod {pod} is being deleted, cannot be assigned to a host")]
    BeingDeleted {
        /// The Pod's name.
        pod: String,
    },
    /// The Pod has a node, be it the same.
    #[error("pod {pod} is already assigned to node {node:?}")]
    AlreadyAssigned {
        /// The Pod's name.
        pod: String,
        /// The node it has.
        node: String,
    },
    /// The Pod has scheduling gates.
    #[error("pod {pod} has non-empty .spec.schedulingGates")]
    Gated {
        /// The Pod's name.
        pod: String,
    },
}

/// Binds a Pod to the node that a valid binding names: annotations and labels of the
/// binding become the Pod's, and its condition PodScheduled becomes True as of `now`.
///
/// Whether the binding means this Pod, by its uid and resource version, is for the caller
/// to say. The generation stays.
pub fn bind(pod: &mut Pod, binding: &Binding, now: &Time) -> Result<(), BindError> {
    let name = || pod.metadata.name.clone().unwrap_or_default();
    if pod.metadata.deletion_timestamp.is_some() {
        return Err(BindError::BeingDeleted { pod: name() });
    }
    let spec = pod.spec.get_or_insert_default();
    if let Some(node) = spec.node_name.as_ref().filter(|node| !node.is_empty()) {
        return Err(BindError::AlreadyAssigned { pod: name(), node: node.clone() });
    }
    if spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty()) {
        return Err(BindError::Gated { pod: name() });
    }
    spec.node_name.clone_from(&binding.target.name);
    let (from, to) = (&binding.metadata, &mut pod.metadata);
    for (from, to) in [(&from.annotations, &mut to.annotations), (&from.labels, &mut to.labels)] {
        if let Some(from) = from.as_ref().filter(|from| !from.is_empty()) {
            to.get_or_insert_default().extend(from.clone());
        }
    }
    let status = pod.status.get_or_insert_default();
    status.nominated_node_name = None;
    set_scheduled(status.conditions.get_or_insert_default(), now);
    Ok(())
}
