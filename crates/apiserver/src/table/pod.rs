//! Pods as rows.
//!
//! The status of a Pod is one word for the states of all its containers: of the init
//! containers while they run, then of the others, of which the first one that is not running
//! has the say.

use k8s_openapi::api::core::v1::{
    ContainerStateTerminated, ContainerStatus, Pod, PodSpec, PodStatus,
};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{AGE, Column, NAME, NONE, RowCondition, duration, or, text};

/// The columns.
pub static COLUMNS: &[Column] = &[
    NAME,
    Column::new("Ready", "The aggregate readiness state of this pod for accepting traffic."),
    Column::new("Status", "The aggregate status of the containers in this pod."),
    Column::new(
        "Restarts",
        "The number of times the containers in this pod have been restarted and when the last \
         container in this pod has restarted.",
    ),
    AGE,
    Column::wide(
        "IP",
        "podIP address allocated to the pod. Routable at least within the cluster. Empty if not \
         yet allocated.",
    ),
    Column::wide(
        "Node",
        "NodeName indicates in which node this pod is scheduled. If empty, this pod is a \
         candidate for scheduling by the scheduler defined in schedulerName. Once this field is \
         set, the kubelet for this node becomes responsible for the lifecycle of this pod. This \
         field should not be used to express a desire for the pod to be scheduled on a specific \
         node. https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#nodename",
    ),
    Column::wide(
        "Nominated Node",
        "nominatedNodeName is set only when this pod preempts other pods on the node, but it \
         cannot be scheduled right away as preemption victims receive their graceful termination \
         periods. This field does not guarantee that the pod will be scheduled on this node. \
         Scheduler may decide to place the pod elsewhere if other nodes become available sooner. \
         Scheduler may also decide to give the resources on this node to a higher priority pod \
         that is created after preemption. As a result, this field may be different than \
         PodSpec.nodeName when the pod is scheduled.",
    ),
    Column::wide(
        "Readiness Gates",
        "If specified, all readiness gates will be evaluated for pod readiness. A pod is ready \
         when all its containers are ready AND all conditions specified in the readiness gates \
         have status equal to \"True\" More info: \
         https://git.k8s.io/enhancements/keps/sig-network/580-pod-readiness-gates",
    ),
];

/// The cells of a Pod.
pub fn cells(pod: &Pod, now: Timestamp) -> Vec<Value> {
    let metadata = &pod.metadata;
    let (no_spec, no_status) = (PodSpec::default(), PodStatus::default());
    let spec = pod.spec.as_ref().unwrap_or(&no_spec);
    let status = pod.status.as_ref().unwrap_or(&no_status);
    let summary = Summary::new(spec, status);
    let sidecars = spec.init_containers.iter().flatten().filter(|one| is_sidecar(spec, &one.name));
    let containers = spec.containers.len() + sidecars.count();
    vec![
        json!(text(&metadata.name)),
        json!(format!("{}/{containers}", summary.ready)),
        json!(word_of_deletion(pod, status).unwrap_or(&summary.reason)),
        json!(summary.restarts.print(now)),
        json!(duration::since(metadata.creation_timestamp.as_ref(), now)),
        json!(or(ip(status), NONE)),
        json!(or(text(&spec.node_name), NONE)),
        json!(or(text(&status.nominated_node_name), NONE)),
        json!(readiness_gates(spec, status)),
    ]
}

/// The conditions of a Pod's row: whether it has ended, and how.
pub fn conditions(pod: &Pod) -> &'static [RowCondition] {
    match pod.status.as_ref().map_or("", |status| text(&status.phase)) {
        "Succeeded" => SUCCEEDED,
        "Failed" => FAILED,
        _ => &[],
    }
}

static SUCCEEDED: &[RowCondition] =
    &[completed("Succeeded", "The pod has completed successfully.")];
static FAILED: &[RowCondition] = &[completed("Failed", "The pod failed.")];

const fn completed(reason: &'static str, message: &'static str) -> RowCondition {
    RowCondition { condition_type: "Completed", status: "True", reason, message }
}

/// What the containers of a Pod come to.
struct Summary {
    reason: String,
    ready: usize,
    restarts: Restarts,
}

impl Summary {
    fn new(spec: &PodSpec, status: &PodStatus) -> Self {
        let mut summary =
            Summary { reason: first_reason(status), ready: 0, restarts: Restarts::default() };
        let mut sidecar_restarts = Restarts::default();
        let initializing = summary.init_containers(spec, status, &mut sidecar_restarts);
        if !initializing || is_initialized(status) {
            // The restarts of init containers are forgotten when they are done, except for
            // those that go on running.
            summary.restarts = sidecar_restarts;
            summary.containers(status);
        }
        summary
    }

