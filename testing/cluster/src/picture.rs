//! A Job and its Pods as they are in the end, without what is different each time: names that are
//! made up, uids, versions and times.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use serde::Serialize;
use serde_json::{Map, Value};
use stint_api::names::{finalizer, label, managed_by};
use stint_kit::Stage;

/// What of an object is different each time, or says who wrote it and not what.
const FLEETING: [&str; 5] =
    ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"];

/// How long uids are.
const UID_LENGTH: usize = 36;

/// A Job and its Pods in the end.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// The Job, unless it is gone: each value by its path.
    job: BTreeMap<String, String>,
    /// The Pods that are left, in an order that does not depend on their names.
    pods: Vec<BTreeMap<String, String>>,
}

impl Picture {
    /// Takes a picture of a Job that is over.
    pub async fn take(stage: &Stage, name: &str) -> Self {
        let job = stage.jobs().get_opt(name).await.expect("an answer");
        let pods = stage.pods_of(name).await;
        Picture::of(job.as_ref(), &pods)
    }

    /// A picture of a Job, unless it is gone, and of its Pods. Of a Job that names stint as its
    /// controller the finalizer of its Pods is that of the others, and the name is left out.
    pub(crate) fn of(job: Option<&Job>, pods: &[Pod]) -> Self {
        let manager = job.and_then(|job| job.spec.as_ref()?.managed_by.as_deref());
        let is_ours = manager == Some(managed_by::STINT);
        let finalizer = is_ours.then_some(finalizer::STINT_JOB_TRACKING);
        let job = job.map(|job| {
            let mut job = job.clone();
            if let Some(spec) = job.spec.as_mut().filter(|_| is_ours) {
                spec.managed_by = None;
            }
            let mut blank = Blank::default();
            blank.hide(job.metadata.uid.as_deref(), "UID");
            // A message may name the Pod that it is about.
            pods.iter().for_each(|pod| blank.hide_name(pod));
            blank.paths(&job)
        });
        let pod_paths = |pod: &Pod| {
            let mut blank = Blank::default();
            blank.hide(finalizer, finalizer::JOB_TRACKING);
            blank.hide_name(pod);
            blank.hide(pod.metadata.uid.as_deref(), "POD-UID");
            // The Job may be gone, and its uid is still on the Pods that it has left.
            let labels = pod.metadata.labels.as_ref();
            let label = labels.and_then(|all| all.get(label::CONTROLLER_UID));
            blank.hide(label.filter(|uid| uid.len() == UID_LENGTH).map(|uid| &**uid), "UID");
            for owner in pod.metadata.owner_references.iter().flatten() {
                blank.hide(Some(&owner.uid), "UID");
            }
            blank.paths(pod)
        };
        let mut pods: Vec<_> = pods.iter().map(pod_paths).collect();
        pods.sort_unstable();
        Picture { job: job.unwrap_or_default(), pods }
    }

    /// Where another picture is different, a line each that begins with the path.
    pub fn differences(&self, other: &Picture) -> Vec<String> {
        let mut lines = Vec::new();
        differ("job", &self.job, &other.job, &mut lines);
        if self.pods.len() != other.pods.len() {
            let (ours, theirs) = (self.pods.len(), other.pods.len());
            lines.push(format!("pods: {ours} are left, and with the other {theirs}"));
            return lines;
        }
        for (position, (ours, theirs)) in self.pods.iter().zip(&other.pods).enumerate() {
            differ(&format!("pods[{position}]"), ours, theirs, &mut lines);
        }
        lines
    }
}

fn differ(
    what: &str,
    ours: &BTreeMap<String, String>,
    theirs: &BTreeMap<String, String>,
    lines: &mut Vec<String>,
) {
    let mut paths: Vec<&String> = ours.keys().chain(theirs.keys()).collect();
    paths.sort_unstable();
    paths.dedup();
    for path in paths {
        let value = |of: &BTreeMap<String, String>| of.get(path).cloned();
        let (ours, theirs) = (value(ours), value(theirs));
        if ours != theirs {
            let word = |value: Option<String>| value.unwrap_or_else(|| "nothing".to_owned());
            lines.push(format!(
                "{what}{path}: {}, and with the other {}",
                word(ours),
                word(theirs)
            ));
        }
    }
}

/// What is put in place of what is different each time.
#[derive(Default)]
struct Blank {
    words: Vec<(String, String)>,
}

impl Blank {
    fn hide(&mut self, what: Option<&str>, with: &str) {
        if let Some(what) = what {
            self.words.push((what.to_owned(), with.to_owned()));
        }
    }

    fn hide_name(&mut self, pod: &Pod) {
        if let Some(stem) = &pod.metadata.generate_name {
            self.hide(pod.metadata.name.as_deref(), &format!("{stem}*"));
        }
    }

