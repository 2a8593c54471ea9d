//! What is read of an object: its metadata, and of the rest no more than its reader asks for.
//! What is not asked for is passed over, which costs a fraction of decoding it.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::Resource;
use kube::api::ApiResource;
use kube::core::DynamicResourceScope;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

/// An object as far as it is read, with its metadata as `M` reads them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(bound = "S: Default + Deserialize<'de>, T: Default + Deserialize<'de>, M: ReadMeta")]
pub(crate) struct Sight<S, T, M = Labelled> {
    #[serde(default, deserialize_with = "M::read")]
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: S,
    #[serde(default)]
    pub(crate) status: T,
    #[serde(skip)]
    reads: PhantomData<M>,
}

/// How metadata are read.
pub(crate) trait ReadMeta {
    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectMeta, D::Error>;
}

/// All of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Labelled;

impl ReadMeta for Labelled {
    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectMeta, D::Error> {
        ObjectMeta::deserialize(from)
    }
}

/// Without labels and annotations: of a Pod they are most, and whoever follows every change of every Pod
/// and has no use for them should not read them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unlabelled;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UnlabelledMeta {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
    finalizers: Option<Vec<String>>,
    owner_references: Option<Vec<OwnerReference>>,
}

impl ReadMeta for Unlabelled {
    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectMeta, D::Error> {
        let meta = UnlabelledMeta::deserialize(from)?;
        Ok(ObjectMeta {
            name: meta.name,
            namespace: meta.namespace,
            uid: meta.uid,
            resource_version: meta.resource_version,
            creation_timestamp: meta.creation_timestamp,
            deletion_timestamp: meta.deletion_timestamp,
            deletion_grace_period_seconds: meta.deletion_grace_period_seconds,
            finalizers: meta.finalizers,
            owner_references: meta.owner_references,
            ..ObjectMeta::default()
        })
    }
}

/// Nothing but metadata without labels and annotations.
pub(crate) type MetaSight = Sight<IgnoredAny, IgnoredAny, Unlabelled>;

impl<S, T, M> Resource for Sight<S, T, M> {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_without_labels_and_annotations_have_all_else_that_is_looked_at() {
        let time = "2026-01-02T03:04:05Z";
        let mut object = json!({"metadata": {
            "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7", "creationTimestamp": time,
            "deletionTimestamp": time, "deletionGracePeriodSeconds": 3, "finalizers": ["f"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "o", "uid": "v"}],
        }});
        let read = |object: &serde_json::Value| -> (ObjectMeta, ObjectMeta) {
            let whole: Sight<IgnoredAny, IgnoredAny> =
                serde_json::from_value(object.clone()).expect("an object");
            let part: MetaSight = serde_json::from_value(object.clone()).expect("an object");
            (whole.metadata, part.metadata)
        };
        let (whole, part) = read(&object);
        assert_eq!(whole, part);
        object["metadata"]["labels"] = json!({"x": "1"});
        object["metadata"]["annotations"] = json!({"y": "2"});
        let (whole, labelled) = read(&object);
        assert_eq!(labelled, part);
        assert!(whole.labels.is_some());
    }
}
