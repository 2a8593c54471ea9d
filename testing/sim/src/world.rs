//! The world: the API, the controllers, the nodes, the users, and the time.
//!
//! [`World::take`] makes one [`Choice`] happen and checks the invariants. There is no other
//! way to change a world and no chance in it: the same scenario and the same choices give the
//! same world, whoever makes them (a random run, a shrunk one, or a search of them all).

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use stint_api::feature_gates::Gate;
use stint_ledger::op::OpKind;

use crate::api::{Api, Manager};
use crate::choice::{Choice, ControllerId, OpKey, Storm};
use crate::controller::{Controller, Flight};
use crate::history::{Actor, History};
use crate::invariant::{self, Broken, Invariant};
use crate::request;
use crate::scenario::Scenario;

/// What really happened in a world that loosens an invariant. Each invariant says which of
/// these excuse it.
#[derive(Clone, Debug, Default)]
pub struct Loosened {
    /// Jobs, by uid, that two controllers led at once.
    pub two_leaders: BTreeSet<String>,
    /// Feature gates that were off for a while.
    pub gates: Vec<Gate>,
    /// A user wrote a status.
    pub is_corrupted: bool,
    /// A clock was set back or forth.
    pub clock_jumped: bool,
}

/// How much has happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// Choices that were taken.
    pub steps: u64,
    /// Requests that were sent.
    pub ops: u64,
    /// Pods that were created by controllers.
    pub pods: u64,
    /// Statuses that were written.
    pub statuses: u64,
}

/// The world.
#[derive(Clone, Debug)]
pub struct World {
    /// Its setting.
    pub scenario: Arc<Scenario>,
    /// The API server.
    pub api: Api,
    /// All that ever was.
    pub history: History,
    /// The controllers.
    pub controllers: Vec<Controller>,
    /// Requests that nobody waits for.
    pub late: Vec<Flight>,
    /// Refusals that last.
    pub storms: BTreeSet<Storm>,
    /// The versions at which a controller started, and knew nothing but what it listed.
    pub starts: Vec<u64>,
    /// The time.
    pub now: Timestamp,
    /// What excuses what.
    pub loosened: Loosened,
    /// How much has happened.
    pub stats: Stats,
    /// How many Jobs have been created.
    pub jobs_made: u32,
    /// Invariants that are not looked at.
    pub ignored: BTreeSet<Invariant>,
    /// What happened, one line each, if anyone wants to read it.
    pub trace: Option<Vec<String>>,
}

impl World {
    /// A world in which the Job was just created, and its controllers have just started.
    pub fn new(scenario: Arc<Scenario>) -> Self {
        Self::with_versions_from(scenario, 0)
    }

    /// The same, with versions above `base`.
    pub fn with_versions_from(scenario: Arc<Scenario>, base: u64) -> Self {
        let own =
            if scenario.spec["managedBy"].is_null() { Manager::BuiltIn } else { Manager::Custom };
        let mut controllers: Vec<Controller> =
            (0..scenario.leaders).map(|id| Controller::new(id, own)).collect();
        if scenario.has_bystander {
            let other = match own {
                Manager::BuiltIn => Manager::Custom,
                Manager::Custom => Manager::BuiltIn,
            };
            controllers.push(Controller::new(controllers.len(), other));
        }
        let mut world = Self {
            scenario,
            api: Api::starting_at(base),
            history: History::default(),
            controllers,
            late: Vec::new(),
            storms: BTreeSet::new(),
            starts: Vec::new(),
            now: Timestamp::from_second(1_000_000).expect("a time"),
            loosened: Loosened::default(),
            stats: Stats::default(),
            jobs_made: 0,
            ignored: BTreeSet::new(),
            trace: None,
        };
        world.create_job();
        world.history.absorb(&world.api, Actor::User);
        for id in world.first_leaders() {
            let version = world.api.version();
            world.controllers[id].start(&world.api, version, version);
        }
        world
    }

    /// One controller of each kind.
    pub fn first_leaders(&self) -> Vec<ControllerId> {
        let mut seen = BTreeSet::new();
        let is_first = |controller: &&Controller| seen.insert(controller.manager);
        self.controllers.iter().filter(is_first).map(|controller| controller.id).collect()
    }

    /// The time as the API writes it.
    pub fn now_in_seconds(&self) -> Timestamp {
        Timestamp::from_second(self.now.as_second()).expect("a time that is there")
    }

