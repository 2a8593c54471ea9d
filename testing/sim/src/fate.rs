//! What a Pod counts as in the end, from its history and that of its Job.
//!
//! ```text
//!   last seen with its finalizer    Job runs          Job fails   Job has succeeded
//!   succeeded                       success           success     success
//!   failed                          failure           failure     failure, unless deleted before it failed
//!   deleted by others, not ended    failure, unless   failure     nothing, if deleted since
//!                                   only failed Pods
//!                                   are replaced
//!   deleted by its Job, not ended   nothing           failure     nothing
//! ```
//!
//! Failures that the policy ignores are nothing in every column (job-semantics 4 and 5).

use stint_api::feature_gates::Gate;
use stint_ledger::pod_facts::{PodFacts, PodPhase};

use crate::history::{Actor, JobLife, PodLife};
use crate::reference::{Verdict, judge};
use crate::world::World;

/// Whether a Pod counts as something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It does.
    Must,
    /// It does, or does not: see [`Fate`].
    May,
    /// It does not.
    Never,
}

/// What a Pod counts as.
///
/// It is left to the moment (`May`) for a Pod that a user tampered with; that a request of
/// the past made, perhaps when nobody looked for Pods any more; that one leader made when
/// another, who could not know of it, wrote the end; that changed its mind, since
/// either end may have been written down; that succeeded after its deletion could have been
/// taken for a failure; that was deleted before the success of its Job was written, since
/// either may have been seen first; or whose index an elastic Job gave up for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// As a success.
    pub success: Class,
    /// As a failure.
    pub failure: Class,
}

const NOTHING: Fate = Fate { success: Class::Never, failure: Class::Never };
const ANYTHING: Fate = Fate { success: Class::May, failure: Class::May };

/// The fate of a Pod for a Job that has ended.
pub fn fate(world: &World, job: &JobLife, pod: &PodLife) -> Fate {
    let end = job.finished_at.unwrap_or(u64::MAX);
    let spec = job.at_its_end().job.spec.as_ref().expect("a Job has a spec");
    let is_indexed = spec.completion_mode.as_deref() == Some("Indexed");
    let limit = u32::try_from(spec.completions.unwrap_or(0)).unwrap_or(0);
    let index = pod.last().facts.index;
    if pod.is_tampered || pod.is_missed || pod.made_by == Actor::Late {
        return ANYTHING;
    }
    if is_indexed && index.is_none_or(|index| index >= limit) {
        // An elastic Job may have been larger when it counted its failure.
        return Fate { success: Class::Never, failure: Class::May };
    }
    let is_steady = !is_indexed || index.is_some_and(|index| job.least_completions > Some(index));
    let certain = |class| if is_steady || class != Class::Must { class } else { Class::May };
    let fate = Trial::new(world, job, pod, end).decide();
    Fate { success: certain(fate.success), failure: certain(fate.failure) }
}

/// Whether a Pod that is being deleted is given up before it has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GivesUp {
    Yes,
    /// The gate of replacement policies was off for a while.
    AtTimes,
    No,
}

impl GivesUp {
    fn of(world: &World, job: &JobLife) -> Self {
        let spec = job.last().job.spec.as_ref().expect("a Job has a spec");
        let waits = spec.pod_replacement_policy.as_deref() == Some("Failed");
        if spec.pod_failure_policy.is_some() {
            GivesUp::No
        } else if !waits {
            GivesUp::Yes
        } else if world.loosened.gates.contains(&Gate::JobPodReplacementPolicy) {
            GivesUp::AtTimes
        } else {
            GivesUp::No
        }
    }
}

/// All that a Pod's fate is judged by.
struct Trial<'a> {
    job: &'a JobLife,
    /// The Pod as long as it bore the finalizer and its Job went on, with the version up to
    /// which it was so.
    tracked: Vec<(&'a PodFacts, u64)>,
    deleted_by: Option<Actor>,
    gives_up: GivesUp,
    /// The version of the interim condition.
    since: u64,
    is_success: bool,
}

