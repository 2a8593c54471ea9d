//! What becomes of an object between a request and validation: what a client may not
//! write is reset, what a feature gate has turned off is dropped.
//!
//! Names and uids are the caller's business: this room has no source of either.

pub mod job;
pub mod pod;

use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

pub use job::{
    drop_disabled_fields, prepare_for_create, prepare_for_status_update, prepare_for_update,
};

/// Clears what only an API server writes, and a new object does not have yet.
pub fn reset_server_fields(meta: &mut ObjectMeta) {
    meta.deletion_timestamp = None;
    meta.deletion_grace_period_seconds = None;
    meta.managed_fields = None;
    meta.self_link = None;
}

/// Keeps what an update of any object can neither change nor leave out: its uid, when it
/// came, and when and how soon it goes. What contradicts that is for validation to report.
pub fn keep_server_fields(new: &mut ObjectMeta, old: &ObjectMeta) {
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

/// Fields of Pods whose feature is off in Kubernetes 1.36 unless it is turned on.
fn drop_disabled_pod_fields(pod: &mut PodSpec) {
    pod.scheduling_group = None;
    let containers = pod.containers.iter_mut().chain(pod.init_containers.iter_mut().flatten());
    for lifecycle in containers.filter_map(|container| container.lifecycle.as_mut()) {
        lifecycle.stop_signal = None;
    }
    let projected = pod.volumes.iter_mut().flatten().filter_map(|volume| volume.projected.as_mut());
    for source in projected.flat_map(|projected| projected.sources.iter_mut().flatten()) {
        source.cluster_trust_bundle = None;
        source.pod_certificate = None;
    }
}
