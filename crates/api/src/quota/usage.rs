//! What an object takes of the resources that a quota may limit. Whether it is in the scope of
//! a quota is not known here.

use k8s_openapi::api::core::v1::{Pod, PodSpec, ResourceRequirements, Service};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::closed_set::PodPhase;
use crate::quantity::Quantity;
use crate::resource_list::{Amounts, ResourceList, add, is_huge_page, read, sum_up};
use crate::validation::pod_spec::{is_extended, is_native};
use crate::validation::{items, text};

/// The requests of a Pod, as a quota names them.
const REQUESTS: &str = "requests.";

/// Resources that stand for a class of devices.
const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";

/// What Pods take, but for what has names of its own.
const OF_PODS: [&str; 11] = [
    "count/pods",
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "pods",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// What Services take.
const OF_SERVICES: [&str; 4] =
    ["count/services", "services", "services.loadbalancers", "services.nodeports"];

/// Kinds whose objects had a name in quotas before every kind had one.
const ALIASED: [&str; 4] = ["configmaps", "replicationcontrollers", "resourcequotas", "secrets"];

/// Whose objects take something of a quota, and of what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tracked {
    /// Pods: by what they ask for, and how many there are.
    Pods,
    /// Services: how many there are, of which type, with how many ports.
    Services,
    /// Others: how many there are, under these names.
    Objects(Vec<String>),
}

impl Tracked {
    /// How the objects of a kind are counted; none, if they are not: Events are not.
    pub fn of(group: &str, plural: &str) -> Option<Self> {
        match (group, plural) {
            ("", "pods") => Some(Tracked::Pods),
            ("", "services") => Some(Tracked::Services),
            ("" | "events.k8s.io", "events") => None,
            ("", _) => {
                let mut names = vec![format!("count/{plural}")];
                names.extend(ALIASED.contains(&plural).then(|| plural.to_owned()));
                Some(Tracked::Objects(names))
            }
            _ => Some(Tracked::Objects(vec![format!("count/{plural}.{group}")])),
        }
    }

    /// Whether objects may take something of a resource.
    pub fn takes(&self, resource: &str) -> bool {
        match self {
            Tracked::Pods => OF_PODS.contains(&resource) || is_of_pods_by_name(resource),
            Tracked::Services => OF_SERVICES.contains(&resource),
            Tracked::Objects(names) => names.iter().any(|name| name == resource),
        }
    }

    /// What one object takes that is only counted.
    pub fn usage_of_one(&self) -> Amounts {
        match self {
            Tracked::Objects(names) => {
                names.iter().map(|name| (name.clone(), Quantity::whole(1))).collect()
            }
            Tracked::Pods | Tracked::Services => Amounts::new(),
        }
    }
}

/// Large pages, and what is counted by somebody else.
fn is_of_pods_by_name(resource: &str) -> bool {
    let Some(requested) = resource.strip_prefix(REQUESTS) else { return is_huge_page(resource) };
    is_huge_page(requested) || !is_native(resource) || requested.starts_with(DEVICE_CLASS)
}

/// What a Pod takes: nothing but its place among the objects once it has ended, or should have long
/// ago.
pub fn pod_usage(pod: &Pod, now: Timestamp) -> Amounts {
    let mut usage = Amounts::from([("count/pods".to_owned(), Quantity::whole(1))]);
    if has_ended(pod) || pod_usage_ends_at(pod).is_some_and(|end| now > end) {
        return usage;
    }
    let no_spec = PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&no_spec);
    usage.extend(compute_usage(&requests(spec), &limits(spec)));
    usage
}

/// When a Pod that is being deleted counts as gone, though it is there: nobody may be left who could
/// remove it.
pub fn pod_usage_ends_at(pod: &Pod) -> Option<Timestamp> {
    let deleted_at = pod.metadata.deletion_timestamp.as_ref()?.0;
    let grace = pod.metadata.deletion_grace_period_seconds?;
    deleted_at.checked_add(SignedDuration::from_secs(grace)).ok()
}

fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().map_or("", |status| text(&status.phase));
    matches!(PodPhase::parse(phase), Some(PodPhase::Succeeded | PodPhase::Failed))
}

/// What all of a Pod asks for. A Pod is never resized here, so what its status says is not asked.
fn requests(spec: &PodSpec) -> Amounts {
    let mut requests = sum_up(spec, |resources| resources.requests.as_ref());
    requests.extend(own(spec, |resources| &resources.requests));
    add(&mut requests, &read(&spec.overhead));
    requests
}

/// What all of a Pod is limited to.
fn limits(spec: &PodSpec) -> Amounts {
    let mut limits = sum_up(spec, |resources| resources.limits.as_ref());
    limits.extend(own(spec, |resources| &resources.limits));
    let mut overhead = read(&spec.overhead);
    overhead.retain(|name, _| limits.get(name).is_some_and(|limit| !limit.is_zero()));
    add(&mut limits, &overhead);
    limits
}

/// What a Pod asks for as a whole, which counts instead of what its containers ask for.
fn own(
    spec: &PodSpec,
    list: impl Fn(&ResourceRequirements) -> &Option<ResourceList>,
) -> impl Iterator<Item = (String, Quantity)> {
    let own = spec.resources.as_ref().map(|resources| read(list(resources))).unwrap_or_default();
    own.into_iter().filter(|(name, _)| matches!(&**name, "cpu" | "memory") || is_huge_page(name))
}

/// What requests and limits come to, under the names that they have in quotas.
pub(super) fn compute_usage(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut usage = Amounts::from([("pods".to_owned(), Quantity::whole(1))]);
    for (name, amount) in requests {
        let is_measured = matches!(&**name, "cpu" | "memory" | "ephemeral-storage");
        let is_named = is_extended(name) || name.starts_with(DEVICE_CLASS);
        if is_measured || is_huge_page(name) {
            usage.insert(name.clone(), amount.clone());
        }
        if is_measured || is_huge_page(name) || is_named {
            usage.insert(format!("{REQUESTS}{name}"), amount.clone());
        }
    }
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(amount) = limits.get(name) {
            usage.insert(format!("limits.{name}"), amount.clone());
        }
    }
    usage
}

/// What a Service takes. Ports of nodes are counted by what the Service is meant to have.
pub fn service_usage(service: &Service) -> Amounts {
    let spec = service.spec.as_ref();
    let ports = spec.map_or(&[][..], |spec| items(&spec.ports));
    let gives_ports = spec.and_then(|spec| spec.allocate_load_balancer_node_ports).unwrap_or(true);
    let (balancers, node_ports) = match spec.map_or("", |spec| text(&spec.type_)) {
        "NodePort" => (0, ports.len()),
        "LoadBalancer" if gives_ports => (1, ports.len()),
        "LoadBalancer" => (1, ports.iter().filter(|port| port.node_port.unwrap_or(0) != 0).count()),
        _ => (0, 0),
    };
    let count = |count: usize| Quantity::whole(count as u64);
    Amounts::from([
        ("count/services".to_owned(), count(1)),
        ("services".to_owned(), count(1)),
        ("services.loadbalancers".to_owned(), count(balancers)),
        ("services.nodeports".to_owned(), count(node_ports)),
    ])
}
