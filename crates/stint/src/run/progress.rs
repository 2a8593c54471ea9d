//! How far the Jobs of a run are, as told by what was seen of them and of their Pods.
//!
//! There is no IO here and no clock: `now` is a parameter.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};
use stint_api::index_set::IndexSet;

use super::overrides::completions;
use super::pod_sight::{PodSight, Stage};

/// How many failures of a Job are remembered: more than anybody reads.
const MAX_FAILURES: usize = 1_000;

/// How many of the slowest are told.
const MAX_SLOWEST: usize = 5;

/// The Jobs of a run.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    jobs: Vec<JobProgress>,
    by_uid: HashMap<String, usize>,
}

/// One Job.
#[derive(Debug)]
pub(crate) struct JobProgress {
    /// As it was last seen.
    pub(crate) job: Job,
    /// How it is called in what is said of it.
    pub(crate) title: String,
    /// The indexes that were completed before the run.
    pub(crate) preset: IndexSet,
    began: Instant,
    ended: Option<Instant>,
    /// Whether it was removed before its end.
    pub(crate) is_gone: bool,
    attempts: HashMap<String, Attempt>,
    /// The Pods that have ended.
    over: HashSet<String>,
    /// The indexes of which a Pod was seen.
    tried: IndexSet,
    pub(crate) retries: u64,
    failed_pods: u64,
    /// The last failure of each index, or of each Pod where there are no indexes.
    failures: BTreeMap<u32, Failure>,
    latest: Option<u32>,
    slowest: Vec<Slow>,
    /// The Pod that waits for something unusual, and for what, as last seen.
    waits: Option<Waits>,
}

/// A Pod that waits for something unusual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waits {
    uid: String,
    /// The index, or else the Pod.
    pub(crate) what: String,
    pub(crate) why: String,
}

/// A Pod that has not ended.
#[derive(Debug)]
struct Attempt {
    since: Option<Instant>,
}

/// A Pod that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) index: Option<u32>,
    pub(crate) namespace: String,
    pub(crate) pod: String,
    pub(crate) container: Option<String>,
    pub(crate) why: String,
    /// How many Pods of this index failed.
    pub(crate) times: u32,
}

impl Failure {
    /// What failed: an index, or else a Pod.
    pub(crate) fn what(&self) -> String {
        match self.index {
            Some(index) => format!("index {index}"),
            None => format!("Pod {}", self.pod),
        }
    }
}

/// How long an index took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slow {
    pub(crate) what: String,
    pub(crate) time: Duration,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A Pod failed.
    PodFailed { job: usize, failure: Failure },
    /// A Pod waits for something unusual.
    PodWaits { job: usize, waits: Waits },
    /// A Job is about to end, or has ended.
    Ended { job: usize },
    /// The counts of a Job have changed.
    Counted { job: usize },
}

/// How a Job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Complete,
    Failed,
    /// It has not, or it is gone.
    Unfinished,
}

/// What there is to count in a Job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// How many completions are to be reached in this run; none if the Pods decide.
    pub(crate) total: Option<u64>,
    pub(crate) done: u64,
    /// Failed indexes, or failed Pods where indexes do not fail by themselves.
    pub(crate) failed: u64,
    pub(crate) running: u64,
    /// Those that have not begun, or wait for another try.
    pub(crate) waiting: Option<u64>,
}

impl Progress {
    /// Takes in a Job that was made.
    pub(crate) fn add(&mut self, job: Job, preset: IndexSet, now: Instant) {
        let uid = job.metadata.uid.clone().unwrap_or_default();
        self.by_uid.insert(uid, self.jobs.len());
        let name = job.metadata.name.clone().unwrap_or_default();
        let title = match job.metadata.namespace.as_deref() {
            None | Some("" | "default") => name,
            Some(namespace) => format!("{namespace}/{name}"),
        };
        let ended = is_ended(&job).then_some(now);
        self.jobs.push(JobProgress {
            job,
            title,
            preset,
            began: now,
            ended,
            is_gone: false,
            attempts: HashMap::new(),
            over: HashSet::new(),
            tried: IndexSet::new(),
            retries: 0,
            failed_pods: 0,
            failures: BTreeMap::new(),
            latest: None,
            slowest: Vec::new(),
            waits: None,
        });
    }

    pub(crate) fn jobs(&self) -> &[JobProgress] {
        &self.jobs
    }

