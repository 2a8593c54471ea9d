//! What Pods of a template ask for that a node will never have, whatever else runs there: the
//! binder's own judgement, for those who want to know before there is a Pod.

use k8s_openapi::api::core::v1::{Node as ApiNode, Pod, PodTemplateSpec, Taint};
use serde::Serialize;
use serde::de::DeserializeOwned;
use stint_api::defaults::pod::default_pod;

use super::demand::{Node, NodeSight, Objection};
use super::pod::{PodSight, SCHEDULER};

/// Something for which a Pod will never run on a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Unmet {
    /// It asks for another node, by its name.
    OtherNode(String),
    /// It asks for another scheduler, by its name.
    OtherScheduler(String),
    /// It waits until somebody takes its scheduling gates away.
    Gated,
    /// The node takes no new Pods.
    Cordoned,
    /// The node has a taint that it does not tolerate.
    Tainted(Taint),
    /// The node lacks a label that it selects, or has another value for it.
    Unlabelled {
        /// The label.
        key: String,
        /// Its value.
        value: String,
    },
    /// The node meets no term of its affinity.
    Outside,
    /// The node has place for no Pods at all.
    NoPods,
    /// It asks for more of a resource than the node has: thousandths of a CPU, bytes, or pieces.
    Resource {
        /// As it is called.
        name: String,
        /// How much it asks for.
        asked: i64,
        /// How much there is for all Pods.
        has: i64,
    },
}

/// All for which Pods of this template would be Pending without end if this is the only node;
/// nothing if they fit once enough other Pods have ended.
///
/// The template may be as it was written: it is defaulted here. The node is one of the API, or
/// [`stint_node::Options::to_node`] of one that has not started.
pub fn unmet(template: &PodTemplateSpec, node: &ApiNode) -> Vec<Unmet> {
    // Only a Pod is told that its limits are its requests.
    let mut pod = Pod { spec: template.spec.clone(), ..Pod::default() };
    default_pod(&mut pod);
    let pod: PodSight = sight(&pod);
    let mut node: NodeSight = sight(node);
    // That it is not ready yet will pass.
    node.status.forget_conditions();
    let node = Node::read(node);
    let spec = &pod.spec;
    let mut all = Vec::new();
    match spec.node_name.as_deref() {
        None | Some("") => {}
        // Nobody is asked: it is there.
        Some(name) if *name == *node.name => return all,
        Some(name) => all.push(Unmet::OtherNode(name.to_owned())),
    }
    let scheduler = spec.scheduler_name.as_deref().unwrap_or_default();
    if !["", SCHEDULER].contains(&scheduler) {
        all.push(Unmet::OtherScheduler(scheduler.to_owned()));
    }
    if spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty()) {
        all.push(Unmet::Gated);
    }
    all.extend(node.lasting_objections(&pod.demand()).into_iter().map(Unmet::from));
    all
}

impl From<Objection> for Unmet {
    fn from(objection: Objection) -> Self {
        match objection {
            Objection::Unschedulable => Unmet::Cordoned,
            Objection::Tainted(taint) => Unmet::Tainted(taint),
            Objection::Unlabelled(key, value) => Unmet::Unlabelled { key, value },
            Objection::Outside => Unmet::Outside,
            Objection::TooMany => Unmet::NoPods,
            Objection::Lacking { resource, needed, allocatable } => {
                Unmet::Resource { name: resource, asked: needed, has: allocatable }
            }
        }
    }
}

