//! Which Pods a quota is about. Nothing but Pods is in a scope.

use k8s_openapi::api::core::v1::{
    Affinity, Pod, PodAffinityTerm, ResourceQuotaSpec, ScopedResourceSelectorRequirement,
    WeightedPodAffinityTerm,
};

use crate::closed_set::PodQosClass;
use crate::pod_qos::qos_class;
use crate::validation::{items, text};

/// What a Pod is, as far as scopes go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodScopes {
    is_terminating: bool,
    is_best_effort: bool,
    priority_class: String,
    crosses_namespaces: bool,
}

impl PodScopes {
    /// What a Pod is.
    pub fn of(pod: &Pod) -> Self {
        let Some(spec) = &pod.spec else { return PodScopes::default() };
        PodScopes {
            is_terminating: has_deadline(pod),
            is_best_effort: qos_class(spec) == PodQosClass::BestEffort,
            priority_class: text(&spec.priority_class_name).to_owned(),
            crosses_namespaces: spec.affinity.as_ref().is_some_and(crosses_namespaces),
        }
    }

    fn meets(&self, scope: &str, operator: &str, values: &[String]) -> bool {
        match scope {
            "Terminating" => self.is_terminating,
            "NotTerminating" => !self.is_terminating,
            "BestEffort" => self.is_best_effort,
            "NotBestEffort" => !self.is_best_effort,
            "CrossNamespacePodAffinity" => self.crosses_namespaces,
            "PriorityClass" => {
                let has_one = !self.priority_class.is_empty();
                let is_listed = values.contains(&self.priority_class);
                match operator {
                    "In" => has_one && is_listed,
                    "NotIn" => !(has_one && is_listed),
                    "Exists" => has_one,
                    "DoesNotExist" => !has_one,
                    _ => false,
                }
            }
            _ => false,
        }
    }
}

/// Whether a Pod has a deadline: whether it is in the scope Terminating.
pub fn has_deadline(pod: &Pod) -> bool {
    let deadline = pod.spec.as_ref().and_then(|spec| spec.active_deadline_seconds);
    deadline.is_some_and(|seconds| seconds >= 0)
}

/// Whether a quota is about an object: a Pod with these scopes, or something else.
pub fn is_in_scope(quota: Option<&ResourceQuotaSpec>, scopes: Option<&PodScopes>) -> bool {
    let Some(quota) = quota else { return true };
    let meets = |scope: &str, operator: &str, values: &[String]| {
        scopes.is_some_and(|scopes| scopes.meets(scope, operator, values))
    };
    let selector = quota.scope_selector.iter().flat_map(|it| items(&it.match_expressions));
    items(&quota.scopes).iter().all(|scope| meets(scope, "Exists", &[]))
        && selector.into_iter().all(|requirement: &ScopedResourceSelectorRequirement| {
            meets(&requirement.scope_name, &requirement.operator, items(&requirement.values))
        })
}

fn crosses_namespaces(affinity: &Affinity) -> bool {
    let of_term = |term: &PodAffinityTerm| {
        !items(&term.namespaces).is_empty() || term.namespace_selector.is_some()
    };
    let of_weighted = |term: &WeightedPodAffinityTerm| of_term(&term.pod_affinity_term);
    let near = affinity.pod_affinity.as_ref().is_some_and(|near| {
        items(&near.required_during_scheduling_ignored_during_execution).iter().any(of_term)
            || items(&near.preferred_during_scheduling_ignored_during_execution)
                .iter()
                .any(of_weighted)
    });
    near || affinity.pod_anti_affinity.as_ref().is_some_and(|far| {
        items(&far.required_during_scheduling_ignored_during_execution).iter().any(of_term)
            || items(&far.preferred_during_scheduling_ignored_during_execution)
                .iter()
                .any(of_weighted)
    })
}
