//! What is said of a Pod in the API: its phase, its conditions and its containers, as a kubelet
//! says it. It must not know how that is written.

use std::net::Ipv4Addr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::backoff::later;
use crate::begun::Runs;
use crate::life::{Cell, DEADLINE_MESSAGE, End, Ending, Life, Role, State};
use crate::termination::UNSEEN_REASON;

/// The condition of a Pod whose containers are all started again.
const RESTARTING_ALL: &str = "AllContainersRestarting";
/// What the conditions of a Pod that this node has disrupted are called.
const DISRUPTION: &str = "DisruptionTarget";
const DISRUPTION_REASON: &str = "TerminationByKubelet";
const SHUTDOWN_MESSAGE: &str = "the node was shut down while the Pod ran";
const LOST_MESSAGE: &str = "stint was stopped while the Pod ran";
const ABANDONED_MESSAGE: &str = "what ran the containers of the Pod on this node has ended";
/// The exit code of a container that nobody saw end: that of one that was killed.
const UNSEEN_CODE: i32 = 137;
const UNSEEN_MESSAGE: &str = "stint was stopped while the container ran; how it ended is not known";
const BROKEN_REASON: &str = "NodeError";
const ENDED_MESSAGE: &str = "the container was ended because what ran it has failed";
/// What a kubelet says of a container that was to run and of which nothing was found.
const UNLOCATED_MESSAGE: &str = "The container could not be located when the pod was terminated";

/// Whether a Pod whose node ended has succeeded or failed by itself, if its containers had come to
/// their end by then and that was said. It was not if there are newer runs, if all were to be
/// started again, or if the Pod was being ended by its node.
pub(crate) fn outcome(life: &Life, pod: &Pod, begun: &Runs, now: Timestamp) -> Option<bool> {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let is_unsettled = conditions.into_iter().flatten().any(|it| {
        let is_own = it.reason.as_deref() == Some(DISRUPTION_REASON);
        let is_meant = it.type_ == RESTARTING_ALL || (it.type_ == DISRUPTION && is_own);
        is_meant && it.status == "True"
    });
    let is_late = life.plan.active_deadline.is_some_and(|limit| later(life.began, limit) <= now);
    if is_late || is_unsettled {
        return None;
    }
    let code = |cell: &Cell| {
        let known = known(pod, &cell.plan.name)?;
        let is_newest = begun
            .get(&cell.plan.name)
            .is_none_or(|run| u32::try_from(known.restart_count).is_ok_and(|told| told >= *run));
        let end = known.state.as_ref()?.terminated.as_ref();
        end.filter(|_| is_newest).map(|end| end.exit_code)
    };
    let of = |role: Role| life.cells.iter().filter(move |cell| cell.plan.role == role).map(code);
    if of(Role::Init).flatten().any(|code| code != 0) {
        return Some(false);
    }
    let init: Option<Vec<i32>> = of(Role::Init).collect();
    let main: Option<Vec<i32>> = of(Role::Main).collect();
    Some(init?.iter().chain(&main?).all(|code| *code == 0))
}

/// Whether a container has begun by what its status says.
pub(crate) fn tells_of_a_run(status: &ContainerStatus) -> bool {
    let has_ended_before = status.last_state.as_ref().is_some_and(|it| it.terminated.is_some());
    let state = status.state.as_ref();
    let has_run = state.is_some_and(|it| it.running.is_some() || it.terminated.is_some());
    has_run || has_ended_before || status.restart_count > 0
}

/// What every status of a Pod says.
#[derive(Clone, Debug)]
pub(crate) struct Reporter {
    runtime: &'static str,
    uid: String,
    host_address: Ipv4Addr,
    pod_address: Option<Ipv4Addr>,
    /// Whether it has to say that the Pod has a node: nobody else did.
    says_scheduled: bool,
    /// What was said last, for the times of change.
    conditions: Vec<PodCondition>,
}

