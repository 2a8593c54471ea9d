//! What becomes of objects of other kinds than Jobs and Pods between a request and the
//! store. One file a kind, all of the same shape, as far as the kind has a use for it:
//!
//! | function | what it does |
//! |---|---|
//! | `prepare_for_create` | sets defaults, resets what a client may not write |
//! | `prepare_for_update` | the same against the stored object, which keeps its status |
//! | `prepare_for_status_update` | the same for the subresource, which keeps its spec |
//! | `validate_create`, `validate_update`, `validate_status_update` | every error, in the API server's words and order |
//! | `field` | what a field selector sees; none: the kind has no such selector |
//!
//! and two constants about updates: `CREATES_ON_UPDATE`, whether a PUT may create the
//! object, and `UPDATES_UNCONDITIONALLY`, whether it may do without a resourceVersion.
//! Where it may, the caller fills in the stored one before validation.
//!
//! The API server judges the metadata of an update up to three times; here each error of
//! an update is said once.
//!
//! A new object has its name, namespace and uid before it is prepared: this room has no
//! source of either, and no clock. Of these kinds only EndpointSlices count their
//! generations.

pub mod config_map;
pub mod endpoint_slice;
pub mod endpoints;
pub mod event;
pub mod events_v1;
pub mod job;
pub mod lease;
pub mod limit_range;
pub mod namespace;
pub mod node;
pub mod resource_quota;
pub mod secret;
pub mod service;
pub mod service_account;

use std::borrow::Cow;
use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;
use crate::validation::object_meta::{
    MetaRules, validate_object_meta_by, validate_object_meta_update_by,
};

/// A kind without namespaces whose names are DNS subdomains.
const CLUSTER_WIDE: MetaRules = MetaRules { is_namespaced: false, ..MetaRules::NAMESPACED };

/// All values of a ConfigMap or Secret together; upstream's limit, which keeps an object
/// within what etcd takes.
const DATA_MAX_BYTES: usize = 1024 * 1024;

/// What is said of a field that `immutable: true` protects.
const IMMUTABLE_WHEN_SET: &str = "field is immutable when `immutable` is set";

/// The protocols of a port, in the order of messages.
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// What every update keeps of the stored metadata, whatever the request says.
fn keep_identity(new: &mut ObjectMeta, old: &ObjectMeta) {
    new.generation = old.generation;
    if new.uid.as_deref().unwrap_or("").is_empty() {
        new.uid.clone_from(&old.uid);
    }
    if old.creation_timestamp.is_some() {
        new.creation_timestamp.clone_from(&old.creation_timestamp);
    }
    if old.deletion_timestamp.is_some() {
        new.deletion_timestamp.clone_from(&old.deletion_timestamp);
    }
    if new.deletion_grace_period_seconds.is_none() {
        new.deletion_grace_period_seconds = old.deletion_grace_period_seconds;
    }
}

/// An object of a kind without namespaces is in none, whatever the request says.
fn leave_namespace(meta: &mut ObjectMeta) {
    meta.namespace = None;
}

/// What the API server says of every kind's metadata after the kind itself had no
/// objections to a new object.
fn validate_meta_of_any_kind(rules: &MetaRules, meta: &ObjectMeta, errors: &mut Vec<FieldError>) {
    let rules =
        MetaRules { name: identifier::path_segment_name, knows_finalizers: false, ..*rules };
    validate_object_meta_by(&rules, meta, &Path::field("metadata"), errors);
}

/// What the API server says of every kind's metadata before it asks the kind itself.
fn validate_meta_update_of_any_kind(
    rules: &MetaRules,
    new: &ObjectMeta,
    old: &ObjectMeta,
    errors: &mut Vec<FieldError>,
) {
    validate_meta_of_any_kind(rules, new, errors);
    let rules = MetaRules { knows_finalizers: false, ..*rules };
    validate_object_meta_update_by(&rules, new, old, &Path::field("metadata"), errors);
}

/// The errors, each once. The API server says some of an update up to three times.
fn once(errors: Vec<FieldError>) -> Vec<FieldError> {
    let mut said = BTreeSet::new();
    errors.into_iter().filter(|error| said.insert(error.to_string())).collect()
}

/// The fields that every kind can be selected by.
fn meta_field<'a>(meta: &'a ObjectMeta, name: &str) -> Option<Cow<'a, str>> {
    match name {
        "metadata.name" => shown(&meta.name),
        "metadata.namespace" => shown(&meta.namespace),
        _ => None,
    }
}

/// A text as field selectors see it: absent is empty.
fn shown(field: &Option<String>) -> Option<Cow<'_, str>> {
    Some(Cow::Borrowed(field.as_deref().unwrap_or("")))
}
