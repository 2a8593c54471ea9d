//! Everything that ever was: each Pod and each Job at each of its versions, and who did what.
//!
//! Filled from the API's log and from nothing that a ledger says, except for which uids left
//! the uncounted list: that is read from the statuses as they were stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::JobStatus;
use stint_api::closed_set::JobConditionType;
use stint_api::condition;
use stint_ledger::pod_facts::{Owner, PodFacts, PodPhase};

use crate::api::{Api, Change, StoredJob, StoredPod};
use crate::choice::ControllerId;

/// Who changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// A controller, by an op it waits for.
    Controller(ControllerId),
    /// A controller, by an op that it gave up or forgot.
    Late,
    /// The kubelet, the scheduler, or whoever evicts.
    Node,
    /// The garbage collector.
    Collector,
    /// A user.
    User,
}

/// Into which counter a Pod went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tally {
    /// `status.succeeded`.
    Succeeded,
    /// `status.failed`.
    Failed,
}

/// The life of a Pod.
#[derive(Clone, Debug)]
pub struct PodLife {
    /// Who created it.
    pub made_by: Actor,
    /// The Pod at each of its versions; at the last before it went, if it is gone.
    pub entries: Vec<Arc<StoredPod>>,
    /// Who asked for its deletion.
    pub deleted_by: Option<Actor>,
    /// When and by whom its finalizer was removed.
    pub untracked: Option<(u64, Actor)>,
    /// Whether it is gone.
    pub is_gone: bool,
    /// Whether a user changed what only the Job's controller should write.
    pub is_tampered: bool,
    /// Whether one leader had made it when another, who had not been told of it, wrote the end
    /// of its Job.
    pub is_missed: bool,
}

impl PodLife {
    /// The version of its creation.
    pub fn made_at(&self) -> u64 {
        self.entries[0].facts.version
    }

    /// What it was last.
    pub fn last(&self) -> &StoredPod {
        &self.entries[self.entries.len() - 1]
    }

    /// What it was at a version.
    pub fn at(&self, version: u64) -> Option<&StoredPod> {
        let later = self.entries.partition_point(|pod| pod.facts.version <= version);
        later.checked_sub(1).map(|place| &*self.entries[place])
    }

    /// The first version of which something is true.
    pub fn first(&self, is_so: impl Fn(&PodFacts) -> bool) -> Option<&StoredPod> {
        self.entries.iter().find(|pod| is_so(&pod.facts)).map(|pod| &**pod)
    }

    /// Since when it was said to have succeeded, if it turned out to have failed.
    pub fn relapsed(&self) -> Option<u64> {
        let succeeded = self.first(|facts| facts.phase == PodPhase::Succeeded)?.facts.version;
        let is_later = |facts: &PodFacts| facts.version > succeeded;
        self.first(|facts| facts.phase == PodPhase::Failed && is_later(facts)).map(|_| succeeded)
    }

    /// Whether it was said to have succeeded, and to have failed.
    pub fn has_changed_its_mind(&self) -> bool {
        self.first(|facts| facts.phase == PodPhase::Succeeded).is_some()
            && self.first(|facts| facts.phase == PodPhase::Failed).is_some()
    }

    /// Whether a Job ever controlled it.
    pub fn was_of(&self, job_uid: &str) -> bool {
        self.entries.iter().any(|pod| pod.owner_uid() == Some(job_uid))
    }

    /// Whether it ever bore the finalizer with nothing left that leads to its Job.
    pub fn was_untraceable(&self) -> bool {
        let is_lost = |pod: &StoredPod| match pod.facts.owner {
            Owner::Nobody => pod.label_uid.is_none(),
            Owner::Controller(_) => false,
            Owner::Foreign(_) => true,
        };
        self.entries.iter().any(|pod| pod.facts.is_tracked && is_lost(pod))
    }
}

/// The life of a Job.
#[derive(Clone, Debug, Default)]
pub struct JobLife {
    /// The Job at each of its versions.
    pub entries: Vec<Arc<StoredJob>>,
    /// The version at which its deletion was asked for, or it was gone.
    pub deleted_at: Option<u64>,
    /// The version of its interim condition, and whether that is a success.
    pub interim: Option<(u64, bool)>,
    /// The version of its terminal condition.
    pub finished_at: Option<u64>,
    /// The lowest completions that it had before it finished.
    pub least_completions: Option<u32>,
    /// The uids that left the uncounted list, and for which counter.
    pub counted: BTreeMap<String, Tally>,
    /// The uids that were ever listed as uncounted: since which version, and by whom.
    pub listed: BTreeMap<String, (u64, Actor)>,
    /// Whether a user wrote its status.
    pub is_corrupted: bool,
    /// Whether a request that its sender had given up wrote its status.
    pub was_written_late: bool,
}

impl JobLife {
    /// What it was at a version.
    pub fn at(&self, version: u64) -> Option<&StoredJob> {
        let later = self.entries.partition_point(|job| job.version <= version);
        later.checked_sub(1).map(|place| &*self.entries[place])
    }

    /// What it was when it finished, or else last.
    pub fn at_its_end(&self) -> &StoredJob {
        self.finished_at.and_then(|version| self.at(version)).unwrap_or_else(|| self.last())
    }

    /// What it was last.
    pub fn last(&self) -> &StoredJob {
        &self.entries[self.entries.len() - 1]
    }
}

/// All lives.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Pods by uid.
    pub pods: BTreeMap<String, Arc<PodLife>>,
    /// Jobs by uid.
    pub jobs: BTreeMap<String, Arc<JobLife>>,
    read: usize,
}

