//! What a Job's Pods are cast from: its template, made ready once for all of them. Only names,
//! index and counts differ from Pod to Pod, so the spec is serialised once.
//!
//! The spec is that of the API, word for word, and only what the controller adds is put into it: a
//! cluster may be newer than this program, and its Pods have fields that no type here has. Of the
//! template's metadata Kubernetes itself takes no more than labels, annotations and finalizers.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::{Map, Value, json};
use stint_api::names::{BATCH_V1, JOB_KIND, annotation, env, label};
use stint_api::view::{Completion, JobView};
use stint_ledger::op::NewPod;
use stint_ledger::pod_name::PodNames;

/// What a Job's Pods are cast from.
#[derive(Debug)]
pub(crate) struct Mould {
    job_name: String,
    names: PodNames,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    finalizers: Vec<String>,
    owner: OwnerReference,
    /// The spec as JSON without the brace that opens it.
    spec: String,
}

impl Mould {
    /// The mould of this Job's Pods, made from its template, which `finalizer` is to track.
    pub(crate) fn of(job: &JobView, template: &Value, finalizer: &str) -> Self {
        let mut spec = template["spec"].as_object().cloned().unwrap_or_default();
        match &job.completion {
            Completion::Indexed(_) => {
                // Each Pod gets its own.
                spec.remove("hostname");
                add_index_variable(&mut spec);
            }
            Completion::WorkQueue | Completion::Count(_) => {}
        }
        let meta = &template["metadata"];
        let finalizers = meta["finalizers"].as_array().into_iter().flatten();
        let mut finalizers: Vec<String> = finalizers.filter_map(text).collect();
        if !finalizers.iter().any(|name| name == finalizer) {
            finalizers.push(finalizer.to_owned());
        }
        let spec = serde_json::to_string(&spec).expect("a Pod's spec is JSON");
        Mould {
            job_name: job.name.clone(),
            names: PodNames::new(&job.name, &job.uid),
            labels: texts(&meta["labels"]),
            annotations: texts(&meta["annotations"]),
            finalizers,
            owner: owner_reference(&job.name, &job.uid),
            spec: spec.strip_prefix('{').expect("an object begins with a brace").to_owned(),
        }
    }

    /// The Pod as JSON.
    pub(crate) fn cast(&self, pod: &NewPod) -> Vec<u8> {
        let mut labels = self.labels.clone();
        let mut annotations = self.annotations.clone();
        if let Some(index) = pod.index {
            labels.insert(label::COMPLETION_INDEX.to_owned(), index.to_string());
            annotations.insert(annotation::COMPLETION_INDEX.to_owned(), index.to_string());
        }
        if let Some(count) = pod.failure_count {
            annotations.insert(annotation::INDEX_FAILURE_COUNT.to_owned(), count.to_string());
        }
        if pod.ignored_failure_count > 0 {
            let count = pod.ignored_failure_count.to_string();
            annotations.insert(annotation::INDEX_IGNORED_FAILURE_COUNT.to_owned(), count);
        }
        if pod.interruption_count > 0 {
            let count = pod.interruption_count.to_string();
            annotations.insert(annotation::INDEX_INTERRUPTION_COUNT.to_owned(), count);
        }
        let meta = ObjectMeta {
            name: Some(pod.name.clone()),
            generate_name: Some(self.names.generate_name(pod.index)),
            labels: Some(labels),
            annotations: (!annotations.is_empty()).then_some(annotations),
            finalizers: Some(self.finalizers.clone()),
            owner_references: Some(vec![self.owner.clone()]),
            ..ObjectMeta::default()
        };
        let mut body = Vec::with_capacity(self.spec.len() + 1024);
        body.extend_from_slice(br#"{"apiVersion":"v1","kind":"Pod","metadata":"#);
        serde_json::to_writer(&mut body, &meta).expect("metadata is JSON");
        body.extend_from_slice(br#","spec":{"#);
        if let Some(index) = pod.index {
            let hostname = format!("{}-{index}", self.job_name);
            body.extend_from_slice(br#""hostname":"#);
            serde_json::to_writer(&mut body, &hostname).expect("a text is JSON");
            if self.spec != "}" {
                body.push(b',');
            }
        }
        body.extend_from_slice(self.spec.as_bytes());
        body.push(b'}');
        body
    }
}

/// What says that a Pod is this Job's.
pub(crate) fn owner_reference(job_name: &str, job_uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: BATCH_V1.to_owned(),
        kind: JOB_KIND.to_owned(),
        name: job_name.to_owned(),
        uid: job_uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn texts(map: &Value) -> BTreeMap<String, String> {
    let pairs = map.as_object().into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.clone(), text(value)?))).collect()
}

fn add_index_variable(spec: &mut Map<String, Value>) {
    for field in ["containers", "initContainers"] {
        let containers = spec.get_mut(field).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            let variables = container.entry("env").or_insert(Value::Null);
            if variables.is_null() {
                *variables = json!([]);
            }
            if let Value::Array(variables) = variables
                && !variables.iter().any(|variable| variable["name"] == env::COMPLETION_INDEX)
            {
                variables.push(index_variable());
            }
        }
    }
}