impl Reporter {
    /// Goes on from what the API has.
    pub(crate) fn new(pod: &Pod, runtime: &'static str, host_address: Ipv4Addr) -> Self {
        let status = pod.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.clone()).unwrap_or_default();
        Reporter {
            says_scheduled: !conditions.iter().any(|it| it.type_ == "PodScheduled"),
            runtime,
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            host_address,
            pod_address: status
                .and_then(|status| status.pod_ip.as_deref())
                .and_then(|address| address.parse().ok()),
            conditions,
        }
    }

    /// From now on the Pod has this address.
    pub(crate) fn set_address(&mut self, address: Ipv4Addr) {
        self.pod_address = Some(address);
    }

    /// The status of a Pod, without what others say of it.
    pub(crate) fn report(&mut self, life: &Life, pod: &Pod, now: Timestamp) -> PodStatus {
        let phase = phase(life);
        let generation = pod.metadata.generation;
        self.set_conditions(life, pod, phase, now);
        let (reason, message) = match life.ending() {
            Some(Ending::Deadline) if life.is_over() => {
                (Some("DeadlineExceeded".to_owned()), Some(DEADLINE_MESSAGE.to_owned()))
            }
            Some(Ending::Shutdown) if life.is_over() => {
                (Some("Terminated".to_owned()), Some(SHUTDOWN_MESSAGE.to_owned()))
            }
            Some(Ending::Abandoned) if life.is_over() => {
                (Some("Terminated".to_owned()), Some(ABANDONED_MESSAGE.to_owned()))
            }
            Some(Ending::Lost) => (Some("Terminated".to_owned()), Some(LOST_MESSAGE.to_owned())),
            Some(Ending::Broken { message }) => {
                (Some(BROKEN_REASON.to_owned()), Some(message.clone()))
            }
            Some(Ending::Impossible { reason, message }) if life.is_over() => {
                (Some((*reason).to_owned()), Some(message.clone()))
            }
            _ => (None, None),
        };
        let own = |main: bool| {
            let cells =
                life.cells.iter().filter(move |cell| (cell.plan.role == Role::Main) == main);
            let statuses: Vec<_> = cells.map(|cell| self.container(life, cell, pod)).collect();
            (!statuses.is_empty()).then_some(statuses)
        };
        let address = self.pod_address.filter(|_| life.has_been_up()).map(|it| it.to_string());
        PodStatus {
            phase: Some(phase.to_owned()),
            reason,
            message,
            observed_generation: generation,
            conditions: Some(self.conditions.clone()),
            start_time: Some(Time(life.began)),
            host_ip: Some(self.host_address.to_string()),
            host_ips: Some(vec![HostIP { ip: self.host_address.to_string() }]),
            pod_ips: address.clone().map(|ip| vec![PodIP { ip }]),
            pod_ip: address,
            container_statuses: own(true),
            init_container_statuses: own(false),
            ..PodStatus::default()
        }
    }

    fn set_conditions(&mut self, life: &Life, pod: &Pod, phase: &str, now: Timestamp) {
        let fresh = self.verdicts(life, pod, phase).into_iter().map(|(kind, verdict)| {
            let before = self.conditions.iter().find(|condition| condition.type_ == kind);
            verdict.condition(kind, before, pod.metadata.generation, now)
        });
        self.conditions = fresh.collect();
    }

    /// What holds of each condition that there is.
    fn verdicts(&self, life: &Life, pod: &Pod, phase: &str) -> Vec<(&'static str, Verdict)> {
        let ended = match phase {
            "Succeeded" => Some("PodCompleted"),
            "Failed" => Some("PodFailed"),
            _ => None,
        };
        let up = Verdict::of(life.is_up() || (life.has_been_up() && !life.is_over()));
        let initialized = match self.initialized(life, pod) {
            done if done.is_true && phase == "Succeeded" => Verdict { reason: ended, ..done },
            verdict => verdict,
        };
        let containers = match ended {
            Some(reason) => Verdict { reason: Some(reason), ..Verdict::of(false) },
            None => containers_ready(life),
        };
        let ready = match lacking_gate(life, pod) {
            Some(message) if containers.is_true => Verdict::not("ReadinessGatesNotReady", message),
            _ => containers.clone(),
        };
        let mut verdicts = vec![
            ("PodReadyToStartContainers", up),
            ("Initialized", initialized),
            ("ContainersReady", containers),
            ("Ready", ready),
        ];
        verdicts.extend(self.restarting_all(life).map(|verdict| (RESTARTING_ALL, verdict)));
        if self.says_scheduled {
            verdicts.push(("PodScheduled", Verdict::of(true)));
        }
        verdicts.extend(disruption(life).map(|verdict| (DISRUPTION, verdict)));
        verdicts
    }

    /// A Pod that was lost is as far as was said of it.
    fn initialized(&self, life: &Life, pod: &Pod) -> Verdict {
        let is_lost = life.was_left();
        let said = self.conditions.iter().find(|condition| condition.type_ == "Initialized");
        let is_initialized = match said.filter(|_| is_lost) {
            Some(said) => said.status == "True",
            None => life.is_initialized(),
        };
        if is_initialized {
            return Verdict::of(true);
        }
        let is_lacking = |cell: &&Cell| match cell.plan.role {
            Role::Init if is_lost => !was_initialized(cell, pod),
            Role::Init => !cell.has_succeeded(),
            Role::Sidecar => !cell.is_started,
            Role::Main => false,
        };
        let names = names(life.cells.iter().filter(is_lacking));
        let message = format!("containers with incomplete status: {names}");
        Verdict::not("ContainersNotInitialized", message)
    }

    /// None if that was never so.
    fn restarting_all(&self, life: &Life) -> Option<Verdict> {
        if life.is_restarting_all() {
            let message = "container exited with restart policy rule".to_owned();
            return Some(Verdict {
                is_true: true,
                reason: Some("RestartAllContainersStarted"),
                message: Some(message),
            });
        }
        let was_so = self.conditions.iter().any(|it| it.type_ == RESTARTING_ALL);
        was_so.then(|| Verdict::of(false))
    }

    fn container(&self, life: &Life, cell: &Cell, pod: &Pod) -> ContainerStatus {
        let id = |run: u32| format!("{}://{}.{}.{run}", self.runtime, self.uid, cell.plan.name);
        if life.was_left() {
            return lost_container(life, cell, pod, &id(0));
        }
        let ended = |end: &End| ContainerState {
            terminated: Some(terminated(end, id(end.run))),
            ..ContainerState::default()
        };
        let end = cell.end.as_ref().map(ended);
        let end_before = cell.end_before.as_ref().map(ended);
        let is_over = cell.is_over() || (life.is_over() && end.is_some());
        let (state, last) = match is_over {
            true => (end.unwrap_or_default(), end_before),
            false => (state_of(life, cell), end),
        };
        // An init container that has done its work is ready, as a kubelet has it.
        let is_done = cell.plan.role == Role::Init && cell.has_succeeded();
        ContainerStatus {
            name: cell.plan.name.clone(),
            image: cell.plan.image.clone(),
            image_id: String::new(),
            container_id: cell.has_run().then(|| id(cell.newest_run())),
            ready: cell.is_ready || is_done,
            started: Some(cell.is_started),
            restart_count: i32::try_from(cell.newest_run()).unwrap_or(i32::MAX),
            state: Some(state),
            last_state: last,
            ..ContainerStatus::default()
        }
    }
}

