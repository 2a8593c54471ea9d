//! Checks of a status that is about to be written.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::{JobSpec, JobStatus};
use stint_api::feature_gates::Gate;
use stint_api::index_set::IndexSet;
use stint_ledger::pod_facts::{PodFacts, PodPhase};

use super::{Checked, Invariant, holds};
use crate::api::StoredJob;
use crate::controller::Flight;
use crate::history::{Actor, JobLife, Tally, uncounted};
use crate::reference;
use crate::world::World;

/// Everything that can be said of one status after another.
pub fn before_write(
    world: &World,
    flight: &Flight,
    old: &StoredJob,
    status: &JobStatus,
    actor: Actor,
) -> Checked {
    let life = &world.history.jobs[&old.uid];
    let spec = old.job.spec.as_ref().expect("a Job has a spec");
    let no_status = JobStatus::default();
    let before = old.job.status.as_ref().unwrap_or(&no_status);
    world.check(check_uids(world, life, old, status))?;
    world.check(check_counters(life, spec, before, status))?;
    world.check(check_indexes(world, life, spec, before, status, flight))?;
    world.check(check_conditions(before, status))?;
    world.check(check_rest(world, flight, before, status, actor))?;
    if !life.is_corrupted {
        world.check(reference::check_end(world, flight, old, status))?;
    }
    Ok(())
}

/// Uids are listed after their Pod has ended, and leave without their finalizer, once.
fn check_uids(world: &World, life: &JobLife, old: &StoredJob, new: &JobStatus) -> Checked {
    let (before, after) = (uncounted(old.job.status.as_ref()), uncounted(Some(new)));
    let listed: BTreeSet<&str> = before.iter().map(|(uid, _)| *uid).collect();
    let kept: BTreeSet<&str> = after.iter().map(|(uid, _)| *uid).collect();
    for (uid, tally) in &after {
        let was_lost = world.history.pods.get(*uid).is_some_and(|pod| pod.was_untraceable());
        let is_new = !life.counted.contains_key(*uid) || was_lost;
        holds(is_new, Invariant::CountedOnce, || {
            format!("{uid} was counted before, and is listed again")
        })?;
        if listed.contains(uid) {
            let is_same = before.contains(&(*uid, *tally));
            holds(is_same, Invariant::CountedOnce, || format!("{uid} changes its list"))?;
            continue;
        }
        let Some(pod) = world.history.pods.get(*uid) else {
            let details = format!("no Pod ever had the uid {uid}");
            return holds(false, Invariant::ListedAfterItsEnd, || details);
        };
        let has_ended = |facts: &PodFacts| match tally {
            Tally::Succeeded => facts.phase == PodPhase::Succeeded,
            // Whether a deletion is a failure is for the reference to say.
            Tally::Failed => {
                facts.phase == PodPhase::Failed
                    || (facts.is_deleted && facts.phase != PodPhase::Succeeded)
            }
        };
        holds(pod.first(has_ended).is_some(), Invariant::ListedAfterItsEnd, || {
            format!("{uid} is listed as {tally:?}, and was never so")
        })?;
        holds(pod.was_of(&old.uid), Invariant::ListedAfterItsEnd, || {
            format!("{uid} is listed, and never was a Pod of {}", old.uid)
        })?;
    }
    for (uid, _) in before.iter().filter(|(uid, _)| !kept.contains(uid)) {
        let is_tracked = world.history.pods.get(*uid).is_some_and(|pod| {
            !pod.is_gone && pod.last().facts.is_tracked && !pod.was_untraceable()
        });
        holds(!is_tracked, Invariant::CountedWithoutFinalizer, || {
            format!("{uid} is counted while it bears the finalizer")
        })?;
    }
    Ok(())
}

/// A counter grows by what leaves its list.
fn check_counters(life: &JobLife, spec: &JobSpec, old: &JobStatus, new: &JobStatus) -> Checked {
    if life.is_corrupted {
        return Ok(());
    }
    let is_indexed = spec.completion_mode.as_deref() == Some("Indexed");
    let (before, after) = (uncounted(Some(old)), uncounted(Some(new)));
    let count = |status: &JobStatus, tally| {
        let count = match tally {
            Tally::Succeeded => status.succeeded,
            Tally::Failed => status.failed,
        };
        i64::from(count.unwrap_or(0))
    };
    for tally in [Tally::Succeeded, Tally::Failed] {
        if is_indexed && tally == Tally::Succeeded {
            continue;
        }
        let has_left = |(uid, list): &&(&str, Tally)| {
            *list == tally && !after.iter().any(|(kept, _)| kept == uid)
        };
        let left = before.iter().filter(has_left).count() as i64;
        let grown = count(new, tally) - count(old, tally);
        holds(grown == left, Invariant::CounterGrowsByItsList, || {
            format!("{left} leave the list, and {tally:?} grows by {grown}")
        })?;
    }
    Ok(())
}

/// The set of a list of indexes.
pub fn indexes(text: &Option<String>) -> IndexSet {
    IndexSet::parse_lenient(text.as_deref().unwrap_or(""), i32::MAX as u32)
}

