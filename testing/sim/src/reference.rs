//! What a Job's end should be, computed slowly and simply from the history.
//!
//! Nothing here is the ledger's: failures are judged from the wire types, and every Pod's
//! fate (`fate.rs`) is read from what the API stored. A fate is exact unless one of a few
//! things happened, each named in [`crate::fate::Fate`], that leave it to the moment at which
//! the ledger looked.

use k8s_openapi::api::batch::v1::{JobSpec, JobStatus, SuccessPolicyRule};
use stint_api::feature_gates::Gate;
use stint_api::index_set::IndexSet;
use stint_ledger::pod_facts::{PodFacts, PodPhase};

use crate::api::{StoredJob, StoredPod};
use crate::controller::Flight;
use crate::fate::{Class, fate};
use crate::history::{Actor, JobLife, PodLife, Tally, uncounted};
use crate::invariant::status::indexes;
use crate::invariant::{Checked, Invariant, holds};
use crate::world::World;

/// What a failure means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It counts.
    Count,
    /// It does not.
    Ignore,
    /// It counts, and fails its index.
    FailIndex,
    /// It counts, and fails the Job by the rule of this index.
    FailJob(usize),
}

/// Judges a failure by the Pod failure policy as it is on the wire.
pub fn judge(job: &StoredJob, facts: &PodFacts, fail_index_is_on: bool) -> Verdict {
    let spec = job.job.spec.as_ref().expect("a Job has a spec");
    let rules = spec.pod_failure_policy.iter().flat_map(|policy| &policy.rules);
    for (place, rule) in rules.enumerate() {
        let by_code = rule.on_exit_codes.as_ref().is_some_and(|wanted| {
            facts.exits.iter().any(|exit| {
                let is_named = wanted.container_name.as_ref().is_none_or(|name| *name == exit.name);
                let is_listed = wanted.values.contains(&exit.exit_code);
                let is_meant = if wanted.operator == "In" { is_listed } else { !is_listed };
                is_named && exit.exit_code != 0 && is_meant
            })
        });
        let by_condition = rule.on_pod_conditions.iter().flatten().any(|wanted| {
            facts.conditions.iter().any(|it| {
                it.condition_type == wanted.type_
                    && it.status == wanted.status.as_deref().unwrap_or("True")
            })
        });
        if !by_code && !by_condition {
            continue;
        }
        match rule.action.as_str() {
            "Ignore" => return Verdict::Ignore,
            "FailJob" => return Verdict::FailJob(place),
            "FailIndex" if fail_index_is_on && spec.backoff_limit_per_index.is_some() => {
                return Verdict::FailIndex;
            }
            "FailIndex" => {}
            _count => return Verdict::Count,
        }
    }
    Verdict::Count
}

