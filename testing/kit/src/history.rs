//! All Pods that ever were, and what must hold of them whatever happens.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::core::WatchEvent;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::fate::Place;
use crate::follow::follow;
use crate::job::{end, is_tracked};

/// What became of a Pod.
#[derive(Clone, Debug)]
pub struct Life {
    /// Its name.
    pub name: String,
    /// The name of its Job.
    pub job: String,
    /// Its completion index.
    pub index: Option<u32>,
    /// Its last phase.
    pub phase: String,
    /// Whether it ended while it bore the finalizer: only then it counts.
    pub has_counted: bool,
    /// Whether it was deleted.
    pub is_deleted: bool,
    /// Whether it is gone.
    pub is_gone: bool,
    /// Whether it bears the finalizer.
    pub is_tracked: bool,
    /// When it was first seen.
    pub began: Instant,
    /// When it was first seen to have ended.
    pub ended: Option<Instant>,
    /// When it was created, by the server.
    pub created_at: Option<Timestamp>,
    /// When its container ended, by its node.
    pub finished_at: Option<Timestamp>,
}

/// A condition, and the first version that had it.
type Seen = (String, String);

/// All Pods that ever were, by uid.
#[derive(Clone, Default)]
pub struct History {
    lives: Arc<Mutex<BTreeMap<String, Life>>>,
    /// The uids of the Pods of a Job, in the order they came.
    jobs: Arc<Mutex<HashMap<String, Vec<String>>>>,
    /// The uids of the Pods of a Job's index.
    places: Arc<Mutex<HashMap<Place, Vec<String>>>>,
    /// The last uid of each name.
    names: Arc<Mutex<HashMap<String, String>>>,
    finished: Arc<Mutex<BTreeMap<String, Instant>>>,
    /// The conditions of Jobs that were true, each with the first version that had it.
    conditions: Arc<Mutex<BTreeMap<String, Vec<Seen>>>>,
    broken: Arc<Mutex<Vec<String>>>,
}

impl History {
    /// Takes note as long as `background` lives.
    pub fn start(background: &mut JoinSet<()>, client: Client) -> Self {
        let history = History::default();
        background.spawn(history.clone().watch(client.clone()));
        background.spawn(history.clone().watch_jobs(client));
        history
    }

    /// The Pods of a Job, in the order they came.
    pub fn of(&self, job: &str) -> Vec<Life> {
        let lives = self.lives.lock().expect("nobody panics here");
        let jobs = self.jobs.lock().expect("nobody panics here");
        jobs.get(job).into_iter().flatten().map(|uid| lives[uid].clone()).collect()
    }

    /// Whether a Pod of a Job bears the finalizer.
    pub fn has_tracked(&self, job: &str) -> bool {
        self.of(job).iter().any(|life| life.is_tracked && !life.is_gone)
    }

    /// How long each Pod of a Job and index came after the end of the one before it.
    pub fn delays(&self, job: &str, index: Option<u32>) -> Vec<Duration> {
        let lives = self.of(job);
        let lives: Vec<&Life> = lives.iter().filter(|life| life.index == index).collect();
        let delay = |pair: &[&Life]| {
            let ended = pair[0].ended.expect("a Pod is replaced when it has ended");
            pair[1].began.saturating_duration_since(ended)
        };
        lives.windows(2).map(delay).collect()
    }

    /// How many seconds after the end of the one before it each Pod of a Job and index was created,
    /// by the times that their objects bear.
    pub fn recorded_delays(&self, job: &str, index: Option<u32>) -> Vec<i64> {
        let lives = self.of(job);
        let lives: Vec<&Life> = lives.iter().filter(|life| life.index == index).collect();
        let delay = |pair: &[&Life]| {
            let created = pair[1].created_at.expect("every Pod has a time of creation");
            let finished = pair[0].finished_at.expect("a Pod is replaced when it has ended");
            created.as_second() - finished.as_second()
        };
        lives.windows(2).map(delay).collect()
    }

    /// How many Pods of a Job came to this phase, and count.
    pub fn count(&self, job: &str, phase: &str) -> usize {
        self.of(job).iter().filter(|life| life.phase == phase && life.has_counted).count()
    }

    /// How many Pods of a Job failed and were also deleted.
    pub fn swept(&self, job: &str) -> usize {
        self.of(job).iter().filter(|life| life.phase == "Failed" && life.is_deleted).count()
    }

    /// How many Pods of a Job succeeded, or indexes if they have one, and count.
    pub fn successes(&self, job: &str) -> usize {
        let lives = self.of(job);
        let counted = lives.iter().filter(|life| life.phase == "Succeeded" && life.has_counted);
        let (indexed, others): (Vec<_>, Vec<_>) = counted.partition(|life| life.index.is_some());
        let indexes: BTreeSet<_> = indexed.iter().map(|life| life.index).collect();
        indexes.len() + others.len()
    }

    /// What did not hold.
    pub fn broken(&self) -> Vec<String> {
        self.broken.lock().expect("nobody panics here").clone()
    }

    /// When a Job was first seen to have finished.
    pub fn finished_at(&self, job: &str) -> Option<Instant> {
        self.finished.lock().expect("nobody panics here").get(job).copied()
    }