    /// Makes a choice happen; false if it cannot happen now.
    pub fn take(&mut self, choice: &Choice) -> Result<bool, Broken> {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{} {choice}", clock_text(self.now)));
        }
        let is_taken = self.act(choice)?;
        if is_taken {
            self.stats.steps += 1;
        } else if let Some(trace) = &mut self.trace {
            trace.pop();
        }
        Ok(is_taken)
    }

    fn act(&mut self, choice: &Choice) -> Result<bool, Broken> {
        match choice {
            Choice::DeliverJob(c) => self.deliver_job(*c),
            Choice::DeliverPods(c, count) => self.deliver_pods(*c, *count),
            Choice::RepeatPod(c) => self.repeat_pod(*c),
            Choice::Relist(c, jobs, pods) => self.relist(*c, *jobs, *pods),
            Choice::Crash(c, jobs, pods) => self.crash(*c, *jobs, *pods),
            Choice::SetGate(c, gate, is_on) => self.set_gate(*c, *gate, *is_on),
            Choice::Lead(c, is_leading) => self.lead(*c, *is_leading),
            Choice::ClockJump(c, seconds) => self.jump_clock(*c, *seconds),
            Choice::Do(c, key) => self.do_request(*c, key),
            Choice::Apply(c, key) => self.apply_request(*c, key),
            Choice::Answer(c, key) => self.answer_request(*c, key),
            Choice::Refuse(c, key, weather) => self.refuse_request(*c, key, *weather),
            Choice::LoseAnswer(c, key) => self.lose_answer(*c, key),
            Choice::TimeOut(c, key) => self.time_out(*c, key),
            Choice::Recall(c, key) => self.recall(*c, key),
            Choice::ApplyLate(key) => match self.take_late(key) {
                Some(flight) => self.carry_out(&flight, Actor::Late).map(|_| true),
                None => Ok(false),
            },
            Choice::DropLate(key) => Ok(self.take_late(key).is_some()),
            Choice::Pod(name, act) => Ok(self.change(Actor::Node, |it| it.act_on_pod(name, *act))),
            Choice::CollectPod(name) => {
                Ok(self.change(Actor::Collector, |it| it.collect_pod(name)))
            }
            Choice::CollectJob => Ok(self.change(Actor::Collector, World::collect_job)),
            Choice::User(act) => Ok(self.change(Actor::User, |it| it.act_as_user(act))),
            Choice::Storm(storm, true) => Ok(self.storms.insert(*storm)),
            Choice::Storm(storm, false) => Ok(self.storms.remove(storm)),
            Choice::Wait(millis) => self.wait(*millis).map(|()| true),
        }
    }

    fn change(&mut self, actor: Actor, change: impl FnOnce(&mut Self) -> bool) -> bool {
        let is_taken = change(self);
        self.history.absorb(&self.api, actor);
        is_taken
    }

    fn take_late(&mut self, key: &OpKey) -> Option<Flight> {
        let place = self.late.iter().position(|flight| flight.key == *key)?;
        Some(self.late.remove(place))
    }

    fn wait(&mut self, millis: u32) -> Result<(), Broken> {
        let passed = SignedDuration::from_millis(i64::from(millis));
        self.now = self.now.checked_add(passed).expect("a run is shorter than the calendar");
        for c in 0..self.controllers.len() {
            let controller = &self.controllers[c];
            let clock = controller.clock(self.now);
            if controller.is_leading && controller.wake_at().is_some_and(|at| at <= clock) {
                self.ask_all(c)?;
            }
        }
        Ok(())
    }

    /// Asks every ledger of a controller.
    pub(crate) fn ask_all(&mut self, c: ControllerId) -> Result<(), Broken> {
        let uids: Vec<String> = self.controllers[c].ledgers.keys().cloned().collect();
        uids.iter().try_for_each(|uid| self.ask(c, uid))
    }

    pub(crate) fn ask(&mut self, c: ControllerId, uid: &str) -> Result<(), Broken> {
        let ops = self.controllers[c].ask(uid, self.now);
        invariant::pace::after_asking(self, c, uid)?;
        for op in ops {
            let Some(key) = OpKey::of(uid, &op.kind) else {
                continue;
            };
            let controller = &self.controllers[c];
            let flight = Flight {
                sender: c,
                manager: controller.manager,
                job_uid: uid.to_owned(),
                id: op.id,
                key,
                kind: op.kind,
                sent_at: self.api.version(),
                jobs_seen: controller.jobs_cursor,
                pods_seen: controller.pods_cursor,
                sent_time: controller.clock(self.now),
                outcome: None,
            };
            self.say_op(&flight);
            invariant::pace::before_sending(self, c, &flight)?;
            invariant::pods::before_sending(self, c, &flight)?;
            self.stats.ops += 1;
            self.controllers[c].flights.push(flight);
        }
        Ok(())
    }

    fn say_op(&mut self, flight: &Flight) {
        if let Some(trace) = &mut self.trace {
            let what = match &flight.kind {
                OpKind::WriteStatus { version, status } => {
                    format!("WriteStatus at {version}: {}", request::brief(status))
                }
                other => format!("{other:?}"),
            };
            trace.push(format!("         → c{} {what}", flight.sender));
        }
    }

    /// What is left of a check when the invariants that nobody looks at are left out.
    pub(crate) fn check(&self, checked: Result<(), Broken>) -> Result<(), Broken> {
        match checked {
            Err(broken) if !self.ignored.contains(&broken.invariant) => Err(broken),
            _ => Ok(()),
        }
    }
}

fn clock_text(now: Timestamp) -> String {
    format!("{:8.1}", (now.as_millisecond() - 1_000_000_000) as f64 / 1000.0)
}
