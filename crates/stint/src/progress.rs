//! How far the Jobs of a run are, as told by what was seen of them and of their Pods.
//!
//! There is no IO here and no clock: `now` is a parameter.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};
use k8s_openapi::jiff::Timestamp;
use stint_api::index_set::IndexSet;
use stint_api::names::reason;

use crate::pod_sight::{PodSight, Stage};
use crate::printable::{MAX_MESSAGE_CHARS, printable};
use crate::recent::Recent;
use crate::words::{Counted, Counts};

/// How many failures of a Job are remembered: more than anybody reads.
const MAX_FAILURES: usize = 1_000;

/// How many of the slowest are told.
const MAX_SLOWEST: usize = 5;

/// How many Pods of a Job are looked at that have not started for a while: some may be slow, and
/// all that cannot start have the same reason as a rule.
const MAX_STALLED: usize = 4;

/// The Jobs of a run.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    jobs: Vec<JobProgress>,
    by_uid: HashMap<String, usize>,
    /// The failure that came last, and its Job.
    latest: Option<(usize, Failure)>,
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
    /// Those of them that an earlier run has completed; the others are left out.
    pub(crate) earlier: IndexSet,
    began: Instant,
    ended: Option<Instant>,
    /// Whether it was removed before its end.
    pub(crate) is_gone: bool,
    attempts: HashMap<String, Attempt>,
    /// The Pods that have ended, as long as there is anything to be seen of them.
    over: Recent,
    /// How many have.
    over_count: u64,
    /// How many had succeeded before the run, beside those that are preset.
    before: u64,
    /// The indexes of which a Pod was seen.
    tried: IndexSet,
    pub(crate) retries: u64,
    failed_pods: u64,
    tries: Tries,
    /// The last failure of each index, or of each Pod where there are no indexes.
    failures: BTreeMap<u32, Failure>,
    /// How many Pods without an index have one.
    unnumbered: u32,
    slowest: Vec<Slow>,
    /// The Pod that waits for something unusual, and for what, as last seen.
    waits: Option<Waits>,
}

/// A Pod that waits for something unusual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waits {
    uid: String,
    /// Whether it was not the Pod itself that told.
    is_by_event: bool,
    /// The index, or else the Pod.
    pub(crate) what: String,
    pub(crate) why: String,
}

/// What is common to the tries that failed.
#[derive(Debug, Default)]
struct Tries {
    count: u64,
    /// Why they failed, as long as all did for the same reason, and one that stays.
    why: Option<String>,
    is_mixed: bool,
}

impl Tries {
    fn note(&mut self, count: u32, why: &str, is_for_good: bool) {
        self.count += u64::from(count);
        self.is_mixed |= !is_for_good || self.why.as_ref().is_some_and(|known| known != why);
        self.why.get_or_insert_with(|| why.to_owned());
    }
}

/// A Pod that has not ended.
#[derive(Debug)]
struct Attempt {
    since: Option<Instant>,
    /// Whether it has a node, and nothing of it has run.
    is_starting: bool,
    /// Whether it waits for something unusual.
    is_held_up: bool,
    what: String,
    restarts: u64,
    /// How many runs of its containers are over that were not their last.
    relapses: u64,
    /// Where its failure is, if one of those failed.
    failure: Option<u32>,
}

/// A Pod that failed, or a container of one that is run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) index: Option<u32>,
    pub(crate) namespace: String,
    pub(crate) pod: String,
    pub(crate) uid: String,
    pub(crate) container: Option<String>,
    pub(crate) why: String,
    /// How many Pods of this index failed by themselves, and runs of their containers.
    pub(crate) times: u32,
    /// How many Pods of it were ended from outside.
    pub(crate) interruptions: u32,
    /// Whether that is what happened to this one.
    pub(crate) is_interruption: bool,
    /// Whether the Pod goes on with another run of the container.
    pub(crate) goes_on: bool,
    /// Which run of the container it was; the first is 0.
    pub(crate) run: Option<u32>,
    /// From when to when that was.
    pub(crate) ran: Option<(Timestamp, Timestamp)>,
    /// Other containers of the Pod that failed, each with which run of it, and why.
    pub(crate) others: Vec<(String, u32, String)>,
}

