//! What a Pod asks of a node, and whether a node will do. Pods that ask for the same are alike:
//! one fits where the other does.
//!
//! Of kube-scheduler's filters these are here: NodeUnschedulable, TaintToleration, NodeAffinity
//! (with nodeSelector) and NodeResourcesFit. Affinity between Pods, spreading, host ports and
//! volumes are not looked at, and nobody is preempted.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    NodeCondition, NodeSelectorRequirement, NodeSelectorTerm, Taint, Toleration,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::Deserialize;

use super::amounts::Amounts;
use crate::sight::Sight;

const PREFER_NO_SCHEDULE: &str = "PreferNoSchedule";
const NO_SCHEDULE: &str = "NoSchedule";

/// What upstream puts on a node that is marked as unschedulable.
const UNSCHEDULABLE_TAINT: &str = "node.kubernetes.io/unschedulable";

/// What upstream puts on a node that says it is not ready.
const NOT_READY_TAINT: &str = "node.kubernetes.io/not-ready";

/// What a Pod asks of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Demand {
    pub(super) needs: Amounts,
    /// Labels that the node must have.
    pub(super) selector: BTreeMap<String, String>,
    /// Of which the node must meet one, if there are any.
    pub(super) terms: Option<Vec<Term>>,
    pub(super) tolerances: Vec<Tolerance>,
}

/// A term of a node selector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Term {
    labels: Vec<Requirement>,
    fields: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Requirement {
    key: String,
    operator: String,
    values: Vec<String>,
}

/// A taint that a Pod puts up with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tolerance {
    /// None for every key.
    key: Option<String>,
    /// None for every value.
    value: Option<String>,
    /// None for every effect.
    effect: Option<String>,
}

/// A node as the binder sees it.
pub(super) type NodeSight = Sight<NodeSpecSight, NodeStatusSight>;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NodeSpecSight {
    unschedulable: Option<bool>,
    taints: Option<Vec<Taint>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NodeStatusSight {
    allocatable: Option<BTreeMap<String, Quantity>>,
    conditions: Option<Vec<NodeCondition>>,
}

impl NodeStatusSight {
    /// As if nothing were said of how it is.
    pub(super) fn forget_conditions(&mut self) {
        self.conditions = None;
    }
}

/// What a node has to offer.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: Arc<str>,
    pub(super) labels: BTreeMap<String, String>,
    taints: Vec<Taint>,
    is_unschedulable: bool,
    allocatable: Amounts,
}

/// What the Pods of a node use.
#[derive(Debug, Default)]
pub(super) struct Used {
    pub(super) amounts: Amounts,
    pub(super) pods: i64,
}

static NOTHING_USED: Used = Used { amounts: Amounts::NONE, pods: 0 };

/// Why a Pod cannot be on a node.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Objection {
    /// The node takes no new Pods.
    Unschedulable,
    /// The node has a taint that the Pod does not put up with.
    Tainted(Taint),
    /// The node lacks a label, or has another value for it.
    Unlabelled(String, String),
    /// The node meets none of the terms of the affinity.
    Outside,
    /// The node has all the Pods that it takes.
    TooMany,
    /// The node has not enough of a resource.
    Lacking {
        /// Which one.
        resource: String,
        /// How much the Pod needs.
        needed: i64,
        /// How much there is for all Pods.
        allocatable: i64,
    },
}

impl Node {
    /// Reads a node. One that says it is not ready has the taint that upstream's node
    /// controller would have put there.
    pub(super) fn read(sight: NodeSight) -> Self {
        let Sight { metadata, spec, status, .. } = sight;
        let mut taints = spec.taints.unwrap_or_default();
        let is_unready =
            |condition: &NodeCondition| condition.type_ == "Ready" && condition.status != "True";
        if status.conditions.iter().flatten().any(is_unready) {
            let (key, effect) = (NOT_READY_TAINT.to_owned(), NO_SCHEDULE.to_owned());
            taints.push(Taint { key, effect, ..Taint::default() });
        }
        Node {
            name: metadata.name.as_deref().unwrap_or_default().into(),
            labels: metadata.labels.unwrap_or_default(),
            taints,
            is_unschedulable: spec.unschedulable == Some(true),
            allocatable: Amounts::read(status.allocatable.as_ref()),
        }
    }

