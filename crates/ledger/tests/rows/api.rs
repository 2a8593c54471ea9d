//! A small obedient API server: it keeps versions, names and finalizers, guards every
//! status by the API's own rules, and tells of every change.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use stint_api::feature_gates::FeatureGates;
use stint_api::prepare::{prepare_for_create, prepare_for_update};
use stint_api::validation::job::validate_job;
use stint_api::validation::job_status::validate_job_status_update;
use stint_api::validation::job_update::validate_job_update;
use stint_api::view::JobView;
use stint_ledger::event::Event;
use stint_ledger::op::{Applied, NewPod, OpKind, Outcome, PodRef, Refusal};
use stint_ledger::pod_facts::{Owner, PodFacts, PodPhase};

use crate::labels::Labels;
use crate::row;

pub(crate) const JOB_UID: &str = "job-uid";

/// A Pod in the API.
#[derive(Clone)]
pub(crate) struct ApiPod {
    pub(crate) facts: PodFacts,
    /// Whether the Job's selector matches it.
    pub(crate) is_selected: bool,
}

pub(crate) struct Api {
    pub(crate) now: Timestamp,
    pub(crate) version: u64,
    pub(crate) gates: FeatureGates,
    /// The Job, unless it is gone.
    pub(crate) job: Option<Job>,
    /// The Pods by name.
    pub(crate) pods: BTreeMap<String, ApiPod>,
    pub(crate) labels: Labels,
    /// The uids that have been given to Pods, each once.
    uids: BTreeSet<String>,
    /// What watchers of the Job have not been told yet.
    pub(crate) job_news: Vec<Event>,
    /// The same for its Pods.
    pub(crate) pod_news: Vec<Event>,
}

impl Api {
    pub(crate) fn new(manifest: &Value) -> Self {
        let gates = FeatureGates::default();
        let mut job: Job = serde_json::from_value(manifest.clone()).expect("a well typed Job");
        job.metadata.uid = Some(JOB_UID.to_owned());
        job.metadata.resource_version = Some("1".to_owned());
        prepare_for_create(&mut job, &gates);
        let errors = validate_job(&job);
        assert!(errors.is_empty(), "the Job is invalid: {errors:#?}");
        Self {
            now: start(),
            version: 1,
            gates,
            job: Some(job),
            pods: BTreeMap::new(),
            labels: Labels::default(),
            uids: BTreeSet::new(),
            job_news: Vec::new(),
            pod_news: Vec::new(),
        }
    }

    pub(crate) fn status(&self) -> JobStatus {
        self.job.as_ref().and_then(|job| job.status.clone()).unwrap_or_default()
    }

    /// The Job as a watcher is told of it.
    pub(crate) fn job_event(&self) -> Event {
        let Some(job) = &self.job else {
            return Event::JobGone { version: self.version };
        };
        match JobView::parse(job) {
            Ok(view) => Event::JobSeen(Box::new(view)),
            Err(error) => Event::JobUnreadable { version: self.version, error },
        }
    }

    /// Carries an op out.
    pub(crate) fn apply(&mut self, op: &OpKind) -> Outcome {
        match op {
            OpKind::CreatePod(new) => self.create(new),
            // A deletion is about one uid, whatever its version.
            OpKind::DeletePod(pod) => {
                self.at(&PodRef { version: None, ..pod.clone() }, |facts, now| {
                    facts.finished_at = if facts.is_deleted { facts.finished_at } else { now };
                    facts.is_deleted = true;
                })
            }
            OpKind::RemoveFinalizer(pod) => self.at(pod, |facts, _| facts.is_tracked = false),
            OpKind::AdoptPod(pod) => match &self.job {
                None => Outcome::Applied(Applied::NoJob),
                Some(job) if job.metadata.deletion_timestamp.is_some() => {
                    Outcome::Refused(Refusal::Rejected("the Job is being deleted".to_owned()))
                }
                Some(_) => self.at(pod, |facts, _| {
                    facts.owner = Owner::Controller(JOB_UID.to_owned());
                    facts.is_tracked = true;
                }),
            },
            OpKind::ReleasePod(pod) => self.at(pod, |facts, _| {
                facts.owner = Owner::Nobody;
                facts.is_tracked = false;
            }),
            OpKind::WriteStatus { version, status } => self.write(*version, status),
            OpKind::LookUpJob => match self.job_event() {
                Event::JobSeen(job) => Outcome::Applied(Applied::Job(job)),
                _ => Outcome::Applied(Applied::NoJob),
            },
            OpKind::LookUpPod(name) => self.answer(name),
            OpKind::LookUpPods => {
                let pods = self.pods.values().map(|pod| (pod.facts.clone(), pod.is_selected));
                Outcome::Applied(Applied::Pods { pods: pods.collect(), version: self.version })
            }
            OpKind::EmitEvent(_) | OpKind::Record(_) => panic!("this needs no answer"),
        }
    }

    /// A Pod comes into being: asked for by the ledger, or not.
    pub(crate) fn add(&mut self, label: &str, name: &str, index: Option<u32>) {
        let mut uid = label.to_owned();
        while !self.uids.insert(uid.clone()) {
            uid.push('+');
        }
        let facts = PodFacts {
            name: name.to_owned(),
            uid,
            version: 0,
            owner: Owner::Controller(JOB_UID.to_owned()),
            is_tracked: true,
            phase: PodPhase::Pending,
            created: self.now,
            is_deleted: false,
            index,
            failure_count: 0,
            ignored_failure_count: 0,
            interruption_count: 0,
            is_scheduled: true,
            ready_since: None,
            restart_count: 0,
            finished_at: self.now,
            exits: Vec::new(),
            conditions: Vec::new(),
        };
        self.pods.insert(name.to_owned(), ApiPod { facts, is_selected: true });
    }