    /// An end has been announced in a version of its own, and the announcement stays.
    pub fn check_ends(&self) {
        let conditions = self.conditions.lock().expect("nobody panics here");
        for (job, seen) in &*conditions {
            for (interim, last) in [("SuccessCriteriaMet", "Complete"), ("FailureTarget", "Failed")]
            {
                let version = |kind: &str| seen.iter().find(|it| it.0 == kind).map(|it| &it.1);
                if let Some(ended) = version(last) {
                    let announced = version(interim);
                    assert!(announced.is_some(), "{job} ended without a word: {seen:?}");
                    assert_ne!(announced, Some(ended), "{job} ended at once: {seen:?}");
                }
            }
        }
    }

    fn note_job(&self, job: Job) {
        let name = job.metadata.name.clone().unwrap_or_default();
        let version = job.metadata.resource_version.clone().unwrap_or_default();
        if end(&job).is_some() {
            let mut finished = self.finished.lock().expect("nobody panics here");
            finished.entry(name.clone()).or_insert_with(Instant::now);
        }
        let conditions = job.status.and_then(|status| status.conditions).unwrap_or_default();
        let is_true: Vec<String> =
            conditions.into_iter().filter(|it| it.status == "True").map(|it| it.type_).collect();
        for (interim, last) in [("SuccessCriteriaMet", "Complete"), ("FailureTarget", "Failed")] {
            let has = |kind: &str| is_true.iter().any(|it| it == kind);
            if has(last) && !has(interim) {
                self.complain(format!("{name} is {last} without {interim}"));
            }
        }
        let mut known = self.conditions.lock().expect("nobody panics here");
        let seen = known.entry(name).or_default();
        for kind in is_true {
            if !seen.iter().any(|it| it.0 == kind) {
                seen.push((kind, version.clone()));
            }
        }
    }

    async fn watch_jobs(self, client: Client) {
        let look = |event| {
            if let WatchEvent::Modified(job) = event {
                self.note_job(job);
            }
        };
        follow::<Job>(client, "/apis/batch/v1/jobs", look).await;
    }

    async fn watch(self, client: Client) {
        let look = |event| match event {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => self.note(&pod, false),
            WatchEvent::Deleted(pod) => self.note(&pod, true),
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {}
        };
        follow::<Pod>(client, "/api/v1/pods", look).await;
    }

    fn note(&self, pod: &Pod, is_gone: bool) {
        let meta = &pod.metadata;
        let label = |key: &str| meta.labels.as_ref()?.get(key).cloned();
        let uid = meta.uid.clone().unwrap_or_default();
        let index = label("batch.kubernetes.io/job-completion-index");
        let mut life = Life {
            name: meta.name.clone().unwrap_or_default(),
            job: label("job-name").unwrap_or_default(),
            index: index.and_then(|index| index.parse().ok()),
            phase: pod.status.as_ref().and_then(|it| it.phase.clone()).unwrap_or_default(),
            has_counted: false,
            is_deleted: meta.deletion_timestamp.is_some(),
            is_gone,
            is_tracked: is_tracked(pod),
            began: Instant::now(),
            ended: None,
            created_at: meta.creation_timestamp.as_ref().map(|time| time.0),
            finished_at: finished_at(pod),
        };
        let mut lives = self.lives.lock().expect("nobody panics here");
        let has_ended = matches!(&*life.phase, "Succeeded" | "Failed");
        life.has_counted = match lives.get(&uid) {
            Some(known) if matches!(&*known.phase, "Succeeded" | "Failed") => known.has_counted,
            _ => has_ended && is_tracked(pod),
        };
        match lives.get(&uid) {
            Some(known) => (life.began, life.ended) = (known.began, known.ended),
            None => {
                self.check_new(&uid, &life, &lives);
                let mut jobs = self.jobs.lock().expect("nobody panics here");
                jobs.entry(life.job.clone()).or_default().push(uid.clone());
            }
        }
        if has_ended {
            life.ended.get_or_insert_with(Instant::now);
        }
        lives.insert(uid, life);
    }

    /// No second Pod for an attempt, and none for an index that has one.
    fn check_new(&self, uid: &str, new: &Life, lives: &BTreeMap<String, Life>) {
        let mut names = self.names.lock().expect("nobody panics here");
        let before = names.insert(new.name.clone(), uid.to_owned()).map(|old| &lives[&old]);
        if let Some(old) = before {
            if !old.is_gone || (old.phase == "Succeeded" && old.has_counted) {
                self.complain(format!("{} was created twice", new.name));
            }
            // A Pod that was removed for scaling down, or with its Job, has left no trace: a
            // new controller uses its name again, and a request that was made for it and comes
            // very late brings it back, whatever its index has come to. It is removed again.
            return;
        }
        if new.index.is_none() {
            return;
        }
        let mut places = self.places.lock().expect("nobody panics here");
        let place = places.entry((new.job.clone(), new.index)).or_default();
        for old in place.iter().map(|uid| &lives[uid]) {
            let is_active =
                matches!(&*old.phase, "Pending" | "Running") && !old.is_deleted && !old.is_gone;
            if is_active {
                self.complain(format!("{} came beside {}", new.name, old.name));
            }
            if old.phase == "Succeeded" && old.has_counted {
                self.complain(format!("{} came after {} had succeeded", new.name, old.name));
            }
        }
        place.push(uid.to_owned());
    }

    fn complain(&self, what: String) {
        self.broken.lock().expect("nobody panics here").push(what);
    }
}

fn finished_at(pod: &Pod) -> Option<Timestamp> {
    let containers = pod.status.as_ref()?.container_statuses.as_ref()?;
    let ends = containers.iter().filter_map(|it| it.state.as_ref()?.terminated.as_ref());
    ends.filter_map(|end| end.finished_at.as_ref().map(|time| time.0)).max()
}