/// What the binder would read of an object.
fn sight<T: DeserializeOwned>(object: &impl Serialize) -> T {
    let value = serde_json::to_value(object).expect("an object has a JSON form");
    serde_json::from_value(value).expect("what is read of an object is a part of it")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node() -> ApiNode {
        let node = json!({
            "metadata": {"name": "n1", "labels": {"disk": "hdd"}},
            "spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
            "status": {"allocatable": {"cpu": "1500m", "memory": "1Ki", "pods": "3"},
                "conditions": [{"type": "Ready", "status": "False"}]},
        });
        serde_json::from_value(node).expect("a node")
    }

    /// What is told of a Pod that puts up with the node's taint.
    fn told(mut spec: Value) -> Vec<Unmet> {
        let taint = json!({"key": "k", "operator": "Exists"});
        spec["tolerations"] = json!([taint]);
        untolerant(spec)
    }

    fn untolerant(spec: Value) -> Vec<Unmet> {
        let template = serde_json::from_value(json!({"spec": spec})).expect("a template");
        unmet(&template, &node())
    }

    fn asking(resources: Value) -> Value {
        json!({"containers": [{"name": "c", "resources": resources}]})
    }

    fn resource(name: &str, asked: i64, has: i64) -> Unmet {
        Unmet::Resource { name: name.to_owned(), asked, has }
    }

    #[test]
    fn what_fits_on_an_empty_node_is_met() {
        let all = json!({"requests": {"cpu": "1500m", "memory": "1Ki"}});
        assert_eq!(told(asking(all)), []);
        assert_eq!(told(json!({"containers": [], "nodeSelector": {"disk": "hdd"}})), []);
        let mut bound = asking(json!({"requests": {"cpu": "64"}}));
        bound["nodeName"] = json!("n1");
        assert_eq!(untolerant(bound), [], "who names the node is there");
    }

    #[test]
    fn every_resource_that_is_lacking_is_told_with_what_there_is() {
        let requests = json!({"requests": {"cpu": "64", "memory": "2Ki", "example.com/gpu": 2}});
        let lacking = [
            resource("cpu", 64_000, 1500),
            resource("example.com/gpu", 2, 0),
            resource("memory", 2048, 1024),
        ];
        assert_eq!(told(asking(requests)), lacking);
    }

    #[test]
    fn a_limit_is_a_request_where_none_is_said() {
        let limits = json!({"limits": {"cpu": "2"}});
        assert_eq!(told(asking(limits)), [resource("cpu", 2000, 1500)]);
        let both = json!({"limits": {"cpu": "2"}, "requests": {"cpu": "1"}});
        assert_eq!(told(asking(both)), []);
    }

    #[test]
    fn everything_that_keeps_a_pod_away_is_told_at_once() {
        let mut spec = asking(json!({"requests": {"cpu": "2"}}));
        spec["nodeName"] = json!("n2");
        spec["schedulerName"] = json!("volcano");
        spec["schedulingGates"] = json!([{"name": "example.com/wait"}]);
        spec["nodeSelector"] = json!({"disk": "ssd", "gpu": "yes"});
        let key = json!({"key": "zone", "operator": "In", "values": ["a"]});
        spec["affinity"] = json!({"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [key]}]}}});
        let (key, value) = ("k".to_owned(), Some("v".to_owned()));
        let taint = Taint { key, value, effect: "NoSchedule".to_owned(), time_added: None };
        let label = |key: &str, value: &str| Unmet::Unlabelled {
            key: key.to_owned(),
            value: value.to_owned(),
        };
        let all = [
            Unmet::OtherNode("n2".to_owned()),
            Unmet::OtherScheduler("volcano".to_owned()),
            Unmet::Gated,
            Unmet::Tainted(taint),
            label("disk", "ssd"),
            label("gpu", "yes"),
            Unmet::Outside,
            resource("cpu", 2000, 1500),
        ];
        assert_eq!(untolerant(spec), all);
    }

    #[test]
    fn a_node_that_has_not_started_can_be_asked() {
        let folder = std::env::temp_dir();
        let options =
            stint_node::Options { cpu_millis: 2000, ..stint_node::Options::new("here", folder) };
        let node = options.to_node();
        let template = |resources| {
            serde_json::from_value(json!({"spec": asking(resources)})).expect("a template")
        };
        assert_eq!(unmet(&template(json!({"requests": {"cpu": "2"}})), &node), []);
        let told = unmet(&template(json!({"requests": {"cpu": "2001m"}})), &node);
        assert_eq!(told, [resource("cpu", 2001, 2000)]);
    }
}
