//! What the ledger asks for, one op a line. Of a status only what changes is printed.

use k8s_openapi::api::batch::v1::{JobCondition, JobStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use stint_ledger::op::{NewPod, OpKind};

use crate::api::{self, Api};

/// How many of a kind are listed one by one.
pub(crate) const MAX_LISTED: usize = 12;

/// The line of an op, before it is carried out.
pub(crate) fn op(op: &OpKind, api: &mut Api) -> String {
    match op {
        OpKind::CreatePod(pod) => {
            let label = api.labels.ask(&pod.name, pod.index);
            format!("create {label}{}", counts(pod))
        }
        OpKind::DeletePod(pod) => format!("delete {}", api.labels.of(&pod.name)),
        OpKind::RemoveFinalizer(pod) => {
            format!("remove finalizer of {}", api.labels.of(&pod.name))
        }
        OpKind::AdoptPod(pod) => format!("adopt {}", api.labels.of(&pod.name)),
        OpKind::ReleasePod(pod) => format!("release {}", api.labels.of(&pod.name)),
        OpKind::WriteStatus { status, .. } => {
            format!("status {}", status_change(&api.status(), status))
        }
        OpKind::LookUpJob => "look up the Job".to_owned(),
        OpKind::LookUpPod(name) => format!("look up {}", api.labels.of(name)),
        OpKind::LookUpPods => "look up all Pods".to_owned(),
        OpKind::EmitEvent(event) => {
            let kind = if event.is_warning { "Warning" } else { "Normal" };
            let message = api.labels.shorten(&event.message);
            format!("event {kind} {} {message}", event.reason)
        }
        OpKind::Record(metric) => format!("metric {metric:?}"),
    }
}

/// The whole status, and its conditions with their messages.
pub(crate) fn status(api: &Api) -> Vec<String> {
    let mut status = api.status();
    let conditions = status.conditions.take().unwrap_or_default();
    let mut lines = vec![status_change(&JobStatus::default(), &status)];
    lines.extend(conditions.iter().map(|condition| {
        let message = condition.message.as_deref().unwrap_or_default();
        format!("{}: {}", condition_text(condition), api.labels.shorten(message))
    }));
    lines
}

/// Whether a change is only about how many Pods run, and since when the Job does.
pub(crate) fn is_plain(old: &JobStatus, new: &JobStatus) -> bool {
    let rest = |status: &JobStatus| JobStatus {
        active: None,
        ready: None,
        terminating: None,
        start_time: None,
        ..status.clone()
    };
    status_change(&rest(old), &rest(new)) == "unchanged"
}

/// The Pods, one a line.
pub(crate) fn pods(api: &Api) -> Vec<String> {
    let mut pods: Vec<_> = api.pods.values().collect();
    pods.sort_by_key(|pod| crate::labels::order(api.labels.of(&pod.facts.name)));
    let line = |pod: &&api::ApiPod| {
        let facts = &pod.facts;
        let deleted = if facts.is_deleted { ", being deleted" } else { "" };
        let tracked = if facts.is_tracked { ", with finalizer" } else { "" };
        let label = api.labels.of(&facts.name);
        format!("{label} {:?}{deleted}{tracked}", facts.phase)
    };
    pods.iter().map(line).collect()
}

/// So much time, in seconds.
pub(crate) fn seconds(from: Timestamp, to: Timestamp) -> String {
    format!("{}s", to.duration_since(from).as_secs_f64())
}

fn counts(pod: &NewPod) -> String {
    let failures = pod.failure_count.map(|count| format!(" failures={count}"));
    let ignored = pod.ignored_failure_count;
    let ignored = if ignored > 0 { format!(" ignored={ignored}") } else { String::new() };
    let interrupted = pod.interruption_count;
    let interrupted =
        if interrupted > 0 { format!(" interrupted={interrupted}") } else { String::new() };
    failures.unwrap_or_default() + &ignored + &interrupted
}

/// What a status changes.
pub(crate) fn status_change(old: &JobStatus, new: &JobStatus) -> String {
    let mut parts = Vec::new();
    let mut note = |name: &str, old: String, new: String| {
        if old != new {
            parts.push(format!("{name}={new}"));
        }
    };
    let count = |count: Option<i32>| count.unwrap_or(0).to_string();
    note("active", count(old.active), count(new.active));
    note("ready", count(old.ready), count(new.ready));
    note("terminating", count(old.terminating), count(new.terminating));
    note("succeeded", count(old.succeeded), count(new.succeeded));
    note("failed", count(old.failed), count(new.failed));
    let indexes = |text: &Option<String>| match text.as_deref() {
        None => "null".to_owned(),
        Some("") => "\"\"".to_owned(),
        Some(text) => text.to_owned(),
    };
    note("completedIndexes", indexes(&old.completed_indexes), indexes(&new.completed_indexes));
    note("failedIndexes", indexes(&old.failed_indexes), indexes(&new.failed_indexes));
    let [old_lists, new_lists] = [old, new].map(|status| {
        let lists = status.uncounted_terminated_pods.clone().unwrap_or_default();
        [lists.succeeded, lists.failed].map(|uids| list(uids.unwrap_or_default()))
    });
    for ((name, old), new) in
        ["uncountedSucceeded", "uncountedFailed"].into_iter().zip(old_lists).zip(new_lists)
    {
        note(name, old, new);
    }
    let time = |time: &Option<Time>| {
        time.as_ref().map_or("null".to_owned(), |time| seconds(api::start(), time.0))
    };
    note("startTime", time(&old.start_time), time(&new.start_time));
    note("completionTime", time(&old.completion_time), time(&new.completion_time));
    parts.extend(condition_changes(
        old.conditions.as_deref().unwrap_or_default(),
        new.conditions.as_deref().unwrap_or_default(),
    ));
    if parts.is_empty() { "unchanged".to_owned() } else { parts.join(" ") }
}

fn condition_changes(old: &[JobCondition], new: &[JobCondition]) -> Vec<String> {
    let has =
        |list: &[JobCondition], text: &str| list.iter().any(|one| condition_text(one) == text);
    let added = new.iter().map(condition_text).filter(|text| !has(old, text));
    let is_gone = |one: &&JobCondition| new.iter().all(|other| other.type_ != one.type_);
    let gone = old.iter().filter(is_gone).map(|one| format!("without {}", one.type_));
    added.chain(gone).collect()
}

fn condition_text(condition: &JobCondition) -> String {
    let reason = condition.reason.as_deref().unwrap_or_default();
    let status = if condition.status == "True" { "" } else { "=False" };
    format!("{}{status}({reason})", condition.type_)
}

fn list(mut uids: Vec<String>) -> String {
    uids.sort_by_key(|uid| crate::labels::order(uid));
    match uids.len() {
        0..=MAX_LISTED => format!("[{}]", uids.join(",")),
        count => format!("[{count} Pods]"),
    }
}