    /// The Jobs that have not ended.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = &Job> {
        let waited_for = |job: &&JobProgress| job.ended.is_none() && !job.is_gone;
        self.jobs.iter().filter(waited_for).map(|job| &job.job)
    }

    /// Whether every Job has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.unfinished().next().is_none()
    }

    /// Whether all Pods that the Jobs tell of are known to have ended.
    pub(crate) fn is_settled(&self) -> bool {
        self.jobs.iter().all(JobProgress::is_settled)
    }

    /// A Job was seen.
    pub(crate) fn observe_job(&mut self, job: Job, is_gone: bool, now: Instant) -> Vec<Change> {
        let uid = job.metadata.uid.as_deref().unwrap_or_default();
        let Some(&number) = self.by_uid.get(uid) else { return Vec::new() };
        let held = &mut self.jobs[number];
        let mut changes = Vec::new();
        if held.job.status != job.status {
            changes.push(Change::Counted { job: number });
        }
        let had_ended = held.ended.is_some() || held.is_gone;
        if is_ended(&job) && held.ended.is_none() {
            held.ended = Some(now);
        }
        // One that is removed after its end has ended well.
        held.is_gone |= is_gone && held.ended.is_none();
        held.job = job;
        if !had_ended && (held.ended.is_some() || held.is_gone) {
            changes.push(Change::Ended { job: number });
        }
        changes
    }

    /// A Pod was seen, or was seen for the last time.
    pub(crate) fn observe_pod(
        &mut self,
        pod: &PodSight,
        is_gone: bool,
        now: Instant,
    ) -> Vec<Change> {
        let Some(&number) = self.by_uid.get(pod.job_uid()) else { return Vec::new() };
        let job = &mut self.jobs[number];
        let failure = job.observe_pod(pod, is_gone, now);
        let waits =
            job.note_wait(pod, is_gone).map(|waits| Change::PodWaits { job: number, waits });
        let failed = failure.map(|failure| Change::PodFailed { job: number, failure });
        failed.into_iter().chain(waits).collect()
    }

    /// The Job that a Pod belongs to.
    pub(crate) fn job_of(&self, pod: &PodSight) -> Option<&JobProgress> {
        self.by_uid.get(pod.job_uid()).map(|&number| &self.jobs[number])
    }
}

impl JobProgress {
    pub(crate) fn end(&self) -> End {
        let has =
            |kind: &str| self.conditions().iter().any(|it| it.type_ == kind && it.status == "True");
        match (has("Complete"), has("Failed")) {
            (true, _) => End::Complete,
            (false, true) => End::Failed,
            (false, false) => End::Unfinished,
        }
    }

    /// The condition that says why it ended.
    pub(crate) fn why(&self) -> Option<&JobCondition> {
        let is =
            |kind: &'static str| move |it: &&JobCondition| it.type_ == kind && it.status == "True";
        let all = self.conditions();
        all.iter().find(is("Failed")).or_else(|| all.iter().find(is("Complete")))
    }

    fn conditions(&self) -> &[JobCondition] {
        self.status().and_then(|status| status.conditions.as_deref()).unwrap_or_default()
    }

    fn status(&self) -> Option<&JobStatus> {
        self.job.status.as_ref()
    }

    /// How long it took, or has taken so far.
    pub(crate) fn elapsed(&self, now: Instant) -> Duration {
        self.ended.unwrap_or(now).saturating_duration_since(self.began)
    }

    pub(crate) fn is_indexed(&self) -> bool {
        let mode = self.job.spec.as_ref().and_then(|spec| spec.completion_mode.as_deref());
        mode == Some("Indexed")
    }

    /// The indexes of which this run is.
    pub(crate) fn completed_indexes(&self) -> IndexSet {
        let text = self.status().and_then(|status| status.completed_indexes.as_deref());
        let all = IndexSet::parse_lenient(text.unwrap_or(""), completions(&self.job));
        all.iter().filter(|index| !self.preset.contains(*index)).collect()
    }

    pub(crate) fn failed_indexes(&self) -> IndexSet {
        let text = self.status().and_then(|status| status.failed_indexes.as_deref());
        IndexSet::parse_lenient(text.unwrap_or(""), completions(&self.job))
    }

    /// The Pods that succeeded and failed in this run.
    pub(crate) fn pods(&self) -> (u64, u64) {
        let status = self.status();
        let count = |count: Option<i32>| u64::try_from(count.unwrap_or(0)).unwrap_or(0);
        let succeeded = count(status.and_then(|status| status.succeeded));
        let failed = count(status.and_then(|status| status.failed));
        (succeeded.saturating_sub(self.preset.count()), failed)
    }

    pub(crate) fn counts(&self) -> Counts {
        let spec = self.job.spec.as_ref();
        let wanted = spec.and_then(|spec| spec.completions);
        let total = wanted.map(|_| u64::from(completions(&self.job)) - self.preset.count());
        let (done, failed_pods) = self.pods();
        let by_index = spec.is_some_and(|spec| spec.backoff_limit_per_index.is_some());
        let failed = if by_index { self.failed_indexes().count() } else { failed_pods };
        let running = self.attempts.values().filter(|attempt| attempt.since.is_some()).count();
        // A Pod that has ended may be seen before it is counted, or after.
        let running = if self.ended.is_some() { 0 } else { running as u64 };
        let given_up = if by_index { failed } else { 0 };
        let waiting = total.map(|total| total.saturating_sub(done + running + given_up));
        let waiting = waiting.filter(|_| self.ended.is_none());
        Counts { total, done, failed, running, waiting }
    }