    /// Goes through the init containers up to the first that is not done. True if there is
    /// one.
    fn init_containers(
        &mut self,
        spec: &PodSpec,
        status: &PodStatus,
        sidecar_restarts: &mut Restarts,
    ) -> bool {
        for (index, container) in status.init_container_statuses.iter().flatten().enumerate() {
            let is_sidecar = is_sidecar(spec, &container.name);
            self.restarts.add(container);
            if is_sidecar {
                sidecar_restarts.add(container);
            }
            let terminated = terminated(container);
            if terminated.is_some_and(|terminated| terminated.exit_code == 0) {
                continue;
            }
            if is_sidecar && container.started == Some(true) {
                self.ready += usize::from(container.ready);
                continue;
            }
            self.reason = match (terminated, waiting(container)) {
                (Some(terminated), _) => format!("Init:{}", end(terminated)),
                (None, "" | "PodInitializing") => {
                    let count = spec.init_containers.as_ref().map_or(0, |all| all.len());
                    format!("Init:{index}/{count}")
                }
                (None, reason) => format!("Init:{reason}"),
            };
            return true;
        }
        false
    }

    fn containers(&mut self, status: &PodStatus) {
        let mut is_any_running = false;
        let mut error = None;
        // From the last to the first, so that the first has the last word.
        for container in status.container_statuses.iter().flatten().rev() {
            self.restarts.add(container);
            let is_running = container.state.as_ref().is_some_and(|state| state.running.is_some());
            match (waiting(container), terminated(container)) {
                ("", Some(terminated)) => {
                    self.reason = end(terminated);
                    if terminated.exit_code != 0 {
                        error = Some(self.reason.clone());
                    }
                }
                ("", None) => {
                    if container.ready && is_running {
                        is_any_running = true;
                        self.ready += 1;
                    }
                }
                (reason, _) => self.reason = reason.to_owned(),
            }
        }
        // The first container is done, which does not make the Pod so.
        if self.reason == "Completed" {
            if is_any_running && is_ready(status) {
                self.reason = "Running".to_owned();
            } else if let Some(error) = error {
                self.reason = error;
            } else if is_any_running {
                self.reason = "NotReady".to_owned();
            }
        }
    }
}

/// How often containers were restarted, and when the last of them ended before that.
#[derive(Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, container: &ContainerStatus) {
        self.count += i64::from(container.restart_count);
        let last = container.last_state.as_ref().and_then(|state| state.terminated.as_ref());
        let ended = last.and_then(|terminated| terminated.finished_at.as_ref()).map(|time| time.0);
        self.last = self.last.max(ended.filter(|time| duration::is_set(*time)));
    }

    fn print(&self, now: Timestamp) -> String {
        match self.last {
            Some(last) if self.count != 0 => {
                format!("{} ({} ago)", self.count, duration::human(now.duration_since(last)))
            }
            _ => self.count.to_string(),
        }
    }
}

/// The status of a Pod before its containers are looked at.
fn first_reason(status: &PodStatus) -> String {
    const GATED: &str = "SchedulingGated";
    let mut conditions = status.conditions.iter().flatten();
    let is_gated = conditions
        .any(|condition| condition.type_ == "PodScheduled" && text(&condition.reason) == GATED);
    let reason = if is_gated { GATED } else { or(text(&status.reason), text(&status.phase)) };
    reason.to_owned()
}

/// Whether an init container goes on running beside the containers.
fn is_sidecar(spec: &PodSpec, name: &str) -> bool {
    let named = spec.init_containers.iter().flatten().rfind(|container| container.name == name);
    named.is_some_and(|container| text(&container.restart_policy) == "Always")
}

fn terminated(container: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    container.state.as_ref()?.terminated.as_ref()
}

/// Why a container is waiting; empty if it is not, or does not say.
fn waiting(container: &ContainerStatus) -> &str {
    let waiting = container.state.as_ref().and_then(|state| state.waiting.as_ref());
    waiting.map_or("", |waiting| text(&waiting.reason))
}

/// How a container ended.
fn end(terminated: &ContainerStateTerminated) -> String {
    match (text(&terminated.reason), terminated.signal) {
        ("", None | Some(0)) => format!("ExitCode:{}", terminated.exit_code),
        ("", Some(signal)) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

/// Of conditions with the same type the first one counts.
fn is_initialized(status: &PodStatus) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    conditions
        .find(|condition| condition.type_ == "Initialized")
        .is_some_and(|condition| condition.status == "True")
}

fn is_ready(status: &PodStatus) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The status of a Pod that is being deleted, if that is what there is to say of it.
fn word_of_deletion(pod: &Pod, status: &PodStatus) -> Option<&'static str> {
    pod.metadata.deletion_timestamp.as_ref()?;
    if text(&status.reason) == "NodeLost" {
        return Some("Unknown");
    }
    let has_ended = matches!(text(&status.phase), "Succeeded" | "Failed");
    (!has_ended).then_some("Terminating")
}

/// The first address. `podIP` is the older field, and counts if the two do not agree.
fn ip(status: &PodStatus) -> &str {
    let first = status.pod_ips.iter().flatten().next();
    or(text(&status.pod_ip), first.map_or("", |first| &first.ip))
}

fn readiness_gates(spec: &PodSpec, status: &PodStatus) -> String {
    let gates = spec.readiness_gates.as_deref().unwrap_or_default();
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let is_open = |gate: &str| {
        let mut conditions = status.conditions.iter().flatten();
        conditions
            .find(|condition| condition.type_ == gate)
            .is_some_and(|condition| condition.status == "True")
    };
    let open = gates.iter().filter(|gate| is_open(&gate.condition_type)).count();
    format!("{open}/{}", gates.len())
}