impl Failure {
    /// That of a Pod, before anything is known of it.
    fn of(pod: &PodSight) -> Self {
        Failure {
            index: pod.index(),
            namespace: pod.namespace().to_owned(),
            pod: pod.name().to_owned(),
            uid: pod.uid().to_owned(),
            container: None,
            why: String::new(),
            times: 0,
            interruptions: 0,
            is_interruption: false,
            goes_on: false,
            run: None,
            ran: None,
            others: Vec::new(),
        }
    }

    /// What happened to it, as a verb.
    pub(crate) fn happened(&self) -> &'static str {
        if self.is_interruption { "was interrupted" } else { "failed" }
    }

    /// How often that happened, and the other thing.
    pub(crate) fn tally(&self) -> String {
        let (same, other, happened) = match self.is_interruption {
            true => (self.interruptions, self.times, "failed"),
            false => (self.times, self.interruptions, "was interrupted"),
        };
        let same = if same > 1 { format!(", {same} times") } else { String::new() };
        match other {
            0 => same,
            1 => format!("{same} (and {happened} once)"),
            _ => format!("{same} (and {happened} {other} times)"),
        }
    }

    /// Why, of all its containers.
    pub(crate) fn told(&self) -> String {
        let others = self.others.iter().map(|(name, _, why)| format!("; container {name}: {why}"));
        self.why.clone() + &others.collect::<String>()
    }

    /// The containers that failed, each with which run of it, if that is known.
    pub(crate) fn containers(&self) -> impl Iterator<Item = (&str, Option<u32>)> {
        let first = self.container.as_deref().map(|name| (name, self.run));
        let others = self.others.iter().map(|(name, run, _)| (name.as_str(), Some(*run)));
        first.into_iter().chain(others)
    }

    /// The lines that each of them wrote, with its name in front if there are several.
    pub(crate) fn named_lines(&self, lines: Vec<Vec<String>>) -> Vec<String> {
        let is_one = self.others.is_empty();
        let named = self.containers().zip(lines).flat_map(|((name, _), lines)| {
            lines.into_iter().map(move |line| match is_one {
                true => line,
                false => format!("[{name}] {line}"),
            })
        });
        named.collect()
    }

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

impl Progress {
    /// Takes in a Job that was made.
    pub(crate) fn add(&mut self, job: Job, preset: IndexSet, now: Instant) {
        let uid = job.metadata.uid.clone().unwrap_or_default();
        self.by_uid.insert(uid, self.jobs.len());
        let title = printable(&title(&job), MAX_MESSAGE_CHARS);
        let ended = is_ended(&job).then_some(now);
        let succeeded = job.status.as_ref().and_then(|status| status.succeeded).unwrap_or(0);
        let before = u64::try_from(succeeded).unwrap_or(0).saturating_sub(preset.count());
        self.jobs.push(JobProgress {
            job,
            title,
            preset,
            earlier: IndexSet::new(),
            began: now,
            ended,
            is_gone: false,
            attempts: HashMap::new(),
            over: Recent::default(),
            over_count: 0,
            before,
            tried: IndexSet::new(),
            retries: 0,
            failed_pods: 0,
            tries: Tries::default(),
            failures: BTreeMap::new(),
            unnumbered: 0,
            slowest: Vec::new(),
            waits: None,
        });
    }

    /// Says of the Job that was last taken in what an earlier run has completed of it.
    pub(crate) fn note_earlier(&mut self, earlier: IndexSet) {
        if let Some(job) = self.jobs.last_mut() {
            job.earlier = earlier;
        }
    }

    /// Takes in a Pod that had ended before this run began.
    pub(crate) fn observe_earlier_pod(&mut self, pod: &PodSight) {
        if let Some(&number) = self.by_uid.get(pod.job_uid()) {
            self.jobs[number].observe_earlier_pod(pod);
        }
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
        if let Some(failure) = &failure {
            self.latest = Some((number, failure.clone()));
        }
        let waits =
            job.note_wait(pod, is_gone).map(|waits| Change::PodWaits { job: number, waits });
        let failed = failure.map(|failure| Change::PodFailed { job: number, failure });
        failed.into_iter().chain(waits).collect()
    }

    /// The failure that came last, and its Job.
    pub(crate) fn latest_failure(&self) -> Option<(&JobProgress, &Failure)> {
        self.latest.as_ref().map(|(number, failure)| (&self.jobs[*number], failure))
    }

