//! The types that the API is made of, as JSON schemas: k8s-openapi's, with their descriptions.
//! It knows nothing of OpenAPI.

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::{SelfSubjectAccessReview, SelfSubjectRulesReview};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    Binding, ConfigMap, Endpoints, Event, LimitRange, Namespace, Node, Pod, ResourceQuota, Secret,
    Service, ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::events::v1;
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    APIGroup, APIGroupList, APIResourceList, APIVersions, DeleteOptions, ListMeta, Patch, Status,
    WatchEvent,
};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use k8s_openapi::apimachinery::pkg::version::Info;
use k8s_openapi::schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// Where a schema refers to another.
pub(super) const PLACE: &str = "#/components/schemas/";

/// The schema of every type by its name, with all that they are made of.
pub(super) fn schemas() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut made = settings.into_generator();
    macro_rules! add {
        ($($of:ty),+ $(,)?) => { $( made.subschema_for::<$of>(); )+ };
    }
    add!(Binding, ConfigMap, Endpoints, Event, Namespace, Node, Pod, Secret, Service);
    add!(LimitRange, ResourceQuota, ServiceAccount, EndpointSlice, Eviction, Job, Lease, v1::Event);
    add!(SelfSubjectAccessReview, SelfSubjectReview, SelfSubjectRulesReview);
    add!(APIGroup, APIGroupList, APIResourceList, APIVersions, DeleteOptions, ListMeta, Patch);
    add!(Status, WatchEvent<RawExtension>, Info);
    made.take_definitions(false)
}
