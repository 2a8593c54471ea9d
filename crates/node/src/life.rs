//! The life of one Pod on this node, as a state machine without IO: facts in, wishes out.
//!
//! ```text
//!   Fresh ──Prepare──▶ Preparing ──Prepared──▶ Up ──all over, or Ending──▶ Closing ──▶ Closed
//!     ▲                    │                   │                                        ▲
//!     └── NotPrepared, later ┘                 └─ init, sidecars, main; restarts; probes │
//!     └──────────── an ending before anything was made ─────────────────────────────────┘
//! ```
//!
//! # Guarantees
//!
//! - A container is asked for once at a time: no `Start` before its last run has ended.
//! - Nothing is started once the Pod has an ending, and `Close` comes when nothing is alive.
//! - The first ending stays; a later one may only make it sooner.

mod cell;
mod plan;
mod probe;

use std::time::Duration;

use jiff::Timestamp;

pub(crate) use cell::{Cell, End, State};
pub(crate) use plan::{Plan, Role, seconds};
pub(crate) use probe::ProbeKind;
use probe::Verdict;

use crate::backoff::{BackoffOptions, later};
use crate::begun::Runs;
use crate::restart_policy::After;
use crate::runtime::Signal;

/// The pauses between tries to prepare a Pod, or to make a container, doubled with each.
const FIRST_RETRY: Duration = Duration::from_millis(500);
const LONGEST_RETRY: Duration = Duration::from_secs(15);

/// What a Pod that ends has at least for its hooks, also if it was deleted by force: as a kubelet.
pub(crate) const LEAST_GRACE: Duration = Duration::from_secs(1);

/// Something that has happened to a Pod.
#[derive(Clone, Debug)]
pub(crate) enum Fact {
    /// What its containers share is there.
    Prepared,
    /// It is not, yet.
    NotPrepared { reason: &'static str, message: String },
    /// It never can be.
    Impossible { reason: &'static str, message: String },
    /// A container was started.
    Started { cell: usize, at: Timestamp },
    /// A container was not started.
    NotStarted { cell: usize, why: NotStarted },
    /// A container has ended.
    Ended { cell: usize, end: End },
    /// It has ended because what ran it did.
    Lost { cell: usize, end: End },
    /// A probe was answered.
    Probed { cell: usize, run: u32, kind: ProbeKind, answer: Result<(), String> },
    /// The hook after a container's start has ended.
    PostStarted { cell: usize, run: u32, answer: Result<(), String> },
    /// The hook before a container's stop has ended.
    PreStopped { cell: usize, run: u32, answer: Result<(), String> },
    /// Somebody deletes it, and gives it so long.
    Deleted { grace: Duration },
    /// It is not in the API any more.
    Vanished,
    /// The node ends.
    Shutdown { grace: Duration },
    /// Nothing of it is left.
    Closed,
}

/// Why a container was not started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotStarted {
    /// Not yet: what it is made of is missing, or the machine has no room.
    Later { reason: &'static str, message: String },
    /// Never, as it is: this counts as an end.
    Never { reason: String, code: i32, message: String },
}

impl NotStarted {
    /// Never, with the reason and the code that a kubelet has from containerd for a program that
    /// does not exist.
    pub(crate) fn never(message: String) -> Self {
        NotStarted::Never { reason: "StartError".to_owned(), code: 128, message }
    }
}

/// Something that is to be done for a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Prepare,
    Start { cell: usize },
    Signal { cell: usize, signal: Signal },
    Probe { cell: usize, kind: ProbeKind },
    PostStart { cell: usize },
    PreStop { cell: usize },
    Close,
    Tell(Said),
}

/// Something that those who watch the Pod should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) is_warning: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// Why a Pod ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Its containers have ended.
    Completed,
    /// It was deleted.
    Deleted,
    /// It has left the API.
    Vanished,
    /// It was active for too long.
    Deadline,
    /// The node ends.
    Shutdown,
    /// The node ended while it ran.
    Lost,
    /// What runs containers on the node ended while it ran.
    Abandoned,
    /// What ran it here has failed.
    Broken { message: String },
    /// The node ended when its containers had, and had said how.
    Known { has_succeeded: bool },
    /// It cannot run here.
    Impossible { reason: &'static str, message: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Fresh { not_before: Option<Timestamp> },
    Preparing,
    Up,
    Closing,
    Closed,
}

/// The life of a Pod.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) plan: Plan,
    pub(crate) cells: Vec<Cell>,
    /// When this node took the Pod on.
    pub(crate) began: Timestamp,
    ending: Option<Ending>,
    stage: Stage,
    has_been_up: bool,
    /// Why it could not be prepared the last time, if it could not.
    unprepared: Option<String>,
    grace_until: Timestamp,
    /// All containers are started again, then, once all have ended.
    again_at: Option<Timestamp>,
    failures: u32,
    backoff: BackoffOptions,
    said: Vec<Wish>,
}

