//! One Job on a page, for a person who wants to know what to do. Text made from values.

use std::cmp::Reverse;
use std::time::Instant;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition};
use stint_api::index_set::IndexSet;

use super::shortage::backoff_row;
use super::state::{self, State, duration, reason};
use super::warning::Warning;
use crate::color::{Painter, Style};
use crate::job_text::{self, MAX_SHOWN_FAILURES, Tail};
use crate::pod_sight::{PodSight, Stage};
use crate::printable::{MAX_MESSAGE_CHARS, printable};
use crate::progress::{Change, End, Failure, JobProgress, Progress};
use crate::words;

/// Most Pods that are named as running, and as waiting.
pub(crate) const MAX_PODS: usize = 8;

/// Most indexes that a command which is shown asks for.
const MAX_ASKED: usize = 5;

/// A Job and its Pods.
pub(crate) struct Page<'p> {
    progress: Progress,
    pods: &'p [PodSight],
    /// The latest failure of each index that has not been completed since, the latest first.
    failures: Vec<Failure>,
    /// What was last said against it.
    warning: Option<Warning>,
}

impl<'p> Page<'p> {
    /// Takes in a Job and its Pods.
    pub(crate) fn new(job: Job, pods: &'p [PodSight], warning: Option<Warning>) -> Self {
        let now = Instant::now();
        let mut progress = Progress::default();
        progress.add(job, IndexSet::new(), now);
        let mut in_time: Vec<&PodSight> = pods.iter().collect();
        // As they were made, so that it is seen which of them stand in for others.
        in_time.sort_by_key(|pod| (pod.created(), pod.order()));
        let mut failures: Vec<(Option<Timestamp>, Failure)> = Vec::new();
        for pod in in_time {
            for change in progress.observe_pod(pod, false, now) {
                if let Change::PodFailed { failure, .. } = change {
                    failures.retain(|(_, it)| it.index.is_none() || it.index != failure.index);
                    failures.push((pod.ended(), failure));
                }
            }
        }
        failures.sort_by_key(|(ended, _)| Reverse(*ended));
        let mut failures: Vec<Failure> = failures.into_iter().map(|(_, it)| it).collect();
        let job = &progress.jobs()[0];
        let completed = job.completed_indexes();
        failures.retain(|it| it.index.is_none_or(|index| !completed.contains(index)));
        if job.end() == End::Complete {
            failures.clear();
        }
        Page { progress, pods, failures, warning }
    }

    fn job(&self) -> &JobProgress {
        &self.progress.jobs()[0]
    }

    /// The failures that are shown with their last lines.
    pub(crate) fn shown_failures(&self) -> &[Failure] {
        &self.failures[..self.failures.len().min(MAX_SHOWN_FAILURES)]
    }

    /// The whole of it. `again` is what finds the same cluster in a command, and `goes_on` how to
    /// go on with a cluster that nobody runs.
    pub(crate) fn text(
        &self,
        tails: &[Tail],
        painter: Painter,
        now: Timestamp,
        again: &str,
        goes_on: Option<&str>,
    ) -> String {
        let mut text =
            self.headline(painter, now, goes_on.is_some()) + &job_text::count_rows(self.job());
        text += &job_text::alike_row(self.job());
        let restarts: u64 = self.pods.iter().map(PodSight::restarts).sum();
        if restarts > 0 {
            text += &job_text::row("restarts", &format!("{restarts} of containers"));
        }
        // Where nobody runs it, nothing runs, and nothing comes of itself.
        if goes_on.is_none() {
            text += &self.pod_rows(now);
            text += &backoff_row(&self.job().job, self.pods, now);
        }
        text += &self.warning.as_ref().map(|it| it.row(now)).unwrap_or_default();
        for tail in tails {
            text += &job_text::failure(tail);
        }
        let rest = self.failures.len().saturating_sub(tails.len());
        if rest > 0 {
            text += &format!("  … and {rest} more\n");
        }
        text += &condition_rows(&self.job().job, now);
        text + &self.next(again, goes_on)
    }

    fn headline(&self, painter: Painter, now: Timestamp, is_left: bool) -> String {
        let job = self.job();
        let elapsed = duration(&job.job, now).map(words::age);
        if job.end() != End::Unfinished {
            return job_text::headline(job, elapsed.as_deref().unwrap_or("no time"), painter);
        }
        let state = State::of(&job.job);
        let title = painter.paint(Style::Message, &job.title);
        let word = painter.paint(state.style(), state.word());
        let since = elapsed.map(|elapsed| format!(" for {elapsed}")).unwrap_or_default();
        let why = reason(&job.job).map(|why| format!(": {}", printable(why, MAX_MESSAGE_CHARS)));
        let why = why.unwrap_or_default();
        // The Pods of a cluster that was killed still say that they run.
        let counts = if is_left { state::counts(&job.job) } else { job.counts() };
        format!("{title}: {word}{since}{why}: {}\n", words::counts(&counts))
    }

