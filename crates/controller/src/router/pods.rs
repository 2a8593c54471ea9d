//! What is told of Pods, and to whom.

use std::collections::{HashMap, HashSet};

use stint_api::view::ManagedBy;
use stint_ledger::event::Event;
use stint_ledger::pod_facts::{Owner, PodFacts};

use super::entry::Entry;
use super::{Gathered, JobUid, Router};
use crate::feed::Change;
use crate::pod::SeenPod;

/// Which ledgers were told of a Pod, and as of when.
#[derive(Debug)]
pub(super) struct Route {
    version: u64,
    told: Told,
}

/// Almost always one.
#[derive(Debug)]
pub(super) enum Told {
    One(JobUid),
    Many(Box<[JobUid]>),
}

impl Router {
    /// What was known and is not in a list is gone as of that list.
    pub(super) fn pods_listed(
        &mut self,
        scope: usize,
        pods: Gathered<SeenPod, (Box<str>, u64)>,
        version: u64,
    ) {
        let Gathered { whole, bare } = pods;
        let bare: HashMap<Box<str>, u64> = bare.into_iter().collect();
        let listed = whole.iter().map(|pod| pod.facts.uid.as_str());
        let listed: HashSet<&str> = listed.chain(bare.keys().map(|uid| &**uid)).collect();
        let is_of_scope = |told: &Told| {
            let mut jobs = told.iter();
            jobs.any(|uid| self.jobs.get(uid).is_none_or(|entry| entry.scope == scope))
        };
        let gone: Vec<Box<str>> = self
            .routes
            .iter()
            // What has been seen since the time of the list is not gone.
            .filter(|(uid, route)| !listed.contains(&***uid) && route.version <= version)
            .filter(|(_, route)| is_of_scope(&route.told))
            .map(|(uid, _)| uid.clone())
            .collect();
        let namespace = self.scopes[scope].namespace.clone();
        self.orphans.retain(|uid, pod| {
            let is_of_scope = namespace.as_ref().is_none_or(|name| *name == pod.namespace);
            !is_of_scope || listed.contains(&**uid) || pod.facts.version > version
        });
        // Ledgers know Pods by answers that the watch has not told of, and now never will.
        let mut missing: Vec<(JobUid, String)> = Vec::new();
        for (uid, entry) in self.jobs.iter().filter(|(_, entry)| entry.scope == scope) {
            let known = entry.ledger.pod_uids().into_iter();
            let unlisted = known.filter(|pod| !listed.contains(pod.as_str()));
            missing.extend(unlisted.map(|pod| (uid.clone(), pod)));
        }
        for uid in gone {
            self.lose_pod(&uid, version, None);
        }
        for (job, uid) in missing {
            self.tell(&job, Event::PodGone { uid, version });
        }
        // One that was let go of before the list was whole is not told as it was before.
        let is_newest = |pod: &SeenPod| {
            bare.get(pod.facts.uid.as_str()).is_none_or(|version| *version < pod.facts.version)
        };
        for pod in whole.into_iter().filter(is_newest) {
            self.see_pod(scope, pod);
        }
    }

    /// Adds what a list tells. What is gone before its end is not in it.
    pub(super) fn gather_pods(
        &self,
        gathered: &mut Gathered<SeenPod, (Box<str>, u64)>,
        items: Vec<Change<SeenPod>>,
    ) {
        for item in items {
            match item {
                Change::Seen(pod) if self.is_nobodys_business(&pod) => {
                    gathered.bare.push((pod.facts.uid.into(), pod.facts.version));
                }
                Change::Seen(pod) => gathered.whole.push(pod),
                Change::Gone(gone) => {
                    gathered.whole.retain(|pod| pod.facts.uid != gone.facts.uid);
                    gathered.bare.retain(|(uid, _)| **uid != *gone.facts.uid);
                }
                Change::Reached(_) => {}
            }
        }
    }

