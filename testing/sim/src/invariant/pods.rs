//! Checks when a request about Pods is sent or carried out.

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use stint_api::closed_set::JobConditionType;
use stint_api::condition;
use stint_api::feature_gates::Gate;
use stint_api::index_set::IndexSet;
use stint_ledger::op::{NewPod, OpKind};
use stint_ledger::pod_facts::{PodFacts, PodPhase};

use super::{Checked, Invariant, holds};
use crate::api::{Manager, StoredJob, StoredPod};
use crate::choice::ControllerId;
use crate::controller::Flight;
use crate::history::{Actor, JobLife, PodLife, uncounted};
use crate::reference::{self, Verdict};
use crate::world::World;

/// Whatever is sent is for a Job of the sender's, that it can read; a Pod is asked for only
/// by a Job that goes on, and not before its backoff is over.
pub fn before_sending(world: &World, c: ControllerId, flight: &Flight) -> Checked {
    let Some(life) = world.history.jobs.get(&flight.job_uid) else {
        return Ok(());
    };
    let controller = &world.controllers[c];
    // What nobody knows anything of can be looked for, and a finalizer of one's own is one's
    // own whoever's the Job is.
    let is_own = Manager::of(&life.last().job) == controller.manager;
    let is_harmless = matches!(flight.kind, OpKind::LookUpJob | OpKind::LookUpPods);
    world.check(holds(is_own || is_harmless, Invariant::HandsOff, || {
        format!("c{c} sends {} for a Job that is not its own", flight.key)
    }))?;
    let is_left_alone = life.last().view.is_ok() || is_harmless;
    world.check(holds(is_left_alone, Invariant::UnreadableLeftAlone, || {
        format!("{}", flight.key)
    }))?;
    if let OpKind::CreatePod(new) = &flight.kind {
        let says_so = |other: &Flight| other.job_uid == flight.job_uid && writes_end(other);
        let knows = controller.told_of_end.contains(&flight.job_uid)
            || controller.end_in_doubt.contains(&flight.job_uid)
            || controller.flights.iter().any(says_so);
        world.check(holds(!knows, Invariant::NoPodAfterTheEnd, || {
            format!("{} is asked for after the end stood written", new.name)
        }))?;
        let is_loose = world.loosened.clock_jumped
            || world.loosened.two_leaders.contains(&flight.job_uid)
            || world.history.is_meddled_with(&flight.job_uid, None);
        if !is_loose {
            world.check(respects_backoff(world, flight, new, life))?;
        }
    }
    Ok(())
}

/// Whether a request writes the end of its Job.
pub fn writes_end(flight: &Flight) -> bool {
    let OpKind::WriteStatus { status, .. } = &flight.kind else {
        return false;
    };
    let conditions = status.conditions.as_deref().unwrap_or_default();
    condition::is_true(conditions, JobConditionType::SuccessCriteriaMet)
        || condition::is_true(conditions, JobConditionType::FailureTarget)
}

/// Kubernetes' delays: 10 s doubling to 10 min.
fn delay_after(failures: u32) -> SignedDuration {
    let doublings = failures.saturating_sub(1).min(6);
    SignedDuration::from_secs((10_i64 << doublings).min(600))
}

fn ready_at(failed_at: Timestamp, failures: u32) -> Timestamp {
    failed_at.checked_add(delay_after(failures)).expect("a run is shorter than the calendar")
}

fn respects_backoff(world: &World, flight: &Flight, new: &NewPod, job: &JobLife) -> Checked {
    let spec = job.last().job.spec.as_ref().expect("a Job has a spec");
    let gates = &world.controllers[flight.sender].gates;
    let is_per_index =
        spec.backoff_limit_per_index.is_some() && gates.enabled(Gate::JobBackoffLimitPerIndex);
    let mut failures: Vec<&PodFacts> = Vec::new();
    for life in world.history.pods_of(&flight.job_uid) {
        if let Some(failure) = told_failure(world, flight, life, job) {
            failures.push(failure);
        }
    }
    let due = if is_per_index {
        let mine = failures.iter().filter(|pod| pod.index == new.index);
        mine.map(|pod| ready_at(pod.finished_at, pod.failure_count + pod.ignored_failure_count + 1))
            .max()
    } else {
        // Whoever turned out to have failed had succeeded in the meantime.
        let success = |life: &PodLife| {
            life.entries.iter().rev().find(|it| it.facts.phase == PodPhase::Succeeded).cloned()
        };
        let pods = world.history.pods_of(&flight.job_uid);
        let last_success = pods.filter_map(success).map(|pod| pod.facts.finished_at).max();
        failures.retain(|pod| Some(pod.finished_at) > last_success);
        let last = failures.iter().map(|pod| pod.finished_at).max();
        last.map(|last| ready_at(last, failures.len() as u32))
    };
    holds(due.is_none_or(|due| flight.sent_time >= due), Invariant::BackoffRespected, || {
        format!("{} is asked for at {}, due at {due:?}", new.name, flight.sent_time)
    })
}

