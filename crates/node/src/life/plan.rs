//! What of a Pod's spec decides how its containers live, read once.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Lifecycle, Pod, PodSpec};

use super::probe::ProbePlan;
use crate::restart_policy::RestartPolicy;
use crate::runtime::Signal;

/// What is asked for when a Pod says nothing of it, in seconds.
const GRACE_SECONDS: i64 = 30;

/// How a Pod is to live.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// All containers: those that come first, then the others, in the order of the spec.
    pub(crate) containers: Vec<ContainerPlan>,
    /// How long containers have to end.
    pub(crate) grace: Duration,
    pub(crate) active_deadline: Option<Duration>,
    /// Conditions of others that the Pod's readiness needs.
    pub(crate) readiness_gates: Vec<String>,
}

/// How a container is to live.
#[derive(Clone, Debug)]
pub(crate) struct ContainerPlan {
    pub(crate) name: String,
    pub(crate) image: String,
    pub(crate) role: Role,
    pub(crate) restart: RestartPolicy,
    pub(crate) startup: Option<ProbePlan>,
    pub(crate) liveness: Option<ProbePlan>,
    pub(crate) readiness: Option<ProbePlan>,
    pub(crate) has_post_start: bool,
    pub(crate) has_pre_stop: bool,
    pub(crate) stop_signal: Signal,
}

/// What a container is in its Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Does its work before the others start.
    Init,
    /// Starts before the others and runs beside them (KEP-753).
    Sidecar,
    /// What the Pod is for.
    Main,
}

impl Plan {
    pub(crate) fn of(pod: &Pod) -> Self {
        let none = PodSpec::default();
        let spec = pod.spec.as_ref().unwrap_or(&none);
        let init = spec.init_containers.iter().flatten().map(|container| {
            let is_sidecar = container.restart_policy.as_deref() == Some("Always");
            let role = if is_sidecar { Role::Sidecar } else { Role::Init };
            ContainerPlan::of(spec, container, role)
        });
        let main = spec.containers.iter().map(|main| ContainerPlan::of(spec, main, Role::Main));
        let gates = spec.readiness_gates.iter().flatten();
        Plan {
            containers: init.chain(main).collect(),
            grace: seconds(spec.termination_grace_period_seconds.unwrap_or(GRACE_SECONDS)),
            active_deadline: spec.active_deadline_seconds.map(seconds),
            readiness_gates: gates.map(|gate| gate.condition_type.clone()).collect(),
        }
    }
}

impl ContainerPlan {
    fn of(spec: &PodSpec, container: &Container, role: Role) -> Self {
        let hook = |which: fn(&Lifecycle) -> bool| container.lifecycle.as_ref().is_some_and(which);
        let signal = container.lifecycle.as_ref().and_then(|it| it.stop_signal.as_deref());
        ContainerPlan {
            name: container.name.clone(),
            image: container.image.clone().unwrap_or_default(),
            role,
            restart: RestartPolicy::of(spec, container, role != Role::Main),
            startup: container.startup_probe.as_ref().map(ProbePlan::of),
            liveness: container.liveness_probe.as_ref().map(ProbePlan::of),
            readiness: container.readiness_probe.as_ref().map(ProbePlan::of),
            has_post_start: hook(|lifecycle| lifecycle.post_start.is_some()),
            has_pre_stop: hook(|lifecycle| lifecycle.pre_stop.is_some()),
            stop_signal: signal.and_then(signal_of).unwrap_or(Signal::Terminate),
        }
    }
}

/// A number of seconds of the API; one below zero is none.
pub(crate) fn seconds(number: i64) -> Duration {
    Duration::from_secs(u64::try_from(number).unwrap_or(0))
}

/// The signal of a name: those that have one number on all machines that Linux runs on today.
fn signal_of(name: &str) -> Option<Signal> {
    const NAMES: [&str; 31] = [
        "SIGHUP",
        "SIGINT",
        "SIGQUIT",
        "SIGILL",
        "SIGTRAP",
        "SIGABRT",
        "SIGBUS",
        "SIGFPE",
        "SIGKILL",
        "SIGUSR1",
        "SIGSEGV",
        "SIGUSR2",
        "SIGPIPE",
        "SIGALRM",
        "SIGTERM",
        "SIGSTKFLT",
        "SIGCHLD",
        "SIGCONT",
        "SIGSTOP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGXCPU",
        "SIGXFSZ",
        "SIGVTALRM",
        "SIGPROF",
        "SIGWINCH",
        "SIGIO",
        "SIGPWR",
        "SIGSYS",
    ];
    let place = NAMES.iter().position(|known| *known == name)?;
    Some(match i32::try_from(place).expect("there are 31") + 1 {
        9 => Signal::Kill,
        15 => Signal::Terminate,
        number => Signal::Other(number),
    })
}
