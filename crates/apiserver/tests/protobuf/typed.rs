//! What is left of JSON once it was read as the type of its kind.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    Binding, ConfigMap, Endpoints, Event, LimitRange, Namespace, Node, Pod, ResourceQuota, Secret,
    Service, ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::events::v1::Event as NewEvent;
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::DeleteOptions;
use serde::Serialize;
use serde::de::{DeserializeOwned, Deserializer};
use serde_json::Value;

/// Reads anything as a kind, and writes it again.
pub(crate) fn through<'de, D: Deserializer<'de>>(
    api_version: &str,
    kind: &str,
    source: D,
) -> Result<Value, D::Error> {
    match (api_version, kind) {
        ("v1", "Binding") => again::<Binding, D>(source),
        ("v1", "ConfigMap") => again::<ConfigMap, D>(source),
        ("v1", "DeleteOptions") | ("meta.k8s.io/v1", "DeleteOptions") => {
            again::<DeleteOptions, D>(source)
        }
        ("v1", "Endpoints") => again::<Endpoints, D>(source),
        ("v1", "Event") => again::<Event, D>(source),
        ("v1", "LimitRange") => again::<LimitRange, D>(source),
        ("v1", "Namespace") => again::<Namespace, D>(source),
        ("v1", "Node") => again::<Node, D>(source),
        ("v1", "Pod") => again::<Pod, D>(source),
        ("v1", "ResourceQuota") => again::<ResourceQuota, D>(source),
        ("v1", "Secret") => again::<Secret, D>(source),
        ("v1", "Service") => again::<Service, D>(source),
        ("v1", "ServiceAccount") => again::<ServiceAccount, D>(source),
        ("batch/v1", "Job") => again::<Job, D>(source),
        ("coordination.k8s.io/v1", "Lease") => again::<Lease, D>(source),
        ("discovery.k8s.io/v1", "EndpointSlice") => again::<EndpointSlice, D>(source),
        ("events.k8s.io/v1", "Event") => again::<NewEvent, D>(source),
        ("policy/v1", "Eviction") => again::<Eviction, D>(source),
        unknown => panic!("no type for {unknown:?}"),
    }
}

fn again<'de, T: DeserializeOwned + Serialize, D: Deserializer<'de>>(
    source: D,
) -> Result<Value, D::Error> {
    let mut value = serde_json::to_value(T::deserialize(source)?).expect("it is written");
    // The type of the object is the envelope's to say.
    let fields = value.as_object_mut().expect("an object");
    fields.remove("apiVersion");
    fields.remove("kind");
    Ok(value)
}