fn containers_ready(life: &Life) -> Verdict {
    let is_unready = |cell: &&Cell| cell.plan.role != Role::Init && !cell.is_ready;
    let mut unready = life.cells.iter().filter(is_unready).peekable();
    match unready.peek() {
        None => Verdict::of(true),
        Some(_) => {
            let message = format!("containers with unready status: {}", names(unready));
            Verdict::not("ContainersNotReady", message)
        }
    }
}

/// None for a Pod whose end is its own, or somebody's wish.
fn disruption(life: &Life) -> Option<Verdict> {
    let message = match life.ending()? {
        Ending::Shutdown => SHUTDOWN_MESSAGE,
        Ending::Lost => LOST_MESSAGE,
        Ending::Abandoned => ABANDONED_MESSAGE,
        Ending::Completed
        | Ending::Deleted
        | Ending::Vanished
        | Ending::Deadline
        | Ending::Broken { .. }
        | Ending::Known { .. }
        | Ending::Impossible { .. } => return None,
    };
    let (reason, message) = (Some(DISRUPTION_REASON), Some(message.to_owned()));
    Some(Verdict { is_true: true, reason, message })
}

/// The state of a container that has not ended for good.
fn state_of(life: &Life, cell: &Cell) -> ContainerState {
    let waiting = |reason: &str, message: &str| ContainerState {
        waiting: Some(ContainerStateWaiting {
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()).filter(|message| !message.is_empty()),
        }),
        ..ContainerState::default()
    };
    // A container that waits for others is initializing; one that waits for itself is being made.
    let has_init = life.cells.iter().any(|cell| cell.plan.role != Role::Main);
    let idle = if has_init && !(cell.plan.role == Role::Main && life.is_initialized()) {
        "PodInitializing"
    } else {
        "ContainerCreating"
    };
    match &cell.state {
        _ if life.is_over() && is_unlocated(life, cell) => unseen(UNLOCATED_MESSAGE, None),
        // A kubelet leaves the reason to an Event, and whoever waits for the Pod in the dark.
        State::Idle | State::Starting | State::Over => {
            waiting(idle, life.unprepared().unwrap_or(""))
        }
        State::Held { reason, message, .. } => waiting(reason, message),
        State::Running { .. } if cell.is_hooking() => waiting(idle, ""),
        State::Running { since } => ContainerState {
            running: Some(ContainerStateRunning { started_at: Some(Time(*since)) }),
            ..ContainerState::default()
        },
    }
}