    /// Pods that have had a node for so long and have yet to start, each with its Job. Nobody
    /// needs to know of more than one of a Job.
    pub(crate) fn stalled(&self, patience: Duration, now: Instant) -> Vec<(usize, String)> {
        let mut all = Vec::new();
        for (number, job) in self.jobs.iter().enumerate().filter(|(_, job)| job.ended.is_none()) {
            if job.waits.as_ref().is_some_and(|waits| !waits.is_by_event) {
                continue;
            }
            let mut stalled: Vec<(Instant, &String)> = job
                .attempts
                .iter()
                .filter(|(_, attempt)| attempt.is_starting)
                .filter_map(|(uid, attempt)| Some((attempt.since?, uid)))
                .filter(|(since, _)| now.saturating_duration_since(*since) >= patience)
                .collect();
            stalled.sort_unstable();
            stalled.truncate(MAX_STALLED);
            all.extend(stalled.into_iter().map(|(_, uid)| (number, uid.clone())));
        }
        all
    }

    /// Somebody has said why a Pod does not start.
    pub(crate) fn explain(&mut self, number: usize, uid: &str, why: &str) -> Option<Change> {
        let job = &mut self.jobs[number];
        let attempt = job.attempts.get(uid).filter(|attempt| attempt.is_starting)?;
        if let Some(held) = &mut job.waits {
            if held.is_by_event && held.uid == uid {
                // It was told; its words may change.
                held.why = why.to_owned();
            }
            return None;
        }
        let what = attempt.what.clone();
        let waits = Waits { uid: uid.to_owned(), is_by_event: true, what, why: why.to_owned() };
        job.waits = Some(waits.clone());
        Some(Change::PodWaits { job: number, waits })
    }

    /// The Job that a Pod belongs to.
    pub(crate) fn job_of(&self, pod: &PodSight) -> Option<&JobProgress> {
        self.by_uid.get(pod.job_uid()).map(|&number| &self.jobs[number])
    }
}

