//! A model of the API server's store: one Job name, Pods by name, one counter of versions,
//! and the log of every change.
//!
//! Each change takes one version, so the change after version `v` is the log's entry
//! `v - base`: a watch is a version, and a list at any older version is a replay of the log up
//! to it. The store knows no rules of Jobs; those of single requests are in `request`.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use stint_api::view::{JobView, JobViewError, ManagedBy};
use stint_ledger::pod_facts::{Owner, PodFacts};

/// The name of every Job of a world; one uid has it at a time.
pub const JOB_NAME: &str = "j";
/// The name of the controller that a Job may be given to in place of the built-in one.
pub const CUSTOM_MANAGER: &str = "stint.dev/job-controller";

/// Who runs a Job, and by whose finalizer its Pods are tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Manager {
    /// The built-in controller.
    BuiltIn,
    /// The one that `spec.managedBy` names.
    Custom,
}

impl Manager {
    /// As the ledger's settings say it.
    pub fn managed_by(self) -> ManagedBy {
        match self {
            Manager::BuiltIn => ManagedBy::BuiltIn,
            Manager::Custom => ManagedBy::External(CUSTOM_MANAGER.to_owned()),
        }
    }

    /// Who runs this Job.
    pub fn of(job: &Job) -> Self {
        let named = job.spec.as_ref().and_then(|spec| spec.managed_by.as_deref());
        match ManagedBy::parse(named) {
            ManagedBy::BuiltIn => Manager::BuiltIn,
            ManagedBy::External(_) => Manager::Custom,
        }
    }
}

/// How the Pods of a Job that is deleted are dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Propagation {
    /// The Job goes at once, its Pods after it.
    Background,
    /// The Pods go first.
    Foreground,
    /// The Pods stay, and are nobody's.
    Orphan,
}

/// A Job at one version.
#[derive(Clone, Debug)]
pub struct StoredJob {
    /// Its uid.
    pub uid: String,
    /// Its version.
    pub version: u64,
    /// The object.
    pub job: Job,
    /// The object as a controller reads it.
    pub view: Result<JobView, JobViewError>,
    /// How it is being deleted.
    pub deletion: Option<Propagation>,
}

/// A Pod at one version.
#[derive(Clone, Debug)]
pub struct StoredPod {
    /// The facts; `is_tracked` if it bears the finalizer of `finalizer_of`.
    pub facts: PodFacts,
    /// Whose finalizer it bears, or bore.
    pub finalizer_of: Manager,
    /// The Job whose selector matches its labels.
    pub label_uid: Option<String>,
}

impl StoredPod {
    /// The facts as a controller sees them that looks for its own finalizer, and knows all Jobs.
    pub fn seen_by(&self, manager: Manager) -> PodFacts {
        let mut facts = self.answered_to(manager);
        if manager == Manager::Custom {
            facts.owner.clone_from(&self.facts.owner);
        }
        facts
    }

    /// The facts as an answer tells them, which does not tell strangers from others.
    pub fn answered_to(&self, manager: Manager) -> PodFacts {
        let mut facts = self.facts.clone();
        facts.is_tracked &= manager == self.finalizer_of;
        if let Owner::Foreign(uid) = facts.owner {
            facts.owner = Owner::Controller(uid);
        }
        facts
    }

    /// The uid of the Job that controls it.
    pub fn owner_uid(&self) -> Option<&str> {
        match &self.facts.owner {
            Owner::Nobody => None,
            Owner::Controller(uid) | Owner::Foreign(uid) => Some(uid),
        }
    }

    /// Whether nothing keeps it in the store: deleted, held by no finalizer, and either
    /// ended or never given to a node that would have to end it.
    fn is_collectable(&self) -> bool {
        let facts = &self.facts;
        facts.is_deleted && !facts.is_tracked && (facts.is_finished() || !facts.is_scheduled)
    }
}

/// One entry of the log.
#[derive(Clone, Debug)]
pub enum Change {
    /// A Job was created or changed.
    Job(Arc<StoredJob>),
    /// A Job is gone.
    JobGone {
        /// Its uid.
        uid: String,
    },
    /// A Pod was created or changed.
    Pod(Arc<StoredPod>),
    /// A Pod is gone; this is what it was last.
    PodGone(Arc<StoredPod>),
}

