//! A controller: real ledgers, two watches as places in the API's log, and requests on
//! their way.
//!
//! What is modelled is what the controller crate does: which ledger an event goes to, what
//! a list says is gone, and that a ledger is told how far the Pod watch has come before it
//! is asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use stint_api::feature_gates::FeatureGates;
use stint_ledger::event::Event;
use stint_ledger::ledger::{JobLedger, Settings};
use stint_ledger::op::{Applied, Op, OpId, OpKind, Outcome};
use stint_ledger::pod_facts::{Owner, PodFacts};

use crate::api::{Api, Change, JOB_NAME, Listing, Manager, StoredJob, StoredPod};
use crate::choice::{ControllerId, OpKey};

/// A request on its way.
#[derive(Clone, Debug)]
pub struct Flight {
    /// Who sent it.
    pub sender: ControllerId,
    /// Whose finalizer and Jobs the sender deals with.
    pub manager: Manager,
    /// The ledger it is from.
    pub job_uid: String,
    /// Its name in that ledger.
    pub id: OpId,
    /// Its name in choices.
    pub key: OpKey,
    /// The request.
    pub kind: OpKind,
    /// The API's version when it was sent.
    pub sent_at: u64,
    /// How far the sender's watches had come when it was sent.
    pub jobs_seen: u64,
    /// The same, of Pods.
    pub pods_seen: u64,
    /// The time at the sender when it was sent.
    pub sent_time: Timestamp,
    /// What came of it, once it was carried out.
    pub outcome: Option<Outcome>,
}

/// The ledgers that are told of a Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Route {
    version: u64,
    owner: Option<String>,
    label: Option<String>,
}

/// A controller.
#[derive(Clone, Debug)]
pub struct Controller {
    /// Which one.
    pub id: ControllerId,
    /// Whose Jobs it runs.
    pub manager: Manager,
    /// Its feature gates.
    pub gates: FeatureGates,
    /// Whether it leads; one that does not does nothing.
    pub is_leading: bool,
    /// The ledgers by Job uid.
    pub ledgers: BTreeMap<String, JobLedger>,
    /// How far the Job watch has come.
    pub jobs_cursor: u64,
    /// How far it had come when it had come furthest.
    pub jobs_told: u64,
    /// How far the Pod watch has come.
    pub pods_cursor: u64,
    /// The version of the Pod list that the ledgers began with, and the API's own then.
    pub began_at: (u64, u64),
    /// Requests on their way.
    pub flights: Vec<Flight>,
    /// How far its clock is ahead, in seconds.
    pub clock_offset: i32,
    /// Requests that failed at this time, and at this time of its clock.
    pub failed_requests: ((Timestamp, Timestamp), Vec<(String, OpKind)>),
    /// Jobs whose interim condition it has been told of.
    pub told_of_end: BTreeSet<String>,
    /// Jobs of whose end it has written, without knowing what came of that.
    pub end_in_doubt: BTreeSet<String>,
    /// Jobs whose ledger had nothing left to do.
    dropped: BTreeSet<String>,
    /// The newest version of each object that an answer has told of, by uid.
    pub answered: BTreeMap<String, u64>,
    known_jobs: BTreeSet<String>,
    known_pods: BTreeMap<String, Route>,
    last_pod: Option<Arc<StoredPod>>,
}

impl Controller {
    /// A controller that does not lead yet.
    pub fn new(id: ControllerId, manager: Manager) -> Self {
        Self {
            id,
            manager,
            gates: FeatureGates::default(),
            is_leading: false,
            ledgers: BTreeMap::new(),
            jobs_cursor: 0,
            jobs_told: 0,
            pods_cursor: 0,
            began_at: (0, 0),
            flights: Vec::new(),
            clock_offset: 0,
            failed_requests: ((Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH), Vec::new()),
            told_of_end: BTreeSet::new(),
            end_in_doubt: BTreeSet::new(),
            dropped: BTreeSet::new(),
            answered: BTreeMap::new(),
            known_jobs: BTreeSet::new(),
            known_pods: BTreeMap::new(),
            last_pod: None,
        }
    }