fn terminated(end: &End, id: String) -> ContainerStateTerminated {
    ContainerStateTerminated {
        exit_code: end.code,
        signal: end.signal,
        reason: Some(end.reason.clone()),
        message: end.message.clone(),
        started_at: Some(Time(end.started_at.unwrap_or(end.at))),
        finished_at: Some(Time(end.at)),
        container_id: Some(id),
    }
}

/// The phase of a Pod: it ends when nothing of it is left.
fn phase(life: &Life) -> &'static str {
    let main = || life.cells.iter().filter(|cell| cell.plan.role == Role::Main);
    if life.is_over() {
        let has_succeeded = match life.ending() {
            Some(Ending::Deadline | Ending::Shutdown | Ending::Lost | Ending::Abandoned)
            | Some(Ending::Broken { .. } | Ending::Impossible { .. }) => false,
            Some(Ending::Known { has_succeeded }) => *has_succeeded,
            Some(Ending::Completed | Ending::Deleted | Ending::Vanished) | None => {
                let mut init = life.cells.iter().filter(|cell| cell.plan.role == Role::Init);
                init.all(Cell::has_succeeded) && main().all(Cell::has_succeeded)
            }
        };
        return if has_succeeded { "Succeeded" } else { "Failed" };
    }
    let has_begun = main().any(|cell| cell.has_run() && !cell.is_hooking());
    if has_begun { "Running" } else { "Pending" }
}

/// A container of a Pod that had begun when the node ended: what was said of it, but for what is
/// not so any more. `id` is that of its first run.
fn lost_container(life: &Life, cell: &Cell, pod: &Pod, id: &str) -> ContainerStatus {
    let name = cell.plan.name.as_str();
    let mut known = known(pod, name).cloned().unwrap_or_else(|| ContainerStatus {
        name: name.to_owned(),
        image: cell.plan.image.clone(),
        ..ContainerStatus::default()
    });
    known.ready = cell.plan.role == Role::Init && was_initialized(cell, pod);
    known.started = Some(false);
    let has_begun =
        |cell: &Cell| cell.is_lost || self::known(pod, &cell.plan.name).is_some_and(tells_of_a_run);
    let is_initialized = life.cells.iter().all(|cell| was_initialized(cell, pod));
    let has_run = has_begun(cell);
    let state = known.state.get_or_insert_default();
    let is_missed = has_run || is_missed(life, cell, is_initialized, has_begun);
    if state.terminated.is_some() || !is_missed {
        return known;
    }
    let started_at = state.running.take().and_then(|running| running.started_at);
    let message = match life.ending() {
        _ if !has_run => UNLOCATED_MESSAGE,
        Some(Ending::Broken { .. }) => ENDED_MESSAGE,
        _ => UNSEEN_MESSAGE,
    };
    if has_run {
        known.container_id.get_or_insert_with(|| id.to_owned());
    }
    *state = unseen(message, Some((started_at, life.lost_at(), known.container_id.clone())));
    known
}

/// Whether a container that comes first had done its work, or ran as it should, by what was said
/// of it.
fn was_initialized(cell: &Cell, pod: &Pod) -> bool {
    let state = known(pod, &cell.plan.name).map(|known| (known.state.as_ref(), known.started));
    match cell.plan.role {
        Role::Main => true,
        Role::Init => {
            let end = state.and_then(|(state, _)| state?.terminated.as_ref());
            end.is_some_and(|end| end.exit_code == 0)
        }
        Role::Sidecar => state.is_some_and(|(_, started)| started == Some(true)),
    }
}

/// What was said last of a container.
fn known<'p>(pod: &'p Pod, name: &str) -> Option<&'p ContainerStatus> {
    let status = pod.status.as_ref()?;
    let main = status.container_statuses.iter().flatten();
    let mut all = main.chain(status.init_container_statuses.iter().flatten());
    all.find(|known| known.name == name)
}

/// The end of a container that nobody has seen, and of the run if there was one: since when, until
/// when at the latest, and its id.
fn unseen(message: &str, run: Option<(Option<Time>, Timestamp, Option<String>)>) -> ContainerState {
    let (started_at, at, container_id) = match run {
        Some((started_at, at, id)) => (started_at, Some(Time(at)), id),
        None => (None, None, None),
    };
    ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: UNSEEN_CODE,
            reason: Some(UNSEEN_REASON.to_owned()),
            message: Some(message.to_owned()),
            started_at,
            finished_at: at,
            container_id,
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    }
}

