//! All Pods that ever were, and what must hold of them whatever happens.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use http::Request;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::core::WatchEvent;
use tokio::time::Instant;

use crate::cluster::{end, is_tracked};
use crate::driver::Place;

/// What became of a Pod.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) name: String,
    pub(crate) job: String,
    pub(crate) index: Option<u32>,
    pub(crate) phase: String,
    /// Whether it ended while it bore the finalizer: only then it counts.
    pub(crate) has_counted: bool,
    pub(crate) is_deleted: bool,
    pub(crate) is_gone: bool,
    /// Whether it bears the finalizer.
    pub(crate) is_tracked: bool,
    /// When it was first seen, and when to have ended.
    pub(crate) began: Instant,
    pub(crate) ended: Option<Instant>,
}

/// A condition, and the first version that had it.
type Seen = (String, String);

/// All Pods that ever were, by uid.
#[derive(Clone, Default)]
pub(crate) struct History {
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
    /// Begins to take note.
    pub(crate) fn start(client: Client) -> Self {
        let history = History::default();
        tokio::spawn(history.clone().watch(client.clone()));
        tokio::spawn(history.clone().watch_jobs(client));
        history
    }

    /// The Pods of a Job, in the order they came.
    pub(crate) fn of(&self, job: &str) -> Vec<Life> {
        let lives = self.lives.lock().expect("nobody panics here");
        let jobs = self.jobs.lock().expect("nobody panics here");
        jobs.get(job).into_iter().flatten().map(|uid| lives[uid].clone()).collect()
    }

    /// Whether a Pod of a Job bears the finalizer.
    pub(crate) fn has_tracked(&self, job: &str) -> bool {
        self.of(job).iter().any(|life| life.is_tracked && !life.is_gone)
    }

    /// How long each Pod of a Job and index came after the end of the one before it.
    pub(crate) fn delays(&self, job: &str, index: Option<u32>) -> Vec<Duration> {
        let lives = self.of(job);
        let lives: Vec<&Life> = lives.iter().filter(|life| life.index == index).collect();
        let delay = |pair: &[&Life]| {
            let ended = pair[0].ended.expect("a Pod is replaced when it has ended");
            pair[1].began.saturating_duration_since(ended)
        };
        lives.windows(2).map(delay).collect()
    }

    /// How many Pods of a Job came to this phase, and count.
    pub(crate) fn count(&self, job: &str, phase: &str) -> usize {
        self.of(job).iter().filter(|life| life.phase == phase && life.has_counted).count()
    }

    /// How many Pods of a Job failed and were also deleted.
    pub(crate) fn swept(&self, job: &str) -> usize {
        self.of(job).iter().filter(|life| life.phase == "Failed" && life.is_deleted).count()
    }

    /// How many Pods of a Job succeeded, or indexes if they have one, and count.
    pub(crate) fn successes(&self, job: &str) -> usize {
        let lives = self.of(job);
        let counted = lives.iter().filter(|life| life.phase == "Succeeded" && life.has_counted);
        let (indexed, others): (Vec<_>, Vec<_>) = counted.partition(|life| life.index.is_some());
        let indexes: BTreeSet<_> = indexed.iter().map(|life| life.index).collect();
        indexes.len() + others.len()
    }

    /// What did not hold.
    pub(crate) fn broken(&self) -> Vec<String> {
        self.broken.lock().expect("nobody panics here").clone()
    }

    /// When a Job was first seen to have finished.
    pub(crate) fn finished_at(&self, job: &str) -> Option<Instant> {
        self.finished.lock().expect("nobody panics here").get(job).copied()
    }

    /// An end has been announced in a version of its own, and the announcement stays.
    pub(crate) fn check_ends(&self) {
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
        let request = Request::get("/apis/batch/v1/jobs?watch=true&timeoutSeconds=31536000")
            .body(Vec::new())
            .expect("a request");
        let events = client.request_events::<Job>(request).await.expect("a watch");
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            if let Ok(WatchEvent::Modified(job)) = event {
                self.note_job(job);
            }
        }
    }

    async fn watch(self, client: Client) {
        let request = Request::get("/api/v1/pods?watch=true&timeoutSeconds=31536000")
            .body(Vec::new())
            .expect("a request");
        let events = client.request_events::<Pod>(request).await.expect("a watch");
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            match event {
                Ok(WatchEvent::Added(pod) | WatchEvent::Modified(pod)) => self.note(&pod, false),
                Ok(WatchEvent::Deleted(pod)) => self.note(&pod, true),
                Ok(WatchEvent::Bookmark(_)) => {}
                other => self.complain(format!("the history ends: {other:?}")),
            }
        }
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