/// A failure that the sender must know to count: told since it began, of a Pod that it
/// tracked, that nobody tampered with, and that nobody else has written down. What a ledger of the past knew is not in the API.
fn told_failure<'a>(
    world: &World,
    flight: &Flight,
    life: &'a PodLife,
    job: &JobLife,
) -> Option<&'a PodFacts> {
    let (listed_at, started_at) = world.controllers[flight.sender].began_at;
    let is_failed = |facts: &PodFacts| facts.phase == PodPhase::Failed;
    let failed = life.first(is_failed)?;
    let told = life.at(flight.pods_seen)?;
    let began_before = life.at(listed_at).is_some_and(|pod| is_failed(&pod.facts));
    let counts = reference::judge(job.last(), &failed.facts, true) != Verdict::Ignore;
    let mine = Some(flight.job_uid.as_str());
    let is_plain = !life.is_tampered
        && life.relapsed().is_none()
        && life.last().facts.phase == PodPhase::Failed
        && failed.facts.is_tracked
        && failed.owner_uid() == mine
        && told.owner_uid() == mine
        && !failed.facts.is_deleted;
    // A failure that somebody else has written down may be no news when it is told.
    let is_news = job.listed.get(&failed.facts.uid).is_none_or(|&(version, actor)| {
        actor == Actor::Controller(flight.sender) && version > started_at
    });
    let is_valid = job
        .least_completions
        .is_none_or(|least| failed.facts.index.is_none_or(|index| index < least));
    (is_failed(&told.facts) && !began_before && counts && is_plain && is_news && is_valid)
        .then_some(&failed.facts)
}

/// A Pod that was just created by a request is wanted, and alone with its index.
pub fn after_create(world: &World, flight: &Flight, new: &NewPod, actor: Actor) -> Checked {
    let Some(life) = world.history.jobs.get(&flight.job_uid) else {
        return Ok(());
    };
    world.check(super::inheritance::after_create(world, flight, new, life))?;
    let has_two_leaders = world.loosened.two_leaders.contains(&flight.job_uid);
    let mine = |pod: &&std::sync::Arc<StoredPod>| pod.owner_uid() == Some(&flight.job_uid);
    let pods: Vec<&PodFacts> =
        world.api.now.pods.values().filter(mine).map(|pod| &pod.facts).collect();
    // A request of the past was wanted when it was sent; no ledger of today knows of it
    // before it is there.
    let is_late = |pod: &PodFacts| world.history.pods[&pod.uid].made_by == Actor::Late;
    if let Some(index) = new.index {
        let replaces_failed = replaces_failed_only(life.last());
        let is_gated = !world.loosened.gates.contains(&Gate::JobPodReplacementPolicy);
        let is_live = |pod: &&&PodFacts| {
            pod.index == Some(index)
                && !pod.is_finished()
                && (pod.is_active() || (replaces_failed && is_gated))
        };
        let live: Vec<&str> =
            pods.iter().filter(is_live).filter(|pod| !is_late(pod)).map(|pod| &*pod.name).collect();
        let is_alone = live.len() <= 1
            || has_two_leaders
            || world.history.is_meddled_with(&flight.job_uid, Some(index));
        world.check(holds(is_alone, Invariant::OneLivePodPerIndex, || {
            format!("index {index} has {}", live.join(" and "))
        }))?;
    }
    let is_meddled_with = world.history.is_meddled_with(&flight.job_uid, None);
    if actor == Actor::Late || is_meddled_with {
        return Ok(());
    }
    if has_two_leaders {
        return world.check(super::leaders::after_create(world, flight, new, life));
    }
    let active = pods.iter().filter(|pod| pod.is_active() && !is_late(pod)).count();
    let wanted = most_wanted(life, flight.jobs_seen);
    world.check(holds(active <= wanted, Invariant::NotMoreThanWanted, || {
        format!("{active} are active, {wanted} wanted, with {}", new.name)
    }))
}