/// Whether a container that never ran in a Pod that is over was to run by then.
fn is_unlocated(life: &Life, cell: &Cell) -> bool {
    match life.ending() {
        // The node does not take the Pod at all.
        Some(Ending::Impossible { .. }) => false,
        _ => is_missed(life, cell, life.is_initialized(), Cell::has_run),
    }
}

/// Whether a container that is not known to have run counts as lost when its Pod ends: as a
/// kubelet, that is every main container once the Pod was initialized, and of the others those up
/// to the last that has begun.
fn is_missed(
    life: &Life,
    cell: &Cell,
    is_initialized: bool,
    has_begun: impl Fn(&Cell) -> bool,
) -> bool {
    let mut main = life.cells.iter().filter(|cell| cell.plan.role == Role::Main);
    if cell.plan.role == Role::Main {
        return is_initialized || main.any(has_begun);
    }
    let last = life.cells.iter().rposition(|it| it.plan.role != Role::Main && has_begun(it));
    let last = last.unwrap_or(0);
    life.cells.iter().take(last + 1).any(|it| it.plan.name == cell.plan.name)
}

/// The first readiness gate that does not hold.
fn lacking_gate(life: &Life, pod: &Pod) -> Option<String> {
    let none = Vec::new();
    let status = pod.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref()).unwrap_or(&none);
    life.plan.readiness_gates.iter().find_map(|gate| {
        match conditions.iter().find(|condition| condition.type_ == *gate) {
            None => Some(format!("the condition of readiness gate {gate:?} does not exist")),
            Some(found) if found.status != "True" => {
                Some(format!("the condition of readiness gate {gate:?} is {}", found.status))
            }
            Some(_) => None,
        }
    })
}

/// What holds of a condition.
#[derive(Clone, Debug)]
struct Verdict {
    is_true: bool,
    reason: Option<&'static str>,
    message: Option<String>,
}

impl Verdict {
    fn of(is_true: bool) -> Self {
        Verdict { is_true, reason: None, message: None }
    }

    fn not(reason: &'static str, message: String) -> Self {
        Verdict { is_true: false, reason: Some(reason), message: Some(message) }
    }

    fn condition(
        self,
        kind: &str,
        before: Option<&PodCondition>,
        generation: Option<i64>,
        now: Timestamp,
    ) -> PodCondition {
        let status = if self.is_true { "True" } else { "False" };
        let since = before.filter(|before| before.status == status);
        let since = since.and_then(|before| before.last_transition_time.clone());
        PodCondition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: self.reason.map(str::to_owned),
            message: self.message,
            observed_generation: generation,
            last_transition_time: Some(since.unwrap_or(Time(now))),
            last_probe_time: None,
        }
    }
}

fn names<'c>(cells: impl Iterator<Item = &'c Cell>) -> String {
    let names: Vec<&str> = cells.map(|cell| cell.plan.name.as_str()).collect();
    format!("[{}]", names.join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::backoff::BackoffOptions;
    use crate::life::{Fact, Plan};

    /// As by a kubelet, which tells of the two latest runs that there are.
    #[test]
    fn the_run_before_the_last_is_told_also_when_that_is_over() {
        let at = |second: i64| Timestamp::from_second(second).expect("a time");
        let pod = json!({"spec": {"restartPolicy": "OnFailure", "containers": [{"name": "a"}]}});
        let pod: Pod = serde_json::from_value(pod).expect("a Pod");
        let mut life = Life::new(Plan::of(&pod), BackoffOptions::default(), at(0));
        let mut reporter = Reporter::new(&pod, "fake", Ipv4Addr::LOCALHOST);
        life.observe(Fact::Prepared, at(0));
        let code =
            |state: &Option<ContainerState>| Some(state.as_ref()?.terminated.as_ref()?.exit_code);
        let mut told = Vec::new();
        // Each run ends with the number of runs that are left.
        for (run, code_of_run) in [(0, 2), (1, 1), (2, 0)] {
            let now = at(1000 * (i64::from(run) + 1));
            life.next(now);
            life.observe(Fact::Started { cell: 0, at: now }, now);
            let end = End {
                code: code_of_run,
                signal: None,
                reason: String::new(),
                message: None,
                started_at: Some(now),
                at: now,
                run,
            };
            life.observe(Fact::Ended { cell: 0, end }, now);
            let status = reporter.report(&life, &pod, now).container_statuses;
            let status = status.expect("it has a container").remove(0);
            told.push((code(&status.state), code(&status.last_state)));
        }
        assert_eq!(told, [(None, Some(2)), (None, Some(1)), (Some(0), Some(1))]);
    }
}