impl JobProgress {
    /// The indexes that count as completed, and that nobody has run.
    pub(crate) fn left_out(&self) -> IndexSet {
        let mut wanted = self.preset.complement(completions(&self.job));
        wanted.union(&self.earlier);
        wanted.complement(completions(&self.job))
    }

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
        is_indexed(&self.job)
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
        let runs = |it: &&Attempt| it.since.is_some() && !it.is_held_up;
        let running = self.attempts.values().filter(runs).count();
        // A Pod that has ended may be seen before it is counted, or after.
        let running = if self.ended.is_some() { 0 } else { running as u64 };
        let given_up = if by_index { failed } else { 0 };
        let running = match total {
            Some(total) => running.min(total.saturating_sub(done + given_up)),
            None => running,
        };
        let waiting = total.map(|total| total.saturating_sub(done + running + given_up));
        let waiting = waiting.filter(|_| self.ended.is_none());
        let counted = if by_index { Counted::Indexes } else { Counted::Pods };
        Counts { total, done, failed, counted, running, waiting }
    }

    /// The same without what was done before the run: how fast it goes is told by the rest.
    pub(crate) fn counts_of_this_run(&self) -> Counts {
        let counts = self.counts();
        let total = counts.total.map(|total| total.saturating_sub(self.before));
        Counts { total, done: counts.done.saturating_sub(self.before), ..counts }
    }

    /// The last failures of the indexes that have not been completed since, the lowest first.
    pub(crate) fn failures(&self) -> impl Iterator<Item = &Failure> {
        let completed = self.completed_indexes();
        let is_made_good = move |it: &&Failure| it.index.is_some_and(|it| completed.contains(it));
        self.failures.values().filter(move |failure| !is_made_good(failure))
    }

    /// The same as a summary tells them: first that by which the Job has ended.
    pub(crate) fn told_failures(&self) -> impl Iterator<Item = &Failure> {
        let end =
            self.why().filter(|why| why.reason.as_deref() == Some(reason::POD_FAILURE_POLICY));
        let end = end.and_then(|why| why.message.as_deref()).unwrap_or_default();
        let (first, others): (Vec<&Failure>, Vec<&Failure>) =
            self.failures().partition(|failure| {
                let of_pod = format!(" {}/{} ", failure.namespace, failure.pod);
                end.contains(&of_pod)
            });
        first.into_iter().chain(others)
    }

    /// Whether anything has failed, made good since or not.
    pub(crate) fn has_failures(&self) -> bool {
        !self.failures.is_empty()
    }

    /// How often it was tried, and why in vain, if every try failed for the same reason and any
    /// other will.
    pub(crate) fn failed_alike(&self) -> Option<(u64, &str)> {
        let Tries { count, why, is_mixed } = &self.tries;
        let is_own = self.failures.values().all(|failure| failure.interruptions == 0);
        let is_all = !is_mixed && *count > 1 && self.pods().0 == 0 && is_own;
        why.as_deref().filter(|_| is_all).map(|why| (*count, why))
    }

    /// What took longest, the slowest first.
    pub(crate) fn slowest(&self) -> &[Slow] {
        &self.slowest
    }

    /// What runs, and for how long it has, the longest first.
    pub(crate) fn running(&self, now: Instant) -> Vec<Slow> {
        let runs = self.attempts.values().filter(|it| !it.is_held_up);
        let mut running: Vec<Slow> = runs
            .filter_map(|attempt| {
                let time = now.saturating_duration_since(attempt.since?);
                Some(Slow { what: attempt.what.clone(), time })
            })
            .collect();
        running.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.what.cmp(&b.what)));
        running
    }

    fn is_settled(&self) -> bool {
        let (succeeded, failed) = self.pods();
        self.is_gone || (self.attempts.is_empty() && self.over_count >= succeeded + failed)
    }

    /// Takes in a Pod of an earlier run: what came of it counts, but it is no news.
    fn observe_earlier_pod(&mut self, pod: &PodSight) {
        self.over.insert(pod.uid());
        self.over_count += 1;
        if pod.is_disrupted() {
            return;
        }
        if let Some(index) = pod.index() {
            self.tried.insert(index);
        }
        if pod.stage() == Stage::Failed && !pod.is_deleted() {
            self.note_failure(pod, None);
        }
    }

    fn observe_pod(&mut self, pod: &PodSight, is_gone: bool, now: Instant) -> Option<Failure> {
        if self.over.contains(pod.uid()) {
            if is_gone {
                self.over.remove(pod.uid());
            }
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
        attempt.is_starting = pod.is_starting();
        attempt.is_held_up = pod.why_waiting().is_some();
        self.retries += pod.restarts().saturating_sub(attempt.restarts);
        attempt.restarts = attempt.restarts.max(pod.restarts());
        let since = attempt.since;
        let relapsed = self.note_relapse(pod);
        let has_ended = matches!(stage, Stage::Succeeded | Stage::Failed);
        let attempt = match has_ended || is_gone {
            true => self.attempts.remove(pod.uid()),
            false => None,
        };
        if !has_ended {
            return relapsed;
        }
        let place = attempt.and_then(|attempt| attempt.failure);
        if let (Stage::Succeeded, None, Some(place)) = (stage, pod.index(), place) {
            self.failures.remove(&place);
        }
        self.over_count += 1;
        if !is_gone {
            self.over.insert(pod.uid());
        }
        self.note_time(pod, now.saturating_duration_since(since.unwrap_or(now)));
        // One that was stopped, as its Job needs it no more, has not failed by itself.
        let has_failed = stage == Stage::Failed && !pod.is_deleted();
        match stage {
            Stage::Failed if has_failed => Some(self.note_failure(pod, place)),
            Stage::Succeeded => None,
            _ => relapsed,
        }
    }

    /// Keeps what is worth knowing of why Pods wait: one Pod, until it waits no more. Told once
    /// for each reason.
    fn note_wait(&mut self, pod: &PodSight, is_gone: bool) -> Option<Waits> {
        let is_over = is_gone || self.over.contains(pod.uid());
        let why = pod.why_waiting().filter(|_| !is_over);
        match (&mut self.waits, why) {
            (Some(held), None) if held.is_by_event && pod.is_starting() && !is_over => None,
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
                let uid = pod.uid().to_owned();
                let waits = Waits { uid, is_by_event: false, what: pod.what(), why };
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
        let attempt = Attempt {
            since: None,
            is_starting: false,
            is_held_up: false,
            what: pod.what(),
            restarts: 0,
            relapses: 0,
            failure: None,
        };
        self.attempts.insert(pod.uid().to_owned(), attempt);
        let is_retry = match pod.index() {
            Some(index) => !self.tried.insert(index),
            // Without indexes nobody can tell for whom a Pod stands in.
            None => self.retries < self.failed_pods,
        };
        self.retries += u64::from(is_retry);
    }

    fn note_time(&mut self, pod: &PodSight, time: Duration) {
        let what = pod.what();
        // Of the tries of an index the longest stands for it.
        if let Some(known) = self.slowest.iter().position(|slow| slow.what == what) {
            if self.slowest[known].time >= time {
                return;
            }
            self.slowest.remove(known);
        }
        let place = self.slowest.partition_point(|slow| slow.time >= time);
        if place < MAX_SLOWEST {
            self.slowest.insert(place, Slow { what, time });
            self.slowest.truncate(MAX_SLOWEST);
        }
    }

    /// Takes note of a Pod that failed; where it stands already as its containers failed before.
    fn note_failure(&mut self, pod: &PodSight, place: Option<u32>) -> Failure {
        self.failed_pods += 1;
        let place = place.unwrap_or_else(|| self.place_of(pod));
        let is_interruption = pod.is_disrupted();
        let failure = Failure {
            container: pod.failed_container().map(str::to_owned),
            why: pod.why_failed(),
            times: u32::from(!is_interruption),
            interruptions: u32::from(is_interruption),
            is_interruption,
            goes_on: false,
            run: pod.failed_run(),
            ran: pod.failed_time(),
            others: pod.other_failures(),
            ..Failure::of(pod)
        };
        if !is_interruption {
            self.tries.note(1, &failure.why, pod.failed_for_good());
        }
        self.put_failure(place, failure)
    }

    /// Takes note of containers that failed and are run again.
    fn note_relapse(&mut self, pod: &PodSight) -> Option<Failure> {
        let attempt = self.attempts.get_mut(pod.uid())?;
        let known = std::mem::replace(&mut attempt.relapses, pod.relapses());
        let new = pod.relapses().saturating_sub(known);
        let place = attempt.failure;
        let (container, why) = pod.why_relapsed().filter(|_| new > 0)?;
        let failure = Failure {
            container: Some(container.to_owned()),
            why,
            times: u32::try_from(new).unwrap_or(u32::MAX),
            goes_on: true,
            run: pod.relapsed_run(),
            ran: pod.relapsed_time(),
            ..Failure::of(pod)
        };
        self.tries.note(failure.times, &failure.why, pod.failed_for_good());
        let place = place.unwrap_or_else(|| self.place_of(pod));
        self.attempts.get_mut(pod.uid())?.failure = Some(place);
        Some(self.put_failure(place, failure))
    }

    /// Where the first failure of a Pod belongs.
    fn place_of(&mut self, pod: &PodSight) -> u32 {
        pod.index().unwrap_or_else(|| {
            self.unnumbered += 1;
            self.unnumbered
        })
    }

    /// Puts a failure in the place of the one before, and adds up how often. What failed by itself stays:
    /// it says more than an interruption.
    fn put_failure(&mut self, place: u32, mut failure: Failure) -> Failure {
        let is_full = self.failures.len() >= MAX_FAILURES;
        match self.failures.get_mut(&place) {
            Some(before) => {
                failure.times = failure.times.saturating_add(before.times);
                failure.interruptions = failure.interruptions.saturating_add(before.interruptions);
                if failure.is_interruption && !before.is_interruption {
                    before.interruptions = failure.interruptions;
                } else {
                    *before = failure.clone();
                }
            }
            None if is_full => {}
            None => {
                self.failures.insert(place, failure.clone());
            }
        }
        failure
    }
}

/// How a Job is called in what is said of it.
pub(crate) fn title(job: &Job) -> String {
    let name = job.metadata.name.clone().unwrap_or_default();
    match job.metadata.namespace.as_deref() {
        None | Some("" | "default") => name,
        Some(namespace) => format!("{namespace}/{name}"),
    }
}

/// Whether a Job has come to its end.
pub(crate) fn is_ended(job: &Job) -> bool {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_deref());
    let is_end = |it: &JobCondition| matches!(it.type_.as_str(), "Complete" | "Failed");
    conditions.unwrap_or_default().iter().any(|it| is_end(it) && it.status == "True")
}

/// Whether the completions of a Job have numbers.
pub(crate) fn is_indexed(job: &Job) -> bool {
    let mode = job.spec.as_ref().and_then(|spec| spec.completion_mode.as_deref());
    mode == Some("Indexed")
}

/// How many completions a Job asks for; none if its Pods decide.
pub(crate) fn completions(job: &Job) -> u32 {
    let wanted = job.spec.as_ref().and_then(|spec| spec.completions).unwrap_or(0);
    u32::try_from(wanted).unwrap_or(0)
}

#[cfg(test)]
mod tests;
