//! Which ledger is told of what.
//!
//! A Pod is told to the Job that controls it; without a controller, to the Jobs that select it
//! and to the one whose uid it bears as a label if it bears the finalizer too; and always to
//! those that were told of it before. A Pod that bears the finalizer and for which no Job of ours
//! speaks has a ledger of its own, by the Pod's uid, until it bears it no more. It must not know
//! where news comes from or where ops go.

mod crowd;
mod entry;
mod jobs;
mod pods;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use stint_api::view::{JobView, ManagedBy};
use stint_ledger::event::Event;
use stint_ledger::ledger::{JobLedger, Settings};
use stint_ledger::metric::Metric;
use stint_ledger::op::{Applied, Op, OpId, OpKind, Outcome};

use crate::calls::Target;
use crate::feed::{Change, News};
use crate::job::SeenJob;
use crate::pod::SeenPod;
use crate::selection::Selection;
use crowd::Crowd;
use entry::{Entry, Finished, Place};
use pods::Route;

/// A Job's uid.
pub(crate) type JobUid = Arc<str>;

/// Jobs, their ledgers, and whose the Pods are.
#[derive(Debug)]
pub(crate) struct Router {
    settings: Settings,
    finalizer: Arc<str>,
    jobs: HashMap<JobUid, Entry>,
    /// Those of them that have something to tell.
    crowd: Crowd,
    /// Jobs that another controller runs, and where they are listed.
    foreign: HashMap<JobUid, usize>,
    /// Jobs that have finished, with nothing left to do for them as long as there is no news.
    finished: HashMap<JobUid, Finished>,
    /// Jobs that are gone, with nothing left to do for them.
    gone: HashMap<JobUid, Place>,
    gone_in_order: VecDeque<JobUid>,
    /// How many ledgers there have been.
    ledgers: u64,
    /// The Pods that a ledger was told of.
    routes: HashMap<Box<str>, Route>,
    /// The Pods that are nobody's.
    orphans: HashMap<Box<str>, SeenPod>,
    /// The Pods with our finalizer whose Job is not known yet, by that.
    claims: HashMap<JobUid, HashMap<Box<str>, SeenPod>>,
    /// Jobs that do not select by their own uid, by namespace.
    selective: BTreeMap<String, BTreeSet<JobUid>>,
    scopes: Vec<Scope>,
    /// Jobs whose ledger is to be asked.
    dirty: Vec<JobUid>,
    /// Jobs that wait until the Pods are known as of a newer version.
    awaiting: HashSet<JobUid>,
    wakes: BTreeSet<(Timestamp, JobUid)>,
    /// Jobs of others, to be counted.
    external: Vec<String>,
}

/// A part of the cluster that is listed and watched on its own.
#[derive(Debug)]
struct Scope {
    namespace: Option<String>,
    /// The version as of which all Pods have been told.
    pods_version: Option<u64>,
    jobs: Listed<SeenJob, Bare>,
    pods: Listed<SeenPod, (Box<str>, u64)>,
}

/// How a list stands.
#[derive(Debug)]
enum Listed<T, B> {
    /// There was none: its items are told as they come.
    Never,
    /// Its items are gathered, to be told together.
    Gathering(Gathered<T, B>),
    /// It is complete.
    Whole,
}

/// What a list has told of so far. Of most objects of a cluster nothing is wanted but that they are
/// there, and a list has all of them at once.
#[derive(Debug)]
struct Gathered<T, B> {
    whole: Vec<T>,
    bare: Vec<B>,
}

impl<T, B> Gathered<T, B> {
    fn new() -> Self {
        Gathered { whole: Vec::new(), bare: Vec::new() }
    }
}

/// A Job of a list that is another's, or known to have finished.
#[derive(Debug)]
struct Bare {
    uid: Box<str>,
    version: u64,
    /// Whose it is, if not ours.
    managed_by: Option<ManagedBy>,
}

/// Which ledger asked for an op, and the op. A Job may have had another ledger before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    pub(crate) ledger: u64,
    pub(crate) op: OpId,
}

