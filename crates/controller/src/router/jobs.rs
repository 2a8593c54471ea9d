//! What is told of Jobs: which are ours, which are gone.

use std::collections::HashSet;

use stint_api::feature_gates::Gate;
use stint_api::view::ManagedBy;
use stint_ledger::event::Event;

use super::entry::{Finished, Place};
use super::{Bare, Gathered, JobUid, Router};
use crate::feed::Change;
use crate::job::SeenJob;
use crate::pod::SeenPod;

/// How many Jobs that are gone are remembered, at some 100 bytes each: more than go while a
/// watch is behind.
const REMEMBERED: usize = 20_000;

impl Router {
    /// What was known and is not in a list is gone as of that list.
    pub(super) fn jobs_listed(
        &mut self,
        scope: usize,
        jobs: Gathered<SeenJob, Bare>,
        version: u64,
    ) {
        let Gathered { whole, bare } = jobs;
        let listed = whole.iter().map(|job| job.uid.as_str());
        let listed: HashSet<&str> = listed.chain(bare.iter().map(|job| &*job.uid)).collect();
        let is_listed = |uid: &JobUid| listed.contains(&**uid);
        self.foreign.retain(|uid, place| *place != scope || is_listed(uid));
        let finished = self.finished.iter().filter(|(_, job)| job.scope == scope);
        let known = self.jobs.iter().filter(|(_, entry)| entry.scope == scope);
        let uids = known.map(|(uid, _)| uid).chain(finished.map(|(uid, _)| uid));
        // Every one, whether a list has told of it or not: the ledgers know how old it is.
        let gone: Vec<JobUid> = uids.filter(|uid| !is_listed(uid)).cloned().collect();
        for uid in gone {
            self.lose_job(&uid, version);
        }
        for job in bare {
            self.see_bare(scope, job);
        }
        for job in whole {
            self.see_job(scope, job);
        }
    }

    /// Adds what a list tells. What is gone before its end is not in it.
    pub(super) fn gather_jobs(
        &self,
        gathered: &mut Gathered<SeenJob, Bare>,
        items: Vec<Change<SeenJob>>,
    ) {
        for item in items {
            match item {
                Change::Seen(job) => match self.bare_of(&job) {
                    Some(bare) => gathered.bare.push(bare),
                    None => gathered.whole.push(job),
                },
                Change::Gone(gone) => {
                    gathered.whole.retain(|job| job.uid != gone.uid);
                    gathered.bare.retain(|job| *job.uid != *gone.uid);
                }
                Change::Reached(_) => {}
            }
        }
    }

    /// What is enough of a Job that is known to be another's, which it stays, or to have finished.
    fn bare_of(&self, job: &SeenJob) -> Option<Bare> {
        let is_ours = self.is_ours(&job.managed_by);
        let is_known = match is_ours {
            false => !job.uid.is_empty() && !self.gone.contains_key(&*job.uid),
            true => {
                let stays = job.view.as_ref().is_ok_and(|view| view.status.is_finished());
                let is_same = |known: &Finished| known.place.is(&job.namespace, &job.name);
                stays && self.finished.get(&*job.uid).is_some_and(is_same)
            }
        };
        let managed_by = (!is_ours).then(|| job.managed_by.clone());
        is_known.then(|| Bare { uid: job.uid.as_str().into(), version: job.version, managed_by })
    }

    /// Takes in what was kept of such a Job.
    fn see_bare(&mut self, scope: usize, job: Bare) {
        let Bare { uid, version, managed_by } = job;
        let uid = self.uid_of(&uid);
        if let Some(managed_by) = managed_by {
            if !self.gone.contains_key(&uid) {
                self.see_foreign(scope, uid, &managed_by);
            }
            return;
        }
        self.claims.remove(&uid);
        if let Some(finished) = self.finished.get_mut(&uid) {
            finished.version = finished.version.max(version);
        } else if let Some(entry) = self.jobs.get_mut(&uid) {
            // A Pod has come up for it meanwhile: its ledger looks it up.
            entry.is_listed = true;
        }
    }