    /// Whether no ledger is to be told of a Pod, now or at the end of the list that it is in: somebody
    /// has it whose Pods are none of ours, it does not bear the finalizer, and nobody knows it.
    fn is_nobodys_business(&self, pod: &SeenPod) -> bool {
        let uid = pod.facts.uid.as_str();
        let is_known = self.routes.contains_key(uid)
            || self.orphans.contains_key(uid)
            || self.jobs.contains_key(uid);
        let has_other = pod.owner().is_some_and(|owner| {
            pod.owner_job.is_none()
                || self.foreign.contains_key(owner)
                || self.finished.contains_key(owner)
                || self.gone.contains_key(owner)
        });
        has_other && !is_known && !pod.facts.is_tracked
    }

    pub(super) fn see_pod(&mut self, scope: usize, pod: SeenPod) {
        let mut told: Vec<JobUid> = Vec::new();
        match (&pod.facts.owner, &pod.owner_job) {
            (Owner::Controller(owner), Some(job)) => {
                // Nothing is left to do for the Pods of a Job that is gone but this.
                let owner = owner.as_str();
                let is_over = self.gone.contains_key(owner) || self.finished.contains_key(owner);
                let matters = pod.facts.is_tracked || !is_over;
                if matters && self.may_own(owner, &pod) {
                    let uid = self.uid_of(owner);
                    let is_listed = self.entry(scope, &uid, &pod.namespace, job).is_listed;
                    self.note_claim(&uid, &pod, is_listed);
                    told.push(uid);
                }
            }
            (Owner::Controller(_) | Owner::Foreign(_), _) => {}
            (Owner::Nobody, _) => self.find_takers(scope, &pod, &mut told),
        }
        let old = self.routes.get(pod.facts.uid.as_str());
        for uid in old.iter().flat_map(|route| route.told.iter()) {
            let is_stray = **uid == *pod.facts.uid;
            if self.jobs.contains_key(uid) && !told.contains(uid) && !is_stray {
                told.push(uid.clone());
            }
        }
        for uid in &told {
            let is_selected = self.jobs[uid].selection.matches(&pod.labels);
            let facts = Box::new(pod.facts.clone());
            self.tell(uid, Event::PodSeen { facts, is_selected });
        }
        told.extend(self.see_stray(scope, &pod, told.first()));
        self.remember(pod, told);
    }

    /// The stranger that controls a Pod: somebody to whom our finalizer means nothing.
    fn stranger(&self, pod: &SeenPod) -> Option<String> {
        match &pod.facts.owner {
            Owner::Controller(owner) if self.has_own_finalizer() => {
                let is_stranger =
                    pod.owner_job.is_none() || self.foreign.contains_key(owner.as_str());
                is_stranger.then(|| owner.clone())
            }
            Owner::Nobody | Owner::Controller(_) | Owner::Foreign(_) => None,
        }
    }

    /// Whether nobody but us ever looks at our finalizer.
    fn has_own_finalizer(&self) -> bool {
        matches!(self.settings.manages, ManagedBy::External(_))
    }

    /// Keeps a Pod whose Job is not known yet: it may turn out to be a stranger's.
    fn note_claim(&mut self, job: &JobUid, pod: &SeenPod, is_listed: bool) {
        if self.has_own_finalizer() && pod.facts.is_tracked && !is_listed {
            let claims = self.claims.entry(job.clone()).or_default();
            claims.insert(pod.facts.uid.as_str().into(), pod.clone());
        }
    }