/// What a ledger wants.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) target: Target,
    pub(crate) mode: &'static str,
    pub(crate) ops: Vec<Op>,
    /// Whether nothing is left to do for the Job, ever.
    pub(crate) is_over: bool,
    /// Whether versions of Jobs and Pods cannot be compared.
    pub(crate) is_torn: bool,
}

impl Router {
    /// Nothing is known yet; `namespaces` are the parts that are listed apart, or all if there
    /// is none.
    pub(crate) fn new(
        settings: Settings,
        finalizer: Arc<str>,
        namespaces: impl IntoIterator<Item = Option<String>>,
    ) -> Self {
        let scope = |namespace| Scope {
            namespace,
            pods_version: None,
            jobs: Listed::Never,
            pods: Listed::Never,
        };
        Router {
            settings,
            finalizer,
            jobs: HashMap::new(),
            crowd: Crowd::default(),
            foreign: HashMap::new(),
            finished: HashMap::new(),
            gone: HashMap::new(),
            gone_in_order: VecDeque::new(),
            ledgers: 0,
            routes: HashMap::new(),
            orphans: HashMap::new(),
            claims: HashMap::new(),
            selective: BTreeMap::new(),
            scopes: namespaces.into_iter().map(scope).collect(),
            dirty: Vec::new(),
            awaiting: HashSet::new(),
            wakes: BTreeSet::new(),
            external: Vec::new(),
        }
    }

    /// How many Jobs have a ledger.
    pub(crate) fn jobs_held(&self) -> usize {
        self.jobs.len()
    }

    /// How many Pods are known.
    pub(crate) fn pods_held(&self) -> usize {
        self.routes.len()
    }

    /// Takes in what a Job feed tells.
    pub(crate) fn take_jobs(&mut self, scope: usize, news: News<SeenJob>) {
        match news {
            News::Began => self.scopes[scope].jobs = Listed::Gathering(Gathered::new()),
            News::Items(items) => {
                let mut listed = std::mem::replace(&mut self.scopes[scope].jobs, Listed::Whole);
                if let Listed::Gathering(gathered) = &mut listed {
                    self.gather_jobs(gathered, items);
                }
                self.scopes[scope].jobs = listed;
            }
            News::Listed(version) => {
                let listed = std::mem::replace(&mut self.scopes[scope].jobs, Listed::Whole);
                if let Listed::Gathering(jobs) = listed {
                    self.jobs_listed(scope, jobs, version);
                }
            }
            News::Changes(changes) => {
                for change in changes {
                    match change {
                        Change::Seen(job) => self.see_job(scope, job),
                        Change::Gone(job) => self.lose_job(&job.uid, job.version),
                        Change::Reached(_) => {}
                    }
                }
            }
        }
    }

    /// Takes in what a Pod feed tells.
    pub(crate) fn take_pods(&mut self, scope: usize, news: News<SeenPod>) {
        match news {
            News::Began => {
                let state = &mut self.scopes[scope];
                // The first list meets nothing that could be missing from it. If it breaks
                // off, the next one does.
                state.pods = match state.pods {
                    Listed::Never => Listed::Whole,
                    Listed::Gathering(_) | Listed::Whole => Listed::Gathering(Gathered::new()),
                };
            }
            News::Items(items) => {
                let mut listed = std::mem::replace(&mut self.scopes[scope].pods, Listed::Whole);
                match &mut listed {
                    Listed::Gathering(gathered) => self.gather_pods(gathered, items),
                    Listed::Never | Listed::Whole => {
                        for item in items {
                            self.take_pod_change(scope, item);
                        }
                    }
                }
                self.scopes[scope].pods = listed;
            }
            News::Listed(version) => {
                let listed = std::mem::replace(&mut self.scopes[scope].pods, Listed::Whole);
                if let Listed::Gathering(pods) = listed {
                    self.pods_listed(scope, pods, version);
                }
                let known = &mut self.scopes[scope].pods_version;
                *known = (*known).max(Some(version));
                let uids: Vec<JobUid> = self.jobs_in(scope);
                uids.iter().for_each(|uid| self.touch(uid));
            }
            News::Changes(changes) => {
                for change in changes {
                    let version = self.take_pod_change(scope, change);
                    let known = &mut self.scopes[scope].pods_version;
                    *known = known.map(|known| known.max(version));
                }
                let is_of_scope =
                    |uid: &&JobUid| self.jobs.get(*uid).is_some_and(|entry| entry.scope == scope);
                let awaiting: Vec<JobUid> =
                    self.awaiting.iter().filter(is_of_scope).cloned().collect();
                awaiting.iter().for_each(|uid| self.touch(uid));
            }
        }
    }

