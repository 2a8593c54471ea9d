//! Which Pods a Job selects.

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