    /// The time by its own clock.
    pub fn clock(&self, now: Timestamp) -> Timestamp {
        let offset = SignedDuration::from_secs(i64::from(self.clock_offset));
        now.checked_add(offset).expect("a simulation is shorter than the calendar")
    }

    /// Forgets everything, and hands over the requests that nobody waits for any more.
    pub fn stop(&mut self) -> Vec<Flight> {
        self.ledgers.clear();
        self.known_jobs.clear();
        self.known_pods.clear();
        self.told_of_end.clear();
        self.dropped.clear();
        self.end_in_doubt.clear();
        self.answered.clear();
        self.last_pod = None;
        self.jobs_told = 0;
        self.failed_requests.1.clear();
        self.is_leading = false;
        let flights = std::mem::take(&mut self.flights);
        flights.into_iter().filter(|flight| flight.outcome.is_none()).collect()
    }

    /// Starts from lists of these versions.
    pub fn start(&mut self, api: &Api, jobs_version: u64, pods_version: u64) {
        self.is_leading = true;
        self.began_at = (pods_version, api.version());
        self.relist(api, jobs_version, pods_version);
    }

    /// Lists everything as it was at these versions, and goes on watching from there. What
    /// was known and is not in a list is said to be gone as of that list.
    pub fn relist(&mut self, api: &Api, jobs_version: u64, pods_version: u64) {
        self.jobs_cursor = jobs_version;
        self.jobs_told = self.jobs_told.max(jobs_version);
        self.pods_cursor = pods_version;
        let job = api.list(jobs_version).job;
        let kept = job.as_ref().map(|job| job.uid.clone());
        // A ledger may know of a Job that an older list has made the watch forget.
        let known: BTreeSet<&String> = self.known_jobs.iter().chain(self.ledgers.keys()).collect();
        let gone: Vec<String> =
            known.into_iter().filter(|uid| Some(*uid) != kept.as_ref()).cloned().collect();
        for uid in gone {
            self.lose_job(&uid, jobs_version);
        }
        if let Some(job) = job {
            self.see_job(&job);
        }
        let listing = api.list(pods_version);
        self.lose_unlisted(&listing, pods_version);
        for pod in listing.pods.values() {
            self.see_pod(pod);
        }
    }

    fn lose_unlisted(&mut self, listing: &Listing, version: u64) {
        let listed: BTreeSet<&str> =
            listing.pods.values().map(|pod| pod.facts.uid.as_str()).collect();
        // What has been seen since the time of the list is not gone.
        let is_gone = |(uid, route): &(&String, &Route)| {
            !listed.contains(uid.as_str()) && route.version <= version
        };
        let gone: Vec<String> =
            self.known_pods.iter().filter(is_gone).map(|(uid, _)| uid.clone()).collect();
        for uid in gone {
            self.lose_pod(&uid, version);
        }
        // Ledgers know Pods by answers that the watch has not told of, and now never will.
        for ledger in self.ledgers.values_mut() {
            let known = ledger.pod_uids().into_iter();
            for uid in known.filter(|uid| !listed.contains(uid.as_str())) {
                ledger.observe(Event::PodGone { uid, version });
            }
        }
    }

    /// Delivers the next change of the Job watch; the ledger that was told.
    pub fn deliver_job(&mut self, api: &Api) -> Option<String> {
        while self.jobs_cursor < api.version() {
            let change = &api.since(self.jobs_cursor)[0];
            self.jobs_cursor += 1;
            self.jobs_told = self.jobs_told.max(self.jobs_cursor);
            match change {
                Change::Job(job) => {
                    self.see_job(job);
                    return Some(job.uid.clone());
                }
                Change::JobGone { uid } => {
                    self.lose_job(uid, self.jobs_cursor);
                    return Some(uid.clone());
                }
                Change::Pod(_) | Change::PodGone(_) => {}
            }
        }
        None
    }

    /// Whether the Job watch has something to deliver.
    pub fn has_job_news(&self, api: &Api) -> bool {
        let is_news = |change: &Change| matches!(change, Change::Job(_) | Change::JobGone { .. });
        api.since(self.jobs_cursor).iter().any(is_news)
    }