fn index_variable() -> Value {
    let field = json!({"fieldPath": env::COMPLETION_INDEX_FIELD_PATH});
    json!({"name": env::COMPLETION_INDEX, "valueFrom": {"fieldRef": field}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::WireJob;

    fn job(mode: &str) -> WireJob {
        serde_json::from_value(json!({
            "metadata": {"name": "train", "namespace": "ns", "uid": "u-1"},
            "spec": {
                "completionMode": mode, "completions": 3,
                "selector": {"matchLabels": {"a": "b"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
                    "spec": {
                        "restartPolicy": "Never", "hostname": "mine",
                        "ofTomorrow": {"a": 1},
                        "volumes": [{"name": "v", "crystal": {"facets": [3, null]}}],
                        "containers": [
                            {"name": "x", "image": "i", "mood": "calm", "env": null},
                            {"name": "y", "env": [{"name": "JOB_COMPLETION_INDEX", "value": "7"}]},
                        ],
                        "initContainers": [{"name": "z"}],
                    },
                },
            },
        }))
        .expect("the test's own Job")
    }

    fn cast(mode: &str, new: &NewPod) -> Value {
        let job = job(mode);
        let view = job.view().expect("a Job that can be read");
        let body = Mould::of(&view, job.template(), "f").cast(new);
        serde_json::from_slice(&body).expect("a Pod is JSON")
    }

    #[test]
    fn an_indexed_pod_knows_its_index_in_every_way() {
        let pod = cast(
            "Indexed",
            &NewPod {
                name: "train-2-bcdfg".to_owned(),
                index: Some(2),
                failure_count: Some(1),
                ignored_failure_count: 3,
                interruption_count: 4,
            },
        );
        let meta = &pod["metadata"];
        assert_eq!(
            (&meta["name"], &meta["generateName"]),
            (&json!("train-2-bcdfg"), &json!("train-2-"))
        );
        assert_eq!(
            meta["labels"],
            json!({"a": "b", "batch.kubernetes.io/job-completion-index": "2"})
        );
        assert_eq!(
            meta["annotations"],
            json!({
                "c": "d",
                "batch.kubernetes.io/job-completion-index": "2",
                "batch.kubernetes.io/job-index-failure-count": "1",
                "batch.kubernetes.io/job-index-ignored-failure-count": "3",
                "stint.dev/job-index-interruption-count": "4",
            })
        );
        assert_eq!(meta["finalizers"], json!(["f"]));
        assert_eq!(
            meta["ownerReferences"],
            json!([{
                "apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u-1",
                "controller": true, "blockOwnerDeletion": true,
            }])
        );
        let spec = &pod["spec"];
        assert_eq!(spec["hostname"], "train-2");
        let path = "metadata.labels['batch.kubernetes.io/job-completion-index']";
        let variable = json!([
            {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": path}}}
        ]);
        assert_eq!(spec["containers"][0]["env"], variable);
        assert_eq!(spec["initContainers"][0]["env"], variable);
        assert_eq!(
            spec["containers"][1]["env"],
            json!([{"name": "JOB_COMPLETION_INDEX", "value": "7"}])
        );
    }

    #[test]
    fn a_pod_has_the_fields_of_its_template_that_were_made_after_this_program() {
        for (mode, index) in [("Indexed", Some(0)), ("NonIndexed", None)] {
            let new = NewPod {
                name: "train-bcdfg".to_owned(),
                index,
                failure_count: None,
                ignored_failure_count: 0,
                interruption_count: 0,
            };
            let spec = &cast(mode, &new)["spec"];
            assert_eq!(spec["ofTomorrow"], json!({"a": 1}));
            assert_eq!(spec["volumes"][0]["crystal"], json!({"facets": [3, null]}));
            assert_eq!(spec["containers"][0]["mood"], "calm");
        }
    }

    #[test]
    fn a_pod_without_an_index_keeps_the_template_as_it_is() {
        let new = NewPod {
            name: "train-bcdfg".to_owned(),
            index: None,
            failure_count: None,
            ignored_failure_count: 0,
            interruption_count: 0,
        };
        let pod = cast("NonIndexed", &new);
        assert_eq!(pod["spec"]["hostname"], "mine");
        assert_eq!(pod["metadata"]["annotations"], json!({"c": "d"}));
        assert_eq!(pod["metadata"]["generateName"], "train-");
        assert!(pod["spec"]["containers"][0]["env"].is_null());
    }
}