    pub(super) fn see_job(&mut self, scope: usize, job: SeenJob) {
        // A Job that was gone, and forgotten, does not come back by an older list.
        let is_gone = |gone: &Place| gone.is(&job.namespace, &job.name);
        if job.uid.is_empty() || self.gone.get(job.uid.as_str()).is_some_and(is_gone) {
            return;
        }
        let uid: JobUid = self.uid_of(&job.uid);
        if self.jobs.get(&uid).is_some_and(|entry| !entry.place().is(&job.namespace, &job.name)) {
            // Some Pod bears its uid with another name, or in another namespace.
            self.drop_job(&uid);
        }
        if !self.is_ours(&job.managed_by) {
            return self.see_foreign(scope, uid, &job.managed_by);
        }
        self.foreign.remove(&uid);
        self.claims.remove(&uid);
        if let Some(finished) = self.finished.get_mut(&uid) {
            let stays = job.view.as_ref().is_ok_and(|view| view.status.is_finished());
            if job.version <= finished.version || stays {
                finished.version = finished.version.max(job.version);
                return;
            }
        }
        let view = match job.view {
            Ok(view) => view,
            Err(error) => {
                let entry = self.entry(scope, &uid, &job.namespace, &job.name);
                entry.is_listed = true;
                let version = job.version;
                return self.tell(&uid, Event::JobUnreadable { version, error });
            }
        };
        let entry = self.entry(scope, &uid, &job.namespace, &job.name);
        entry.is_listed = true;
        let is_first = !std::mem::replace(&mut entry.has_met_orphans, true);
        self.note(&uid, &view, &job.template);
        self.tell(&uid, Event::JobSeen(view));
        if is_first {
            self.meet_orphans(&uid);
        }
    }

    /// With the gate off nobody but the built-in controller exists; as the ledger has it.
    pub(super) fn is_ours(&self, managed_by: &ManagedBy) -> bool {
        let by_field = self.settings.gates.enabled(Gate::JobManagedBy);
        match &self.settings.manages {
            ManagedBy::BuiltIn => !by_field || *managed_by == ManagedBy::BuiltIn,
            ManagedBy::External(_) => by_field && *managed_by == self.settings.manages,
        }
    }

    /// A Job of another controller: hands off it and its Pods.
    pub(super) fn see_foreign(&mut self, scope: usize, uid: JobUid, managed_by: &ManagedBy) {
        self.drop_job(&uid);
        self.finished.remove(&uid);
        let claims = self.claims.remove(&uid).unwrap_or_default();
        let is_new = self.foreign.insert(uid, scope).is_none();
        for pod in claims.into_values() {
            self.see_pod(scope, pod);
        }
        if let (true, ManagedBy::External(controller)) = (is_new, managed_by)
            && self.settings.manages == ManagedBy::BuiltIn
        {
            self.external.push(controller.clone());
        }
    }

    /// Orphans that were seen before a Job that selects them.
    pub(super) fn meet_orphans(&mut self, uid: &JobUid) {
        let Some(entry) = self.jobs.get(uid) else { return };
        if !entry.selection.is_by_uid() {
            let namespace = entry.namespace.to_string();
            self.selective.entry(namespace).or_default().insert(uid.clone());
        }
        let is_met = |pod: &&SeenPod| {
            *pod.namespace == *entry.namespace && entry.selection.matches(&pod.labels)
        };
        let met: Vec<SeenPod> = self.orphans.values().filter(is_met).cloned().collect();
        let scope = entry.scope;
        for pod in met {
            self.see_pod(scope, pod);
        }
    }

    pub(super) fn lose_job(&mut self, uid: &str, version: u64) {
        self.foreign.remove(uid);
        if let Some(finished) = self.finished.get(uid).filter(|job| job.version <= version) {
            let (namespace, job) = (&*finished.place.namespace, &*finished.place.name);
            tracing::info!(namespace, job, uid, state = "gone", "job");
            let (uid, finished) = self.finished.remove_entry(uid).expect("it was just there");
            return self.remember_gone(&uid, finished.place);
        }
        let Some((uid, entry)) = self.jobs.get_key_value(uid) else { return };
        let uid = uid.clone();
        if entry.is_listed {
            let (namespace, job) = (&*entry.namespace, &*entry.name);
            tracing::info!(namespace, job, uid = &*uid, state = "gone", "job");
        }
        self.jobs.get_mut(&uid).expect("it was just there").is_listed = false;
        self.tell(&uid, Event::JobGone { version });
    }

    pub(super) fn drop_job(&mut self, uid: &JobUid) {
        let Some(entry) = self.jobs.remove(uid) else { return };
        if let Some(at) = entry.wake {
            self.wakes.remove(&(at, uid.clone()));
        }
        self.awaiting.remove(uid);
        if let Some(uids) = self.selective.get_mut(&*entry.namespace) {
            uids.remove(uid);
            if uids.is_empty() {
                self.selective.remove(&*entry.namespace);
            }
        }
    }

    pub(super) fn remember_gone(&mut self, uid: &JobUid, place: Place) {
        self.claims.remove(uid);
        if self.gone.insert(uid.clone(), place).is_none() {
            self.gone_in_order.push_back(uid.clone());
        }
        if self.gone_in_order.len() > REMEMBERED
            && let Some(oldest) = self.gone_in_order.pop_front()
        {
            self.gone.remove(&oldest);
        }
    }
}
