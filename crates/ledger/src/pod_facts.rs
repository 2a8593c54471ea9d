//! What the ledger needs to know of a Pod, and nothing else.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use stint_api::names::annotation;

/// Where a Pod stands in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PodPhase {
    /// Accepted, not all of it running.
    Pending,
    /// Running, or starting again.
    Running,
    /// Every container ended well.
    Succeeded,
    /// Every container ended, and one of them badly.
    Failed,
}

/// Whose Pod it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Nobody's.
    Nobody,
    /// The controller with this uid.
    Controller(String),
    /// The controller with this uid, which has no use for our finalizer: nobody but us takes that
    /// off. To be told only where the finalizer is ours alone.
    Foreign(String),
}

/// A container that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerExit {
    /// Its name.
    pub name: String,
    /// Its exit code.
    pub exit_code: i32,
}

/// A Pod's condition, as far as a Pod failure policy looks at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodCondition {
    /// Its type.
    pub condition_type: String,
    /// Its status, as written.
    pub status: String,
    /// Its reason; empty if it has none.
    pub reason: String,
}

/// A Pod at one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFacts {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its version, where versions can be compared; 0 where they cannot.
    pub version: u64,
    /// Its controller.
    pub owner: Owner,
    /// Whether it bears the tracking finalizer.
    pub is_tracked: bool,
    /// Its phase.
    pub phase: PodPhase,
    /// When it was created.
    pub created: Timestamp,
    /// Whether its deletion was asked for.
    pub is_deleted: bool,
    /// Its completion index, if it has a valid one.
    pub index: Option<u32>,
    /// The failures of its index before it.
    pub failure_count: u32,
    /// The ignored failures of its index before it.
    pub ignored_failure_count: u32,
    /// The Pods of its index before it that were forgiven, as their node ended them.
    pub interruption_count: u32,
    /// Whether it has a node.
    pub is_scheduled: bool,
    /// Since when it has been ready; not ready if absent.
    pub ready_since: Option<Timestamp>,
    /// How often its containers were restarted.
    pub restart_count: u32,
    /// When it finished, or the closest that is known. Never "now": a time that moves on
    /// would put off every replacement (KEP-3850, "Exponential backoff delay issue").
    pub finished_at: Timestamp,
    /// The containers that have ended, those of the Pod before its init containers.
    pub exits: Vec<ContainerExit>,
    /// Its conditions.
    pub conditions: Vec<PodCondition>,
}

impl PodFacts {
    /// The facts of a Pod that is tracked by `finalizer`.
    pub fn of(pod: &Pod, finalizer: &str) -> Self {
        let meta = &pod.metadata;
        let no_status = PodStatus::default();
        let status = pod.status.as_ref().unwrap_or(&no_status);
        let count = |key: &str| count_in(meta.annotations.as_ref()?.get(key)?);
        let owner =
            meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
        let ready = status.conditions.iter().flatten().find(|condition| condition.type_ == "Ready");
        let containers = status.container_statuses.as_deref().unwrap_or_default();
        let init_containers = status.init_container_statuses.as_deref().unwrap_or_default();
        let all = || containers.iter().chain(init_containers);
        Self {
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            version: meta
                .resource_version
                .as_deref()
                .and_then(|text| text.parse().ok())
                .unwrap_or(0),
            owner: owner.map_or(Owner::Nobody, |owner| Owner::Controller(owner.uid.clone())),
            is_tracked: meta.finalizers.iter().flatten().any(|name| name == finalizer),
            phase: phase(status.phase.as_deref()),
            created: created(pod),
            is_deleted: meta.deletion_timestamp.is_some(),
            index: count(annotation::COMPLETION_INDEX),
            failure_count: count(annotation::INDEX_FAILURE_COUNT).unwrap_or(0),
            ignored_failure_count: count(annotation::INDEX_IGNORED_FAILURE_COUNT).unwrap_or(0),
            interruption_count: count(annotation::INDEX_INTERRUPTION_COUNT).unwrap_or(0),
            is_scheduled: pod
                .spec
                .as_ref()
                .is_some_and(|spec| spec.node_name.as_deref().is_some_and(|node| !node.is_empty())),
            ready_since: ready.filter(|ready| ready.status == "True").map(|ready| {
                ready.last_transition_time.as_ref().map_or(created(pod), |time| time.0)
            }),
            restart_count: all()
                .map(|status| u32::try_from(status.restart_count).unwrap_or(0))
                .fold(0, u32::saturating_add),
            finished_at: finished_at(pod, status),
            exits: all().filter_map(exit).collect(),
            conditions: status
                .conditions
                .iter()
                .flatten()
                .map(|condition| PodCondition {
                    condition_type: condition.type_.clone(),
                    status: condition.status.clone(),
                    reason: condition.reason.clone().unwrap_or_default(),
                })
                .collect(),
        }
    }

    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// Whether it runs or will run.
    pub fn is_active(&self) -> bool {
        !self.is_finished() && !self.is_deleted
    }