/// The most Pods that the Job has wanted since a version.
fn most_wanted(life: &JobLife, since: u64) -> usize {
    let first = life.entries.partition_point(|job| job.version <= since).saturating_sub(1);
    let wanted = |job: &std::sync::Arc<StoredJob>| {
        let spec = job.job.spec.as_ref().expect("a Job has a spec");
        let status = job.job.status.clone().unwrap_or_default();
        let limit = u32::try_from(spec.completions.unwrap_or(0)).unwrap_or(0);
        let succeeded = match spec.completion_mode.as_deref() {
            Some("Indexed") => {
                let text = status.completed_indexes.unwrap_or_default();
                i32::try_from(IndexSet::parse_lenient(&text, limit).count()).unwrap_or(0)
            }
            _non_indexed => status.succeeded.unwrap_or(0),
        };
        let missing = spec.completions.map_or(i32::MAX, |completions| completions - succeeded);
        let is_suspended = spec.suspend == Some(true);
        let wanted = if is_suspended { 0 } else { spec.parallelism.unwrap_or(1).min(missing) };
        usize::try_from(wanted).unwrap_or(0)
    };
    life.entries[first..].iter().map(wanted).max().unwrap_or(0)
}

/// Whether a Pod that is being deleted keeps its place until it has ended.
pub fn replaces_failed_only(job: &StoredJob) -> bool {
    let spec = job.job.spec.as_ref().expect("a Job has a spec");
    spec.pod_failure_policy.is_some() || spec.pod_replacement_policy.as_deref() == Some("Failed")
}

/// A finalizer goes only once the status accounts for its Pod, or the Pod never counts.
pub fn before_untracking(world: &World, flight: &Flight, pod: &StoredPod) -> Checked {
    let Some(job) = pod.owner_uid().and_then(|uid| world.api.job(uid)) else {
        return Ok(());
    };
    let life = &world.history.jobs[&job.uid];
    let pod_life = &world.history.pods[&pod.facts.uid];
    if job.deletion.is_some() || life.finished_at.is_some() {
        return Ok(());
    }
    // Asked for when the Pod was another Job's; a user gave it to this one.
    if flight.job_uid != job.uid && pod_life.is_tampered {
        return Ok(());
    }
    let facts = &pod.facts;
    let is_listed = uncounted(job.job.status.as_ref()).iter().any(|(uid, _)| *uid == facts.uid);
    if is_listed || life.counted.contains_key(&facts.uid) || never_counts(life, pod_life) {
        return Ok(());
    }
    let status = job.job.status.clone().unwrap_or_default();
    let set = |text: &Option<String>| {
        IndexSet::parse_lenient(text.as_deref().unwrap_or(""), i32::MAX as u32)
    };
    let has = |set: IndexSet| facts.index.is_some_and(|index| set.contains(index));
    let conditions = condition::of(job.job.status.as_ref());
    let completes = condition::is_true(conditions, JobConditionType::SuccessCriteriaMet);
    let fails = condition::is_true(conditions, JobConditionType::FailureTarget);
    // An index that is written down as failed stays so.
    let is_written = has(set(&status.completed_indexes)) || has(set(&status.failed_indexes));
    let is_fine = match facts.phase {
        PodPhase::Succeeded => is_written,
        // It had succeeded when that was written.
        PodPhase::Failed if pod_life.relapsed().is_some() && is_written => true,
        PodPhase::Failed => is_ignored(world, job, facts) || (completes && facts.is_deleted),
        PodPhase::Pending | PodPhase::Running if facts.is_deleted => {
            let by_others =
                !matches!(pod_life.deleted_by, Some(Actor::Controller(_) | Actor::Late));
            completes
                || is_ignored(world, job, facts)
                || !(fails || (by_others && !replaces_failed_only(job)))
        }
        // The Job removes it for reasons of its own, and it does not count.
        PodPhase::Pending | PodPhase::Running => true,
    };
    world.check(holds(is_fine, Invariant::FinalizerAccounted, || {
        format!("{facts:?}\n  status {}", crate::request::short(job))
    }))
}

/// Whether a failure is ignored by the policy; without FailIndex, if its gate was off.
fn is_ignored(world: &World, job: &StoredJob, facts: &PodFacts) -> bool {
    let was_off = world.loosened.gates.contains(&Gate::JobBackoffLimitPerIndex);
    reference::judge(job, facts, true) == Verdict::Ignore
        || (was_off && reference::judge(job, facts, false) == Verdict::Ignore)
}

/// Whether no end of a Pod can count: it has no index that the Job always had.
fn never_counts(job: &JobLife, pod: &PodLife) -> bool {
    let spec = job.last().job.spec.as_ref().expect("a Job has a spec");
    let is_indexed = spec.completion_mode.as_deref() == Some("Indexed");
    let least = job.least_completions.unwrap_or(0);
    is_indexed && pod.last().facts.index.is_none_or(|index| index >= least)
}