impl Life {
    /// The life of a Pod that this node has taken on then.
    pub(crate) fn new(mut plan: Plan, backoff: BackoffOptions, began: Timestamp) -> Self {
        let cells = std::mem::take(&mut plan.containers).into_iter().map(Cell::new).collect();
        Life {
            plan,
            cells,
            began,
            ending: None,
            stage: Stage::Fresh { not_before: None },
            has_been_up: false,
            unprepared: None,
            grace_until: Timestamp::MAX,
            again_at: None,
            failures: 0,
            backoff,
            said: Vec::new(),
        }
    }

    /// The life of a Pod of which these containers, or others that its status tells of, had begun
    /// when the node ended: nothing of it is left.
    pub(crate) fn lost(
        plan: Plan,
        backoff: BackoffOptions,
        began: Timestamp,
        begun: &Runs,
        now: Timestamp,
    ) -> Self {
        let mut life = Life::new(plan, backoff, began);
        for cell in &mut life.cells {
            cell.is_lost = begun.contains_key(&cell.plan.name);
        }
        life.grace_until = now;
        life.ending = Some(Ending::Lost);
        life.stage = Stage::Closed;
        life.has_been_up = true;
        life
    }

    /// The life of a Pod whose worker has failed after these containers had begun: nothing of it is
    /// left.
    pub(crate) fn broken(
        plan: Plan,
        backoff: BackoffOptions,
        began: Timestamp,
        begun: &Runs,
        now: Timestamp,
        message: String,
    ) -> Self {
        let mut life = Life::lost(plan, backoff, began, begun, now);
        life.ending = Some(Ending::Broken { message });
        life
    }

    /// What the containers of a Pod came to whose node ended is known.
    pub(crate) fn know(&mut self, has_succeeded: bool) {
        self.ending = Some(Ending::Known { has_succeeded });
    }

    /// Whether its node ended while it was there.
    pub(crate) fn was_left(&self) -> bool {
        matches!(self.ending, Some(Ending::Lost | Ending::Broken { .. } | Ending::Known { .. }))
    }

    /// Whether nothing of it is left.
    pub(crate) fn is_over(&self) -> bool {
        self.stage == Stage::Closed
    }

    /// Whether nothing was ever made for it.
    pub(crate) fn is_fresh(&self) -> bool {
        matches!(self.stage, Stage::Fresh { not_before: None })
    }

    /// Whether any of its containers has run, or was tried to and never can.
    pub(crate) fn has_begun(&self) -> bool {
        self.cells.iter().any(Cell::has_run)
    }

    /// Whether nothing more is said of it: the node ends and none of its containers has begun, so
    /// that the next node can start it.
    pub(crate) fn is_left_as_it_is(&self) -> bool {
        self.ending == Some(Ending::Shutdown) && !self.has_begun()
    }

    /// When the node that ran it was found to be gone.
    pub(crate) fn lost_at(&self) -> Timestamp {
        self.grace_until
    }

    /// Whether what its containers share is there.
    pub(crate) fn is_up(&self) -> bool {
        self.stage == Stage::Up
    }

    /// Whether it ever was.
    pub(crate) fn has_been_up(&self) -> bool {
        self.has_been_up
    }