    /// Why a Pod with this demand cannot be here; nothing if it can. As in kube-scheduler the
    /// first thing that is wrong is told, and of resources all that are lacking.
    pub(super) fn objections(&self, demand: &Demand, used: &Used) -> Vec<Objection> {
        match self.standing_objections(demand).next() {
            Some(objection) => vec![objection],
            None => self.shortages(demand, used).collect(),
        }
    }

    /// Whether a Pod with this demand can be here.
    pub(super) fn takes(&self, demand: &Demand, used: &Used) -> bool {
        self.shortages(demand, used).next().is_none()
            && self.standing_objections(demand).next().is_none()
    }

    /// Everything that keeps a Pod with this demand away though no other Pod is here.
    pub(super) fn lasting_objections(&self, demand: &Demand) -> Vec<Objection> {
        let shortages = self.shortages(demand, &NOTHING_USED);
        self.standing_objections(demand).chain(shortages).collect()
    }

    /// How bad a place it would be: by taints that are to be avoided, then by how much of the
    /// node is used.
    pub(super) fn badness(&self, demand: &Demand, used: &Used) -> (usize, i64, i64) {
        let is_avoided =
            |taint: &&Taint| taint.effect == PREFER_NO_SCHEDULE && !demand.tolerates(taint);
        let avoided = self.taints.iter().filter(is_avoided).count();
        (avoided, demand.needs.share_used(&self.allocatable, &used.amounts), used.pods)
    }

    /// What is wrong whatever the other Pods use.
    fn standing_objections<'a>(
        &'a self,
        demand: &'a Demand,
    ) -> impl Iterator<Item = Objection> + 'a {
        let is_closed = self.is_unschedulable && {
            let (key, effect) = (UNSCHEDULABLE_TAINT.to_owned(), NO_SCHEDULE.to_owned());
            !demand.tolerates(&Taint { key, effect, ..Taint::default() })
        };
        let is_refused =
            |taint: &&Taint| taint.effect != PREFER_NO_SCHEDULE && !demand.tolerates(taint);
        let taints = self.taints.iter().filter(is_refused);
        let labels = demand.selector.iter().filter(|label| !has(&self.labels, *label));
        let is_outside = |terms: &Vec<Term>| !terms.iter().any(|term| term.is_met(self));
        is_closed
            .then_some(Objection::Unschedulable)
            .into_iter()
            .chain(taints.map(|taint| Objection::Tainted(taint.clone())))
            .chain(labels.map(|(key, value)| Objection::Unlabelled(key.clone(), value.clone())))
            .chain(
                demand.terms.as_ref().filter(|terms| is_outside(terms)).map(|_| Objection::Outside),
            )
    }

    /// What there is not enough of, beside what other Pods use.
    fn shortages<'a>(
        &'a self,
        demand: &'a Demand,
        used: &'a Used,
    ) -> impl Iterator<Item = Objection> + 'a {
        let is_full = used.pods >= self.allocatable.get("pods");
        let lacking = demand.needs.lacking(&self.allocatable, &used.amounts);
        let lacking = lacking.map(|name| Objection::Lacking {
            resource: name.to_owned(),
            needed: demand.needs.get(name),
            allocatable: self.allocatable.get(name),
        });
        is_full.then_some(Objection::TooMany).into_iter().chain(lacking)
    }
}

/// In kube-scheduler's words, which are counted by node.
impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Objection::Unschedulable => f.write_str("node(s) were unschedulable"),
            Objection::Tainted(_) => f.write_str("node(s) had untolerated taint(s)"),
            Objection::Unlabelled(..) | Objection::Outside => {
                f.write_str("node(s) didn't match Pod's node affinity/selector")
            }
            Objection::TooMany => f.write_str("Too many pods"),
            Objection::Lacking { resource, .. } => write!(f, "Insufficient {resource}"),
        }
    }
}

fn has(labels: &BTreeMap<String, String>, (key, value): (&String, &String)) -> bool {
    labels.get(key) == Some(value)
}

impl Demand {
    fn tolerates(&self, taint: &Taint) -> bool {
        self.tolerances.iter().any(|tolerance| tolerance.covers(taint))
    }
}

impl Tolerance {
    pub(super) fn read(toleration: &Toleration) -> Self {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let is_any_value = toleration.operator.as_deref() == Some("Exists");
        let value = (!is_any_value).then(|| toleration.value.clone().unwrap_or_default());
        Tolerance { key: given(&toleration.key), value, effect: given(&toleration.effect) }
    }

