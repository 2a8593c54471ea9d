//! A Pod as the controller reads it: the fields that a ledger or the router needs, and nothing
//! else is even decoded.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::Deserialize;
use stint_api::names::JOB_KIND;
use stint_ledger::pod_facts::{Owner, PodFacts, PodPhase};

use crate::labels::Labels;

/// A Pod that was seen.
#[derive(Clone, Debug)]
pub(crate) struct SeenPod {
    pub(crate) namespace: String,
    pub(crate) facts: PodFacts,
    pub(crate) labels: Labels,
    /// The name of the Job that controls it.
    pub(crate) owner_job: Option<String>,
    /// Whether nothing keeps it: the API has removed it, and this is its last form.
    pub(crate) is_gone: bool,
}

impl SeenPod {
    /// The uid of its controller.
    pub(crate) fn owner(&self) -> Option<&str> {
        match &self.facts.owner {
            Owner::Nobody => None,
            Owner::Controller(uid) | Owner::Foreign(uid) => Some(uid),
        }
    }
}

/// A Pod on the wire.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct WirePod {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
    labels: Labels,
    annotations: Option<BTreeMap<String, String>>,
    finalizers: Option<Vec<String>>,
    owner_references: Option<Vec<OwnerReference>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: Option<String>,
    init_containers: Option<Vec<InitContainer>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct InitContainer {
    name: String,
    restart_policy: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: Option<String>,
    conditions: Option<Vec<Condition>>,
    container_statuses: Option<Vec<ContainerStatus>>,
    init_container_statuses: Option<Vec<ContainerStatus>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Condition {
    r#type: String,
    status: String,
    reason: Option<String>,
    last_transition_time: Option<Time>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ContainerStatus {
    name: String,
    restart_count: i32,
    state: Option<ContainerState>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerState {
    terminated: Option<Terminated>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Terminated {
    exit_code: i32,
    finished_at: Option<Time>,
}

impl WirePod {
    /// Its version, if it has one.
    pub(crate) fn version(&self) -> Option<u64> {
        self.metadata.resource_version.as_deref()?.parse().ok()
    }

    /// What there is to know of it; `finalizer` is the one that tracks it.
    pub(crate) fn read(self, finalizer: &str) -> SeenPod {
        let meta = &self.metadata;
        let is_gone = meta.deletion_timestamp.is_some()
            && meta.deletion_grace_period_seconds.unwrap_or(0) == 0
            && meta.finalizers.as_ref().is_none_or(Vec::is_empty);
        let namespace = meta.namespace.clone().unwrap_or_default();
        let owner_job = meta
            .owner_references
            .iter()
            .flatten()
            .find(|owner| owner.controller == Some(true))
            .filter(|owner| owner.kind == JOB_KIND && owner.api_version.starts_with("batch/"))
            .map(|owner| owner.name.clone());
        let (pod, labels) = self.into_pod();
        let mut facts = PodFacts::of(&pod, finalizer);
        if facts.phase != PodPhase::Failed && !facts.is_deleted {
            // They say why a Pod failed or goes: of one that does not they say nothing, and
            // every running Pod has five.
            facts.conditions = Vec::new();
        }
        SeenPod { namespace, facts, labels, owner_job, is_gone }
    }

    /// The same in the shape that the ledger's rules are written for, and its labels.
    fn into_pod(self) -> (core::Pod, Labels) {
        let WirePod { metadata, spec, status } = self;
        let metadata_of_pod = ObjectMeta {
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            creation_timestamp: metadata.creation_timestamp,
            deletion_timestamp: metadata.deletion_timestamp,
            deletion_grace_period_seconds: metadata.deletion_grace_period_seconds,
            annotations: metadata.annotations,
            finalizers: metadata.finalizers,
            owner_references: metadata.owner_references,
            ..ObjectMeta::default()
        };
        let init_container = |container: InitContainer| core::Container {
            name: container.name,
            restart_policy: container.restart_policy,
            ..core::Container::default()
        };
        let spec = core::PodSpec {
            node_name: spec.node_name,
            init_containers: spec
                .init_containers
                .map(|containers| containers.into_iter().map(init_container).collect()),
            ..core::PodSpec::default()
        };
        let statuses = |statuses: Option<Vec<ContainerStatus>>| {
            statuses.map(|statuses| statuses.into_iter().map(container_status).collect())
        };
        let status = core::PodStatus {
            phase: status.phase,
            conditions: status
                .conditions
                .map(|conditions| conditions.into_iter().map(condition).collect()),
            container_statuses: statuses(status.container_statuses),
            init_container_statuses: statuses(status.init_container_statuses),
            ..core::PodStatus::default()
        };
        let pod = core::Pod { metadata: metadata_of_pod, spec: Some(spec), status: Some(status) };
        (pod, metadata.labels)
    }
}

fn condition(condition: Condition) -> core::PodCondition {
    core::PodCondition {
        type_: condition.r#type,
        status: condition.status,
        reason: condition.reason,
        last_transition_time: condition.last_transition_time,
        ..core::PodCondition::default()
    }
}

fn container_status(status: ContainerStatus) -> core::ContainerStatus {
    let terminated = status.state.and_then(|state| state.terminated);
    core::ContainerStatus {
        name: status.name,
        restart_count: status.restart_count,
        state: terminated.map(|terminated| core::ContainerState {
            terminated: Some(core::ContainerStateTerminated {
                exit_code: terminated.exit_code,
                finished_at: terminated.finished_at,
                ..core::ContainerStateTerminated::default()
            }),
            ..core::ContainerState::default()
        }),
        ..core::ContainerStatus::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FINALIZER: &str = "batch.kubernetes.io/job-tracking";

    /// A Pod with everything that a ledger looks at.
    fn pod() -> serde_json::Value {
        json!({
            "metadata": {
                "name": "j-3-bcdfg", "namespace": "ns", "uid": "u", "resourceVersion": "42",
                "finalizers": [FINALIZER],
                "labels": {"batch.kubernetes.io/controller-uid": "me", "job-name": "j"},
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {
                    "batch.kubernetes.io/job-completion-index": "3",
                    "batch.kubernetes.io/job-index-failure-count": "2",
                    "batch.kubernetes.io/job-index-ignored-failure-count": "1",
                },
                "ownerReferences": [
                    {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "me", "controller": true},
                ],
            },
            "spec": {
                "nodeName": "n",
                "containers": [{"name": "a", "image": "i"}],
                "initContainers": [{"name": "side", "image": "i", "restartPolicy": "Always"}],
            },
            "status": {
                "phase": "Failed",
                "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:09Z"}],
                "containerStatuses": [{
                    "name": "a", "image": "i", "imageID": "", "ready": false, "restartCount": 2,
                    "state": {"terminated": {"exitCode": 7, "finishedAt": "2026-01-01T00:00:08Z"}},
                }],
                "initContainerStatuses": [{
                    "name": "side", "image": "i", "imageID": "", "ready": false, "restartCount": 1,
                    "state": {"terminated": {"exitCode": 0, "finishedAt": "2026-01-01T00:00:11Z"}},
                }],
            },
        })
    }

    #[test]
    fn a_pod_read_in_part_has_the_facts_of_the_whole() {
        let whole: core::Pod = serde_json::from_value(pod()).expect("a Pod");
        let part: WirePod = serde_json::from_value(pod()).expect("a Pod");
        assert_eq!(part.version(), Some(42));
        let seen = part.read(FINALIZER);
        assert_eq!(seen.facts, PodFacts::of(&whole, FINALIZER));
        assert_eq!((seen.owner(), seen.owner_job.as_deref()), (Some("me"), Some("j")));
        assert_eq!((seen.labels.job_uid(), seen.labels.job_name()), (Some("me"), Some("j")));
        assert!(!seen.is_gone);
    }

    #[test]
    fn a_deleted_pod_that_nothing_keeps_is_gone() {
        let mut deleted = pod();
        deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:01:00Z");
        deleted["metadata"]["deletionGracePeriodSeconds"] = json!(0);
        let is_gone = |value: &serde_json::Value| {
            let pod: WirePod = serde_json::from_value(value.clone()).expect("a Pod");
            pod.read(FINALIZER).is_gone
        };
        assert!(!is_gone(&deleted), "the finalizer keeps it");
        deleted["metadata"]["finalizers"] = json!([]);
        assert!(is_gone(&deleted));
        deleted["metadata"]["deletionGracePeriodSeconds"] = json!(30);
        assert!(!is_gone(&deleted), "its node has not ended it yet");
    }
}
