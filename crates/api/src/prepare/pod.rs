//! What becomes of a Pod between a request and validation.
//!
//! The order is that of kube-apiserver, and each step counts on those before it:
//!
//! - create: [`default_pod`](crate::defaults::pod::default_pod), [`admit_pod`],
//!   [`prepare_pod_for_create`],
//!   [`validate_pod_create`](crate::validation::pod::validate_pod_create);
//! - update: `default_pod`, [`admit_pod_update`], [`prepare_pod_for_update`],
//!   [`validate_pod_update`](crate::validation::pod::validate_pod_update);
//! - update of the status: [`prepare_pod_for_status_update`],
//!   [`validate_pod_status_update`](crate::validation::pod::validate_pod_status_update).
//!
//! Binding is [`crate::binding`], deletion [`crate::pod_deletion`]. An eviction (the
//! subresource `eviction`) is a POST of `policy/v1` `Eviction` with the Pod's name in its
//! metadata and `deleteOptions`: it asks for a deletion that disruption budgets may
//! refuse, and changes nothing in the Pod itself but what the deletion does.

mod admission;
mod app_armor;
mod label_keys;

use std::collections::{BTreeMap, VecDeque};

use k8s_openapi::api::core::v1::{Pod, PodCondition, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub use admission::{AdmissionError, admit_pod, admit_pod_update};

use super::{drop_disabled_pod_fields, keep_server_fields, reset_server_fields};
use crate::closed_set::{ConditionStatus, PodPhase};
use crate::defaults::pod::default_pod_status;
use crate::names::pod_condition;
use crate::pod_qos::qos_class;
use crate::semantic_equality::{json, semantically_equal};

/// Prepares a new Pod, which is defaulted and admitted: Pending, with its QoS class,
/// generation 1, and held back if it has scheduling gates. A QoS class in the request
/// stays, as upstream has it.
pub fn prepare_pod_for_create(pod: &mut Pod, now: &Time) {
    reset_server_fields(&mut pod.metadata);
    pod.metadata.generation = Some(1);
    let spec = pod.spec.get_or_insert_default();
    let asked_for = pod.status.take().and_then(|status| status.qos_class);
    let asked_for = asked_for.filter(|class| !class.is_empty());
    pod.status = Some(PodStatus {
        phase: Some(PodPhase::Pending.to_string()),
        qos_class: Some(asked_for.unwrap_or_else(|| qos_class(spec).to_string())),
        conditions: gated_condition(spec, now).map(|condition| vec![condition]),
        ..PodStatus::default()
    });
    drop_disabled_pod_fields(spec);
    label_keys::merge_label_keys(pod);
    app_armor::fill_in_profiles(pod);
}

/// Prepares an update of the spec or the metadata, which is defaulted and admitted: the
/// status stays, and the generation grows with the spec.
pub fn prepare_pod_for_update(new: &mut Pod, old: &Pod) {
    new.status.clone_from(&old.status);
    drop_disabled_pod_fields(new.spec.get_or_insert_default());
    keep_server_fields(&mut new.metadata, &old.metadata);
    let generation = old.metadata.generation;
    let is_same = new.spec == old.spec || semantically_equal(&json(&new.spec), &json(&old.spec));
    new.metadata.generation =
        if is_same { generation } else { Some(generation.unwrap_or(0).saturating_add(1)) };
}

/// Prepares an update of the status, which needs no defaulting: the spec, the owners and
/// when the Pod is deleted stay. So does what the new status leaves out of what an old
/// kubelet does not know: the QoS class and the observed generations.
pub fn prepare_pod_for_status_update(new: &mut Pod, old: &Pod) {
    new.spec.clone_from(&old.spec);
    new.metadata.generation = old.metadata.generation;
    new.metadata.owner_references.clone_from(&old.metadata.owner_references);
    new.metadata.deletion_timestamp = None;
    keep_server_fields(&mut new.metadata, &old.metadata);
    let status = new.status.get_or_insert_default();
    default_pod_status(status);
    drop_disabled_status_fields(status);
    let none = PodStatus::default();
    let old_status = old.status.as_ref().unwrap_or(&none);
    if status.qos_class.as_deref().unwrap_or("").is_empty() {
        status.qos_class.clone_from(&old_status.qos_class);
    }
    keep_observed_generations(status, old_status);
}

fn gated_condition(spec: &PodSpec, now: &Time) -> Option<PodCondition> {
    let is_gated = spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty());
    is_gated.then(|| PodCondition {
        type_: pod_condition::SCHEDULED.to_owned(),
        status: ConditionStatus::False.to_string(),
        reason: Some(pod_condition::SCHEDULING_GATED.to_owned()),
        message: Some(pod_condition::SCHEDULING_GATED_MESSAGE.to_owned()),
        last_transition_time: Some(now.clone()),
        ..PodCondition::default()
    })
}

/// Fields of statuses whose feature is off in Kubernetes 1.36 unless it is turned on.
fn drop_disabled_status_fields(status: &mut PodStatus) {
    status.node_allocatable_resource_claim_statuses = None;
    let statuses = [
        &mut status.init_container_statuses,
        &mut status.container_statuses,
        &mut status.ephemeral_container_statuses,
    ];
    let statuses = statuses.into_iter().flatten().flatten();
    for mount in statuses.flat_map(|status| status.volume_mounts.iter_mut().flatten()) {
        mount.volume_status = None;
    }
}

/// What was observed is not forgotten by a client that does not say it. Conditions of one
/// type are taken in their order, for there may be several.
fn keep_observed_generations(new: &mut PodStatus, old: &PodStatus) {
    let unless_zero = |generation: Option<i64>| generation.filter(|generation| *generation != 0);
    if unless_zero(new.observed_generation).is_none() {
        new.observed_generation = old.observed_generation;
    }
    let mut remembered: BTreeMap<&str, VecDeque<Option<i64>>> = BTreeMap::new();
    for condition in old.conditions.iter().flatten() {
        remembered.entry(&condition.type_).or_default().push_back(condition.observed_generation);
    }
    for condition in new.conditions.iter_mut().flatten() {
        let known = remembered.get_mut(condition.type_.as_str());
        let generation = known.and_then(|known| known.pop_front().flatten());
        if unless_zero(condition.observed_generation).is_none() {
            condition.observed_generation = generation;
        }
    }
}