/// Whether the final status of a Job is what the fates of its Pods say.
pub fn check_final(world: &World, uid: &str, job: &JobLife) -> Checked {
    let spec = job.at_its_end().job.spec.as_ref().expect("a Job has a spec");
    let status = job.at_its_end().job.status.clone().unwrap_or_default();
    let is_indexed = spec.completion_mode.as_deref() == Some("Indexed");
    let completed = indexes(&status.completed_indexes);
    let failed_indexes = indexes(&status.failed_indexes);
    let mut possible = Vec::new();
    for pod in world.history.pods_of(uid) {
        let (fate, facts) = (fate(world, job, pod), &pod.last().facts);
        let tally = job.counted.get(&facts.uid);
        let says = |what: &str| format!("{} {what}: {fate:?}, counted as {tally:?}", facts.name);
        let fits = match fate.failure {
            Class::Must => tally == Some(&Tally::Failed),
            Class::May => true,
            Class::Never => tally != Some(&Tally::Failed),
        };
        holds(fits, Invariant::MatchesReference, || says("as a failure"))?;
        let index = facts.index.unwrap_or(u32::MAX);
        let fits = match (fate.success, is_indexed) {
            (Class::May, _) => true,
            (Class::Must, false) => tally == Some(&Tally::Succeeded),
            (Class::Never, false) => tally != Some(&Tally::Succeeded),
            (Class::Must, true) => completed.contains(index) || failed_indexes.contains(index),
            (Class::Never, true) => true,
        };
        holds(fits, Invariant::MatchesReference, || says("as a success"))?;
        // What was written down as failed completes no index as well, unless another leader
        // has seen its success and not yet that status, or nobody can know any more that it
        // was this Pod that completed its index: not a new process, nor one whose status was
        // written after it had been told that it was not.
        let is_forgotten = pod.relapsed().is_some_and(|succeeded| {
            let untracked = pod.untracked.map_or(u64::MAX, |(version, _)| version);
            job.was_written_late
                || world.starts.iter().any(|&start| start >= succeeded && start < untracked)
        });
        let is_failed = tally == Some(&Tally::Failed)
            && !pod.is_tampered
            && !is_forgotten
            && !world.loosened.two_leaders.contains(uid);
        if fate.success != Class::Never && !is_failed {
            possible.extend(pod.entries.iter().filter_map(|it| it.facts.index));
        }
    }
    check_failed_indexes(world, uid, job, &failed_indexes)?;
    if is_indexed {
        let unearned = completed.iter().find(|index| !possible.contains(index));
        holds(unearned.is_none(), Invariant::MatchesReference, || {
            format!("index {unearned:?} is completed, and no Pod of it succeeded")
        })?;
    }
    // A Pod that a user made untraceable is taken for gone, and counted again if it comes back.
    if world.history.pods_of(uid).any(PodLife::was_untraceable) {
        return Ok(());
    }
    let failures = job.counted.values().filter(|tally| **tally == Tally::Failed).count();
    holds(status.failed.unwrap_or(0) == failures as i32, Invariant::MatchesReference, || {
        format!("failed is {:?}, and {failures} were counted", status.failed)
    })
}

/// An index that has failed was tried as often as it may be, unless a rule or a deletion came
/// first; failures beyond that would have been retries that nobody allowed.
fn check_failed_indexes(
    world: &World,
    uid: &str,
    job: &JobLife,
    failed_indexes: &IndexSet,
) -> Checked {
    let spec = job.at_its_end().job.spec.as_ref().expect("a Job has a spec");
    let Some(limit) = spec.backoff_limit_per_index else {
        return Ok(());
    };
    let is_loose = world.loosened.two_leaders.contains(uid)
        || world.loosened.gates.contains(&Gate::JobBackoffLimitPerIndex);
    if is_loose {
        return Ok(());
    }
    // An elastic Job that gave an index up for a while gave up the failures of its Pods.
    let is_steady = |index: &u32| {
        job.least_completions > Some(*index) && !world.history.is_meddled_with(uid, Some(*index))
    };
    for index in failed_indexes.iter().filter(is_steady) {
        let mut failures = 0;
        let mut is_plain = true;
        for pod in world.history.pods_of(uid).filter(|pod| pod.last().facts.index == Some(index)) {
            let was_deleted = pod.entries.iter().any(|it| it.facts.is_deleted);
            let fails_index =
                |it: &StoredPod| judge(job.last(), &it.facts, true) == Verdict::FailIndex;
            // After one that was removed, and did not fail, counting begins anew.
            let was_removed = pod.untracked.is_some_and(|(version, _)| {
                pod.at(version).is_some_and(|it| !it.facts.is_finished())
            });
            is_plain &=
                !was_deleted && !was_removed && !pod.is_tampered && pod.made_by != Actor::Late;
            is_plain &= !pod.entries.iter().any(|it| fails_index(it));
            failures += i32::from(job.counted.get(&pod.last().facts.uid) == Some(&Tally::Failed));
        }
        holds(!is_plain || failures == limit + 1, Invariant::IndexFailures, || {
            format!("index {index} has failed after {failures} failures, and not {}", limit + 1)
        })?;
    }
    Ok(())
}

