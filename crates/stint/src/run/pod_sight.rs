//! What a run looks at in a Pod, and nothing else of it: there may be many thousands.

use std::collections::BTreeMap;

use serde::Deserialize;

const INDEX: &str = "batch.kubernetes.io/job-completion-index";
const CONTROLLER: &str = "batch.kubernetes.io/controller-uid";

/// A Pod as it was seen.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PodSight {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
    namespace: String,
    uid: String,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    node_name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    phase: String,
    reason: String,
    message: String,
    conditions: Vec<Condition>,
    container_statuses: Vec<ContainerSight>,
    init_container_statuses: Vec<ContainerSight>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
    reason: String,
    message: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerSight {
    name: String,
    state: State,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct State {
    waiting: Option<Waiting>,
    running: Option<serde::de::IgnoredAny>,
    terminated: Option<Terminated>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Waiting {
    reason: String,
    message: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Terminated {
    exit_code: i32,
    reason: String,
}

/// How far a Pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It has no node yet.
    Waiting,
    /// It has a node, and may run.
    Running,
    Succeeded,
    Failed,
}

impl PodSight {
    pub(crate) fn name(&self) -> &str {
        &self.metadata.name
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.metadata.namespace
    }

    pub(crate) fn uid(&self) -> &str {
        &self.metadata.uid
    }

    /// The uid of the Job whose Pod it is.
    pub(crate) fn job_uid(&self) -> &str {
        self.metadata.labels.get(CONTROLLER).map_or("", String::as_str)
    }

    /// Its index, if its Job has any.
    pub(crate) fn index(&self) -> Option<u32> {
        self.metadata.annotations.get(INDEX)?.parse().ok()
    }

    pub(crate) fn stage(&self) -> Stage {
        match self.status.phase.as_str() {
            "Succeeded" => Stage::Succeeded,
            "Failed" => Stage::Failed,
            _ if self.spec.node_name.is_empty() => Stage::Waiting,
            _ => Stage::Running,
        }
    }

    /// The containers that have a log: those that run or have run.
    pub(crate) fn begun_containers(&self) -> impl Iterator<Item = &str> {
        let begun =
            |it: &&ContainerSight| it.state.running.is_some() || it.state.terminated.is_some();
        self.containers().filter(begun).map(|container| container.name.as_str())
    }

    /// The container that failed, or else the first that has a log.
    pub(crate) fn failed_container(&self) -> Option<&str> {
        let failed = self.failure();
        failed.map(|(container, _)| container.name.as_str()).or(self.begun_containers().next())
    }

    /// Why the Pod failed, in a few words.
    pub(crate) fn why_failed(&self) -> String {
        if let Some((_, ended)) = self.failure() {
            return match (ended.reason.as_str(), ended.exit_code) {
                ("" | "Error", code @ 129..=192) => {
                    format!("exit code {code} (signal {})", code - 128)
                }
                ("" | "Error", code) => format!("exit code {code}"),
                (reason, code) => format!("{reason} (exit code {code})"),
            };
        }
        let Status { reason, message, .. } = &self.status;
        sentence(reason, message)
    }

    /// What it waits for, if that is not the usual: room on the node, something that a
    /// container needs, or the next try of a container.
    pub(crate) fn why_waiting(&self) -> Option<String> {
        let unbound = self.status.conditions.iter().find_map(|it| {
            let is_unbound = it.r#type == "PodScheduled" && it.status == "False";
            is_unbound.then(|| sentence(&it.reason, &it.message))
        });
        unbound.or_else(|| {
            self.containers().find_map(|container| {
                let waiting = container.state.waiting.as_ref()?;
                let is_usual =
                    matches!(waiting.reason.as_str(), "" | "ContainerCreating" | "PodInitializing");
                (!is_usual).then(|| sentence(&waiting.reason, &waiting.message))
            })
        })
    }

    fn containers(&self) -> impl Iterator<Item = &ContainerSight> {
        self.status.init_container_statuses.iter().chain(&self.status.container_statuses)
    }

    fn failure(&self) -> Option<(&ContainerSight, &Terminated)> {
        self.containers().find_map(|container| {
            let ended = container.state.terminated.as_ref()?;
            (ended.exit_code != 0).then_some((container, ended))
        })
    }
}

fn sentence(reason: &str, message: &str) -> String {
    match (reason, message) {
        ("", "") => "no reason is given".to_owned(),
        ("", message) => message.to_owned(),
        (reason, "") => reason.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}