impl<'a> Trial<'a> {
    fn new(world: &World, job: &'a JobLife, pod: &'a PodLife, end: u64) -> Self {
        let until = pod.entries.iter().skip(1).map(|it| it.facts.version).chain([u64::MAX]);
        let entries = pod.entries.iter().map(|it| &it.facts).zip(until);
        let is_meant = |(facts, _): &(&PodFacts, u64)| facts.is_tracked && facts.version <= end;
        let (since, is_success) = job.interim.unwrap_or((u64::MAX, false));
        Self {
            job,
            tracked: entries.filter(is_meant).collect(),
            deleted_by: pod.deleted_by,
            gives_up: GivesUp::of(world, job),
            since,
            is_success,
        }
    }

    fn decide(&self) -> Fate {
        let Some(&(last, until)) = self.tracked.last() else {
            return NOTHING;
        };
        let had = |phase| self.tracked.iter().any(|(facts, _)| facts.phase == phase);
        if had(PodPhase::Succeeded) && had(PodPhase::Failed) {
            return ANYTHING;
        }
        match last.phase {
            PodPhase::Succeeded if self.may_have_been_given_up() => ANYTHING,
            PodPhase::Succeeded => Fate { success: Class::Must, failure: Class::Never },
            PodPhase::Pending | PodPhase::Running if !last.is_deleted => NOTHING,
            PodPhase::Pending | PodPhase::Running | PodPhase::Failed => {
                Fate { success: Class::Never, failure: self.failure(last, until) }
            }
        }
    }

    /// Whether a Pod counts as failed that was last seen so, or being deleted, up to a
    /// version.
    fn failure(&self, last: &PodFacts, until: u64) -> Class {
        let is_ignored = judge(self.job.last(), last, true) == Verdict::Ignore;
        let is_ending = until > self.since;
        if is_ignored || self.is_own_removal() {
            Class::Never
        } else if is_ending && self.is_success {
            self.after_success()
        } else if last.phase == PodPhase::Failed || is_ending || self.gives_up == GivesUp::Yes {
            Class::Must
        } else {
            Class::May
        }
    }

    /// Whether the Job itself deleted it, for reasons of its own and not because it had come
    /// to its end, before it failed.
    fn is_own_removal(&self) -> bool {
        let by_job = matches!(self.deleted_by, Some(Actor::Controller(_) | Actor::Late));
        by_job && !self.failed_by_itself() && self.deleted_at().is_some_and(|at| at < self.since)
    }

    /// The Job had succeeded when the finalizer went.
    fn after_success(&self) -> Class {
        let was_failed = |(facts, _): &(&PodFacts, u64)| {
            facts.phase == PodPhase::Failed && facts.version < self.since
        };
        match self.deleted_at() {
            None => Class::Must,
            // Whoever lists Pods anew cannot tell which came first.
            Some(_) if self.failed_by_itself() => Class::May,
            Some(at) if at > self.since => Class::Never,
            Some(_) if self.gives_up != GivesUp::No => Class::May,
            Some(_) if self.tracked.iter().any(was_failed) => Class::May,
            Some(_) => Class::Never,
        }
    }

    fn failed_by_itself(&self) -> bool {
        self.tracked.iter().any(|(facts, _)| facts.phase == PodPhase::Failed && !facts.is_deleted)
    }

    fn deleted_at(&self) -> Option<u64> {
        let deleted = self.tracked.iter().find(|(facts, _)| facts.is_deleted);
        deleted.map(|(facts, _)| facts.version)
    }

    /// Whether its deletion could be taken for a failure, by whoever had not seen yet that it
    /// succeeded.
    fn may_have_been_given_up(&self) -> bool {
        self.tracked.iter().any(|&(facts, _)| {
            let while_running = facts.version < self.since && self.gives_up != GivesUp::No;
            let while_failing = !self.is_success && self.since < u64::MAX;
            facts.is_deleted && !facts.is_finished() && (while_running || while_failing)
        })
    }
}
