//! Pods: what runs.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{LimitRange, Pod, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use stint_api::defaults::pod::default_pod;
use stint_api::feature_gates::FeatureGates;
use stint_api::field_error::FieldError;
use stint_api::limits;
use stint_api::pod_deletion::{Deletion, begin_deletion};
use stint_api::pod_field::pod_field;
use stint_api::prepare::pod as prepare;
use stint_api::quota::{Counted, has_deadline};
use stint_api::validation::pod as validation;
use stint_api::warning;
use stint_store::Revision;

use crate::kind::{Context, Kind, Manners, Names, Part, PartOf};
use crate::object;
use crate::table::{self, Column, RowCondition};

/// Pods.
#[derive(Debug)]
pub(super) struct Pods;

impl Kind for Pods {
    type Object = Pod;

    const NAMES: Names = Names {
        group: "",
        version: "v1",
        kind: "Pod",
        plural: "pods",
        singular: "pod",
        short_names: &["po"],
        categories: &["all"],
        is_namespaced: true,
    };

    const MANNERS: Manners =
        Manners { has_status: true, returns_deleted: true, is_limited: true, ..Manners::USUAL };

    const STORED_UNDER: &'static str = "pods";

    const FIELDS: &'static [&'static str] = &[
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ];

    const PARTS: &'static [PartOf] = &[
        ("attach", "PodAttachOptions", &["create", "get"]),
        ("binding", "Binding", &["create"]),
        ("eviction", "Eviction", &["create"]),
        ("exec", "PodExecOptions", &["create", "get"]),
        ("log", "Pod", &["get"]),
    ];

    fn admit(pod: &mut Pod) -> Result<(), String> {
        default_pod(pod);
        prepare::admit_pod(pod).map_err(|error| error.to_string())
    }

    fn apply_limits(pod: &mut Pod, range: &LimitRange) {
        limits::apply_defaults(pod, range);
    }

    fn check_limits(pod: &Pod, range: &LimitRange) -> Result<(), String> {
        limits::check(pod, range)
    }

    fn counted(pod: &Pod, now: Timestamp) -> Option<Counted> {
        Some(Counted::pod(pod, now))
    }

    /// A Pod that gets a deadline may be in the scope of another quota.
    fn counted_change(new: &Pod, old: &Pod, now: Timestamp) -> Option<Counted> {
        (has_deadline(new) != has_deadline(old))
            .then(|| Counted::pod(new, now).changed_from(Counted::pod(old, now)))
    }

    fn warnings(pod: &Pod) -> Vec<String> {
        warning::of_pod(pod)
    }

    fn account(pod: &Pod) -> Option<&str> {
        pod.spec.as_ref()?.service_account_name.as_deref()
    }

    fn tracked(pod: &mut Pod, _gates: &FeatureGates) -> Vec<u8> {
        default_pod(pod);
        object::to_stored(pod)
    }

    const REPLACEABLE: &'static [&'static str] = &["metadata", "spec", "status"];

    fn replace(pod: &Pod, members: &Map<String, Value>) -> Option<Pod> {
        Some(Pod {
            metadata: replaced(members, "metadata", || pod.metadata.clone())?,
            spec: replaced(members, "spec", || pod.spec.clone())?,
            status: replaced(members, "status", || pod.status.clone())?,
        })
    }

    fn resets(part: Part) -> &'static [&'static [&'static str]] {
        match part {
            Part::Whole | Part::Finalize => &[&["status"]],
            Part::Status => {
                &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]]
            }
        }
    }

    fn prepare_for_create(pod: &mut Pod, context: &Context<'_>) {
        prepare::prepare_pod_for_create(pod, &Time(context.now));
    }

    fn prepare_for_update(new: &mut Pod, old: &Pod, part: Part, _context: &Context<'_>) {
        match part {
            Part::Status => prepare::prepare_pod_for_status_update(new, old),
            Part::Whole | Part::Finalize => {
                default_pod(new);
                prepare::admit_pod_update(new, old);
                prepare::prepare_pod_for_update(new, old);
            }
        }
    }

    fn validate_create(pod: &Pod, _context: &Context<'_>) -> Vec<FieldError> {
        validation::validate_pod_create(pod)
    }

    fn validate_update(
        new: &Pod,
        old: &Pod,
        part: Part,
        _context: &Context<'_>,
    ) -> Vec<FieldError> {
        match part {
            Part::Status => validation::validate_pod_status_update(new, old),
            Part::Whole | Part::Finalize => validation::validate_pod_update(new, old),
        }
    }

    fn field<'o>(pod: &'o Pod, name: &str) -> Cow<'o, str> {
        pod_field(pod, name).unwrap_or_default()
    }

    fn selectable(stored: &[u8], _revision: Revision) -> Pod {
        let read: Selectable = serde_json::from_slice(stored).expect("what was stored can be read");
        read.into()
    }

    fn begin_deletion(pod: &mut Pod, requested: Option<i64>, now: Timestamp) -> Option<Deletion> {
        Some(begin_deletion(pod, requested, &Time(now)))
    }

    fn columns() -> &'static [Column] {
        table::pod::COLUMNS
    }

    fn cells(pod: &Pod, now: Timestamp) -> Vec<Value> {
        table::pod::cells(pod, now)
    }

    fn row_conditions(pod: &Pod) -> &'static [RowCondition] {
        table::pod::conditions(pod)
    }
}