    /// A Pod has changed: watchers are told, and it goes if nothing holds it.
    pub(crate) fn publish(&mut self, name: &str) {
        self.version += 1;
        let pod = self.pods.get_mut(name).expect("a Pod that changes exists");
        pod.facts.version = self.version;
        let ApiPod { facts, is_selected } = pod.clone();
        let has_ended = facts.is_finished() || !facts.is_scheduled;
        let is_free = facts.is_deleted && has_ended && !facts.is_tracked;
        let uid = facts.uid.clone();
        self.pod_news.push(Event::PodSeen { facts: Box::new(facts), is_selected });
        if is_free {
            self.vanish(name, uid);
        }
    }

    /// A Pod is there no longer.
    pub(crate) fn vanish(&mut self, name: &str, uid: String) {
        self.pods.remove(name);
        self.version += 1;
        self.pod_news.push(Event::PodGone { uid, version: self.version });
    }

    /// Somebody changes the spec.
    pub(crate) fn change_spec(&mut self, patch: &Value) {
        let old = self.job.clone().expect("a Job that is changed exists");
        let mut new = serde_json::to_value(&old).expect("a Job is JSON");
        row::merge(&mut new["spec"], patch);
        let mut new: Job = serde_json::from_value(new).expect("a well typed Job");
        prepare_for_update(&mut new, &old, &self.gates);
        let errors = validate_job_update(&new, &old);
        assert!(errors.is_empty(), "this change is not allowed: {errors:#?}");
        self.put_job(new);
    }

    /// Somebody else writes into the status, whatever the rules say.
    pub(crate) fn change_status(&mut self, patch: &Value) {
        let mut job = serde_json::to_value(&self.job).expect("a Job is JSON");
        row::merge(&mut job["status"], patch);
        self.put_job(serde_json::from_value(job).expect("a well typed Job"));
    }

    /// The Job is to be deleted, and waits for those who hold it.
    pub(crate) fn delete_job(&mut self) {
        let mut job = self.job.clone().expect("a Job that is deleted exists");
        job.metadata.deletion_timestamp = Some(Time(self.now));
        self.put_job(job);
    }

    pub(crate) fn put_job(&mut self, mut job: Job) {
        self.version += 1;
        job.metadata.resource_version = Some(self.version.to_string());
        self.job = Some(job);
        self.job_news.push(self.job_event());
    }

    fn create(&mut self, new: &NewPod) -> Outcome {
        if self.pods.contains_key(&new.name) {
            return Outcome::Refused(Refusal::AlreadyExists);
        }
        let label = self.labels.ask(&new.name, new.index);
        self.add(&label, &new.name, new.index);
        let facts = &mut self.pods.get_mut(&new.name).expect("it was just added").facts;
        facts.failure_count = new.failure_count.unwrap_or(0);
        facts.ignored_failure_count = new.ignored_failure_count;
        facts.interruption_count = new.interruption_count;
        self.publish(&new.name);
        self.answer(&new.name)
    }

    /// Changes the Pod that an op is about, if it is still that one.
    fn at(&mut self, pod: &PodRef, change: impl FnOnce(&mut PodFacts, Timestamp)) -> Outcome {
        let now = self.now;
        let Some(found) = self.pods.get_mut(&pod.name) else {
            return Outcome::Refused(Refusal::NotFound);
        };
        let is_other = found.facts.uid != pod.uid;
        if is_other || pod.version.is_some_and(|version| version != found.facts.version) {
            return Outcome::Refused(Refusal::Conflict);
        }
        let before = found.facts.clone();
        change(&mut found.facts, now);
        if found.facts != before {
            self.publish(&pod.name);
        }
        self.answer(&pod.name)
    }

    fn answer(&self, name: &str) -> Outcome {
        Outcome::Applied(match self.pods.get(name) {
            Some(pod) => {
                let mut facts = pod.facts.clone();
                // An answer does not tell strangers from others.
                if let Owner::Foreign(uid) = facts.owner {
                    facts.owner = Owner::Controller(uid);
                }
                Applied::Pod(Box::new(facts))
            }
            None => Applied::NoPod,
        })
    }

    fn write(&mut self, version: u64, status: &JobStatus) -> Outcome {
        let Some(old) = self.job.clone() else {
            return Outcome::Refused(Refusal::NotFound);
        };
        if old.metadata.resource_version != Some(version.to_string()) {
            return Outcome::Refused(Refusal::Conflict);
        }
        let mut new = old.clone();
        new.status = Some(status.clone());
        let errors = validate_job_status_update(&new, &old, &self.gates);
        if let Some(error) = errors.first() {
            return Outcome::Refused(Refusal::Rejected(error.to_string()));
        }
        self.put_job(new);
        let view = JobView::parse(self.job.as_ref().expect("it was just put"));
        Outcome::Applied(Applied::Job(Box::new(view.expect("the ledger could read it before"))))
    }
}

/// When every row begins.
pub(crate) fn start() -> Timestamp {
    Timestamp::from_second(1_000_000).expect("a time")
}