    /// Nobody will ever take the finalizer off a Pod that no Job of ours speaks for: that is left
    /// to a ledger of its own, as if of a Job that is gone. What the ledgers of Jobs know of it
    /// does not matter: to them it has left, and they may have been told of that by an answer.
    fn see_stray(&mut self, scope: usize, pod: &SeenPod, taker: Option<&JobUid>) -> Option<JobUid> {
        let owner = match (self.stranger(pod), &pod.facts.owner, taker) {
            (Some(stranger), _, _) => Owner::Foreign(stranger),
            (None, Owner::Nobody, Some(taker)) => Owner::Controller(taker.to_string()),
            (None, owner, _) => owner.clone(),
        };
        let is_left = pod.facts.is_tracked && !matches!(owner, Owner::Controller(_));
        if !is_left && !self.jobs.contains_key(pod.facts.uid.as_str()) {
            return None;
        }
        let uid = self.uid_of(&pod.facts.uid);
        self.entry(scope, &uid, &pod.namespace, &pod.facts.name);
        let facts = Box::new(PodFacts { owner, ..pod.facts.clone() });
        self.tell(&uid, Event::PodSeen { facts, is_selected: false });
        Some(uid)
    }

    /// Whether a Job can have anything to do with a Pod: it is ours, and where the Pod is. A
    /// Pod that was copied from another namespace bears the uid of a Job there.
    fn may_own(&self, uid: &str, pod: &SeenPod) -> bool {
        let is_elsewhere = |namespace: &str| *namespace != *pod.namespace;
        let entry = self.jobs.get(uid).map(|entry| &*entry.namespace);
        let finished = self.finished.get(uid).map(|job| &*job.place.namespace);
        !self.foreign.contains_key(uid) && !entry.or(finished).is_some_and(is_elsewhere)
    }

    /// The Jobs that may want a Pod that is nobody's.
    pub(super) fn find_takers(&mut self, scope: usize, pod: &SeenPod, told: &mut Vec<JobUid>) {
        if let Some(label) = pod.labels.job_uid()
            && self.may_own(label, pod)
        {
            let uid = self.uid_of(label);
            if pod.facts.is_tracked
                && let Some(job) = pod.labels.job_name()
            {
                self.entry(scope, &uid, &pod.namespace, job);
            }
            if self.jobs.contains_key(&uid) {
                told.push(uid);
            }
        }
        for uid in self.selective.get(&pod.namespace).into_iter().flatten() {
            let is_taken = |job: &Entry| job.selection.matches(&pod.labels);
            if !told.contains(uid) && self.jobs.get(uid).is_some_and(is_taken) {
                told.push(uid.clone());
            }
        }
    }

    pub(super) fn remember(&mut self, pod: SeenPod, told: Vec<JobUid>) {
        let told = match <[JobUid; 1]>::try_from(told) {
            Ok([uid]) => Some(Told::One(uid)),
            Err(none) if none.is_empty() => None,
            Err(many) => Some(Told::Many(many.into())),
        };
        let (uid, version) = (pod.facts.uid.as_str(), pod.facts.version);
        match told {
            Some(told) => match self.routes.get_mut(uid) {
                Some(route) => *route = Route { version, told },
                None => {
                    self.routes.insert(uid.into(), Route { version, told });
                }
            },
            None => {
                self.routes.remove(uid);
            }
        }
        match pod.owner() {
            Some(_) => self.orphans.remove(uid),
            None => self.orphans.insert(uid.into(), pod),
        };
    }

    /// At this version a Pod does not exist; its last form says who else may know it.
    pub(super) fn lose_pod(&mut self, uid: &str, version: u64, pod: Option<&SeenPod>) {
        self.orphans.remove(uid);
        for claims in self.claims.values_mut() {
            claims.remove(uid);
        }
        let mut told: Vec<JobUid> = match self.routes.remove(uid) {
            Some(route) => route.told.iter().cloned().collect(),
            None => Vec::new(),
        };
        let others = pod.into_iter().flat_map(|pod| [pod.owner(), pod.labels.job_uid()]);
        for other in others.flatten() {
            let other = self.uid_of(other);
            if !told.contains(&other) {
                told.push(other);
            }
        }
        for job in told {
            self.tell(&job, Event::PodGone { uid: uid.to_owned(), version });
        }
    }
}

impl Told {
    fn iter(&self) -> impl Iterator<Item = &JobUid> {
        match self {
            Told::One(uid) => std::slice::from_ref(uid).iter(),
            Told::Many(uids) => uids.iter(),
        }
    }
}