    /// Delivers up to `count` changes of the Pod watch, or a bookmark if there is none.
    pub fn deliver_pods(&mut self, api: &Api, count: u32) {
        let mut delivered = 0;
        while self.pods_cursor < api.version() && delivered < count {
            let change = &api.since(self.pods_cursor)[0];
            self.pods_cursor += 1;
            match change {
                Change::Pod(pod) => {
                    self.see_pod(pod);
                    self.last_pod = Some(Arc::clone(pod));
                    delivered += 1;
                }
                Change::PodGone(pod) => {
                    self.lose_pod(&pod.facts.uid, self.pods_cursor);
                    self.last_pod = None;
                    delivered += 1;
                }
                Change::Job(_) | Change::JobGone { .. } => {}
            }
        }
    }

    /// Delivers the last change of a Pod once more; whether there was one.
    pub fn repeat_pod(&mut self) -> bool {
        match self.last_pod.clone() {
            Some(pod) => {
                self.see_pod(&pod);
                true
            }
            None => false,
        }
    }

    fn see_job(&mut self, job: &StoredJob) {
        self.end_in_doubt.remove(&job.uid);
        // A Job that was gone, and forgotten, does not come back by an older list.
        if self.dropped.contains(&job.uid) {
            return;
        }
        self.known_jobs.insert(job.uid.clone());
        self.note_end(job);
        let event = match &job.view {
            Ok(view) => Event::JobSeen(Box::new(view.clone())),
            Err(error) => Event::JobUnreadable { version: job.version, error: error.clone() },
        };
        self.ledger(&job.uid).observe(event);
    }

    /// Takes note that it knows of a Job's end, if that has come.
    pub fn note_end(&mut self, job: &StoredJob) {
        let conditions = stint_api::condition::of(job.job.status.as_ref());
        let is_over = conditions.iter().any(|condition| {
            matches!(condition.type_.as_str(), "SuccessCriteriaMet" | "FailureTarget")
                && condition.status == "True"
        });
        if is_over {
            self.told_of_end.insert(job.uid.clone());
        }
    }

    fn lose_job(&mut self, uid: &str, version: u64) {
        self.known_jobs.remove(uid);
        self.ledger(uid).observe(Event::JobGone { version });
    }

    fn see_pod(&mut self, pod: &StoredPod) {
        let facts = pod.seen_by(self.manager);
        let route = Route {
            version: facts.version,
            owner: pod.owner_uid().map(str::to_owned),
            // Labels matter as long as nobody owns the Pod, and to a ledger that knows it.
            label: pod.label_uid.clone(),
        };
        let old = self.known_pods.insert(facts.uid.clone(), route.clone()).unwrap_or_default();
        let is_orphan = route.owner.is_none();
        let is_strangers = matches!(pod.facts.owner, Owner::Foreign(_));
        let mut uids = BTreeSet::new();
        uids.extend(route.owner.filter(|_| !is_strangers));
        if is_orphan {
            uids.extend(route.label.filter(|uid| {
                facts.is_tracked || self.ledgers.contains_key(uid) || self.known_jobs.contains(uid)
            }));
        }
        uids.extend(
            [old.owner, old.label]
                .into_iter()
                .flatten()
                .filter(|uid| self.ledgers.contains_key(uid)),
        );
        let answered = pod.answered_to(self.manager);
        for uid in &uids {
            let is_selected = pod.label_uid.as_ref() == Some(uid);
            let event = Event::PodSeen { facts: Box::new(answered.clone()), is_selected };
            self.ledger(uid).observe(event);
        }
        self.see_stray(facts, uids.first());
    }

    /// Tells the ledger that looks after a Pod for which no Job speaks.
    fn see_stray(&mut self, mut facts: PodFacts, taker: Option<&String>) {
        if let (Owner::Nobody, Some(taker)) = (&facts.owner, taker) {
            facts.owner = Owner::Controller(taker.clone());
        }
        let uid = facts.uid.clone();
        let is_left = facts.is_tracked && !matches!(facts.owner, Owner::Controller(_));
        if is_left || self.ledgers.contains_key(&uid) {
            let event = Event::PodSeen { facts: Box::new(facts), is_selected: false };
            self.ledger(&uid).observe(event);
        }
    }

