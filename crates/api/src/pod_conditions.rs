//! The conditions of Pods that the API server sets itself.

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::closed_set::ConditionStatus;
use crate::names::pod_condition;

/// A Pod is scheduled as of `now`.
pub(crate) fn set_scheduled(conditions: &mut Vec<PodCondition>, now: &Time) {
    set(
        conditions,
        now,
        PodCondition { type_: pod_condition::SCHEDULED.to_owned(), ..PodCondition::default() },
    );
}

/// A Pod is being evicted: whoever counts its failure learns that it is no fault of its own.
pub fn set_evicted(pod: &mut Pod, now: &Time) {
    let conditions = pod.status.get_or_insert_default().conditions.get_or_insert_default();
    set(
        conditions,
        now,
        PodCondition {
            type_: pod_condition::DISRUPTION_TARGET.to_owned(),
            reason: Some("EvictionByEvictionAPI".to_owned()),
            message: Some("Eviction API: evicting".to_owned()),
            ..PodCondition::default()
        },
    );
}

/// Makes a condition True as of `now`; one that was True already keeps its time.
fn set(conditions: &mut Vec<PodCondition>, now: &Time, condition: PodCondition) {
    let mut new = PodCondition {
        status: ConditionStatus::True.to_string(),
        last_transition_time: Some(now.clone()),
        ..condition
    };
    match conditions.iter_mut().find(|old| old.type_ == new.type_) {
        Some(old) => {
            if old.status == new.status {
                new.last_transition_time = old.last_transition_time.take();
            }
            *old = new;
        }
        None => conditions.push(new),
    }
}