    /// Takes in a change, and says its version.
    fn take_pod_change(&mut self, scope: usize, change: Change<SeenPod>) -> u64 {
        match change {
            Change::Seen(pod) => {
                let version = pod.facts.version;
                self.see_pod(scope, pod);
                version
            }
            Change::Gone(pod) => {
                let version = pod.facts.version;
                self.lose_pod(&pod.facts.uid, version, Some(&pod));
                version
            }
            Change::Reached(version) => version,
        }
    }

    /// Tells a ledger, if there is one.
    fn tell(&mut self, uid: &JobUid, event: Event) {
        if let Some(entry) = self.jobs.get_mut(uid) {
            entry.ledger.observe(event);
            self.touch(uid);
        }
    }

    /// Has a ledger asked.
    pub(crate) fn touch(&mut self, uid: &JobUid) {
        if let Some(entry) = self.jobs.get_mut(uid)
            && !entry.is_dirty
        {
            entry.is_dirty = true;
            self.dirty.push(uid.clone());
        }
    }

    /// The one copy of a uid that is kept.
    fn uid_of(&self, uid: &str) -> JobUid {
        self.jobs.get_key_value(uid).map_or_else(|| uid.into(), |(uid, _)| uid.clone())
    }

    fn entry(&mut self, scope: usize, uid: &JobUid, namespace: &str, name: &str) -> &mut Entry {
        self.finished.remove(uid);
        self.jobs.entry(uid.clone()).or_insert_with(|| Entry {
            ledger: JobLedger::new(self.settings.clone(), name, uid),
            number: {
                self.ledgers += 1;
                self.ledgers
            },
            namespace: namespace.into(),
            name: name.into(),
            has_met_orphans: false,
            scope,
            is_listed: false,
            is_dirty: false,
            selection: Selection { job_uid: uid.clone(), selector: None },
            mode: "NonIndexed",
            mould: None,
            generation: 0,
            standing: None,
            version: 0,
            wake: None,
        })
    }

    fn jobs_in(&self, scope: usize) -> Vec<JobUid> {
        let of_scope = self.jobs.iter().filter(|(_, entry)| entry.scope == scope);
        of_scope.map(|(uid, _)| uid.clone()).collect()
    }

    /// Tells a ledger what came of an op that has not shown its Job.
    pub(crate) fn settle(&mut self, uid: &JobUid, asked: Asker, outcome: Outcome) {
        self.settle_with(uid, asked, outcome, None);
    }

    /// Tells a ledger what came of an op; if that is its Job, with what its Pods are made from.
    pub(crate) fn settle_with(
        &mut self,
        uid: &JobUid,
        asked: Asker,
        outcome: Outcome,
        template: Option<&Value>,
    ) {
        if self.jobs.get(uid).is_none_or(|entry| entry.number != asked.ledger) {
            // Whoever asked is no more, and its successor counts its ops anew.
            return;
        }
        if let (Outcome::Applied(Applied::Job(job)), Some(template)) = (&outcome, template)
            && *job.uid == **uid
        {
            self.note(uid, job, template);
        }
        if let Some(entry) = self.jobs.get_mut(uid) {
            entry.ledger.settle(asked.op, outcome);
            self.touch(uid);
        }
    }

    /// Tells a ledger of a Job that an answer has shown and that cannot be read.
    pub(crate) fn cannot_read(&mut self, uid: &JobUid, job: SeenJob) {
        match self.jobs.get(uid).map(|entry| entry.scope) {
            Some(scope) if *job.uid == **uid => self.see_job(scope, job),
            Some(_) | None => {}
        }
    }