    fn lose_pod(&mut self, uid: &str, version: u64) {
        let route = self.known_pods.remove(uid).unwrap_or_default();
        let stray = Some(uid.to_owned());
        let uids = BTreeSet::from_iter([route.owner, route.label, stray].into_iter().flatten());
        for job_uid in uids {
            if let Some(ledger) = self.ledgers.get_mut(&job_uid) {
                ledger.observe(Event::PodGone { uid: uid.to_owned(), version });
            }
        }
    }

    fn ledger(&mut self, uid: &str) -> &mut JobLedger {
        let settings = Settings {
            gates: self.gates,
            manages: self.manager.managed_by(),
            ..Settings::default()
        };
        self.ledgers
            .entry(uid.to_owned())
            .or_insert_with(|| JobLedger::new(settings, JOB_NAME, uid))
    }

    /// Whether the next change of a watch is older than what an answer has told already, so
    /// that a ledger has no use for it.
    pub fn is_old_news(&self, change: &Change) -> bool {
        let (uid, version) = match change {
            Change::Job(job) => (&job.uid, job.version),
            Change::Pod(pod) => (&pod.facts.uid, pod.facts.version),
            Change::JobGone { .. } | Change::PodGone(_) => return false,
        };
        self.answered.get(uid).is_some_and(|&answered| version <= answered)
    }

    fn note_answer(&mut self, outcome: &Outcome) {
        let (uid, version) = match outcome {
            Outcome::Applied(Applied::Pod(facts)) => (&facts.uid, facts.version),
            Outcome::Applied(Applied::Job(job)) => {
                (&job.uid, job.resource_version.parse().unwrap_or(0))
            }
            Outcome::Applied(Applied::NoPod | Applied::NoJob | Applied::Pods { .. })
            | Outcome::Refused(_)
            | Outcome::InDoubt => return,
        };
        let answered = self.answered.entry(uid.clone()).or_insert(0);
        *answered = (*answered).max(version);
    }

    /// Tells a ledger what came of a request.
    pub fn settle(&mut self, flight: &Flight, outcome: Outcome) {
        self.note_answer(&outcome);
        if let Some(ledger) = self.ledgers.get_mut(&flight.job_uid) {
            ledger.settle(flight.id, outcome);
        }
    }

    /// Withdraws a creation that has not been carried out, if its ledger no longer wants it.
    pub fn recall(&mut self, key: &OpKey, now: Timestamp) -> bool {
        let clock = self.clock(now);
        let is_it = |flight: &&Flight| flight.key == *key && flight.outcome.is_none();
        let Some(id) = self.flights.iter().find(is_it).map(|flight| flight.id) else {
            return false;
        };
        let ledger = self.ledgers.get_mut(&key.job_uid);
        let Some(ledger) = ledger.filter(|ledger| !ledger.wants(id, clock)) else {
            return false;
        };
        ledger.withdraw(id);
        self.take_flight(key, false);
        true
    }

    /// Asks a ledger what to do. A ledger with nothing left to do is dropped.
    pub fn ask(&mut self, uid: &str, now: Timestamp) -> Vec<Op> {
        let (clock, version) = (self.clock(now), self.pods_cursor);
        let Some(ledger) = self.ledgers.get_mut(uid) else {
            return Vec::new();
        };
        ledger.observe(Event::PodsCurrent { version });
        let ops = ledger.next(clock);
        if ledger.is_empty() && ops.is_empty() {
            self.ledgers.remove(uid);
            self.dropped.insert(uid.to_owned());
            self.failed_requests.1.retain(|(job_uid, _)| job_uid != uid);
        }
        ops
    }

    /// When one of the ledgers wants to be asked again, by its own clock.
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.ledgers.values().filter_map(JobLedger::wake_at).min()
    }

    /// Takes a request out of those on their way.
    pub fn take_flight(&mut self, key: &OpKey, is_done: bool) -> Option<Flight> {
        let is_meant = |flight: &Flight| flight.key == *key && flight.outcome.is_some() == is_done;
        let place = self.flights.iter().position(is_meant)?;
        Some(self.flights.remove(place))
    }
}
