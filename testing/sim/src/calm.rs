//! The calm after the chaos: everything is delivered, done and answered in turn, Pods end,
//! and time passes when nothing else does, until the world is at rest.
//!
//! Faults and users have stopped, so the Job must reach its end, and keep it.

use stint_api::closed_set::JobConditionType;
use stint_api::condition;
use stint_api::feature_gates::Gate;
use stint_ledger::pod_facts::PodPhase;

use crate::api::Change;
use crate::choice::{Choice, PodAct, Storm, UserAct};
use crate::invariant::{Broken, Invariant, holds, rest};
use crate::node;
use crate::random::Random;
use crate::world::World;

/// Passes after which a world that is not at rest never will be: a Job of these worlds takes
/// some tens, and a backoff of ten minutes takes one.
const MAX_PASSES: u32 = 3_000;
/// Passes after which Pods succeed whatever their fate was to be, so that a Job that ignores
/// its failures ends too.
const MAX_FAILING_PASSES: u32 = 300;

/// Lets everything come to rest, and checks that it is as it should be, and stays.
pub fn settle(world: &mut World) -> Result<(), Broken> {
    end_chaos(world)?;
    come_to_rest(world)?;
    rest::check(world)?;
    // Whoever looks again finds nothing to do.
    let version = world.api.version();
    for c in world.first_leaders() {
        world.take(&Choice::Relist(c, 0, 0))?;
        come_to_rest(world)?;
        world.take(&Choice::Crash(c, 0, 0))?;
        come_to_rest(world)?;
    }
    world.take(&Choice::Wait(3_600_000))?;
    come_to_rest(world)?;
    let later = world.api.since(version);
    let is_kept = !later.iter().any(|change| matches!(change, Change::Job(_)));
    world.check(holds(is_kept, Invariant::EndStays, || {
        let job = world.api.now.job.as_ref();
        job.map_or_else(String::new, |job| crate::request::short(job))
    }))?;
    rest::check(world)
}

/// No refusals, one leader of each kind, all gates on, and a Job that is allowed to go on.
fn end_chaos(world: &mut World) -> Result<(), Broken> {
    for storm in Storm::ALL {
        world.take(&Choice::Storm(storm, false))?;
    }
    let leaders = world.first_leaders();
    for c in 0..world.controllers.len() {
        world.take(&Choice::Lead(c, leaders.contains(&c)))?;
        for gate in Gate::ALL {
            world.take(&Choice::SetGate(c, gate, true))?;
        }
    }
    if rest::is_over(world) {
        return Ok(());
    }
    let spec = world.api.now.job.as_ref().and_then(|job| job.job.spec.clone()).unwrap_or_default();
    if spec.suspend == Some(true) {
        // Nobody but the Job ends its Pods.
        come_to_rest(world)?;
        rest::check_suspended(world)?;
        world.take(&Choice::User(UserAct::Resume))?;
    }
    if spec.parallelism == Some(0) {
        world.take(&Choice::User(UserAct::Parallelism(2)))?;
    }
    Ok(())
}

fn come_to_rest(world: &mut World) -> Result<(), Broken> {
    for pass in 0..MAX_PASSES {
        if step(world, pass)? {
            continue;
        }
        let millis = millis_to_wake(world);
        match millis {
            Some(millis) => {
                world.take(&Choice::Wait(millis))?;
            }
            None => return Ok(()),
        }
    }
    world.check(holds(false, Invariant::Ends, || {
        format!("no rest after {MAX_PASSES} passes of calm")
    }))
}

/// How long until a controller wants to be woken.
pub fn millis_to_wake(world: &World) -> Option<u32> {
    let leading = world.controllers.iter().filter(|controller| controller.is_leading);
    let waits = leading.filter_map(|controller| {
        let clock = controller.clock(world.now);
        let wait = controller.wake_at()?.duration_since(clock).as_millis().max(1);
        Some(u32::try_from(wait).unwrap_or(u32::MAX))
    });
    waits.min()
}

/// Everything that can be done now, once; whether there was anything.
fn step(world: &mut World, pass: u32) -> Result<bool, Broken> {
    let mut has_moved = false;
    for c in 0..world.controllers.len() {
        while world.take(&Choice::DeliverJob(c))? {
            has_moved = true;
        }
        has_moved |= world.take(&Choice::DeliverPods(c, u32::MAX))?;
        let keys: Vec<_> = world.controllers[c]
            .flights
            .iter()
            .map(|flight| (flight.key.clone(), flight.outcome.is_some()))
            .collect();
        for (key, is_done) in keys {
            let choice = if is_done { Choice::Answer(c, key) } else { Choice::Do(c, key) };
            has_moved |= world.take(&choice)?;
        }
    }
    while let Some(flight) = world.late.first() {
        let choice = Choice::ApplyLate(flight.key.clone());
        has_moved |= world.take(&choice)?;
    }
    let names: Vec<String> = world.api.now.pods.keys().cloned().collect();
    for name in names {
        has_moved |= world.take(&Choice::CollectPod(name.clone()))?;
        if let Some(act) = next_act(world, &name, pass) {
            has_moved |= world.take(&Choice::Pod(name, act))?;
        }
    }
    has_moved |= world.take(&Choice::CollectJob)?;
    Ok(has_moved)
}

/// What becomes of a Pod in calm times: its end depends on its uid alone. Once the end of its
/// Job is written, or while that is suspended, it runs until somebody deletes it.
fn next_act(world: &World, name: &str, pass: u32) -> Option<PodAct> {
    let pod = world.api.pod(name)?;
    let facts = &pod.facts;
    if !facts.is_deleted && pod.owner_uid().is_some_and(|uid| wants_no_pods(world, uid)) {
        return None;
    }
    let fates = world.scenario.fates;
    let uid: u64 = facts.uid.bytes().fold(0, |sum, byte| sum * 31 + u64::from(byte));
    let random = &mut Random::new(uid);
    let in_place = world.restarts_in_place();
    let fails = random.chance(u64::from(fates.failure)) && pass < MAX_FAILING_PASSES && !in_place;
    let act = match facts.phase {
        PodPhase::Succeeded | PodPhase::Failed => return None,
        PodPhase::Pending | PodPhase::Running if facts.is_deleted && !facts.is_scheduled => {
            PodAct::MarkFailed
        }
        PodPhase::Pending | PodPhase::Running if facts.is_deleted => PodAct::Terminate(false),
        PodPhase::Pending if !facts.is_scheduled => PodAct::Schedule,
        PodPhase::Pending => PodAct::Start,
        PodPhase::Running if fails => {
            PodAct::Fail(1 + random.below(u64::from(fates.exit_codes.max(1))) as u8)
        }
        PodPhase::Running => PodAct::Succeed,
    };
    node::can(facts, act, in_place).then_some(act)
}

fn wants_no_pods(world: &World, job_uid: &str) -> bool {
    let Some(job) = world.api.job(job_uid).filter(|job| job.view.is_ok()) else {
        return false;
    };
    let conditions = condition::of(job.job.status.as_ref());
    job.job.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true))
        || condition::is_true(conditions, JobConditionType::SuccessCriteriaMet)
        || condition::is_true(conditions, JobConditionType::FailureTarget)
}
