//! What is known of one container: whether it waits, runs or has ended, how often it was started,
//! and how it is being stopped.

use std::time::Duration;

use jiff::Timestamp;

use super::Wish;
use super::plan::ContainerPlan;
use super::probe::{ProbeKind, Probing};
use crate::backoff::{Backoff, later};
use crate::runtime::Signal;

/// What a container that is asked to end has at least, whatever is left of its grace: as a kubelet.
const LEAST_TIME: Duration = Duration::from_secs(2);

/// Why a container waits that is started again because another one has ended.
const RESTARTING_ALL: &str = "RestartingAllContainers";

/// One container of a Pod.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) plan: ContainerPlan,
    /// How often it was started before this run.
    pub(crate) run: u32,
    pub(crate) state: State,
    /// How its last run ended.
    pub(crate) end: Option<End>,
    /// How the run before that one ended.
    pub(crate) end_before: Option<End>,
    /// Whether it had begun when the node ended.
    pub(crate) is_lost: bool,
    pub(crate) is_started: bool,
    /// Whether it was started since all of its Pod was.
    pub(super) was_started: bool,
    pub(crate) is_ready: bool,
    pub(super) backoff: Backoff,
    /// Tries to start it in a row that came to nothing.
    pub(super) failures: u32,
    pub(super) probes: Vec<(ProbeKind, Probing)>,
    pub(super) is_hook_under_way: bool,
    pub(super) stopping: Option<Stopping>,
    /// Whether a probe has found that this run has to end.
    pub(super) is_condemned: bool,
    /// The last run has ended: the next start is another run.
    is_run_over: bool,
}

/// Where a container is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It was never started.
    Idle,
    /// It is to be started, or started again, then.
    Held { reason: &'static str, message: String, until: Timestamp },
    /// The runtime is asked to start it.
    Starting,
    /// It runs.
    Running { since: Timestamp },
    /// It has ended for good.
    Over,
}

/// How a run of a container ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) code: i32,
    pub(crate) signal: Option<i32>,
    pub(crate) reason: String,
    pub(crate) message: Option<String>,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) at: Timestamp,
    /// Which run it was.
    pub(crate) run: u32,
}

/// A container that is being stopped: its hook runs, then it waits for those who need it, both
/// until its grace is over at the latest. Then it is asked to end, and killed if it does not.
#[derive(Clone, Debug)]
pub(super) struct Stopping {
    grace_until: Timestamp,
    step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    HookDue,
    Hook,
    /// It waits until nobody needs it.
    Turn,
    Asked {
        kill_at: Timestamp,
    },
    Killed,
}

impl Stopping {
    /// Leaves it less time, if that is less. As with a kubelet, what was asked to end has the least
    /// time from then on.
    fn hasten(&mut self, grace_until: Timestamp, now: Timestamp) {
        if self.grace_until <= grace_until {
            return;
        }
        self.grace_until = grace_until;
        if let Step::Asked { kill_at } = &mut self.step {
            *kill_at = (*kill_at).min(end_of_time(grace_until, now));
        }
    }
}

/// When a container that is asked to end now is killed.
fn end_of_time(grace_until: Timestamp, now: Timestamp) -> Timestamp {
    grace_until.max(later(now, LEAST_TIME))
}

impl Cell {
    pub(super) fn new(plan: ContainerPlan) -> Self {
        Cell {
            plan,
            run: 0,
            state: State::Idle,
            end: None,
            end_before: None,
            is_lost: false,
            is_started: false,
            was_started: false,
            is_ready: false,
            backoff: Backoff::default(),
            failures: 0,
            probes: Vec::new(),
            is_hook_under_way: false,
            stopping: None,
            is_condemned: false,
            is_run_over: false,
        }
    }

    /// Whether something of it may be running.
    pub(crate) fn is_alive(&self) -> bool {
        matches!(self.state, State::Starting | State::Running { .. })
    }

    /// Whether its hook after the start has not ended yet: until then it counts as not started.
    pub(crate) fn is_hooking(&self) -> bool {
        self.is_hook_under_way
    }

    /// Whether it was ever started, or tried to.
    pub(crate) fn has_run(&self) -> bool {
        self.end.is_some() || matches!(self.state, State::Running { .. })
    }

    /// Which run is the newest that has begun. One that is being started, or could not be yet, is
    /// none.
    pub(crate) fn newest_run(&self) -> u32 {
        match (&self.state, &self.end) {
            (State::Running { .. }, _) | (_, None) => self.run,
            (_, Some(end)) => end.run,
        }
    }

    /// Whether it has ended for good, with this kind of end.
    pub(crate) fn is_over(&self) -> bool {
        self.state == State::Over
    }

    pub(crate) fn has_succeeded(&self) -> bool {
        self.is_over() && self.end.as_ref().is_some_and(|end| end.code == 0)
    }

    /// Starts it if it is time; whether it was.
    pub(super) fn start_if_due(&mut self, now: Timestamp) -> bool {
        let is_due = match &self.state {
            State::Idle => true,
            State::Held { until, .. } => *until <= now,
            State::Starting | State::Running { .. } | State::Over => false,
        };
        if is_due {
            if std::mem::take(&mut self.is_run_over) {
                self.run += 1;
            }
            self.state = State::Starting;
        }
        is_due
    }

