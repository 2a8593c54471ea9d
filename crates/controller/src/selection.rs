//! Which Pods a Job selects.

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use stint_api::names::label;
use stint_api::validation::label_selector;
use stint_ledger::pod_facts::PodFacts;

use crate::labels::Labels;
use crate::pod::SeenPod;

/// Which Pods a Job selects: by its selector once the Job is known. As long as it is not, what
/// is made for it, or says nothing of that.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub(crate) job_uid: Arc<str>,
    pub(crate) selector: Option<Arc<LabelSelector>>,
}

impl Selection {
    /// Whether these labels are selected.
    pub(crate) fn matches(&self, labels: &Labels) -> bool {
        let Some(selector) = &self.selector else {
            return labels.job_uid().is_none_or(|uid| *uid == *self.job_uid);
        };
        let has_expressions = selector.match_expressions.as_ref().is_some_and(|it| !it.is_empty());
        if has_expressions {
            return label_selector::matches(selector, &labels.to_map());
        }
        let mut wanted = selector.match_labels.iter().flatten();
        wanted.all(|(key, value)| labels.get(key) == Some(value))
    }

    /// Whether the selector is the one that the API gives a Job.
    pub(crate) fn is_by_uid(&self) -> bool {
        let is_uid = |(key, value): (&String, &String)| {
            let is_key = key == label::CONTROLLER_UID || key == label::LEGACY_CONTROLLER_UID;
            is_key && **value == *self.job_uid
        };
        let labels = self.selector.iter().flat_map(|selector| selector.match_labels.iter());
        labels.flatten().any(is_uid)
    }

    /// What a Job has to do with a Pod that was found: it controls it, selects it although it
    /// is nobody's, or has made it.
    pub(crate) fn pick(&self, pod: &SeenPod) -> Option<(PodFacts, bool)> {
        let is_selected = self.matches(&pod.labels);
        let is_own = match pod.owner() {
            Some(owner) => *owner == *self.job_uid,
            None => is_selected || pod.labels.job_uid() == Some(&self.job_uid),
        };
        is_own.then(|| (pod.facts.clone(), is_selected))
    }
}

/// What several Jobs select, so that a Pod costs the same whether they are few or thousands.
#[derive(Debug)]
pub(crate) struct Selections<'a> {
    all: &'a [Selection],
    by_uid: HashMap<&'a str, usize>,
    /// Those that may select a Pod that does not bear their uid.
    broad: Vec<usize>,
}

impl<'a> Selections<'a> {
    /// Those of these Jobs.
    pub(crate) fn new(all: &'a [Selection]) -> Self {
        let by_uid = all.iter().enumerate().map(|(place, job)| (&*job.job_uid, place));
        let broad = (0..all.len()).filter(|place| !all[*place].is_by_uid());
        Selections { all, by_uid: by_uid.collect(), broad: broad.collect() }
    }

    /// The Jobs that have to do with a Pod that was found, and what.
    pub(crate) fn pick(&self, pod: &SeenPod) -> Vec<(usize, (PodFacts, bool))> {
        // Of a Pod that somebody controls nobody else is told.
        let (uid, broad) = match pod.owner() {
            Some(owner) => (Some(owner), &[][..]),
            None => (pod.labels.job_uid(), &self.broad[..]),
        };
        let named = uid.and_then(|uid| self.by_uid.get(uid)).copied();
        let others = broad.iter().copied().filter(|place| Some(*place) != named);
        let picked = |place: usize| Some((place, self.all[place].pick(pod)?));
        named.into_iter().chain(others).filter_map(picked).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::pod::WirePod;

    fn pod(owner: Option<&str>, labels: Value) -> SeenPod {
        let owners = owner.map(|uid| {
            json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": uid, "controller": true}])
        });
        let meta = json!({"name": "p", "uid": "p", "labels": labels, "ownerReferences": owners});
        let pod: WirePod = serde_json::from_value(json!({"metadata": meta})).expect("a Pod");
        pod.read("f")
    }

    #[test]
    fn many_jobs_pick_what_each_would() {
        let selection = |uid: &str, labels: Value| Selection {
            job_uid: uid.into(),
            selector: (!labels.is_null()).then(|| {
                let selector = json!({"matchLabels": labels});
                Arc::new(serde_json::from_value(selector).expect("a selector"))
            }),
        };
        let all = [
            selection("a", json!({label::CONTROLLER_UID: "a"})),
            selection("b", json!({label::CONTROLLER_UID: "b", "app": "x"})),
            selection("c", json!({"app": "x"})),
            selection("d", Value::Null),
        ];
        let jobs = Selections::new(&all);
        for owner in [None, Some("a"), Some("c"), Some("e")] {
            for uid in ["", "a", "b", "c", "d", "e"] {
                for app in ["x", "y"] {
                    let labels = match uid {
                        "" => json!({"app": app}),
                        uid => json!({"app": app, label::CONTROLLER_UID: uid}),
                    };
                    let pod = pod(owner, labels);
                    let each = all.iter().enumerate();
                    let expected: Vec<_> =
                        each.filter_map(|(place, job)| Some((place, job.pick(&pod)?.1))).collect();
                    let picked = jobs.pick(&pod).into_iter();
                    let mut found: Vec<_> =
                        picked.map(|(place, (_, is_selected))| (place, is_selected)).collect();
                    found.sort_unstable();
                    assert_eq!(found, expected, "{owner:?} {uid:?} {app}");
                }
            }
        }
    }
}