    fn covers(&self, taint: &Taint) -> bool {
        let value = taint.value.as_deref().unwrap_or_default();
        self.effect.as_ref().is_none_or(|effect| *effect == taint.effect)
            && self.key.as_ref().is_none_or(|key| *key == taint.key)
            && self.value.as_deref().is_none_or(|wanted| wanted == value)
    }
}

impl Term {
    pub(super) fn read(term: &NodeSelectorTerm) -> Self {
        let read = |list: &Option<Vec<NodeSelectorRequirement>>| {
            list.iter().flatten().map(Requirement::read).collect()
        };
        Term { labels: read(&term.match_expressions), fields: read(&term.match_fields) }
    }

    /// A term that says nothing is met by no node.
    fn is_met(&self, node: &Node) -> bool {
        let field = |key: &str| (key == "metadata.name").then_some(&*node.name);
        let label = |key: &str| node.labels.get(key).map(String::as_str);
        !(self.labels.is_empty() && self.fields.is_empty())
            && self.labels.iter().all(|requirement| requirement.is_met(label(&requirement.key)))
            && self.fields.iter().all(|requirement| requirement.is_met(field(&requirement.key)))
    }
}

impl Requirement {
    fn read(requirement: &NodeSelectorRequirement) -> Self {
        Requirement {
            key: requirement.key.clone(),
            operator: requirement.operator.clone(),
            values: requirement.values.clone().unwrap_or_default(),
        }
    }