    /// Whether it is being deleted and has not ended.
    pub fn is_terminating(&self) -> bool {
        !self.is_finished() && self.is_deleted
    }
}

/// A count in an annotation that anyone may have written: only what fits 31 bits counts.
fn count_in(text: &str) -> Option<u32> {
    let count: i64 = text.parse().ok()?;
    u32::try_from(count).ok().filter(|&count| count <= i32::MAX as u32)
}

fn phase(text: Option<&str>) -> PodPhase {
    match text {
        Some("Running") => PodPhase::Running,
        Some("Succeeded") => PodPhase::Succeeded,
        Some("Failed") => PodPhase::Failed,
        // Unknown was the phase of a Pod whose node is lost; it may run for all we know.
        Some("Unknown") => PodPhase::Running,
        _ => PodPhase::Pending,
    }
}

fn created(pod: &Pod) -> Timestamp {
    pod.metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0)
}

fn exit(status: &ContainerStatus) -> Option<ContainerExit> {
    let ended = status.state.as_ref()?.terminated.as_ref()?;
    Some(ContainerExit { name: status.name.clone(), exit_code: ended.exit_code })
}

/// The first of these that is known: the end of the last container, the moment it stopped
/// being ready, the moment its deletion was asked for, its creation.
fn finished_at(pod: &Pod, status: &PodStatus) -> Timestamp {
    last_container_end(pod, status)
        .or_else(|| not_ready_since(status))
        .or_else(|| deletion_asked_at(pod))
        .unwrap_or_else(|| created(pod))
}

/// The end of the last container, if all of them have ended. Sidecars end after the
/// containers they serve, so they are looked at too; other init containers are not.
fn last_container_end(pod: &Pod, status: &PodStatus) -> Option<Timestamp> {
    let init_containers = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let sidecars: Vec<&str> = init_containers
        .filter(|container| container.restart_policy.as_deref() == Some("Always"))
        .map(|container| container.name.as_str())
        .collect();
    let is_sidecar = |status: &&ContainerStatus| sidecars.contains(&status.name.as_str());
    let init_statuses = status.init_container_statuses.iter().flatten().filter(is_sidecar);
    let mut last = None;
    for status in status.container_statuses.iter().flatten().chain(init_statuses) {
        let ended = status.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref()?;
        last = last.max(Some(ended.0));
    }
    last
}

fn not_ready_since(status: &PodStatus) -> Option<Timestamp> {
    let ready = status.conditions.iter().flatten().find(|condition| condition.type_ == "Ready")?;
    let is_false = ready.status == "False";
    ready.last_transition_time.as_ref().filter(|_| is_false).map(|time| time.0)
}

