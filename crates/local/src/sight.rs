//! What is read of an object: its metadata, and of the rest no more than its reader asks for.
//! What is not asked for is passed over, which costs a fraction of decoding it.

use std::borrow::Cow;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::api::ApiResource;
use kube::core::DynamicResourceScope;
use serde::Deserialize;

/// An object as far as it is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(bound = "S: Default + Deserialize<'de>, T: Default + Deserialize<'de>")]
pub(crate) struct Sight<S, T> {
    #[serde(default)]
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: S,
    #[serde(default)]
    pub(crate) status: T,
}

impl<S, T> Resource for Sight<S, T> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(of: &ApiResource) -> Cow<'_, str> {
        of.kind.as_str().into()
    }

    fn group(of: &ApiResource) -> Cow<'_, str> {
        of.group.as_str().into()
    }

    fn version(of: &ApiResource) -> Cow<'_, str> {
        of.version.as_str().into()
    }

    fn api_version(of: &ApiResource) -> Cow<'_, str> {
        of.api_version.as_str().into()
    }

    fn plural(of: &ApiResource) -> Cow<'_, str> {
        of.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Which object of a kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
}

impl Key {
    /// Where an object is.
    pub(crate) fn of(meta: &ObjectMeta) -> Self {
        Key {
            namespace: meta.namespace.as_deref().unwrap_or_default().into(),
            name: meta.name.as_deref().unwrap_or_default().into(),
        }
    }
}

/// The uid of an object.
pub(crate) fn uid(meta: &ObjectMeta) -> Arc<str> {
    meta.uid.as_deref().unwrap_or_default().into()
}

/// When an object was created, in seconds.
pub(crate) fn created(meta: &ObjectMeta) -> i64 {
    meta.creation_timestamp.as_ref().map_or(i64::MAX, |time| time.0.as_second())
}

/// The version of an object.
pub(crate) fn version(meta: &ObjectMeta) -> u64 {
    let version = meta.resource_version.as_deref();
    version.and_then(|version| version.parse().ok()).unwrap_or(u64::MAX)
}

/// Whether a Pod has ended, by its phase.
pub(crate) fn has_ended(phase: Option<&str>) -> bool {
    matches!(phase, Some("Succeeded" | "Failed"))
}
