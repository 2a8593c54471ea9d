//! Empty maps and lists that Kubernetes' own types do not write. Whoever sends one says nothing by it,
//! so nobody owns the field, and who applies another value meets no conflict. It must not know verbs.
//!
//! Only what people and clients do send is looked at: metadata, data, selectors and the lists of Pods.
//! `false` and empty texts stay as they were sent (docs/parity.md).

use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// What can be empty.
pub(crate) trait Empty {
    fn is_empty(&self) -> bool;
}

impl<T> Empty for Vec<T> {
    fn is_empty(&self) -> bool {
        Vec::is_empty(self)
    }
}

impl<K, V> Empty for std::collections::BTreeMap<K, V> {
    fn is_empty(&self) -> bool {
        std::collections::BTreeMap::is_empty(self)
    }
}

/// Takes a field out if there is nothing in it.
pub(crate) fn drop_empty<T: Empty>(field: &mut Option<T>) {
    if field.as_ref().is_some_and(Empty::is_empty) {
        *field = None;
    }
}

/// The same for what every object has.
pub(super) fn drop_from_metadata(meta: &mut ObjectMeta) {
    drop_empty(&mut meta.labels);
    drop_empty(&mut meta.annotations);
    drop_empty(&mut meta.finalizers);
    drop_empty(&mut meta.owner_references);
}

/// The same for a Pod, or what Pods are made by.
pub(crate) fn drop_from_pod(spec: &mut PodSpec) {
    drop_empty(&mut spec.node_selector);
    drop_empty(&mut spec.volumes);
    drop_empty(&mut spec.tolerations);
    drop_empty(&mut spec.image_pull_secrets);
    drop_empty(&mut spec.host_aliases);
    drop_empty(&mut spec.init_containers);
    drop_empty(&mut spec.topology_spread_constraints);
    spec.init_containers.iter_mut().flatten().for_each(drop_from_container);
    spec.containers.iter_mut().for_each(drop_from_container);
}

fn drop_from_container(container: &mut Container) {
    drop_empty(&mut container.command);
    drop_empty(&mut container.args);
    drop_empty(&mut container.env);
    drop_empty(&mut container.env_from);
    drop_empty(&mut container.ports);
    drop_empty(&mut container.volume_mounts);
    if let Some(resources) = &mut container.resources {
        drop_empty(&mut resources.requests);
        drop_empty(&mut resources.limits);
    }
}
