//! Checks when one of two leaders has created a Pod.
//!
//! Each of them knows the Pods as of some moment, and the Job as of another. What they make
//! together must still be no more than what one of them would make.

use stint_ledger::op::NewPod;
use stint_ledger::pod_facts::{PodFacts, PodPhase};

use super::{Checked, Invariant, holds};
use crate::api::StoredJob;
use crate::controller::Flight;
use crate::history::{Actor, JobLife, PodLife};
use crate::world::World;

/// A Pod that was just created is wanted by what its sender was told of the Pods, however old
/// what it was told of the Job.
pub fn after_create(world: &World, flight: &Flight, new: &NewPod, job: &JobLife) -> Checked {
    let pods: Vec<&PodLife> = world.history.pods_of(&flight.job_uid).collect();
    let is_excused = |life: &&PodLife| {
        life.is_gone || life.made_by == Actor::Late || life.has_changed_its_mind()
    };
    // A Pod of a user that had one of the Job's names, and has gone.
    let is_squatter = |life: &std::sync::Arc<PodLife>| life.is_tampered && life.is_gone;
    let is_free = world.history.pods.values().any(is_squatter);
    if pods.iter().any(is_excused) || is_free || job.was_written_late || job.is_corrupted {
        return Ok(());
    }
    let has_succeeded = |life: &&&PodLife| succeeded_by(life, flight.pods_seen);
    let successes: Vec<&&PodLife> = pods.iter().filter(has_succeeded).collect();
    let is_active = |life: &&&PodLife| life.last().facts.is_active();
    let active: Vec<&str> =
        pods.iter().filter(is_active).map(|life| &*life.last().facts.name).collect();
    let succeeded = u32::try_from(successes.len()).unwrap_or(u32::MAX);
    if let Some(index) = new.index {
        let of_index = |life: &&PodLife| life.last().facts.index == Some(index);
        // What succeeded beyond the end of a Job that was scaled down counts for nothing.
        let is_kept = job.least_completions.is_none_or(|least| index < least);
        let is_done = is_kept && successes.iter().any(|life| of_index(life));
        let live = pods.iter().filter(|life| of_index(life)).filter(is_active).count();
        return holds(!is_done && live <= 1, Invariant::LeadersAgree, || {
            format!("index {index}: {live} are active with {}, done: {is_done}", new.name)
        });
    }
    let wanted = most_wanted(job, succeeded, active.len());
    holds(active.len() <= wanted, Invariant::LeadersAgree, || {
        let count = active.len();
        format!("{count} are active, {wanted} wanted, with {}: {}", new.name, active.join(" "))
    })
}

/// Whether a Pod has succeeded, by what there was to know at a version.
fn succeeded_by(life: &PodLife, version: u64) -> bool {
    let is_success = |facts: &PodFacts| facts.phase == PodPhase::Succeeded;
    let success = life.first(is_success).map(|pod| &pod.facts);
    // One that was being deleted may have been taken for a failure before.
    success.is_some_and(|it| it.version <= version && it.is_tracked && !it.is_deleted)
}

/// The most Pods without an index that the Job has ever wanted, if so many have succeeded: what
/// is on its way when a user lowers the parallelism still arrives.
fn most_wanted(job: &JobLife, succeeded: u32, active: usize) -> usize {
    let wanted = |it: &std::sync::Arc<StoredJob>| {
        let spec = it.job.spec.as_ref().expect("a Job has a spec");
        let number = |count: Option<i32>| count.and_then(|count| u32::try_from(count).ok());
        if spec.suspend == Some(true) {
            return 0;
        }
        let parallelism = number(spec.parallelism).unwrap_or(1);
        match number(spec.completions) {
            Some(completions) => parallelism.min(completions.saturating_sub(succeeded)) as usize,
            None if succeeded == 0 => parallelism as usize,
            // A work queue makes no Pod after the first success.
            None => active - 1,
        }
    };
    job.entries.iter().map(wanted).max().unwrap_or(0)
}