/// The ends of job-semantics 5.2 in their order, without those that stand.
const ENDS: [&str; 7] = [
    "PodFailurePolicy",
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    "MaxFailedIndexesExceeded",
    "FailedIndexes",
    "SuccessPolicy",
    "CompletionsReached",
];

/// When an interim condition is written: its reason holds, and none before it in the order
/// does, both by the status that it is written with.
pub fn check_end(world: &World, flight: &Flight, old: &StoredJob, new: &JobStatus) -> Checked {
    let interim = |status: &JobStatus| {
        let conditions = status.conditions.clone().unwrap_or_default();
        conditions.into_iter().find(|it| {
            it.status == "True" && ["SuccessCriteriaMet", "FailureTarget"].contains(&&*it.type_)
        })
    };
    let before = old.job.status.as_ref().and_then(interim);
    let (None, Some(written)) = (before, interim(new)) else {
        return Ok(());
    };
    let reason = written.reason.clone().unwrap_or_default();
    let place = ENDS.iter().position(|end| *end == reason);
    holds(place.is_some(), Invariant::EndIsJustified, || format!("{reason} is no reason"))?;
    for (order, end) in ENDS.iter().enumerate().take_while(|(order, _)| Some(*order) <= place) {
        let is_written = Some(order) == place;
        let state = due(world, flight, old, new, end);
        let details = || format!("{reason} is written; {end}: {state:?}");
        if is_written {
            holds(state != Due::No, Invariant::EndIsJustified, details)?;
        } else {
            holds(state != Due::Yes, Invariant::EndPrecedence, details)?;
        }
    }
    let is_success = written.type_ == "SuccessCriteriaMet";
    let fits = is_success == ["SuccessPolicy", "CompletionsReached"].contains(&reason.as_str());
    holds(fits, Invariant::EndIsJustified, || format!("{} by {reason}", written.type_))
}

/// Whether an end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Yes,
    /// It depends on what the ledger had seen, or on a gate.
    Perhaps,
    No,
}

fn due(world: &World, flight: &Flight, old: &StoredJob, new: &JobStatus, end: &str) -> Due {
    let spec = old.job.spec.as_ref().expect("a Job has a spec");
    let yes = |is_so: bool| if is_so { Due::Yes } else { Due::No };
    let gated = |gate: Gate, due: Due| match due {
        Due::Yes if world.loosened.gates.contains(&gate) => Due::Perhaps,
        other => other,
    };
    match end {
        "PodFailurePolicy" if is_known_to_fail(world, flight, old) => Due::Yes,
        "PodFailurePolicy" => perhaps(fails_job(world, old)),
        "BackoffLimitExceeded" => backoff_due(world, old, new, spec),
        "DeadlineExceeded" => {
            let start = old.job.status.as_ref().and_then(|status| status.start_time.as_ref());
            match (start, spec.active_deadline_seconds, spec.suspend) {
                (Some(start), Some(seconds), None | Some(false)) => {
                    yes(flight.sent_time.as_second() - start.0.as_second() >= seconds
                        && flight.sent_time.duration_since(start.0).as_secs() >= seconds)
                }
                _ => Due::No,
            }
        }
        "MaxFailedIndexesExceeded" => {
            let failed = indexes(&new.failed_indexes).count() as i64;
            let is_over = spec.max_failed_indexes.is_some_and(|max| failed > i64::from(max));
            gated(Gate::JobBackoffLimitPerIndex, yes(is_over))
        }
        "FailedIndexes" => {
            let failed = indexes(&new.failed_indexes).count();
            let all = failed + indexes(&new.completed_indexes).count();
            let is_over = failed > 0 && all >= spec.completions.unwrap_or(0) as u64;
            gated(Gate::JobBackoffLimitPerIndex, yes(is_over))
        }
        "SuccessPolicy" => {
            let rules = spec.success_policy.iter().flat_map(|policy| &policy.rules);
            let is_met = rules.clone().any(|rule| is_met(rule, spec, new));
            gated(Gate::JobSuccessPolicy, yes(is_met))
        }
        _completions => {
            let waiting = uncounted(Some(new));
            let listed = waiting.iter().filter(|(_, tally)| *tally == Tally::Succeeded).count();
            let succeeded = new.succeeded.unwrap_or(0) + listed as i32;
            let enough = succeeded >= spec.completions.unwrap_or(1);
            yes(enough && new.active.unwrap_or(0) == 0)
        }
    }
}