    /// The Pods that run, and those that wait and for what.
    fn pod_rows(&self, now: Timestamp) -> String {
        let under_way = || self.pods.iter().filter(|pod| pod.is_under_way());
        let running = under_way().filter(|pod| !is_held_up(pod)).map(|pod| {
            let since = pod.started().or(pod.created());
            let since =
                since.map(|since| format!(" for {}", words::age(now.duration_since(since))));
            let node = pod.node().unwrap_or("no node");
            let text = format!("{} on {node}{}", pod.what(), since.unwrap_or_default());
            match pod.index() {
                Some(_) => format!("{text}: Pod {}", pod.name()),
                None => text,
            }
        });
        let waiting = under_way().filter(|pod| is_held_up(pod)).map(|pod| {
            let since = pod.created();
            let since =
                since.map(|since| format!(" for {}", words::age(now.duration_since(since))));
            let why = pod.why_waiting().unwrap_or_else(|| "it has no node yet".to_owned());
            format!("{}{}: {why}", pod.what(), since.unwrap_or_default())
        });
        rows("running", running.collect()) + &rows("waiting", waiting.collect())
    }

    fn next(&self, again: &str, goes_on: Option<&str>) -> String {
        let job = &self.job().job;
        let name = printable(job.metadata.name.as_deref().unwrap_or(""), MAX_MESSAGE_CHARS);
        let logs = |more: &str| format!("next: stint logs {name}{more}{again}\n");
        let state = State::of(job);
        if let Some(command) = goes_on.filter(|_| !state.is_end()) {
            return format!("next: {command} goes on from here\n");
        }
        let failed: IndexSet = self.failures.iter().filter_map(|it| it.index).collect();
        let failed: IndexSet = failed.iter().take(MAX_ASKED).collect();
        match state {
            _ if !failed.is_empty() => logs(&format!(" --index {failed}")),
            State::Failed | State::Failing | State::Complete => logs(""),
            // Those that run may make room for the others; here nobody does.
            State::Waiting if self.pods.iter().any(PodSight::is_unschedulable) => format!(
                "next: it runs when a node has what its Pods ask for; if none ever will, delete \
                 {name}, ask for less (resources.requests, nodeSelector, affinity) and create it \
                 again\n"
            ),
            State::Waiting if self.pods.iter().any(waits_for_something) => format!(
                "next: its Pods begin when what they wait for is there; what is wrong in the Job itself \
                 cannot be changed: delete {name}, mend it and create it again\n"
            ),
            // Whoever is to run the Job has made them.
            State::Waiting if self.pods.iter().any(waits_for_node) => {
                "next: its Pods begin when they are given a node, which is up to the scheduler of the \
                 cluster\n"
                    .to_owned()
            }
            State::Running | State::Completing => logs(" -f"),
            State::Suspended => {
                "next: it starts when its spec.suspend is set to false\n".to_owned()
            }
            State::Waiting => match job.spec.as_ref().and_then(|spec| spec.managed_by.as_deref()) {
                None | Some("kubernetes.io/job-controller") => logs(" -f"),
                Some(other) => {
                    let other = printable(other, MAX_MESSAGE_CHARS);
                    format!("next: it is for the controller {other} by its spec.managedBy\n")
                }
            },
            State::Deleting => String::new(),
        }
    }
}

/// Whether it does not run, though it should.
fn is_held_up(pod: &PodSight) -> bool {
    pod.stage() == Stage::Waiting || pod.why_waiting().is_some()
}

/// Whether it has a node and has not begun, and it is known why.
fn waits_for_something(pod: &PodSight) -> bool {
    pod.is_starting() && pod.why_waiting().is_some()
}

/// Whether it has no node yet.
fn waits_for_node(pod: &PodSight) -> bool {
    pod.is_under_way() && pod.node().is_none()
}

/// A row for each of them, up to some.
fn rows(name: &str, values: Vec<String>) -> String {
    let shown = values.iter().take(MAX_PODS);
    let mut text: String =
        shown.map(|value| job_text::row(name, &printable(value, MAX_MESSAGE_CHARS))).collect();
    if values.len() > MAX_PODS {
        text += &job_text::row("", &format!("… and {} more", values.len() - MAX_PODS));
    }
    text
}