impl History {
    /// Takes note of what was done since the last time, by `actor`.
    pub fn absorb(&mut self, api: &Api, actor: Actor) {
        for (place, change) in api.log.iter().enumerate().skip(self.read) {
            let version = api.base + place as u64 + 1;
            match change {
                Change::Job(job) => self.see_job(job, actor),
                Change::JobGone { uid } => {
                    let life = Arc::make_mut(self.jobs.entry(uid.clone()).or_default());
                    life.deleted_at.get_or_insert(version);
                }
                Change::Pod(pod) => self.see_pod(pod, actor, false),
                Change::PodGone(pod) => self.see_pod(pod, actor, true),
            }
        }
        self.read = api.log.len();
    }

    /// The life of a Pod that was tampered with.
    pub fn tamper(&mut self, uid: &str) {
        if let Some(life) = self.pods.get_mut(uid) {
            Arc::make_mut(life).is_tampered = true;
        }
    }

    /// Whoever wrote the end of their Job could not know of these Pods.
    pub fn miss(&mut self, uids: &[String]) {
        for uid in uids {
            if let Some(life) = self.pods.get_mut(uid) {
                Arc::make_mut(life).is_missed = true;
            }
        }
    }

    /// The Pods that a Job controls or controlled.
    pub fn pods_of<'a>(&'a self, job_uid: &'a str) -> impl Iterator<Item = &'a PodLife> {
        self.pods.values().map(|life| &**life).filter(move |life| life.was_of(job_uid))
    }

    /// Whether a user made a Pod that a Job may take for its own, or changed one of its Pods;
    /// given an index, one that has it or lost it.
    pub fn is_meddled_with(&self, job_uid: &str, index: Option<u32>) -> bool {
        self.pods.values().filter(|pod| pod.is_tampered).any(|pod| {
            let has_index =
                |it: &StoredPod| index.is_none() || [index, None].contains(&it.facts.index);
            let leads_here = |it: &StoredPod| {
                it.owner_uid() == Some(job_uid) || it.label_uid.as_deref() == Some(job_uid)
            };
            pod.entries.iter().any(|it| leads_here(it))
                && pod.entries.iter().any(|it| has_index(it))
        })
    }

    fn see_job(&mut self, job: &Arc<StoredJob>, actor: Actor) {
        let life = Arc::make_mut(self.jobs.entry(job.uid.clone()).or_default());
        if let Some(old) = life.entries.last() {
            let (before, after) =
                (uncounted(old.job.status.as_ref()), uncounted(job.job.status.as_ref()));
            for (uid, tally) in before {
                if !after.iter().any(|(kept, _)| *kept == uid) {
                    life.counted.insert(uid.to_owned(), tally);
                }
            }
            life.is_corrupted |= actor == Actor::User && old.job.status != job.job.status;
        }
        life.was_written_late |= actor == Actor::Late;
        for (uid, _) in uncounted(job.job.status.as_ref()) {
            life.listed.entry(uid.to_owned()).or_insert((job.version, actor));
        }
        if job.deletion.is_some() {
            life.deleted_at.get_or_insert(job.version);
        }
        let conditions = condition::of(job.job.status.as_ref());
        let is_true = |kind| condition::is_true(conditions, kind);
        if is_true(JobConditionType::SuccessCriteriaMet) {
            life.interim.get_or_insert((job.version, true));
        } else if is_true(JobConditionType::FailureTarget) {
            life.interim.get_or_insert((job.version, false));
        }
        if condition::is_finished(conditions) {
            life.finished_at.get_or_insert(job.version);
        }
        let is_going_on = life.finished_at.is_none();
        let completions =
            job.job.spec.as_ref().filter(|_| is_going_on).and_then(|spec| spec.completions);
        if let Some(completions) = completions.and_then(|count| u32::try_from(count).ok()) {
            let least = life.least_completions.unwrap_or(u32::MAX);
            life.least_completions = Some(least.min(completions));
        }
        life.entries.push(Arc::clone(job));
    }

    fn see_pod(&mut self, pod: &Arc<StoredPod>, actor: Actor, is_gone: bool) {
        let life = self.pods.entry(pod.facts.uid.clone()).or_insert_with(|| {
            Arc::new(PodLife {
                made_by: actor,
                entries: Vec::new(),
                deleted_by: None,
                untracked: None,
                is_gone: false,
                is_tampered: actor == Actor::User,
                is_missed: false,
            })
        });
        let life = Arc::make_mut(life);
        if let Some(old) = life.entries.last().map(|old| &old.facts) {
            if old.is_tracked && !pod.facts.is_tracked {
                life.untracked.get_or_insert((pod.facts.version, actor));
            }
            if !old.is_deleted && pod.facts.is_deleted {
                life.deleted_by = Some(actor);
            }
        }
        life.is_gone = is_gone;
        life.entries.push(Arc::clone(pod));
    }
}

/// The uids that a status lists as not counted yet.
pub fn uncounted(status: Option<&JobStatus>) -> Vec<(&str, Tally)> {
    let lists = status.and_then(|status| status.uncounted_terminated_pods.as_ref());
    let Some(lists) = lists else {
        return Vec::new();
    };
    let succeeded = lists.succeeded.iter().flatten().map(|uid| (uid.as_str(), Tally::Succeeded));
    let failed = lists.failed.iter().flatten().map(|uid| (uid.as_str(), Tally::Failed));
    succeeded.chain(failed).collect()
}