    /// Every value of an object, by its path.
    fn paths(&self, object: &impl Serialize) -> BTreeMap<String, String> {
        let mut paths = BTreeMap::new();
        self.flatten("", &serde_json::to_value(object).expect("JSON"), &mut paths);
        paths
    }

    fn flatten(&self, path: &str, value: &Value, paths: &mut BTreeMap<String, String>) {
        match value {
            Value::Object(fields) => self.flatten_fields(path, fields, paths),
            Value::Array(items) => {
                for (position, item) in items.iter().enumerate() {
                    let key = place(item).unwrap_or_else(|| position.to_string());
                    self.flatten(&format!("{path}[{}]", self.fill(&key)), item, paths);
                }
            }
            Value::String(text) => {
                paths.insert(path.to_owned(), self.fill(text));
            }
            other => {
                paths.insert(path.to_owned(), other.to_string());
            }
        }
    }

    fn flatten_fields(
        &self,
        path: &str,
        fields: &Map<String, Value>,
        paths: &mut BTreeMap<String, String>,
    ) {
        for (key, value) in fields {
            if path == ".metadata" && FLEETING.contains(&&**key) {
                continue;
            }
            self.flatten(&format!("{path}.{key}"), value, paths);
        }
    }

    fn fill(&self, text: &str) -> String {
        if text.parse::<Timestamp>().is_ok() {
            return "TIME".to_owned();
        }
        if text.starts_with("kube-api-access-") {
            return "kube-api-access-*".to_owned();
        }
        let hide = |text: String, (what, with): &(String, String)| text.replace(what, with);
        self.words.iter().fold(text.to_owned(), hide)
    }
}

/// What an item of a list is known by, if its place in the list is of no matter.
fn place(item: &Value) -> Option<String> {
    let key = item.get("type").or_else(|| item.get("name"))?;
    key.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, uid: &str, index: &str) -> Pod {
        let pod = json!({
            "metadata": {
                "name": name, "generateName": "a-0-", "uid": format!("uid of {name}"),
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"batch.kubernetes.io/job-completion-index": index},
                "ownerReferences": [
                    {"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": uid},
                ],
            },
            "status": {"phase": "Failed", "startTime": format!("2026-01-01T00:00:0{index}Z")},
        });
        serde_json::from_value(pod).expect("a Pod")
    }

    fn job(uid: &str, failed: i32, message: &str) -> Job {
        let job = json!({
            "metadata": {"name": "a", "uid": uid, "resourceVersion": uid},
            "status": {"failed": failed, "conditions": [
                {"type": "Failed", "status": "True", "message": message},
            ]},
        });
        serde_json::from_value(job).expect("a Job")
    }

    #[test]
    fn names_uids_and_times_are_no_difference() {
        let one = Picture::of(Some(&job("u1", 1, "of a-0-xxxxx")), &[pod("a-0-xxxxx", "u1", "1")]);
        let two = Picture::of(Some(&job("u2", 1, "of a-0-yyyyy")), &[pod("a-0-yyyyy", "u2", "1")]);
        assert_eq!(one.differences(&two), [""; 0]);
    }

    #[test]
    fn that_a_job_names_stint_is_no_difference_and_its_finalizer_is_one_only_then() {
        let of = |manager: Option<&str>, finalizer: &str| {
            let mut job = job("u1", 1, "one");
            let spec = json!({"managedBy": manager, "template": {}});
            job.spec = serde_json::from_value(spec).expect("a spec");
            let mut pod = pod("a-0-xxxxx", "u1", "1");
            pod.metadata.finalizers = Some(vec![finalizer.to_owned()]);
            Picture::of(Some(&job), &[pod])
        };
        let theirs = of(None, finalizer::JOB_TRACKING);
        let ours = of(Some(managed_by::STINT), finalizer::STINT_JOB_TRACKING);
        assert_eq!(ours.differences(&theirs), [""; 0]);
        assert_eq!(of(None, finalizer::STINT_JOB_TRACKING).differences(&theirs).len(), 1);
        assert_eq!(of(Some("a.io/b"), finalizer::JOB_TRACKING).differences(&theirs).len(), 1);
    }

    #[test]
    fn everything_else_is() {
        let one = Picture::of(Some(&job("u1", 1, "one")), &[pod("a-0-xxxxx", "u1", "1")]);
        let two = Picture::of(Some(&job("u2", 2, "two")), &[pod("a-0-yyyyy", "u2", "2")]);
        let lines = one.differences(&two);
        assert_eq!(
            lines,
            [
                "job.status.conditions[Failed].message: one, and with the other two",
                "job.status.failed: 1, and with the other 2",
                "pods[0].metadata.labels.batch.kubernetes.io/job-completion-index: 1, and with \
                 the other 2",
            ]
        );
        let none = Picture::of(None, &[]);
        assert!(
            one.differences(&none).contains(&"pods: 1 are left, and with the other 0".to_owned())
        );
    }
}