/// A member that is to be another one, or the one that was there.
fn replaced<T: DeserializeOwned>(
    members: &Map<String, Value>,
    name: &str,
    kept: impl FnOnce() -> T,
) -> Option<T> {
    match members.get(name) {
        Some(member) => T::deserialize(member).ok(),
        None => Some(kept()),
    }
}

/// The fields that a Pod can be selected by: to read no more than them takes a fraction of the time.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Selectable {
    spec: SelectableSpec,
    status: SelectableStatus,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SelectableSpec {
    node_name: Option<String>,
    restart_policy: Option<String>,
    scheduler_name: Option<String>,
    service_account_name: Option<String>,
    host_network: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SelectableStatus {
    phase: Option<String>,
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
    nominated_node_name: Option<String>,
}

impl From<Selectable> for Pod {
    fn from(Selectable { spec, status }: Selectable) -> Self {
        let spec = PodSpec {
            node_name: spec.node_name,
            restart_policy: spec.restart_policy,
            scheduler_name: spec.scheduler_name,
            service_account_name: spec.service_account_name,
            host_network: spec.host_network,
            ..PodSpec::default()
        };
        let status = PodStatus {
            phase: status.phase,
            pod_ip: status.pod_ip,
            nominated_node_name: status.nominated_node_name,
            ..PodStatus::default()
        };
        Pod { spec: Some(spec), status: Some(status), ..Pod::default() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_that_can_be_selected_by_is_read() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "ns"},
            "spec": {"nodeName": "n1", "restartPolicy": "Never", "schedulerName": "s",
                "serviceAccountName": "robot", "hostNetwork": true, "containers": []},
            "status": {"phase": "Running", "podIP": "10.0.0.1", "nominatedNodeName": "n2"},
        }))
        .expect("a Pod");
        let read = Pods::selectable(&object::to_stored(&pod), Revision::new(1));
        // In Kubernetes one can select by this, and it is always empty.
        for field in Pods::FIELDS.iter().filter(|field| **field != "status.podIPs") {
            let expected = Pods::field(&pod, field);
            assert!(!expected.is_empty(), "{field} has no value in this test");
            assert_eq!(Pods::field(&read, field), expected, "{field}");
        }
        let none = Pods::selectable(&object::to_stored(&Pod::default()), Revision::new(1));
        for field in Pods::FIELDS {
            assert_eq!(Pods::field(&none, field), Pods::field(&Pod::default(), field), "{field}");
        }
    }
}