fn deletion_asked_at(pod: &Pod) -> Option<Timestamp> {
    let deadline = pod.metadata.deletion_timestamp.as_ref()?.0;
    let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
    deadline.checked_sub(SignedDuration::from_secs(grace)).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const FINALIZER: &str = "batch.kubernetes.io/job-tracking";

    fn facts(pod: Value) -> PodFacts {
        PodFacts::of(
            &serde_json::from_value(pod).expect("the test's own Pod is well typed"),
            FINALIZER,
        )
    }

    fn at(text: &str) -> Timestamp {
        text.parse().expect("the test's own time is well formed")
    }

    #[test]
    fn the_facts_of_a_running_pod() {
        let facts = facts(json!({
            "metadata": {
                "name": "j-3-bcdfg", "uid": "u", "resourceVersion": "42",
                "finalizers": ["x", FINALIZER],
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {
                    "batch.kubernetes.io/job-completion-index": "3",
                    "batch.kubernetes.io/job-index-failure-count": "2",
                    "stint.dev/job-index-interruption-count": "5",
                },
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "not-me"},
                    {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "me", "controller": true},
                ],
            },
            "spec": {"nodeName": "n", "containers": []},
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:09Z"}],
                "containerStatuses": [{"name": "a", "image": "i", "imageID": "", "ready": true, "restartCount": 2}],
                "initContainerStatuses": [{"name": "b", "image": "i", "imageID": "", "ready": true, "restartCount": 1}],
            },
        }));
        assert_eq!(
            (facts.index, facts.failure_count, facts.ignored_failure_count),
            (Some(3), 2, 0)
        );
        assert_eq!(facts.interruption_count, 5);
        assert_eq!(facts.owner, Owner::Controller("me".to_owned()));
        assert_eq!((facts.version, facts.restart_count), (42, 3));
        assert!(facts.is_tracked && facts.is_scheduled && facts.is_active());
        assert_eq!(facts.ready_since, Some(at("2026-01-01T00:00:09Z")));
    }

    #[test]
    fn annotations_that_anyone_may_have_written() {
        let index = |text: &str| {
            let annotations = json!({"batch.kubernetes.io/job-completion-index": text});
            facts(json!({"metadata": {"annotations": annotations}})).index
        };
        assert_eq!(index("0"), Some(0));
        assert_eq!(index("2147483647"), Some(2_147_483_647));
        assert_eq!(["-1", "x", "", "2147483648", "1.0"].map(index), [None; 5]);
        assert_eq!(facts(json!({})).index, None);
    }

    /// A Pod with each way to tell when it finished, latest first.
    fn finished() -> Value {
        let ended = |name: &str, time: &str| {
            json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0,
                   "state": {"terminated": {"exitCode": 1, "finishedAt": time}}})
        };
        json!({
            "metadata": {
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "deletionTimestamp": "2026-01-01T00:01:00Z", "deletionGracePeriodSeconds": 30,
            },
            "spec": {"containers": [], "initContainers": [
                {"name": "side", "restartPolicy": "Always"}, {"name": "init"},
            ]},
            "status": {
                "phase": "Failed",
                "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:40Z"}],
                "containerStatuses": [ended("a", "2026-01-01T00:00:50Z")],
                "initContainerStatuses": [ended("side", "2026-01-01T00:00:55Z"), ended("init", "2026-01-01T00:00:59Z")],
            },
        })
    }

    #[test]
    fn a_pod_finishes_with_its_last_container_sidecars_included() {
        let facts = facts(finished());
        assert_eq!(facts.finished_at, at("2026-01-01T00:00:55Z"));
        let exits: Vec<&str> = facts.exits.iter().map(|exit| exit.name.as_str()).collect();
        assert_eq!(exits, ["a", "side", "init"]);
    }

    #[test]
    fn a_pod_that_lost_a_container_finishes_by_the_next_best_time() {
        let mut pod = finished();
        pod["status"]["containerStatuses"][0]["state"] = json!({"running": {}});
        assert_eq!(facts(pod.clone()).finished_at, at("2026-01-01T00:00:40Z"));
        pod["status"]["conditions"] = json!([]);
        assert_eq!(facts(pod.clone()).finished_at, at("2026-01-01T00:00:30Z"));
        pod["metadata"].as_object_mut().unwrap().remove("deletionTimestamp");
        assert_eq!(facts(pod).finished_at, at("2026-01-01T00:00:00Z"));
    }
}