    /// Why its containers cannot even be tried.
    pub(crate) fn unprepared(&self) -> Option<&str> {
        self.unprepared.as_deref()
    }

    pub(crate) fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// Takes in what has happened.
    pub(crate) fn observe(&mut self, fact: Fact, now: Timestamp) {
        match fact {
            Fact::Prepared => {
                self.stage = Stage::Up;
                self.has_been_up = true;
                self.unprepared = None;
            }
            Fact::NotPrepared { reason, message } => {
                self.unprepared = Some(format!("{reason}: {message}"));
                self.warn(reason, message);
                self.failures += 1;
                let not_before = Some(later(now, retry_pause(self.failures)));
                self.stage = Stage::Fresh { not_before };
            }
            Fact::Impossible { reason, message } => {
                self.warn(reason, message.clone());
                self.stage = Stage::Fresh { not_before: None };
                self.end(Ending::Impossible { reason, message }, now);
            }
            Fact::Started { cell, at } => {
                self.cells[cell].begin(at);
                if self.cells[cell].plan.has_post_start && self.ending.is_none() {
                    self.said.push(Wish::PostStart { cell });
                } else {
                    self.cells[cell].is_hook_under_way = false;
                    self.cells[cell].judge_start();
                }
            }
            Fact::NotStarted { cell, why } => self.take_refusal(cell, why, now),
            Fact::Ended { cell, end } => self.take_end(cell, end),
            Fact::Lost { cell, end } => {
                // Not the container's own failure: neither is it started again nor are others.
                self.end(Ending::Abandoned, now);
                self.take_end(cell, end);
            }
            Fact::Probed { cell, run, kind, answer } => {
                self.take_probe(cell, run, kind, answer, now)
            }
            Fact::PostStarted { cell, run, answer } => self.take_post_start(cell, run, answer, now),
            Fact::PreStopped { cell, run, answer } => {
                if self.cells[cell].run == run {
                    self.cells[cell].pass_pre_stop();
                }
                if let Err(why) = answer {
                    self.warn("FailedPreStopHook", format!("PreStopHook failed: {why}"));
                }
            }
            Fact::Deleted { grace } => self.end_within(Ending::Deleted, grace, now),
            Fact::Vanished => self.end_within(Ending::Vanished, Duration::ZERO, now),
            Fact::Shutdown { grace } => {
                self.end_within(Ending::Shutdown, grace.min(self.plan.grace), now)
            }
            Fact::Closed => self.stage = Stage::Closed,
        }
    }

    /// What is to be done now.
    pub(crate) fn next(&mut self, now: Timestamp) -> Vec<Wish> {
        if self.ending.is_none() && self.deadline().is_some_and(|deadline| deadline <= now) {
            self.warn("DeadlineExceeded", DEADLINE_MESSAGE.to_owned());
            self.end(Ending::Deadline, now);
        }
        if self.stage == Stage::Up && self.ending.is_none() {
            self.go_on(now);
        }
        let mut wishes = std::mem::take(&mut self.said);
        match self.stage {
            Stage::Fresh { .. } if self.ending.is_some() => {
                // Something may have been made before it failed.
                self.stage = Stage::Closing;
                wishes.push(Wish::Close);
            }
            Stage::Fresh { not_before } if not_before.is_none_or(|at| at <= now) => {
                self.stage = Stage::Preparing;
                wishes.push(Wish::Prepare);
            }
            Stage::Fresh { .. } | Stage::Preparing | Stage::Closing | Stage::Closed => {}
            Stage::Up => self.look_after_containers(now, &mut wishes),
        }
        wishes
    }

    /// When to ask again if nothing happens after `asked`, when it was asked last. What was due by
    /// then and not done waits for something else.
    pub(crate) fn wake_at(&self, asked: Timestamp) -> Option<Timestamp> {
        let is_ahead = |at: &Timestamp| *at > asked;
        let stage = match self.stage {
            Stage::Fresh { not_before } => not_before,
            Stage::Up => self.cells.iter().filter_map(Cell::wake_at).filter(is_ahead).min(),
            Stage::Preparing | Stage::Closing | Stage::Closed => None,
        };
        let deadline = if self.ending.is_none() { self.deadline() } else { None };
        stage.into_iter().chain(deadline).filter(is_ahead).min()
    }