fn check_indexes(
    world: &World,
    life: &JobLife,
    spec: &JobSpec,
    old: &JobStatus,
    new: &JobStatus,
    flight: &Flight,
) -> Checked {
    if spec.completion_mode.as_deref() != Some("Indexed") {
        return Ok(());
    }
    let completed = indexes(&new.completed_indexes);
    let succeeded = new.succeeded.unwrap_or(0);
    holds(completed.count() == succeeded as u64, Invariant::SucceededIsCompleted, || {
        format!("succeeded {succeeded}, completed {completed}")
    })?;
    let limit = u32::try_from(spec.completions.unwrap_or(0)).unwrap_or(0);
    let pairs = [
        (indexes(&old.completed_indexes), &completed),
        (indexes(&old.failed_indexes), &indexes(&new.failed_indexes)),
    ];
    // A controller whose gate is off handles failures as if no index could fail (KEP-3850).
    let forgets_failed = world.loosened.gates.contains(&Gate::JobBackoffLimitPerIndex);
    for (mut before, after) in pairs.into_iter().take(if forgets_failed { 1 } else { 2 }) {
        before.cut(limit);
        let lost = before.iter().find(|&index| !after.contains(index));
        holds(lost.is_none(), Invariant::NeverBack, || {
            format!("index {lost:?} of {before} is not in {after}")
        })?;
    }
    let failed_before = indexes(&old.failed_indexes);
    for index in indexes(&new.failed_indexes).iter().filter(|&index| !failed_before.contains(index))
    {
        check_failed_index(world, life, spec, index, flight)?;
    }
    Ok(())
}

/// An index fails by its last try, or by a rule that says so.
fn check_failed_index(
    world: &World,
    life: &JobLife,
    spec: &JobSpec,
    index: u32,
    flight: &Flight,
) -> Checked {
    let limit = u32::try_from(spec.backoff_limit_per_index.unwrap_or(0)).unwrap_or(0);
    let of_index = || {
        let pods = world.history.pods_of(&flight.job_uid);
        pods.filter(move |pod| pod.entries[0].facts.index == Some(index))
    };
    if life.is_corrupted || of_index().any(|pod| pod.is_tampered) {
        return Ok(());
    }
    let fails_index = of_index().any(|pod| {
        pod.entries.iter().any(|pod| {
            let verdict = reference::judge(life.last(), &pod.facts, true);
            let has_failed = pod.facts.phase == PodPhase::Failed
                || (pod.facts.is_deleted && !pod.facts.is_finished());
            has_failed
                && match verdict {
                    reference::Verdict::FailIndex => true,
                    reference::Verdict::Ignore => false,
                    reference::Verdict::Count | reference::Verdict::FailJob(_) => {
                        pod.facts.failure_count >= limit
                    }
                }
        })
    });
    holds(fails_index, Invariant::IndexFailures, || {
        let counts: Vec<String> = of_index()
            .map(|pod| {
                format!(
                    "{} {:?} {}",
                    pod.last().facts.name,
                    pod.last().facts.phase,
                    pod.last().facts.failure_count
                )
            })
            .collect();
        format!("index {index} is failed; limit {limit}; its Pods: {}", counts.join(", "))
    })
}

/// The diagram of KEP-3998: a terminal condition follows its interim one in a later write,
/// with the same reason and message, and nothing that was true disappears.
fn check_conditions(old: &JobStatus, new: &JobStatus) -> Checked {
    let find = |status: &JobStatus, kind: &str| {
        let conditions = status.conditions.iter().flatten();
        conditions.clone().find(|it| it.type_ == kind && it.status == "True").cloned()
    };
    for (interim, terminal) in [("SuccessCriteriaMet", "Complete"), ("FailureTarget", "Failed")] {
        let before = find(old, interim);
        if let (None, Some(end)) = (find(old, terminal), find(new, terminal)) {
            let said = |it: &k8s_openapi::api::batch::v1::JobCondition| {
                (it.reason.clone(), it.message.clone())
            };
            let follows = before.as_ref().is_some_and(|it| said(it) == said(&end));
            holds(follows, Invariant::ConditionOrder, || {
                format!("{terminal} ({:?}) follows {before:?}", end.reason)
            })?;
        }
    }
    for condition in old.conditions.iter().flatten().filter(|it| it.status == "True") {
        let is_there = new.conditions.iter().flatten().any(|it| it.type_ == condition.type_);
        holds(is_there, Invariant::ConditionOrder, || format!("{} is lost", condition.type_))?;
    }
    let kinds: Vec<&str> = new.conditions.iter().flatten().map(|it| it.type_.as_str()).collect();
    let distinct: BTreeSet<&str> = kinds.iter().copied().collect();
    holds(distinct.len() == kinds.len(), Invariant::ConditionOrder, || format!("{kinds:?}"))?;
    let both = find(new, "SuccessCriteriaMet").is_some() && find(new, "FailureTarget").is_some();
    holds(!both, Invariant::ConditionOrder, || format!("{kinds:?}"))
}

/// A terminal condition is written only when no Pod that the writer knows or has made itself
/// runs, ends, or bears the finalizer.
/// A request of the past can know nothing of what its process has made since it ended.
fn check_rest(
    world: &World,
    flight: &Flight,
    old: &JobStatus,
    new: &JobStatus,
    actor: Actor,
) -> Checked {
    let is_over = |status: &JobStatus| {
        stint_api::condition::is_finished(status.conditions.as_deref().unwrap_or_default())
    };
    if is_over(old) || !is_over(new) {
        return Ok(());
    }
    for pod in world.api.now.pods.values() {
        if pod.owner_uid() != Some(&flight.job_uid) {
            continue;
        }
        let life = &world.history.pods[&pod.facts.uid];
        let owned = life.entries.iter().rev().take_while(|pod| pod.owner_uid().is_some());
        let owned_since = owned.last().map_or(u64::MAX, |pod| pod.facts.version);
        let is_known = owned_since <= flight.pods_seen
            || (life.made_by == Actor::Controller(flight.sender)
                && actor != Actor::Late
                && !world.loosened.two_leaders.contains(&flight.job_uid));
        let is_busy = !pod.facts.is_finished()
            || (pod.facts.is_tracked && pod.finalizer_of == flight.manager);
        holds(!(is_known && is_busy), Invariant::NotFinishedWhileBusy, || {
            format!("{:?}", pod.facts)
        })?;
    }
    Ok(())
}
