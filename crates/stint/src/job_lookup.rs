//! A Job by its name, and its Pods.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize;
use serde_json::Value;
use stint_api::decode::suggest::closest;
use thiserror::Error;

use crate::calls::{CallError, Calls};
use crate::cluster_args::is_name;
use crate::pod_sight::PodSight;
use crate::printable::printable;

/// Most names that are told when none of them is like the one that was given.
const MAX_NAMES: usize = 8;

/// Most characters of a name that is told.
const MAX_NAME_CHARS: usize = 80;

/// Why there is no Job to speak of.
#[derive(Debug, Error)]
pub(crate) enum LookupError {
    #[error("no Job {} in namespace {namespace}; {hint}", printable(name, MAX_NAME_CHARS))]
    Absent { namespace: String, name: String, hint: String },
    #[error(transparent)]
    Call(#[from] CallError),
}

/// A Job as it is, and as it is looked at.
pub(crate) struct Found {
    pub(crate) object: Value,
    pub(crate) job: Job,
}

/// The name of a Job in what `-o name` prints, and what kubectl takes.
pub(crate) fn bare_name(text: &str) -> &str {
    match text.split_once('/') {
        Some(("job" | "jobs" | "job.batch" | "jobs.batch", name)) => name,
        _ => text,
    }
}

/// Where the Jobs of a namespace are.
pub(crate) fn jobs_path(namespace: &str) -> String {
    format!("/apis/batch/v1/namespaces/{namespace}/jobs")
}

/// Where a Job is watched.
pub(crate) fn job_watch_path(namespace: &str, name: &str) -> String {
    format!("{}?fieldSelector=metadata.name={name}", jobs_path(namespace))
}

/// The Job of this name.
///
/// # Errors
///
/// [`LookupError::Absent`] says which one may have been meant.
pub(crate) async fn find_job(
    calls: &Calls,
    namespace: &str,
    name: &str,
) -> Result<Found, LookupError> {
    let jobs = jobs_path(namespace);
    let object = match is_name(name) {
        true => calls.get(&format!("{jobs}/{name}")).await?,
        false => None,
    };
    // What cannot be read as a Job is not one.
    let job = object.as_ref().and_then(|object| Job::deserialize(object).ok());
    if let (Some(object), Some(job)) = (object, job) {
        return Ok(Found { object, job });
    }
    let others: Vec<Named> = calls.list(&jobs).await?;
    let names: Vec<&str> = others.iter().map(|other| other.metadata.name.as_str()).collect();
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    Err(LookupError::Absent { hint: hint(&name, &names), namespace, name })
}

#[derive(Deserialize)]
struct Named {
    metadata: NamedMetadata,
}

#[derive(Deserialize)]
struct NamedMetadata {
    name: String,
}

fn hint(name: &str, names: &[&str]) -> String {
    let shown = |name: &&str| printable(name, MAX_NAME_CHARS);
    if let Some(meant) = closest(name, names.iter().copied()) {
        return format!("did you mean {}?", shown(&meant));
    }
    if names.is_empty() {
        return "there is none in it; `stint status -A` shows those of all namespaces".to_owned();
    }
    let listed: Vec<String> = names.iter().take(MAX_NAMES).map(shown).collect();
    let more = if names.len() > MAX_NAMES { ", …" } else { "" };
    format!("there are: {}{more}", listed.join(", "))
}

/// Where the Pods of a Job are.
pub(crate) fn pods_path(job: &Job) -> String {
    let namespace = job.metadata.namespace.as_deref().unwrap_or("default");
    let selector = job.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let selector = selector.map(selector_text).unwrap_or_default();
    format!("/api/v1/namespaces/{namespace}/pods?labelSelector={selector}")
}

/// The Pods that a Job controls, index by index, the oldest of each first.
pub(crate) async fn pods_of(calls: &Calls, job: &Job) -> Result<Vec<PodSight>, CallError> {
    let uid = job.metadata.uid.as_deref().unwrap_or_default();
    let mut pods: Vec<PodSight> = calls.list(&pods_path(job)).await?;
    pods.retain(|pod| pod.is_of(uid));
    pods.sort_by(|one, other| one.order().cmp(&other.order()));
    Ok(pods)
}

/// A selector as a query has it. What labels are made of needs no escapes.
fn selector_text(selector: &LabelSelector) -> String {
    let labels = selector.match_labels.iter().flatten();
    let labels = labels.map(|(key, value)| format!("{key}={value}"));
    let rules = selector.match_expressions.iter().flatten().filter_map(|rule| {
        let key = &rule.key;
        let values = rule.values.as_deref().unwrap_or_default().join(",");
        match rule.operator.as_str() {
            "In" => Some(format!("{key}%20in%20({values})")),
            "NotIn" => Some(format!("{key}%20notin%20({values})")),
            "Exists" => Some(key.clone()),
            "DoesNotExist" => Some(format!("!{key}")),
            // An operator that is not known yet only lets in more, and owners are looked at.
            _ => None,
        }
    });
    labels.chain(rules).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_one_that_was_meant_is_told() {
        assert_eq!(hint("wrok", &["other", "work"]), "did you mean work?");
        assert_eq!(hint("zebra", &["other", "work"]), "there are: other, work");
        assert!(hint("zebra", &["a"; 9]).ends_with("a, a, …"));
        assert!(hint("zebra", &[]).contains("-A"));
        let hostile = LookupError::Absent {
            namespace: "default".to_owned(),
            name: "x\u{1b}[2J".to_owned(),
            hint: hint("x", &["evil\u{1b}[2Jname"]),
        };
        assert!(!hostile.to_string().contains('\u{1b}'), "{hostile}");
    }

    #[test]
    fn names_are_taken_as_they_are_printed() {
        for text in ["work", "job/work", "jobs/work", "job.batch/work"] {
            assert_eq!(bare_name(text), "work");
        }
        assert_eq!(bare_name("pod/work"), "pod/work");
    }

    #[test]
    fn selectors_of_every_kind_are_written() {
        let job: Job = serde_json::from_value(json!({
            "metadata": {"name": "work", "namespace": "here"},
            "spec": {"template": {}, "selector": {
                "matchLabels": {"a": "1", "b/c": "2"},
                "matchExpressions": [
                    {"key": "d", "operator": "In", "values": ["x", "y"]},
                    {"key": "e", "operator": "NotIn", "values": ["z"]},
                    {"key": "f", "operator": "Exists"},
                    {"key": "g", "operator": "DoesNotExist"}]}},
        }))
        .expect("it is a Job");
        assert_eq!(
            pods_path(&job),
            "/api/v1/namespaces/here/pods?labelSelector=a=1,b/c=2,d%20in%20(x,y),\
             e%20notin%20(z),f,!g"
        );
    }
}