    /// The last failures of its indexes, the lowest first.
    pub(crate) fn failures(&self) -> impl Iterator<Item = &Failure> {
        self.failures.values()
    }

    /// The failure that came last.
    pub(crate) fn latest_failure(&self) -> Option<&Failure> {
        self.latest.and_then(|key| self.failures.get(&key))
    }

    /// What took longest, the slowest first.
    pub(crate) fn slowest(&self) -> &[Slow] {
        &self.slowest
    }

    fn is_settled(&self) -> bool {
        let (succeeded, failed) = self.pods();
        self.is_gone || (self.attempts.is_empty() && self.over.len() as u64 >= succeeded + failed)
    }

    fn observe_pod(&mut self, pod: &PodSight, is_gone: bool, now: Instant) -> Option<Failure> {
        if self.over.contains(pod.uid()) {
            return None;
        }
        if !self.attempts.contains_key(pod.uid()) {
            self.begin(pod);
        }
        let attempt = self.attempts.get_mut(pod.uid()).expect("it was just put there");
        let stage = pod.stage();
        if stage != Stage::Waiting {
            attempt.since.get_or_insert(now);
        }
        let since = attempt.since;
        let has_ended = matches!(stage, Stage::Succeeded | Stage::Failed);
        if has_ended || is_gone {
            self.attempts.remove(pod.uid());
        }
        if !has_ended {
            return None;
        }
        self.over.insert(pod.uid().to_owned());
        self.note_time(pod, now.saturating_duration_since(since.unwrap_or(now)));
        (stage == Stage::Failed).then(|| self.note_failure(pod))
    }

    /// Keeps what is worth knowing of why Pods wait: one Pod, until it waits no more. Told once
    /// for each reason.
    fn note_wait(&mut self, pod: &PodSight, is_gone: bool) -> Option<Waits> {
        let is_over = is_gone || self.over.contains(pod.uid());
        let why = pod.why_waiting().filter(|_| !is_over);
        match (&mut self.waits, why) {
            (Some(held), Some(why)) if held.uid == pod.uid() => {
                // A message may count seconds; the reason is what it begins with.
                let reason = |text: &str| text.split(':').next().map(str::to_owned);
                let is_new = reason(&held.why) != reason(&why);
                held.why = why;
                is_new.then(|| held.clone())
            }
            (Some(held), None) if held.uid == pod.uid() => {
                self.waits = None;
                None
            }
            (None, Some(why)) => {
                let waits = Waits { uid: pod.uid().to_owned(), what: what(pod), why };
                self.waits.insert(waits).clone().into()
            }
            (Some(_), _) | (None, None) => None,
        }
    }

    /// The Pod that waits for something unusual, if one is known.
    pub(crate) fn waits(&self) -> Option<&Waits> {
        self.waits.as_ref()
    }

    fn begin(&mut self, pod: &PodSight) {
        self.attempts.insert(pod.uid().to_owned(), Attempt { since: None });
        let is_retry = match pod.index() {
            Some(index) => !self.tried.insert(index),
            // Without indexes nobody can tell for whom a Pod stands in.
            None => self.retries < self.failed_pods,
        };
        self.retries += u64::from(is_retry);
    }

    fn note_time(&mut self, pod: &PodSight, time: Duration) {
        let what = what(pod);
        let place = self.slowest.partition_point(|slow| slow.time >= time);
        if place < MAX_SLOWEST {
            self.slowest.insert(place, Slow { what, time });
            self.slowest.truncate(MAX_SLOWEST);
        }
    }

    fn note_failure(&mut self, pod: &PodSight) -> Failure {
        self.failed_pods += 1;
        let ordinal = u32::try_from(self.failed_pods).unwrap_or(u32::MAX);
        let key = pod.index().unwrap_or(ordinal);
        let times = self.failures.get(&key).map_or(0, |failure| failure.times) + 1;
        let failure = Failure {
            index: pod.index(),
            namespace: pod.namespace().to_owned(),
            pod: pod.name().to_owned(),
            container: pod.failed_container().map(str::to_owned),
            why: pod.why_failed(),
            times,
        };
        if self.failures.len() < MAX_FAILURES || self.failures.contains_key(&key) {
            self.failures.insert(key, failure.clone());
            self.latest = Some(key);
        }
        failure
    }
}

fn what(pod: &PodSight) -> String {
    match pod.index() {
        Some(index) => format!("index {index}"),
        None => format!("Pod {}", pod.name()),
    }
}

fn is_ended(job: &Job) -> bool {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_deref());
    let is_end = |it: &JobCondition| matches!(it.type_.as_str(), "Complete" | "Failed");
    conditions.unwrap_or_default().iter().any(|it| is_end(it) && it.status == "True")
}

#[cfg(test)]
mod tests;
