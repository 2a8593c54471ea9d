//! What is looked at in a Pod of a Job, and nothing else of it: there may be many thousands.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;

/// A Pod as it was seen.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PodSight {
    metadata: Metadata,
    spec: Spec,
    status: Status,
    /// Why it does not begin, by somebody else's words.
    #[serde(skip)]
    said: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: String,
    namespace: String,
    uid: String,
    resource_version: String,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    labels: Labels,
    annotations: Annotations,
    owner_references: Vec<Owner>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Labels {
    #[serde(rename = "batch.kubernetes.io/controller-uid")]
    controller: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "batch.kubernetes.io/job-completion-index")]
    index: Option<String>,
    #[serde(rename = "batch.kubernetes.io/job-index-failure-count")]
    failures: Option<String>,
    #[serde(rename = "batch.kubernetes.io/job-index-ignored-failure-count")]
    ignored: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Owner {
    uid: String,
    controller: bool,
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
    start_time: Option<Time>,
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
#[serde(default, rename_all = "camelCase")]
struct ContainerSight {
    name: String,
    state: State,
    last_state: State,
    restart_count: u32,
    #[serde(rename = "containerID")]
    container_id: String,
}

impl ContainerSight {
    /// How it failed, if it has.
    fn failure(&self) -> Option<&Terminated> {
        self.state.terminated.as_ref().filter(|ended| ended.exit_code != 0)
    }

    /// Whether the run that it is in, or about to be in, has no number yet: it waits, and what it
    /// says of itself is of the run that ended last.
    fn waits_for_its_next_run(&self) -> bool {
        let last = self.last_state.terminated.as_ref();
        self.state.waiting.is_some() && last.is_some_and(|it| it.container_id == self.container_id)
    }
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
    #[serde(rename = "containerID")]
    container_id: String,
    exit_code: i32,
    reason: String,
    message: String,
    started_at: Option<Time>,
    finished_at: Option<Time>,
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
        let owner = self.metadata.owner_references.iter().find(|owner| owner.controller);
        let label = || self.metadata.labels.controller.as_deref();
        owner.map(|owner| owner.uid.as_str()).or_else(label).unwrap_or("")
    }

    /// Its index, if its Job has any.
    pub(crate) fn index(&self) -> Option<u32> {
        self.metadata.annotations.index.as_ref()?.parse().ok()
    }

    /// Whether the Job of this uid controls it.
    pub(crate) fn is_of(&self, job_uid: &str) -> bool {
        self.job_uid() == job_uid
    }

    /// What it is of its Job: an index, or else itself.
    pub(crate) fn what(&self) -> String {
        match self.index() {
            Some(index) => format!("index {index}"),
            None => format!("Pod {}", self.name()),
        }
    }

    /// The node that it is on.
    pub(crate) fn node(&self) -> Option<&str> {
        Some(self.spec.node_name.as_str()).filter(|name| !name.is_empty())
    }

    /// Since when it has been there, and on its node.
    pub(crate) fn created(&self) -> Option<Timestamp> {
        self.metadata.creation_timestamp.as_ref().map(|time| time.0)
    }

    pub(crate) fn started(&self) -> Option<Timestamp> {
        self.status.start_time.as_ref().map(|time| time.0)
    }

    /// When the last of its containers ended, or the last run of one that is to run again.
    pub(crate) fn ended(&self) -> Option<Timestamp> {
        let states = self.containers().flat_map(|it| [&it.state, &it.last_state]);
        let ends = states.filter_map(|state| state.terminated.as_ref());
        ends.filter_map(|ended| ended.finished_at.as_ref().map(|time| time.0)).max()
    }

    /// Where it stands among the Pods of its index, or of a Job without indexes. Times are known
    /// to the second; of those within one, whoever came after more failures is later, and then
    /// whoever was changed last: a Pod is replaced only after it has ended.
    pub(crate) fn order(&self) -> (Option<u32>, Option<Timestamp>, u64, u64, &str) {
        let count = |text: Option<&String>| text.and_then(|text| text.parse().ok()).unwrap_or(0);
        let failures = count(self.metadata.annotations.failures.as_ref());
        let version = count(Some(&self.metadata.resource_version));
        (self.index(), self.created(), failures, version, self.name())
    }

    /// The failures of its index before it, where they are counted for each index.
    pub(crate) fn failures_before(&self) -> u32 {
        let annotations = &self.metadata.annotations;
        let counts = [&annotations.failures, &annotations.ignored]
            .map(|text| text.as_ref().and_then(|text| text.parse().ok()).unwrap_or(0_u32));
        counts[0].saturating_add(counts[1])
    }

    pub(crate) fn stage(&self) -> Stage {
        match self.status.phase.as_str() {
            "Succeeded" => Stage::Succeeded,
            "Failed" => Stage::Failed,
            _ if self.spec.node_name.is_empty() => Stage::Waiting,
            _ => Stage::Running,
        }
    }

    /// Whether somebody has asked for its end.
    pub(crate) fn is_deleted(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether it has not ended.
    pub(crate) fn is_under_way(&self) -> bool {
        matches!(self.stage(), Stage::Waiting | Stage::Running)
    }

    /// The containers that have a log, those that run or have run, and which run of theirs it
    /// is of.
    pub(crate) fn begun_containers(&self) -> impl Iterator<Item = (&str, u32)> {
        let begun = |it: &&ContainerSight| {
            let State { running, terminated, .. } = &it.state;
            let has_ended = terminated.is_some() || it.last_state.terminated.is_some();
            running.is_some() || has_ended || it.restart_count > 0
        };
        self.containers().filter(begun).map(|it| (it.name.as_str(), it.restart_count))
    }

    /// Whether it has more than one container.
    pub(crate) fn has_several(&self) -> bool {
        self.containers().nth(1).is_some()
    }

    /// The containers that have run before the run that they are in, or wait for.
    pub(crate) fn restarted_containers(&self) -> impl Iterator<Item = &str> {
        let restarted = |it: &&ContainerSight| it.restart_count > 0 || it.waits_for_its_next_run();
        self.containers().filter(restarted).map(|it| it.name.as_str())
    }

    /// How often its containers were started again.
    pub(crate) fn restarts(&self) -> u64 {
        self.containers().map(|it| u64::from(it.restart_count)).sum()
    }

    /// How many runs of its containers are over that were not their last.
    pub(crate) fn relapses(&self) -> u64 {
        let of = |it: &ContainerSight| {
            u64::from(it.restart_count) + u64::from(it.waits_for_its_next_run())
        };
        self.containers().map(of).sum()
    }

    /// The container that failed and runs again, or is about to, and how.
    fn relapse(&self) -> Option<(&ContainerSight, &Terminated)> {
        let ended = self.containers().filter_map(|container| {
            let ended = container.last_state.terminated.as_ref()?;
            (ended.exit_code != 0).then_some((container, ended))
        });
        ended.max_by_key(|(_, ended)| ended.finished_at.as_ref().map(|time| time.0))
    }

    /// Which container failed that runs again, or is about to, and why.
    pub(crate) fn why_relapsed(&self) -> Option<(&str, String)> {
        self.relapse().map(|(container, ended)| (container.name.as_str(), how_ended(ended)))
    }

    /// Which run of that container it was.
    pub(crate) fn relapsed_run(&self) -> Option<u32> {
        let (container, _) = self.relapse()?;
        let newest = container.restart_count;
        if container.waits_for_its_next_run() { Some(newest) } else { newest.checked_sub(1) }
    }

    /// From when to when that was.
    pub(crate) fn relapsed_time(&self) -> Option<(Timestamp, Timestamp)> {
        self.relapse().and_then(|(_, ended)| time_of(ended))
    }

    /// Which run of the container that failed it was.
    pub(crate) fn failed_run(&self) -> Option<u32> {
        self.failure().map(|(container, _)| container.restart_count)
    }

    /// From when to when that was.
    pub(crate) fn failed_time(&self) -> Option<(Timestamp, Timestamp)> {
        self.failure().and_then(|(_, ended)| time_of(ended))
    }

    /// Whether it has a node, and nothing of it has run yet.
    pub(crate) fn is_starting(&self) -> bool {
        self.stage() == Stage::Running && self.begun_containers().next().is_none()
    }

    /// The container that failed, or else the first that has a log.
    pub(crate) fn failed_container(&self) -> Option<&str> {
        let failed = self.failure();
        let named = failed.map(|(container, _)| container.name.as_str());
        named.or_else(|| self.begun_containers().next().map(|(name, _)| name))
    }

    /// Why the Pod failed, in a few words.
    pub(crate) fn why_failed(&self) -> String {
        let Status { reason, message, .. } = &self.status;
        match self.failure() {
            // Its node ended it, and says why: its deadline, say.
            Some((_, ended)) if !reason.is_empty() && !self.is_disrupted() => {
                format!("{reason}: {}", how_ended(ended))
            }
            Some((_, ended)) => how_ended(ended),
            None => sentence(reason, message),
        }
    }

    /// Whether a container of it failed as it will fail every time: it could not be started, or
    /// its command is not there or is no program (exit codes 127 and 126).
    pub(crate) fn failed_for_good(&self) -> bool {
        let ended = self.failure().or_else(|| self.relapse());
        ended.is_some_and(|(_, ended)| {
            matches!(ended.reason.as_str(), "StartError" | "ContainerCannotRun")
                || matches!(ended.exit_code, 126 | 127)
        })
    }

    /// Whether it was ended from outside: by its node that stopped or went down, or an eviction.
    pub(crate) fn is_disrupted(&self) -> bool {
        self.status
            .conditions
            .iter()
            .any(|it| it.r#type == "DisruptionTarget" && it.status == "True")
    }

    /// Whether no node has what it asks for.
    pub(crate) fn is_unschedulable(&self) -> bool {
        let is_so = |it: &Condition| {
            it.r#type == "PodScheduled" && it.status == "False" && it.reason == "Unschedulable"
        };
        self.is_under_way() && self.status.conditions.iter().any(is_so)
    }

    /// Takes in what its Events say of why it does not begin: of a volume that cannot be made it says
    /// nothing itself.
    pub(crate) fn explain(&mut self, why: String) {
        self.said = Some(why);
    }

    /// What it waits for, if that is not the usual: room on the node, something that a
    /// container needs, or the next try of a container.
    pub(crate) fn why_waiting(&self) -> Option<String> {
        let unbound = self.status.conditions.iter().find_map(|it| {
            let is_unbound = it.r#type == "PodScheduled" && it.status == "False";
            is_unbound.then(|| sentence(&it.reason, &it.message))
        });
        let of_container = || {
            self.containers().find_map(|container| {
                let waiting = container.state.waiting.as_ref()?;
                let is_usual =
                    matches!(waiting.reason.as_str(), "" | "ContainerCreating" | "PodInitializing");
                let is_usual = is_usual && waiting.message.is_empty();
                (!is_usual).then(|| sentence(&waiting.reason, &waiting.message))
            })
        };
        unbound.or_else(of_container).or_else(|| self.said.clone())
    }

    fn containers(&self) -> impl Iterator<Item = &ContainerSight> {
        self.status.init_container_statuses.iter().chain(&self.status.container_statuses)
    }

    fn failure(&self) -> Option<(&ContainerSight, &Terminated)> {
        self.failures().next()
    }

    /// The containers that failed. If one that comes first did, no other was started; a sidecar is ended
    /// with the Pod, which is no failure of its own.
    fn failures(&self) -> impl Iterator<Item = (&ContainerSight, &Terminated)> {
        let Status { container_statuses: main, init_container_statuses: first, .. } = &self.status;
        let has_main = main.iter().any(|it| it.failure().is_some());
        let whose = if has_main { main } else { first };
        whose.iter().filter_map(|it| Some((it, it.failure()?)))
    }

    /// The other containers that failed by themselves, each with which run of it, and how.
    pub(crate) fn other_failures(&self) -> Vec<(String, u32, String)> {
        // If all were ended from outside, that is said once.
        if !self.status.reason.is_empty() || self.is_disrupted() {
            return Vec::new();
        }
        let others = self.failures().skip(1);
        others.map(|(it, ended)| (it.name.clone(), it.restart_count, how_ended(ended))).collect()
    }
}

/// How a container ended: its code, and what it left for this purpose or why it could not be
/// started.
fn how_ended(ended: &Terminated) -> String {
    let how = match (ended.reason.as_str(), ended.exit_code) {
        ("" | "Error", code @ 129..=192) => format!("exit code {code} (signal {})", code - 128),
        ("" | "Error", code) => format!("exit code {code}"),
        (reason, code) => format!("{reason} (exit code {code})"),
    };
    match ended.message.trim() {
        "" => how,
        message => format!("{how}: {message}"),
    }
}

fn time_of(ended: &Terminated) -> Option<(Timestamp, Timestamp)> {
    Some((ended.started_at.as_ref()?.0, ended.finished_at.as_ref()?.0))
}

fn sentence(reason: &str, message: &str) -> String {
    match (reason, message) {
        ("", "") => "no reason is given".to_owned(),
        ("", message) => message.to_owned(),
        (reason, "") => reason.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}
