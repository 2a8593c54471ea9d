//! What can happen next, and how likely it is in a random run.

use stint_api::feature_gates::Gate;
use stint_ledger::pod_facts::PodPhase;

use crate::api::Propagation;
use crate::choice::{Choice, OpKey, PodAct, UserAct, Verb, Weather};
use crate::controller::Controller;
use crate::node;
use crate::random::Random;
use crate::scenario::UserKind;
use crate::world::World;

/// Weighted choices.
pub type Menu = Vec<(u32, Choice)>;

impl World {
    /// What can happen next. `random` fills in numbers that are not worth listing one by one.
    pub fn enabled(&self, random: &mut Random) -> Menu {
        let mut menu = Vec::new();
        for controller in &self.controllers {
            self.add_controller(controller, random, &mut menu);
        }
        for flight in &self.late {
            menu.push((3, Choice::ApplyLate(flight.key.clone())));
            menu.push((2, Choice::DropLate(flight.key.clone())));
        }
        if let Some(storm) = self.scenario.faults.storm {
            menu.push((1, Choice::Storm(storm, !self.storms.contains(&storm))));
        }
        self.add_pods(random, &mut menu);
        self.add_users(random, &mut menu);
        let millis = [100, 1_000, 5_000, 20_000][random.below(4) as usize];
        menu.push((4, Choice::Wait(millis)));
        menu.retain(|(weight, _)| *weight > 0);
        menu
    }

    fn add_controller(&self, controller: &Controller, random: &mut Random, menu: &mut Menu) {
        let faults = self.scenario.faults;
        let c = controller.id;
        let of_its_kind =
            self.controllers.iter().filter(|other| other.manager == controller.manager).count();
        if of_its_kind > 1 {
            menu.push((faults.lead, Choice::Lead(c, !controller.is_leading)));
        }
        if !controller.is_leading {
            return;
        }
        if controller.has_job_news(&self.api) {
            menu.push((20, Choice::DeliverJob(c)));
        }
        if controller.pods_cursor < self.api.version() {
            let count = [1, 1, 3, 100][random.below(4) as usize];
            menu.push((20, Choice::DeliverPods(c, count)));
        }
        for flight in &controller.flights {
            self.add_request(c, &flight.key, flight.outcome.is_some(), random, menu);
        }
        let mut age = || if random.chance(50) { 0 } else { random.below(12) as u32 };
        let (jobs, pods) = (age(), age());
        menu.push((faults.crash, Choice::Crash(c, jobs, pods)));
        menu.push((faults.relist, Choice::Relist(c, jobs, pods)));
        menu.push((faults.repeat, Choice::RepeatPod(c)));
        if faults.clock > 0 {
            let seconds = random.below(120) as i32 - 60;
            menu.push((faults.clock, Choice::ClockJump(c, seconds)));
        }
        if faults.gate > 0 {
            let gate = Gate::ALL[random.below(4) as usize];
            menu.push((faults.gate, Choice::SetGate(c, gate, !controller.gates.enabled(gate))));
        }
    }

    fn add_request(
        &self,
        c: usize,
        key: &OpKey,
        is_done: bool,
        random: &mut Random,
        menu: &mut Menu,
    ) {
        let faults = self.scenario.faults;
        if is_done {
            menu.push((12, Choice::Answer(c, key.clone())));
            menu.push((faults.lost, Choice::LoseAnswer(c, key.clone())));
            return;
        }
        menu.push((12, Choice::Do(c, key.clone())));
        menu.push((faults.slow, Choice::Apply(c, key.clone())));
        menu.push((faults.lost, Choice::LoseAnswer(c, key.clone())));
        menu.push((faults.lost, Choice::TimeOut(c, key.clone())));
        if key.verb == Verb::Create {
            menu.push((3, Choice::Recall(c, key.clone())));
        }
        if faults.refused > 0 {
            let weather = Weather::ALL[random.below(5) as usize];
            // Who only looks is not told of conflicts and quotas.
            let looks = matches!(key.verb, Verb::LookUpJob | Verb::LookUpPod | Verb::LookUpPods);
            let weather = if looks { Weather::ServerTrouble } else { weather };
            menu.push((faults.refused, Choice::Refuse(c, key.clone(), weather)));
        }
    }

