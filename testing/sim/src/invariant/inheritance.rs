//! What the new Pod of an index inherits: the failures of its index up to then.
//!
//! With backoffLimitPerIndex the count of an index goes from Pod to Pod (job-semantics 5.6):
//! nothing else knows it. So it is compared with the Pod before, as it was when the new one
//! was asked for.

use stint_api::feature_gates::Gate;
use stint_ledger::op::NewPod;
use stint_ledger::pod_facts::{PodFacts, PodPhase};

use super::{Checked, Invariant, holds};
use crate::controller::Flight;
use crate::history::{Actor, JobLife, PodLife};
use crate::reference::{self, Verdict};
use crate::world::World;

/// Failures that count, and failures that were ignored.
type Counts = (u32, u32);

/// A Pod that was just created has one failure more than the one whose failure it follows.
pub fn after_create(world: &World, flight: &Flight, new: &NewPod, job: &JobLife) -> Checked {
    let spec = job.last().job.spec.as_ref().expect("a Job has a spec");
    let Some(index) = new.index.filter(|_| spec.backoff_limit_per_index.is_some()) else {
        return Ok(());
    };
    let pods = world.history.pods_of(&flight.job_uid);
    let is_earlier = |pod: &&PodLife| {
        pod.entries[0].facts.index == Some(index) && pod.made_at() <= flight.sent_at
    };
    let earlier: Vec<&PodLife> = pods.filter(is_earlier).collect();
    // A gate that was off has let failures go that nobody followed; so has an elastic Job
    // that gave the index up for a while. A Job that is being deleted may lose its Pods.
    let is_odd = |pod: &&PodLife| {
        pod.is_tampered || pod.made_by == Actor::Late || pod.has_changed_its_mind()
    };
    let is_loose = world.loosened.two_leaders.contains(&flight.job_uid)
        || job.deleted_at.is_some()
        || world.loosened.gates.contains(&Gate::JobBackoffLimitPerIndex)
        || job.least_completions.is_none_or(|least| index >= least)
        || earlier.iter().any(is_odd);
    if is_loose {
        return Ok(());
    }
    // A Pod of the same name may be this very attempt, which was asked for twice.
    let of_others: Vec<&PodLife> =
        earlier.iter().copied().filter(|pod| pod.last().facts.name != new.name).collect();
    let passed_on = |pod: &PodLife| counts_after(world, pod, job, flight.sent_at);
    let mut allowed = counts_to_inherit(&earlier, &passed_on);
    allowed.extend(counts_to_inherit(&of_others, &passed_on));
    let counts = (new.failure_count.unwrap_or(0), new.ignored_failure_count);
    holds(allowed.contains(&counts), Invariant::InheritsFailures, || {
        format!("{} is created with {counts:?} failures; right would be {allowed:?}", new.name)
    })
}

/// What the Pod that follows these may inherit. An earlier one whose failure is not counted
/// yet may stand higher than the last one: after a Pod that was removed, and did not fail,
/// counting begins anew.
fn counts_to_inherit(
    earlier: &[&PodLife],
    passed_on: &dyn Fn(&PodLife) -> Option<Counts>,
) -> Vec<Counts> {
    let own = |pod: &PodLife| {
        let facts = &pod.last().facts;
        facts.failure_count + facts.ignored_failure_count
    };
    let last = earlier.iter().max_by_key(|pod| pod.made_at());
    let last_failed = last.filter(|pod| passed_on(pod).is_some());
    let least = last_failed.map_or(0, |pod| own(pod));
    let higher = earlier.iter().filter(|pod| own(pod) >= least);
    let mut counts: Vec<Counts> = higher.filter_map(|pod| passed_on(pod)).collect();
    if last_failed.is_none() {
        counts.push((0, 0));
    }
    counts
}

/// What the next Pod inherits from one that had failed at a version; nothing from one that
/// had not.
fn counts_after(world: &World, pod: &PodLife, job: &JobLife, version: u64) -> Option<Counts> {
    let gives_up = !super::pods::replaces_failed_only(job.last())
        || world.loosened.gates.contains(&Gate::JobPodReplacementPolicy);
    let has_failed = |facts: &PodFacts| match facts.phase {
        PodPhase::Failed => true,
        PodPhase::Pending | PodPhase::Running => facts.is_deleted && gives_up,
        PodPhase::Succeeded => false,
    };
    let mut tracked = pod.entries.iter().map(|it| &it.facts).filter(|facts| facts.is_tracked);
    let facts = tracked.rfind(|it| it.version <= version && has_failed(it))?;
    let (failures, ignored) = (facts.failure_count, facts.ignored_failure_count);
    Some(match reference::judge(job.last(), facts, true) {
        Verdict::Ignore => (failures, ignored + 1),
        Verdict::Count | Verdict::FailIndex | Verdict::FailJob(_) => (failures + 1, ignored),
    })
}
