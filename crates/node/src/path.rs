//! Where things are in the API.

use std::fmt::Display;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What stands for itself in a path.
const NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// What is asked for and sent.
pub(crate) const JSON: &str = "application/json";
/// The same with no more of an object than its metadata, from whoever can answer so.
pub(crate) const METADATA: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const MERGE: &str = "application/merge-patch+json";

/// All Pods that are bound to a node.
pub(crate) fn pods_of_node(node: &str) -> String {
    format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{}", segment(node))
}

/// All EndpointSlices.
pub(crate) const ENDPOINT_SLICES: &str = "/apis/discovery.k8s.io/v1/endpointslices?";

/// An object of a namespace in the group that has no name.
pub(crate) fn object(namespace: &str, plural: &str, name: &str) -> String {
    format!("/api/v1/namespaces/{}/{plural}/{}", segment(namespace), segment(name))
}

/// The events of a namespace.
pub(crate) fn events(namespace: &str) -> String {
    format!("/api/v1/namespaces/{}/events", segment(namespace))
}

/// All nodes, and one.
pub(crate) const NODES: &str = "/api/v1/nodes";

pub(crate) fn node(name: &str) -> String {
    format!("{NODES}/{}", segment(name))
}

/// One node, as a list.
pub(crate) fn only_node(name: &str) -> String {
    format!("{NODES}?fieldSelector=metadata.name%3D{}", segment(name))
}

/// The signs of life of nodes, and that of one.
pub(crate) const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

pub(crate) fn lease(name: &str) -> String {
    format!("{LEASES}/{}", segment(name))
}

fn segment(name: &str) -> impl Display + '_ {
    utf8_percent_encode(name, NAME)
}
