//! What the binder reads of a Pod, and what it makes of it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelector, PodCondition, ResourceRequirements, Toleration};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::Deserialize;
use serde::de::IgnoredAny;
use stint_api::names::pod_condition::SCHEDULED;

use super::amounts::Amounts;
use super::demand::{Demand, Term, Tolerance};
use crate::sight::{Sight, Unlabelled, created, has_ended, version};

/// A Pod as the binder sees it.
pub(super) type PodSight = Sight<PodSpecSight, PodStatusSight, Unlabelled>;

/// The scheduler of Pods that name none, whose place the binder takes.
pub(super) const SCHEDULER: &str = "default-scheduler";

/// The reason of the condition PodScheduled of a Pod that fits nowhere.
pub(super) const UNSCHEDULABLE: &str = "Unschedulable";

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodSpecSight {
    pub(super) containers: Vec<ContainerSight>,
    pub(super) init_containers: Option<Vec<ContainerSight>>,
    pub(super) overhead: Option<BTreeMap<String, Quantity>>,
    pub(super) resources: Option<ResourceRequirements>,
    pub(super) node_name: Option<String>,
    pub(super) node_selector: Option<BTreeMap<String, String>>,
    pub(super) affinity: Option<AffinitySight>,
    pub(super) tolerations: Option<Vec<Toleration>>,
    pub(super) scheduling_gates: Option<Vec<IgnoredAny>>,
    pub(super) scheduler_name: Option<String>,
    pub(super) priority: Option<i32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ContainerSight {
    pub(super) resources: Option<ResourceRequirements>,
    pub(super) restart_policy: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AffinitySight {
    node_affinity: Option<NodeAffinitySight>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct NodeAffinitySight {
    required_during_scheduling_ignored_during_execution: Option<NodeSelector>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PodStatusSight {
    phase: Option<String>,
    conditions: Option<Vec<PodCondition>>,
}

/// What is to be done with a Pod.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place<'a> {
    /// It has ended: it needs nothing.
    Ended,
    /// It is on a node.
    On(&'a str),
    /// It has no node, and is not to get one: it is being deleted, gated, or another
    /// scheduler's.
    Aside,
    /// It is to get a node.
    Wanted,
}

impl PodSight {
    /// What is to be done with it.
    pub(super) fn place(&self) -> Place<'_> {
        let spec = &self.spec;
        let node = spec.node_name.as_deref().unwrap_or_default();
        let is_gated = spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty());
        let is_ours = matches!(spec.scheduler_name.as_deref(), None | Some("" | SCHEDULER));
        if has_ended(self.status.phase.as_deref()) {
            Place::Ended
        } else if !node.is_empty() {
            Place::On(node)
        } else if self.metadata.deletion_timestamp.is_some() || is_gated || !is_ours {
            Place::Aside
        } else {
            Place::Wanted
        }
    }

    /// Whether it is to get a node.
    pub(super) fn is_wanted(&self) -> bool {
        self.place() == Place::Wanted
    }

    /// What it asks of a node.
    pub(super) fn demand(&self) -> Demand {
        let spec = &self.spec;
        let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
        let required = affinity
            .and_then(|nodes| nodes.required_during_scheduling_ignored_during_execution.as_ref());
        Demand {
            needs: Amounts::needed(spec),
            selector: spec.node_selector.clone().unwrap_or_default(),
            terms: required
                .map(|selector| selector.node_selector_terms.iter().map(Term::read).collect()),
            tolerances: spec.tolerations.iter().flatten().map(Tolerance::read).collect(),
        }
    }

    pub(super) fn priority(&self) -> i32 {
        self.spec.priority.unwrap_or(0)
    }

    /// Its controller.
    pub(super) fn owner(&self) -> Option<&OwnerReference> {
        let mut owners = self.metadata.owner_references.iter().flatten();
        owners.find(|owner| owner.controller == Some(true))
    }

    /// How old it is: when it was created, and its version.
    pub(super) fn rank(&self) -> (i64, u64) {
        (created(&self.metadata), version(&self.metadata))
    }

    fn scheduled(&self) -> Option<&PodCondition> {
        let conditions = self.status.conditions.iter().flatten();
        conditions.into_iter().find(|condition| condition.type_ == SCHEDULED)
    }

    /// Whether it says that it has no node, for whatever reason.
    pub(super) fn says_it_has_no_node(&self) -> bool {
        self.scheduled().is_some_and(|condition| condition.status == "False")
    }

    /// Why it fits nowhere, as it says itself.
    pub(super) fn told(&self) -> Option<&str> {
        let told = self.scheduled().filter(|condition| {
            condition.status == "False" && condition.reason.as_deref() == Some(UNSCHEDULABLE)
        });
        told.and_then(|condition| condition.message.as_deref())
    }
}