    fn is_met(&self, found: Option<&str>) -> bool {
        let is_listed = |found: &str| self.values.iter().any(|value| value == found);
        let number = |text: &str| text.parse::<i64>().ok();
        let limit = self.values.first().and_then(|value| number(value));
        match self.operator.as_str() {
            "In" => found.is_some_and(is_listed),
            "NotIn" => !found.is_some_and(is_listed),
            "Exists" => found.is_some(),
            "DoesNotExist" => found.is_none(),
            "Gt" => found.and_then(number).zip(limit).is_some_and(|(found, limit)| found > limit),
            "Lt" => found.and_then(number).zip(limit).is_some_and(|(found, limit)| found < limit),
            // The API admits no other.
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binder::pod::PodSight;
    use serde_json::{Value, json};

    fn node(spec: Value, labels: Value, ready: &str) -> Node {
        let node = json!({
            "metadata": {"name": "n1", "labels": labels},
            "spec": spec,
            "status": {
                "allocatable": {"cpu": "2", "memory": "1Gi", "pods": "3"},
                "conditions": [{"type": "Ready", "status": ready}],
            },
        });
        Node::read(serde_json::from_value(node).expect("a node"))
    }

    fn demand(spec: Value) -> Demand {
        let pod: PodSight = serde_json::from_value(json!({"spec": spec})).expect("a Pod");
        pod.demand()
    }

    fn objections(node: &Node, spec: Value) -> String {
        let demand = demand(spec);
        let objections = node.objections(&demand, &Used::default());
        assert_eq!(objections.is_empty(), node.takes(&demand, &Used::default()));
        let words: Vec<String> = objections.iter().map(ToString::to_string).collect();
        words.join(", ")
    }

    const UNSCHEDULABLE: &str = "node(s) were unschedulable";
    const TAINTED: &str = "node(s) had untolerated taint(s)";
    const NOT_SELECTED: &str = "node(s) didn't match Pod's node affinity/selector";

    #[test]
    fn a_node_is_chosen_by_its_labels_and_its_name() {
        let node = node(json!({}), json!({"disk": "ssd", "cores": "8"}), "True");
        let affinity = |requirement: Value, is_field: bool| {
            let list = if is_field { "matchFields" } else { "matchExpressions" };
            json!({"containers": [], "affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{}, {list: [requirement]}],
                },
            }}})
        };
        let rows = [
            (json!({"key": "disk", "operator": "In", "values": ["hdd", "ssd"]}), true),
            (json!({"key": "disk", "operator": "In", "values": ["hdd"]}), false),
            (json!({"key": "disk", "operator": "NotIn", "values": ["hdd"]}), true),
            (json!({"key": "disk", "operator": "NotIn", "values": ["ssd"]}), false),
            (json!({"key": "gpu", "operator": "NotIn", "values": ["a"]}), true),
            (json!({"key": "disk", "operator": "Exists"}), true),
            (json!({"key": "gpu", "operator": "Exists"}), false),
            (json!({"key": "gpu", "operator": "DoesNotExist"}), true),
            (json!({"key": "cores", "operator": "Gt", "values": ["7"]}), true),
            (json!({"key": "cores", "operator": "Gt", "values": ["8"]}), false),
            (json!({"key": "cores", "operator": "Lt", "values": ["9"]}), true),
            (json!({"key": "disk", "operator": "Lt", "values": ["9"]}), false),
        ];
        for (requirement, is_met) in rows {
            let found = objections(&node, affinity(requirement.clone(), false));
            assert_eq!(found.is_empty(), is_met, "{requirement}: {found}");
        }
        let named = |name| json!({"key": "metadata.name", "operator": "In", "values": [name]});
        assert_eq!(objections(&node, affinity(named("n1"), true)), "");
        assert_eq!(objections(&node, affinity(named("n2"), true)), NOT_SELECTED);
        let selected =
            |disk: &str| json!({"containers": [], "nodeSelector": {"disk": disk, "cores": "8"}});
        assert_eq!(objections(&node, selected("ssd")), "");
        assert_eq!(objections(&node, selected("hdd")), NOT_SELECTED);
    }

    #[test]
    fn taints_must_be_tolerated_but_for_those_that_only_advise() {
        let taint =
            |effect: &str| json!({"taints": [{"key": "k", "value": "v", "effect": effect}]});
        let tolerating = |tolerations: Value| json!({"containers": [], "tolerations": tolerations});
        for effect in ["NoSchedule", "NoExecute"] {
            let node = node(taint(effect), json!({}), "True");
            let rows = [
                (json!([]), false),
                (json!([{"operator": "Exists"}]), true),
                (json!([{"key": "k", "operator": "Exists"}]), true),
                (json!([{"key": "k", "value": "v"}]), true),
                (json!([{"key": "k", "value": "w"}]), false),
                (json!([{"key": "l", "operator": "Exists"}]), false),
                (json!([{"key": "k", "operator": "Exists", "effect": effect}]), true),
                (json!([{"key": "k", "operator": "Exists", "effect": "Other"}]), false),
            ];
            for (tolerations, is_tolerated) in rows {
                let found = objections(&node, tolerating(tolerations.clone()));
                assert_eq!(found.is_empty(), is_tolerated, "{tolerations}: {found}");
            }
        }
        let advised = node(taint(PREFER_NO_SCHEDULE), json!({}), "True");
        assert_eq!(objections(&advised, json!({"containers": []})), "");
        let badness = |spec| advised.badness(&demand(spec), &Used::default());
        assert_eq!(badness(json!({"containers": []})), (1, 0, 0));
        assert_eq!(badness(tolerating(json!([{"operator": "Exists"}]))), (0, 0, 0));
    }

    #[test]
    fn a_node_may_be_cordoned_or_not_ready() {
        let everywhere = json!({"containers": [], "tolerations": [{"operator": "Exists"}]});
        let cordoned = node(json!({"unschedulable": true}), json!({}), "True");
        assert_eq!(objections(&cordoned, json!({"containers": []})), UNSCHEDULABLE);
        assert_eq!(objections(&cordoned, everywhere.clone()), "");
        for status in ["False", "Unknown"] {
            let unready = node(json!({}), json!({}), status);
            assert_eq!(objections(&unready, json!({"containers": []})), TAINTED);
            assert_eq!(objections(&unready, everywhere.clone()), "");
        }
    }

    #[test]
    fn all_that_is_lacking_is_told() {
        let node = node(json!({}), json!({}), "True");
        let requests = json!({"cpu": "2001m", "memory": "2Gi", "example.com/gpu": "1"});
        let spec = json!({"containers": [{"resources": {"requests": requests}}]});
        assert_eq!(
            objections(&node, spec),
            "Insufficient cpu, Insufficient example.com/gpu, Insufficient memory"
        );
        let full = Used { amounts: Amounts::default(), pods: 3 };
        assert_eq!(node.objections(&Demand::default(), &full), [Objection::TooMany]);
        assert_eq!(Objection::TooMany.to_string(), "Too many pods");
    }
}