    fn add_pods(&self, random: &mut Random, menu: &mut Menu) {
        let (faults, fates) = (self.scenario.faults, self.scenario.fates);
        let in_place = self.restarts_in_place();
        for pod in self.api.now.pods.values() {
            let facts = &pod.facts;
            let mut add = |weight, act| {
                if node::can(facts, act, in_place) {
                    menu.push((weight, Choice::Pod(facts.name.clone(), act)));
                }
            };
            if facts.phase == PodPhase::Failed {
                add(faults.recant, PodAct::Recant);
            } else if facts.phase == PodPhase::Succeeded {
                add(faults.relapse, PodAct::Relapse);
            } else if facts.is_terminating() && self.is_stuck(&facts.uid) {
                // It ends in the calm.
            } else if facts.is_terminating() {
                add(3, PodAct::Terminate(false));
                add(1, PodAct::Terminate(true));
                add(3, PodAct::MarkFailed);
            } else if !facts.is_finished() {
                let failure = u32::from(fates.failure);
                let code = 1 + random.below(u64::from(fates.exit_codes)) as u8;
                add(8, PodAct::Schedule);
                add(8, PodAct::Start);
                add(2, PodAct::Ready);
                add(1, PodAct::Restart);
                add((100 - failure) / 12, PodAct::Succeed);
                add(failure.div_ceil(12), PodAct::Fail(code));
                add(faults.evict, PodAct::Evict);
            }
            if self.is_collectors(pod) {
                menu.push((8, Choice::CollectPod(facts.name.clone())));
            }
        }
        if self.api.now.job.as_ref().is_some_and(|job| job.deletion.is_some()) {
            menu.push((6, Choice::CollectJob));
        }
    }

    /// Whether a Pod does not end once it is deleted, as long as there are faults.
    fn is_stuck(&self, uid: &str) -> bool {
        let number: u64 = uid.bytes().fold(7, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
        Random::new(number).chance(u64::from(self.scenario.faults.stuck))
    }

    fn add_users(&self, random: &mut Random, menu: &mut Menu) {
        let mut pods = self.api.now.pods.keys();
        let some_pod = match self.api.now.pods.len() {
            0 => None,
            count => pods.nth(random.below(count as u64) as usize).cloned(),
        };
        for kind in &self.scenario.users {
            let mut add = |weight, act| menu.push((weight, Choice::User(act)));
            match (kind, &some_pod) {
                (UserKind::Suspend, _) => {
                    add(1, UserAct::Suspend);
                    add(2, UserAct::Resume);
                }
                (UserKind::Parallelism, _) => {
                    add(2, UserAct::Parallelism(random.below(5) as i32));
                }
                (UserKind::Scale, _) => add(2, UserAct::Scale(1 + random.below(5) as i32)),
                (UserKind::Limits, _) => {
                    add(1, UserAct::Deadline(20 + random.below(200) as i64));
                    add(1, UserAct::BackoffLimit(random.below(6) as i32));
                }
                (UserKind::MaxFailedIndexes, _) => {
                    let completions = self.scenario.spec["completions"].as_u64().unwrap_or(0);
                    add(2, UserAct::MaxFailedIndexes(random.below(completions + 1) as i32));
                }
                (UserKind::DeleteJob, _) if self.api.now.job.is_none() => {
                    add(10, UserAct::Recreate);
                }
                (UserKind::DeleteJob, _) => {
                    let ways =
                        [Propagation::Background, Propagation::Foreground, Propagation::Orphan];
                    add(1, UserAct::DeleteJob(ways[random.below(3) as usize]));
                }
                (UserKind::MakeOrphan, _) => add(1, UserAct::MakeOrphan),
                (UserKind::Squat, _) => {
                    add(1, UserAct::Squat(random.below(3) as u32, random.below(4) as u32));
                }
                (UserKind::Corrupt, _) => {
                    let is_indexed = self.scenario.spec["completionMode"] == "Indexed";
                    add(u32::from(is_indexed), UserAct::CorruptIndexes);
                    let has_list = !self.scenario.spec["backoffLimitPerIndex"].is_null();
                    add(u32::from(has_list), UserAct::CorruptFailedIndexes);
                    add(1, UserAct::ForgeUncounted);
                }
                (UserKind::DeletePod, Some(pod)) => add(3, UserAct::DeletePod(pod.clone())),
                (UserKind::StripFinalizer, Some(pod)) => {
                    add(1, UserAct::StripFinalizer(pod.clone()));
                }
                (UserKind::StripAnnotations, Some(pod)) => {
                    add(1, UserAct::StripIndex(pod.clone()));
                    add(1, UserAct::StripFailureCounts(pod.clone()));
                }
                (UserKind::Labels, Some(pod)) => {
                    add(1, UserAct::StripLabels(pod.clone()));
                    add(2, UserAct::PutLabels(pod.clone()));
                }
                (UserKind::StripOwner, Some(pod)) => {
                    add(1, UserAct::StripOwner(pod.clone()));
                    let has_own_finalizer = !self.scenario.spec["managedBy"].is_null();
                    add(2 * u32::from(has_own_finalizer), UserAct::GiveAway(pod.clone()));
                }
                (
                    UserKind::DeletePod
                    | UserKind::StripFinalizer
                    | UserKind::StripAnnotations
                    | UserKind::Labels
                    | UserKind::StripOwner,
                    None,
                ) => {}
            }
        }
    }
}