/// What was said of the Job, in order of time.
fn condition_rows(job: &Job, now: Timestamp) -> String {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_deref());
    let mut conditions: Vec<&JobCondition> = conditions.unwrap_or_default().iter().collect();
    let time = |it: &JobCondition| it.last_transition_time.as_ref().map(|time| time.0);
    conditions.sort_by_key(|it| time(it));
    let lines = conditions.iter().map(|it| {
        let JobCondition { type_, status, .. } = it;
        let kind = if status == "True" { type_.clone() } else { format!("{type_}={status}") };
        let when = time(it).map(|time| format!("{} ago: ", words::age(now.duration_since(time))));
        let reason = it.reason.as_deref().filter(|text| !text.is_empty());
        let message = it.message.as_deref().filter(|text| !text.is_empty());
        let why = [reason, message].into_iter().flatten().map(|text| format!(": {text}"));
        let line = when.unwrap_or_default() + &kind + &why.collect::<String>();
        job_text::row("condition", &printable(&line, MAX_MESSAGE_CHARS))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(index: u32, uid: &str, created: u32, status: Value) -> PodSight {
        let time = format!("2026-01-01T00:00:{created:02}Z");
        serde_json::from_value(json!({
            "metadata": {"name": format!("work-{index}-{uid}"), "namespace": "default", "uid": uid,
                "creationTimestamp": time,
                "ownerReferences": [{"uid": "u", "controller": true}],
                "annotations": {"batch.kubernetes.io/job-completion-index": index.to_string()}},
            "spec": {"nodeName": if status["phase"] == "Pending" { "" } else { "no\u{1b}de" }},
            "status": status,
        }))
        .expect("it is a Pod")
    }

    fn ended(code: i32, second: u32) -> Value {
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let time = format!("2026-01-01T00:00:{second:02}Z");
        json!({"phase": phase, "containerStatuses": [{"name": "main",
            "state": {"terminated": {"exitCode": code, "finishedAt": time}}}]})
    }

    #[test]
    fn who_waits_for_a_node_is_told_so_also_if_another_controller_made_its_pods() {
        let job = |managed_by: Option<&str>| -> Job {
            serde_json::from_value(json!({
                "metadata": {"name": "work", "namespace": "default", "uid": "u"},
                "spec": {"completions": 1, "completionMode": "Indexed", "managedBy": managed_by,
                    "template": {}},
                "status": {"active": 1, "ready": 0},
            }))
            .expect("it is a Job")
        };
        let next = |job: Job, pods: &[PodSight]| {
            let text = Page::new(job, pods, None).text(
                &[],
                Painter::new(false),
                "2026-01-01T00:01:00Z".parse().expect("a time"),
                "",
                None,
            );
            text.lines().last().expect("a line").to_owned()
        };
        let unbound = [pod(0, "a", 2, json!({"phase": "Pending"}))];
        let told = next(job(Some("stint.dev/job-controller")), &unbound);
        assert!(told.starts_with("next: its Pods begin when they are given a node"), "{told}");
        let alone = next(job(Some("stint.dev/job-controller")), &[]);
        assert!(alone.contains("for the controller stint.dev/job-controller"), "{alone}");
    }

    #[test]
    fn a_page_tells_what_a_person_may_act_on() {
        let job: Job = serde_json::from_value(json!({
            "metadata": {"name": "work", "namespace": "default", "uid": "u"},
            "spec": {"completions": 5, "completionMode": "Indexed", "template": {}},
            "status": {"startTime": "2026-01-01T00:00:00Z", "active": 2, "ready": 1,
                "succeeded": 1, "failed": 3, "completedIndexes": "2",
                "conditions": [
                    {"type": "Later", "status": "True", "lastTransitionTime": "2026-01-01T00:00:50Z"},
                    {"type": "Suspended", "status": "False", "reason": "JobResumed",
                        "message": "\u{1b}[2J", "lastTransitionTime": "2026-01-01T00:00:01Z"}]},
        }))
        .expect("it is a Job");
        let unbound = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled",
            "status": "False", "reason": "Unschedulable", "message": "no room"}]});
        let running = json!({"phase": "Running", "startTime": "2026-01-01T00:00:10Z"});
        let pods = [
            pod(0, "a", 2, ended(7, 30)),
            pod(1, "b", 3, ended(3, 20)),
            pod(2, "c", 4, ended(1, 5)),
            pod(2, "d", 6, ended(0, 8)),
            pod(3, "e", 7, running),
            pod(4, "f", 8, unbound),
        ];
        let page = Page::new(job, &pods, None);
        let indexes: Vec<_> = page.shown_failures().iter().map(|it| it.index).collect();
        assert_eq!(indexes, [Some(0), Some(1)], "the latest first, and none that was made good");
        let tails: Vec<Tail> =
            page.shown_failures().iter().map(|it| (it.clone(), Vec::new())).collect();
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        let text = page.text(&tails, Painter::new(false), now, " -n here", None);
        let expected = "\
work: Running for 1m00s: 1 of 5 done, 3 Pods failed, 1 running, 3 waiting
  completed  1 of 5: 2
  Pods       1 succeeded, 3 failed; 1 retry
  running    index 3 on no\\u{1b}de for 50s: Pod work-3-e
  waiting    index 4 for 52s: Unschedulable: no room
  index 0 failed in container main: exit code 7
  index 1 failed in container main: exit code 3
  condition  59s ago: Suspended=False: JobResumed: \\u{1b}[2J
  condition  10s ago: Later
next: stint logs work --index 0,1 -n here
";
        assert_eq!(text, expected);
        let left = page.text(&tails, Painter::new(false), now, "", Some("stint serve"));
        assert!(left.ends_with("next: stint serve goes on from here\n"), "{left}");
        assert!(!left.contains("\n  running ") && !left.contains("\n  waiting "), "{left}");
    }
}