    /// It was started.
    pub(super) fn begin(&mut self, at: Timestamp) {
        self.state = State::Running { since: at };
        self.failures = 0;
        self.is_hook_under_way = self.plan.has_post_start;
        self.probes = [
            (ProbeKind::Startup, self.plan.startup),
            (ProbeKind::Liveness, self.plan.liveness),
            (ProbeKind::Readiness, self.plan.readiness),
        ]
        .into_iter()
        .filter_map(|(kind, plan)| Some((kind, Probing::new(plan?, at))))
        .collect();
        self.judge_start();
    }

    /// Whether it counts as started, and as ready where nobody probes that.
    pub(super) fn judge_start(&mut self) {
        if self.is_hook_under_way || self.has_probe(ProbeKind::Startup) {
            return;
        }
        self.is_started = true;
        self.was_started = true;
        if !self.has_probe(ProbeKind::Readiness) {
            self.is_ready = true;
        }
    }

    fn has_probe(&self, wanted: ProbeKind) -> bool {
        self.probes.iter().any(|(kind, _)| *kind == wanted)
    }

    /// The startup probe has succeeded, and is not asked again in this run.
    pub(super) fn pass_startup(&mut self) {
        self.probes.retain(|(kind, _)| *kind != ProbeKind::Startup);
        self.judge_start();
    }

    /// Its run has ended.
    pub(super) fn finish(&mut self, end: End) {
        self.end_before = self.end.replace(end);
        self.is_run_over = true;
        self.is_started = false;
        self.is_ready = false;
        self.is_hook_under_way = false;
        self.stopping = None;
        self.is_condemned = false;
        self.probes.clear();
        self.state = State::Over;
    }

    /// It is to be started again with all others.
    pub(super) fn reset(&mut self, at: Timestamp) {
        self.was_started = false;
        self.state = match self.end {
            Some(_) => State::Held { reason: RESTARTING_ALL, message: String::new(), until: at },
            None => State::Idle,
        };
    }

    /// The probes that are asked now, and when the next one is.
    pub(super) fn probe(&mut self, now: Timestamp) -> Vec<ProbeKind> {
        if self.stopping.is_some() || self.is_hook_under_way {
            return Vec::new();
        }
        let has_startup = self.has_probe(ProbeKind::Startup);
        let is_asked = |kind: ProbeKind| (kind == ProbeKind::Startup) == has_startup;
        let probes = self.probes.iter_mut().filter(|(kind, _)| is_asked(*kind));
        probes.filter_map(|(kind, probing)| probing.begin(now).then_some(*kind)).collect()
    }

    /// When it needs to be looked at again.
    pub(super) fn wake_at(&self) -> Option<Timestamp> {
        match &self.state {
            State::Held { until, .. } => Some(*until),
            State::Running { .. } => match &self.stopping {
                Some(stopping) => match stopping.step {
                    Step::HookDue | Step::Hook | Step::Turn => Some(stopping.grace_until),
                    Step::Asked { kill_at } => Some(kill_at),
                    Step::Killed => None,
                },
                None if self.is_hook_under_way => None,
                None => {
                    let has_startup = self.has_probe(ProbeKind::Startup);
                    let is_asked = |kind: ProbeKind| (kind == ProbeKind::Startup) == has_startup;
                    let probes = self.probes.iter().filter(|(kind, _)| is_asked(*kind));
                    probes.filter_map(|(_, probing)| probing.wake_at()).min()
                }
            },
            State::Idle | State::Starting | State::Over => None,
        }
    }

    /// Stops it, with a grace until then. One that is being stopped may only be stopped sooner.
    pub(super) fn stop(&mut self, grace_until: Timestamp, now: Timestamp) {
        if !matches!(self.state, State::Running { .. }) {
            return;
        }
        self.is_ready = false;
        match &mut self.stopping {
            Some(stopping) => stopping.hasten(grace_until, now),
            None => {
                let step = if self.plan.has_pre_stop { Step::HookDue } else { Step::Turn };
                self.stopping = Some(Stopping { grace_until, step });
            }
        }
    }

    /// What is to be done to stop it now. It is not asked to end while others need it, but when its
    /// grace is over: as with a kubelet it is always asked before it is killed.
    pub(super) fn go_on_stopping(&mut self, now: Timestamp, is_needed: bool) -> Option<WishOf> {
        let signal = self.plan.stop_signal;
        let Stopping { grace_until, step } = self.stopping.as_mut()?;
        let has_time = *grace_until > now;
        match *step {
            Step::HookDue if has_time => {
                *step = Step::Hook;
                Some(WishOf::PreStop)
            }
            Step::Hook if has_time => None,
            Step::Turn if has_time && is_needed => None,
            Step::HookDue | Step::Hook | Step::Turn => {
                *step = Step::Asked { kill_at: end_of_time(*grace_until, now) };
                Some(WishOf::Signal(signal))
            }
            Step::Asked { kill_at } if kill_at <= now => {
                *step = Step::Killed;
                Some(WishOf::Signal(Signal::Kill))
            }
            Step::Asked { .. } | Step::Killed => None,
        }
    }

    /// The hook before the stop has ended.
    pub(super) fn pass_pre_stop(&mut self) {
        if let Some(stopping) = &mut self.stopping
            && stopping.step == Step::Hook
        {
            stopping.step = Step::Turn;
        }
    }
}

/// A wish about this container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WishOf {
    Signal(Signal),
    PreStop,
}

impl WishOf {
    pub(super) fn of(self, cell: usize) -> Wish {
        match self {
            WishOf::Signal(signal) => Wish::Signal { cell, signal },
            WishOf::PreStop => Wish::PreStop { cell },
        }
    }
}