fn perhaps(is_so: bool) -> Due {
    if is_so { Due::Perhaps } else { Due::No }
}

/// Whether the writer has been told of a Pod that fails the Job, and of nothing else since.
fn is_known_to_fail(world: &World, flight: &Flight, job: &StoredJob) -> bool {
    world.history.pods_of(&job.uid).filter(|pod| !pod.is_tampered).any(|pod| {
        let fails = |it: &StoredPod| {
            it.facts.phase == PodPhase::Failed
                && it.facts.is_tracked
                && it.owner_uid() == Some(&job.uid)
                && matches!(judge(job, &it.facts, true), Verdict::FailJob(_))
        };
        // A success that turned out to be a failure stays one for whoever has seen it.
        let has_relapsed = pod.relapsed().is_some();
        // An elastic Job may have given the index up, and with it the failure.
        let is_steady = world.history.jobs[&job.uid]
            .least_completions
            .is_none_or(|least| pod.last().facts.index.is_none_or(|index| index < least));
        is_steady
            && !has_relapsed
            && pod.at(flight.pods_seen).is_some_and(fails)
            && fails(pod.last())
    })
}

/// Whether some Pod of the Job has ever failed in a way that fails the Job. Only the ledger
/// knows whether it has seen that yet.
fn fails_job(world: &World, job: &StoredJob) -> bool {
    world.history.pods_of(&job.uid).any(|pod| {
        pod.entries.iter().any(|it| {
            it.facts.phase == PodPhase::Failed
                && matches!(judge(job, &it.facts, true), Verdict::FailJob(_))
        })
    })
}

/// Failures that the status does not show may be known to the ledger: those that wait for
/// their replacement, and restarts of Pods that run.
fn backoff_due(world: &World, old: &StoredJob, new: &JobStatus, spec: &JobSpec) -> Due {
    let limit = i64::from(spec.backoff_limit.unwrap_or(6));
    let waiting = uncounted(Some(new));
    let listed = waiting.iter().filter(|(_, tally)| *tally == Tally::Failed).count() as i64;
    if i64::from(new.failed.unwrap_or(0)) + listed > limit {
        return Due::Yes;
    }
    let has_ended = |facts: &PodFacts| {
        facts.phase == PodPhase::Failed || (facts.is_deleted && !facts.is_finished())
    };
    let failures = world.history.pods_of(&old.uid).filter(|pod| pod.first(has_ended).is_some());
    let restarts = world.history.pods_of(&old.uid).map(|pod| {
        let most = pod.entries.iter().map(|it| it.facts.restart_count).max();
        i64::from(most.unwrap_or(0))
    });
    let total: i64 = restarts.sum();
    perhaps(failures.count() as i64 > limit || total >= limit.max(1))
}

fn is_met(rule: &SuccessPolicyRule, spec: &JobSpec, status: &JobStatus) -> bool {
    let completed = indexes(&status.completed_indexes);
    let below = u32::try_from(spec.completions.unwrap_or(0)).unwrap_or(0);
    let listed = rule.succeeded_indexes.as_ref().map(|text| {
        let mut set = indexes(&Some(text.clone()));
        set.cut(below);
        set
    });
    let done = match &listed {
        Some(listed) => listed.iter().filter(|&index| completed.contains(index)).count() as u64,
        None => completed.count(),
    };
    match (rule.succeeded_count, &listed) {
        (Some(count), Some(listed)) => !listed.is_empty() && done >= count as u64,
        (Some(count), None) => done >= count as u64,
        (None, Some(listed)) => !listed.is_empty() && done == listed.count(),
        (None, None) => false,
    }
}
