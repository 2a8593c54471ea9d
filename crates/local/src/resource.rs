//! The kinds that the server serves, as a client names them.

use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::{DynamicResourceScope, GroupVersionKind};
use kube::{Client, Resource};
use stint_apiserver::kind::Names;
use stint_apiserver::kinds;

/// The kinds whose owner references are followed. Events are not among them, as upstream: they
/// own nothing and nothing owns them, and there are many.
pub(crate) fn collected() -> impl Iterator<Item = &'static Names> {
    kinds::ALL.iter().map(|kind| kind.names()).filter(|names| names.kind != "Event")
}

/// The kinds whose objects live in namespaces. Of the two names that events have one is enough:
/// they are the same objects.
pub(crate) fn namespaced() -> impl Iterator<Item = &'static Names> {
    let all = kinds::ALL.iter().map(|kind| kind.names());
    all.filter(|names| names.is_namespaced && names.group != "events.k8s.io")
}

/// A client's view of a kind: in one namespace, or in all.
pub(crate) fn api(client: &Client, names: &Names, namespace: Option<&str>) -> Api<DynamicObject> {
    part(client, names, namespace)
}

/// A client's view of a kind of which `K` is what is read: in one namespace, or in all.
pub(crate) fn part<K>(client: &Client, names: &Names, namespace: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
{
    let kind = GroupVersionKind::gvk(names.group, names.version, names.kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, names.plural);
    match namespace.filter(|_| names.is_namespaced) {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// What Jobs are called.
pub(crate) fn jobs() -> &'static Names {
    kinds::find("batch", "v1", "jobs").expect("the server serves them").names()
}

/// What a kind of the core group is called.
pub(crate) fn core(plural: &str) -> &'static Names {
    kinds::find("", "v1", plural).expect("the server serves it").names()
}