    /// Whether all containers are ended to be started again.
    pub(crate) fn is_restarting_all(&self) -> bool {
        self.again_at.is_some()
    }

    /// Whether all containers that come first have done their work, or run as they should.
    pub(crate) fn is_initialized(&self) -> bool {
        self.cells.iter().all(|cell| match cell.plan.role {
            Role::Init => cell.has_succeeded(),
            // One that ended with its Pod has been started.
            Role::Sidecar => cell.was_started,
            Role::Main => true,
        })
    }

    fn deadline(&self) -> Option<Timestamp> {
        Some(later(self.began, self.plan.active_deadline?))
    }

    /// Starts what is to run, in order.
    fn go_on(&mut self, now: Timestamp) {
        if let Some(at) = self.again_at {
            if self.cells.iter().any(Cell::is_alive) {
                return;
            }
            self.again_at = None;
            for cell in &mut self.cells {
                cell.reset(at);
            }
        }
        for cell in 0..self.cells.len() {
            let it = &mut self.cells[cell];
            if it.start_if_due(now) {
                self.said.push(Wish::Start { cell });
            }
            let it = &self.cells[cell];
            let has_failed = it.is_over() && !it.has_succeeded();
            match it.plan.role {
                Role::Init if it.has_succeeded() => {}
                Role::Init if has_failed => return self.end(Ending::Completed, now),
                Role::Init => return,
                Role::Sidecar if it.was_started => {}
                Role::Sidecar => return,
                Role::Main if it.is_hooking() => return,
                Role::Main => {}
            }
        }
        let mut main = self.cells.iter().filter(|cell| cell.plan.role == Role::Main);
        if main.all(Cell::is_over) {
            self.end(Ending::Completed, now);
        }
    }

    fn look_after_containers(&mut self, now: Timestamp, wishes: &mut Vec<Wish>) {
        if self.again_at.is_some() {
            // One that was being started when the others were stopped.
            for cell in &mut self.cells {
                cell.stop(now, now);
            }
        }
        if self.ending.is_some() {
            for cell in &mut self.cells {
                cell.stop(self.grace_until, now);
            }
        }
        // From the last to the first: a sidecar is needed by all that started after it.
        let mut is_someone_alive = false;
        for cell in (0..self.cells.len()).rev() {
            let it = &mut self.cells[cell];
            let is_needed = it.plan.role == Role::Sidecar && is_someone_alive;
            if let Some(wish) = it.go_on_stopping(now, is_needed) {
                wishes.push(wish.of(cell));
            }
            for kind in it.probe(now) {
                wishes.push(Wish::Probe { cell, kind });
            }
            is_someone_alive |= it.is_alive();
        }
        if self.ending.is_some() && !is_someone_alive {
            self.stage = Stage::Closing;
            wishes.push(Wish::Close);
        }
    }

    fn end(&mut self, why: Ending, now: Timestamp) {
        self.end_within(why, self.plan.grace, now);
    }

    fn end_within(&mut self, why: Ending, grace: Duration, now: Timestamp) {
        self.grace_until = self.grace_until.min(later(now, grace.max(LEAST_GRACE)));
        self.ending.get_or_insert(why);
    }

    fn take_refusal(&mut self, cell: usize, why: NotStarted, now: Timestamp) {
        match why {
            // Nobody tries again, so nobody needs to know.
            NotStarted::Later { .. } if self.ending.is_some() => {
                let it = &mut self.cells[cell];
                it.state = if it.end.is_some() { State::Over } else { State::Idle };
            }
            NotStarted::Later { reason, message } => {
                self.warn("Failed", format!("Error: {message}"));
                let it = &mut self.cells[cell];
                it.failures += 1;
                let until = later(now, retry_pause(it.failures));
                it.state = State::Held { reason, message, until };
            }
            NotStarted::Never { reason, code, message } => {
                self.warn("Failed", format!("Error: {message}"));
                let run = self.cells[cell].run;
                let end = End {
                    code,
                    signal: None,
                    reason,
                    message: Some(message),
                    started_at: None,
                    at: now,
                    run,
                };
                self.take_end(cell, end);
            }
        }
    }

