//! Label keys of affinities and spreads: a new Pod's own labels are written into the
//! selectors that ask for Pods like it (KEP-3633, KEP-3243).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, PodAffinityTerm, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

type Labels = BTreeMap<String, String>;

/// Merges `matchLabelKeys` and `mismatchLabelKeys` into their selectors.
pub(super) fn merge_label_keys(pod: &mut Pod) {
    let (Some(labels), Some(spec)) = (&pod.metadata.labels, &mut pod.spec) else {
        return;
    };
    for term in affinity_terms(spec) {
        if let Some(selector) = &mut term.label_selector {
            merge(selector, &term.match_label_keys, "In", labels);
            merge(selector, &term.mismatch_label_keys, "NotIn", labels);
        }
    }
    for spread in spec.topology_spread_constraints.iter_mut().flatten() {
        if let Some(selector) = &mut spread.label_selector {
            merge(selector, &spread.match_label_keys, "In", labels);
        }
    }
}

fn affinity_terms(spec: &mut PodSpec) -> Vec<&mut PodAffinityTerm> {
    let mut terms = Vec::new();
    let Some(affinity) = &mut spec.affinity else {
        return terms;
    };
    if let Some(affinity) = &mut affinity.pod_affinity {
        let preferred = &mut affinity.preferred_during_scheduling_ignored_during_execution;
        terms.extend(preferred.iter_mut().flatten().map(|term| &mut term.pod_affinity_term));
        let required = &mut affinity.required_during_scheduling_ignored_during_execution;
        terms.extend(required.iter_mut().flatten());
    }
    if let Some(affinity) = &mut affinity.pod_anti_affinity {
        let preferred = &mut affinity.preferred_during_scheduling_ignored_during_execution;
        terms.extend(preferred.iter_mut().flatten().map(|term| &mut term.pod_affinity_term));
        let required = &mut affinity.required_during_scheduling_ignored_during_execution;
        terms.extend(required.iter_mut().flatten());
    }
    terms
}

fn merge(
    selector: &mut LabelSelector,
    keys: &Option<Vec<String>>,
    operator: &str,
    labels: &Labels,
) {
    for key in keys.iter().flatten() {
        if let Some(value) = labels.get(key) {
            selector.match_expressions.get_or_insert_default().push(LabelSelectorRequirement {
                key: key.clone(),
                operator: operator.to_owned(),
                values: Some(vec![value.clone()]),
            });
        }
    }
}