    /// Whether a Pod that waits to be created is still wanted. If it is not, its ledger has
    /// been told that it will not be.
    pub(crate) fn still_wants(&mut self, uid: &JobUid, asked: Asker, now: Timestamp) -> bool {
        let entry = self.jobs.get_mut(uid).filter(|entry| entry.number == asked.ledger);
        let Some(entry) = entry else { return false };
        let is_wanted = entry.ledger.wants(asked.op, now);
        if !is_wanted {
            entry.ledger.withdraw(asked.op);
            self.touch(uid);
        }
        is_wanted
    }

    /// Which Pods a Job selects; none that is not known any more.
    pub(crate) fn selection(&self, uid: &JobUid) -> Selection {
        let unknown = || Selection { job_uid: uid.clone(), selector: None };
        self.jobs.get(uid).map_or_else(unknown, |entry| entry.selection.clone())
    }

    /// The Jobs whose ledgers are to be asked now.
    pub(crate) fn take_dirty(&mut self, now: Timestamp) -> Vec<JobUid> {
        while self.wakes.first().is_some_and(|(at, _)| *at <= now) {
            let (_, uid) = self.wakes.pop_first().expect("there is a first");
            if let Some(entry) = self.jobs.get_mut(&uid) {
                entry.wake = None;
                self.touch(&uid);
            }
        }
        std::mem::take(&mut self.dirty)
    }

    /// Whether a ledger is to be asked.
    pub(crate) fn has_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// When a ledger wants to be asked again.
    pub(crate) fn wake_at(&self) -> Option<Timestamp> {
        self.wakes.first().map(|(at, _)| *at)
    }

    /// Asks a ledger what to do.
    pub(crate) fn ask(&mut self, uid: &JobUid, now: Timestamp) -> Option<Asked> {
        let interval = self.crowd.interval(self.settings.status_interval, now);
        let entry = self.jobs.get_mut(uid)?;
        entry.is_dirty = false;
        entry.ledger.space_statuses(interval);
        if let Some(version) = self.scopes[entry.scope].pods_version {
            entry.ledger.observe(Event::PodsCurrent { version });
        }
        let ops = entry.ledger.next(now);
        if ops.iter().any(|op| matches!(op.kind, OpKind::WriteStatus { .. })) {
            self.crowd.tells(uid, now);
        }
        let wake = entry.ledger.wake_at();
        if wake != entry.wake {
            if let Some(old) = entry.wake.take() {
                self.wakes.remove(&(old, uid.clone()));
            }
            self.wakes.extend(wake.map(|at| (at, uid.clone())));
            entry.wake = wake;
        }
        if entry.ledger.awaits_pods() {
            self.awaiting.insert(uid.clone());
        } else {
            self.awaiting.remove(uid);
        }
        let is_over = entry.ledger.is_empty() && ops.is_empty();
        let is_torn = entry.ledger.is_torn();
        let asked = Asked { target: entry.target(uid), mode: entry.mode, ops, is_over, is_torn };
        if is_over {
            let place = entry.place();
            self.drop_job(uid);
            self.remember_gone(uid, place);
        } else if entry.ledger.is_done() && asked.ops.is_empty() && entry.is_listed {
            let finished =
                Finished { place: entry.place(), scope: entry.scope, version: entry.version };
            self.drop_job(uid);
            self.finished.insert(uid.clone(), finished);
        }
        Some(asked)
    }

    /// Takes note of how a Job stands.
    fn note(&mut self, uid: &JobUid, job: &JobView, template: &Value) {
        let finalizer = self.finalizer.clone();
        if let Some(entry) = self.jobs.get_mut(uid) {
            entry.note(job, template, uid, &finalizer);
        }
    }

    /// The controllers of Jobs that are not ours, each once for each Job.
    pub(crate) fn take_external(&mut self) -> Vec<Metric> {
        let names = std::mem::take(&mut self.external).into_iter();
        names.map(|controller| Metric::External { controller }).collect()
    }
}