    fn take_end(&mut self, cell: usize, end: End) {
        let it = &mut self.cells[cell];
        let after = match self.ending.is_some() || self.again_at.is_some() {
            true => After::Nothing,
            false if it.is_condemned => it.plan.restart.after_probe(end.code),
            false => it.plan.restart.after(end.code),
        };
        let (began, at) = (end.started_at, end.at);
        it.finish(end);
        if after == After::Nothing {
            return;
        }
        let (until, pause) = it.backoff.end(began, at, &self.backoff);
        if after == After::AllAgain {
            // As a kubelet: the others have no grace for it.
            self.again_at = Some(until);
            for cell in &mut self.cells {
                cell.stop(at, at);
            }
            return;
        }
        let name = it.plan.name.clone();
        if pause.is_zero() {
            it.state = State::Held { reason: "ContainerCreating", message: String::new(), until };
            return;
        }
        let message = format!("back-off {}s restarting failed container={name}", pause.as_secs());
        it.state = State::Held { reason: "CrashLoopBackOff", message, until };
        self.warn("BackOff", format!("Back-off restarting failed container {name}"));
    }

    fn take_probe(
        &mut self,
        cell: usize,
        run: u32,
        kind: ProbeKind,
        answer: Result<(), String>,
        now: Timestamp,
    ) {
        let it = &mut self.cells[cell];
        if it.run != run || it.stopping.is_some() {
            return;
        }
        let Some((_, probing)) = it.probes.iter_mut().find(|(known, _)| *known == kind) else {
            return;
        };
        let verdict = probing.take(answer.is_ok());
        let grace = probing.plan().grace.unwrap_or(self.plan.grace);
        match (kind, verdict) {
            (_, None) | (ProbeKind::Liveness, Some(Verdict::Succeeded)) => {}
            (ProbeKind::Startup, Some(Verdict::Succeeded)) => it.pass_startup(),
            (ProbeKind::Readiness, Some(verdict)) => it.is_ready = verdict == Verdict::Succeeded,
            (ProbeKind::Startup | ProbeKind::Liveness, Some(Verdict::Failed)) => {
                it.stop(later(now, grace), now);
                it.is_condemned = true;
                let (name, word) = (&it.plan.name, kind.word().to_lowercase());
                let next = if it.plan.restart.is_never() { "stopped" } else { "restarted" };
                let message = format!("Container {name} failed {word} probe, will be {next}");
                self.said.push(Wish::Tell(Said { is_warning: false, reason: "Killing", message }));
            }
        }
        if let Err(why) = answer {
            self.warn("Unhealthy", format!("{} probe failed: {why}", kind.word()));
        }
    }

    fn take_post_start(
        &mut self,
        cell: usize,
        run: u32,
        answer: Result<(), String>,
        now: Timestamp,
    ) {
        let grace = self.plan.grace;
        let it = &mut self.cells[cell];
        if it.run != run || !it.is_hook_under_way {
            return;
        }
        it.is_hook_under_way = false;
        match answer {
            // It is not to be found ready on its way out.
            Ok(()) if it.stopping.is_some() => {}
            Ok(()) => it.judge_start(),
            Err(why) => {
                it.stop(later(now, grace), now);
                self.warn("FailedPostStartHook", format!("PostStartHook failed: {why}"));
            }
        }
    }

    fn warn(&mut self, reason: &'static str, message: String) {
        self.said.push(Wish::Tell(Said { is_warning: true, reason, message }));
    }
}

/// What a Pod's status says when its time is up.
pub(crate) const DEADLINE_MESSAGE: &str =
    "Pod was active on the node longer than the specified deadline";

fn retry_pause(failures: u32) -> Duration {
    FIRST_RETRY.saturating_mul(1 << (failures.max(1) - 1).min(10)).min(LONGEST_RETRY)
}

#[cfg(test)]
mod tests;