/// What a list tells.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The Job, if there was one.
    pub job: Option<Arc<StoredJob>>,
    /// The Pods by name.
    pub pods: BTreeMap<String, Arc<StoredPod>>,
}

/// The store.
#[derive(Clone, Debug, Default)]
pub struct Api {
    /// What is there now.
    pub now: Listing,
    /// Every change, oldest first.
    pub log: Vec<Change>,
    /// The version of the empty store. A search of all worlds sets it high, to know versions
    /// from other numbers.
    pub base: u64,
    pods_made: BTreeMap<String, u32>,
}

impl Api {
    /// An empty store at this version.
    pub fn starting_at(base: u64) -> Self {
        Self { base, ..Self::default() }
    }

    /// The version of the last change.
    pub fn version(&self) -> u64 {
        self.base + self.log.len() as u64
    }

    /// The changes after a version.
    pub fn since(&self, version: u64) -> &[Change] {
        &self.log[(version - self.base) as usize..]
    }

    /// The Job with this uid, if it exists.
    pub fn job(&self, uid: &str) -> Option<&Arc<StoredJob>> {
        self.now.job.as_ref().filter(|job| job.uid == uid)
    }

    /// The Pod of this name.
    pub fn pod(&self, name: &str) -> Option<&Arc<StoredPod>> {
        self.now.pods.get(name)
    }

    /// A uid that no Pod has had: it says the name, so that it does not depend on what else
    /// was created before.
    pub fn next_pod_uid(&mut self, name: &str) -> String {
        let count = self.pods_made.entry(name.to_owned()).or_insert(0);
        *count += 1;
        format!("{name}.{count}")
    }

    /// Stores a Job, with the next version.
    pub fn put_job(&mut self, uid: String, mut job: Job, deletion: Option<Propagation>) {
        let version = self.version() + 1;
        job.metadata.resource_version = Some(version.to_string());
        let view = JobView::parse(&job);
        let stored = Arc::new(StoredJob { uid, version, job, view, deletion });
        self.now.job = Some(Arc::clone(&stored));
        self.log.push(Change::Job(stored));
    }

    /// Removes the Job.
    pub fn drop_job(&mut self) {
        if let Some(job) = self.now.job.take() {
            self.log.push(Change::JobGone { uid: job.uid.clone() });
        }
    }

    /// Stores a Pod, with the next version, and removes it again if nothing keeps it: a
    /// write that takes the last finalizer off a deleted object removes it.
    pub fn put_pod(&mut self, mut pod: StoredPod) {
        pod.facts.version = self.version() + 1;
        let name = pod.facts.name.clone();
        if pod.is_collectable() {
            self.now.pods.remove(&name);
            self.log.push(Change::PodGone(Arc::new(pod)));
        } else {
            let pod = Arc::new(pod);
            self.now.pods.insert(name, Arc::clone(&pod));
            self.log.push(Change::Pod(pod));
        }
    }

    /// Changes a Pod; whether there is one of that name.
    pub fn change_pod(&mut self, name: &str, change: impl FnOnce(&mut StoredPod)) -> bool {
        let Some(pod) = self.pod(name) else {
            return false;
        };
        let mut pod = StoredPod::clone(pod);
        change(&mut pod);
        self.put_pod(pod);
        true
    }

    /// Asks for a Pod's deletion; whether that changed anything.
    pub fn delete_pod(&mut self, name: &str) -> bool {
        self.pod(name).is_some_and(|pod| !pod.facts.is_deleted)
            && self.change_pod(name, |pod| pod.facts.is_deleted = true)
    }

    /// What was there at a version.
    pub fn list(&self, version: u64) -> Listing {
        if version >= self.version() {
            return self.now.clone();
        }
        let mut listing = Listing::default();
        for change in &self.log[..version.saturating_sub(self.base) as usize] {
            match change {
                Change::Job(job) => listing.job = Some(Arc::clone(job)),
                Change::JobGone { .. } => listing.job = None,
                Change::Pod(pod) => {
                    listing.pods.insert(pod.facts.name.clone(), Arc::clone(pod));
                }
                Change::PodGone(pod) => {
                    listing.pods.remove(&pod.facts.name);
                }
            }
        }
        listing
    }
}
