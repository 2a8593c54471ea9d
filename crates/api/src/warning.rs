//! What the API server warns of in an object that it takes: the warnings of its strategies for new Pods, Jobs
//! and quotas and for changed Jobs, in its words and order. What is refused is not warned of; what may
//! surprise whoever checks a manifest is `advice`.
//!
//! Left out are the warnings about annotations that had a meaning once, about paths of volumes that
//! overlap, and about addresses in an odd spelling.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, NodeAffinity, NodeSelectorTerm, Pod, PodAffinityTerm, PodSpec,
    ResourceQuota, Volume, WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::api::resource;

use crate::field_error::quote;
use crate::field_path::Path;
use crate::identifier;
use crate::quantity::Quantity;

/// The longest DNS label.
const LABEL_CHARS: usize = 63;

/// From how many warnings on ports and values are not looked at any more: more than any answer has room for.
const MAX_WARNINGS: usize = 100;

/// How many ports are compared with each other. The largest body holds a hundred thousand of one number, which
/// would be billions of pairs.
const MAX_PORTS: usize = 1_000;

/// Labels of nodes that nobody should use any more, and what is said of them.
const OLD_LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", r#"deprecated since v1.14; use "kubernetes.io/arch" instead"#),
    ("beta.kubernetes.io/os", r#"deprecated since v1.14; use "kubernetes.io/os" instead"#),
    (
        "failure-domain.beta.kubernetes.io/region",
        r#"deprecated since v1.17; use "topology.kubernetes.io/region" instead"#,
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        r#"deprecated since v1.17; use "topology.kubernetes.io/zone" instead"#,
    ),
    (
        "beta.kubernetes.io/instance-type",
        r#"deprecated since v1.17; use "node.kubernetes.io/instance-type" instead"#,
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    ("node-role.kubernetes.io/master", r#"use "node-role.kubernetes.io/control-plane" instead"#),
];

/// What is warned of in a new Pod.
pub fn of_pod(pod: &Pod) -> Vec<String> {
    let mut warnings = Vec::new();
    let name = pod.metadata.name.as_deref().unwrap_or("");
    warn_of_name(name, "the Pod's hostname", &mut warnings);
    if let Some(spec) = &pod.spec {
        warn_of_spec(spec, &Path::field("spec"), &mut warnings);
    }
    warnings
}

/// What is warned of in a new Job.
pub fn of_job(job: &Job) -> Vec<String> {
    let mut warnings = Vec::new();
    let name = job.metadata.name.as_deref().unwrap_or("");
    warn_of_name(name, "Pod names and hostnames", &mut warnings);
    warnings.extend(of_job_spec(job));
    warnings
}

/// What is warned of in a Job whose spec was changed: the name is what it was.
pub fn of_job_spec(job: &Job) -> Vec<String> {
    let mut warnings = Vec::new();
    let Some(spec) = &job.spec else { return warnings };
    let is_indexed = spec.completion_mode.as_deref() == Some("Indexed");
    if is_indexed
        && spec.completions.is_some_and(|count| count > 100_000)
        && spec.parallelism.is_some_and(|count| count > 10_000)
    {
        warnings.push(
            "spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism \
             higher than 10^4, Kubernetes might not be able to track completedIndexes when a big \
             number of indexes fail"
                .to_owned(),
        );
    }
    if let Some(pod) = &spec.template.spec {
        let path = Path::field("spec");
        let template = path.child("template");
        warn_of_spec(pod, &template.child("spec"), &mut warnings);
    }
    warnings
}

/// What is warned of in a new quota: requests that could never be used.
pub fn of_quota(quota: &ResourceQuota) -> Vec<String> {
    let hard = quota.spec.as_ref().and_then(|spec| spec.hard.as_ref());
    let amount = |name: &str| {
        let amount = hard?.get(name)?.0.parse::<Quantity>().ok()?;
        Some((name.to_owned(), amount))
    };
    let warning = |resource: &str| {
        let asked = amount(&format!("requests.{resource}")).or_else(|| amount(resource))?;
        let limit = amount(&format!("limits.{resource}"))?;
        let ((asked_name, asked), (limit_name, limit)) = (asked, limit);
        (asked > limit).then(|| {
            format!(
                "ResourceQuota {asked_name} ({asked}) should be less than {limit_name} ({limit})"
            )
        })
    };
    ["cpu", "memory", "ephemeral-storage"].into_iter().filter_map(warning).collect()
}

fn warn_of_name(name: &str, what_for: &str, warnings: &mut Vec<String>) {
    let mut why = Vec::new();
    if name.len() > LABEL_CHARS {
        why.push(format!("must be no more than {LABEL_CHARS} characters"));
    }
    if name.contains('.') {
        why.push("must not contain dots".to_owned());
    }
    if !why.is_empty() {
        let why = why.join(" ");
        warnings.push(format!(
            "metadata.name: this is used in {what_for}, which can result in surprising behavior; a \
             DNS label is recommended: [{why}]"
        ));
    }
}

fn warn_of_spec(spec: &PodSpec, path: &Path<'_>, warnings: &mut Vec<String>) {
    let selector = path.child("nodeSelector");
    for key in spec.node_selector.iter().flatten().map(|(key, _)| key) {
        if let Some(why) = old_label(key) {
            warnings.push(format!("{}: {why}", selector.key(key)));
        }
    }
    let affinity = path.child("affinity");
    let rules = spec.affinity.as_ref();
    if let Some(rules) = rules.and_then(|rules| rules.node_affinity.as_ref()) {
        warn_of_node_affinity(rules, &affinity.child("nodeAffinity"), warnings);
    }
    let spreads = path.child("topologySpreadConstraints");
    for (index, spread) in spec.topology_spread_constraints.iter().flatten().enumerate() {
        let path = spreads.index(index);
        if let Some(why) = old_label(&spread.topology_key) {
            warnings.push(format!(
                "{}: {} is {why}",
                path.child("topologyKey"),
                spread.topology_key
            ));
        }
        if spread.label_selector.is_none() {
            warnings.push(null_selector(&path));
        }
    }
    let volumes = path.child("volumes");
    for (index, volume) in spec.volumes.iter().flatten().enumerate() {
        if let Some((field, why)) = old_volume(volume) {
            warnings.push(format!("{}: {why}", volumes.index(index).child(field)));
        }
        warn_of_claim(volume, &volumes.index(index), warnings);
    }
    warn_of_twins(spec, path, warnings);
    warn_of_fractions(spec.overhead.as_ref(), &path.child("overhead"), warnings);
    let mut ports = Vec::new();
    for (field, containers) in [
        ("initContainers", spec.init_containers.as_deref()),
        ("containers", Some(&*spec.containers)),
    ] {
        let path = path.child(field);
        for (index, container) in containers.unwrap_or_default().iter().enumerate() {
            let path = path.index(index);
            warn_of_container(container, &path, warnings);
            let found = container.ports.iter().flatten().enumerate();
            ports.extend(found.map(|(at, port)| (path.child("ports").index(at).to_string(), port)));
        }
    }
    warn_of_ports(&ports, warnings);
    warn_of_port_names(&ports, warnings);
    if spec.termination_grace_period_seconds.is_some_and(|seconds| seconds < 0) {
        warnings.push(format!(
            "{}: must be >= 0; negative values are invalid and will be treated as 1",
            path.child("terminationGracePeriodSeconds")
        ));
    }
    if let Some(rules) = rules.and_then(|rules| rules.pod_affinity.as_ref()) {
        let (required, preferred) = (
            &rules.required_during_scheduling_ignored_during_execution,
            &rules.preferred_during_scheduling_ignored_during_execution,
        );
        warn_of_terms(required, preferred, &affinity.child("podAffinity"), warnings);
    }
    if let Some(rules) = rules.and_then(|rules| rules.pod_anti_affinity.as_ref()) {
        let (required, preferred) = (
            &rules.required_during_scheduling_ignored_during_execution,
            &rules.preferred_during_scheduling_ignored_during_execution,
        );
        warn_of_terms(required, preferred, &affinity.child("podAntiAffinity"), warnings);
    }
}

/// What is said of a label that nobody should use any more.
fn old_label(key: &str) -> Option<&'static str> {
    OLD_LABELS.iter().find(|(old, _)| *old == key).map(|(_, why)| *why)
}

fn null_selector(path: &Path<'_>) -> String {
    format!("{}: a null labelSelector results in matching no pod", path.child("labelSelector"))
}

fn warn_of_node_affinity(rules: &NodeAffinity, path: &Path<'_>, warnings: &mut Vec<String>) {
    let mut of_term = |term: &NodeSelectorTerm, are_values_judged: bool, path: &Path<'_>| {
        let expressions = path.child("matchExpressions");
        for (index, expression) in term.match_expressions.iter().flatten().enumerate() {
            let path = expressions.index(index);
            if let Some(why) = old_label(&expression.key) {
                warnings.push(format!("{}: {} is {why}", path.child("key"), expression.key));
            }
            let values = path.child("values");
            // Those of required terms are errors.
            let judged = expression.values.iter().flatten().filter(|_| are_values_judged);
            for (index, value) in judged.enumerate() {
                if warnings.len() >= MAX_WARNINGS {
                    break;
                }
                for why in identifier::label_value(value) {
                    warnings.push(format!("{}: {value} is invalid, {why}", values.index(index)));
                }
            }
        }
    };
    let required = path.child("requiredDuringSchedulingIgnoredDuringExecution");
    let terms = required.child("nodeSelectorTerms");
    let found = rules.required_during_scheduling_ignored_during_execution.iter();
    for (index, term) in found.flat_map(|found| &found.node_selector_terms).enumerate() {
        of_term(term, false, &terms.index(index));
    }
    let preferred = path.child("preferredDuringSchedulingIgnoredDuringExecution");
    let found = rules.preferred_during_scheduling_ignored_during_execution.iter().flatten();
    for (index, term) in found.enumerate() {
        of_term(&term.preference, true, &preferred.index(index).child("preference"));
    }
}

fn warn_of_terms(
    required: &Option<Vec<PodAffinityTerm>>,
    preferred: &Option<Vec<WeightedPodAffinityTerm>>,
    path: &Path<'_>,
    warnings: &mut Vec<String>,
) {
    let terms = path.child("requiredDuringSchedulingIgnoredDuringExecution");
    for (index, term) in required.iter().flatten().enumerate() {
        if term.label_selector.is_none() {
            warnings.push(null_selector(&terms.index(index)));
        }
    }
    let terms = path.child("preferredDuringSchedulingIgnoredDuringExecution");
    for (index, term) in preferred.iter().flatten().enumerate() {
        if term.pod_affinity_term.label_selector.is_none() {
            warnings.push(null_selector(&terms.index(index).child("podAffinityTerm")));
        }
    }
}

/// The field of a volume that nobody provides any more, and what is said of it.
fn old_volume(volume: &Volume) -> Option<(&'static str, &'static str)> {
    let found = [
        (
            volume.photon_persistent_disk.is_some(),
            "photonPersistentDisk",
            "deprecated in v1.11, non-functional in v1.16+",
        ),
        (
            volume.git_repo.is_some(),
            "gitRepo",
            "deprecated in v1.11, and disabled by default in v1.33+",
        ),
        (volume.scale_io.is_some(), "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
        (volume.flocker.is_some(), "flocker", "deprecated in v1.22, non-functional in v1.25+"),
        (volume.storageos.is_some(), "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
        (volume.quobyte.is_some(), "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
        (volume.glusterfs.is_some(), "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
        (volume.cephfs.is_some(), "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
        (volume.rbd.is_some(), "rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ];
    found.into_iter().find_map(|(is_there, field, why)| is_there.then_some((field, why)))
}

/// What is warned of in the claim that a volume brings with it.
fn warn_of_claim(volume: &Volume, path: &Path<'_>, warnings: &mut Vec<String>) {
    let claim = volume.ephemeral.as_ref().and_then(|found| found.volume_claim_template.as_ref());
    let Some(asked) = claim.and_then(|claim| claim.spec.resources.as_ref()) else { return };
    let ephemeral = path.child("ephemeral");
    let template = ephemeral.child("volumeClaimTemplate");
    let spec = template.child("spec");
    let resources = spec.child("resources");
    for (field, amounts) in [("requests", &asked.requests), ("limits", &asked.limits)] {
        if let Some(amount) = amounts.as_ref().and_then(|amounts| amounts.get("storage")) {
            warn_of_fraction(amount, &resources.child(field).key("storage"), warnings);
        }
    }
}

/// Addresses and secrets that are named twice.
fn warn_of_twins(spec: &PodSpec, path: &Path<'_>, warnings: &mut Vec<String>) {
    let aliases = path.child("hostAliases");
    let mut seen = BTreeSet::new();
    for (index, alias) in spec.host_aliases.iter().flatten().enumerate() {
        if !seen.insert(&alias.ip) {
            let path = aliases.index(index);
            warnings.push(format!("{}: duplicate ip {}", path.child("ip"), quote(&alias.ip)));
        }
    }
    let secrets = path.child("imagePullSecrets");
    let mut seen = BTreeSet::new();
    for (index, secret) in spec.image_pull_secrets.iter().flatten().enumerate() {
        if !seen.insert(&secret.name) {
            let path = secrets.index(index);
            warnings.push(format!(
                "{}: duplicate name {}",
                path.child("name"),
                quote(&secret.name)
            ));
        }
    }
    for (index, secret) in spec.image_pull_secrets.iter().flatten().enumerate() {
        if secret.name.is_empty() {
            let path = secrets.index(index);
            warnings.push(format!("{}: invalid empty name \"\"", path.child("name")));
        }
    }
}

fn warn_of_container(container: &Container, path: &Path<'_>, warnings: &mut Vec<String>) {
    let resources = path.child("resources");
    let asked = container.resources.as_ref();
    for resource in ["memory", "ephemeral-storage"] {
        for (field, amounts) in [
            ("limits", asked.and_then(|asked| asked.limits.as_ref())),
            ("requests", asked.and_then(|asked| asked.requests.as_ref())),
        ] {
            if let Some(amount) = amounts.and_then(|amounts| amounts.get(resource)) {
                warn_of_fraction(amount, &resources.child(field).key(resource), warnings);
            }
        }
    }
    let variables = path.child("env");
    let mut seen = BTreeSet::new();
    for (index, variable) in container.env.iter().flatten().enumerate() {
        if seen.insert(&variable.name) {
            continue;
        }
        // Whoever adds to the value of before hides nothing.
        let reference = format!("$({})", variable.name);
        let value = variable.value.as_deref().unwrap_or("");
        let adds =
            variable.value_from.is_none() && value != reference && value.contains(&reference);
        if !adds {
            warnings.push(format!(
                "{}: hides previous definition of {}, which may be dropped when using apply",
                variables.index(index),
                quote(&variable.name)
            ));
        }
    }
}

fn warn_of_fractions(
    amounts: Option<&BTreeMap<String, resource::Quantity>>,
    path: &Path<'_>,
    warnings: &mut Vec<String>,
) {
    for resource in ["memory", "ephemeral-storage"] {
        if let Some(amount) = amounts.and_then(|amounts| amounts.get(resource)) {
            warn_of_fraction(amount, &path.key(resource), warnings);
        }
    }
}

/// What is said of half a byte.
fn warn_of_fraction(amount: &resource::Quantity, path: &Path<'_>, warnings: &mut Vec<String>) {
    let Ok(amount) = amount.0.parse::<Quantity>() else { return };
    if !amount.is_integer() {
        let amount = quote(&amount.to_string());
        warnings
            .push(format!("{path}: fractional byte value {amount} is invalid, must be an integer"));
    }
}

/// Ports that are opened twice, or may be.
fn warn_of_ports(ports: &[(String, &ContainerPort)], warnings: &mut Vec<String>) {
    let ports: Vec<_> =
        ports.iter().take(MAX_PORTS).map(|(path, port)| Open::of(path, port)).collect();
    for (index, port) in ports.iter().enumerate() {
        if !port.host_ip.is_empty() && port.host_port == 0 {
            let Open { path, name, number, protocol, host_ip, .. } = port;
            warnings.push(format!(
                "{path}: hostIP set without hostPort: {{Name:{name} HostPort:0 ContainerPort:{number} \
                 Protocol:{protocol} HostIP:{host_ip}}}",
            ));
        }
        for other in &ports[..index] {
            if warnings.len() >= MAX_WARNINGS {
                return;
            }
            if let Some(what) = port.beside(other) {
                warnings.push(format!("{}: {what} port definition with {}", port.path, other.path));
            }
        }
    }
}

/// A port of a container, with nothing absent.
struct Open<'p> {
    path: &'p str,
    name: &'p str,
    number: i32,
    protocol: &'p str,
    host_ip: &'p str,
    host_port: i32,
}

impl<'p> Open<'p> {
    fn of(path: &'p str, port: &'p ContainerPort) -> Self {
        Open {
            path,
            name: port.name.as_deref().unwrap_or(""),
            number: port.container_port,
            protocol: port.protocol.as_deref().unwrap_or("TCP"),
            host_ip: port.host_ip.as_deref().unwrap_or(""),
            host_port: port.host_port.unwrap_or(0),
        }
    }

    /// What is to be said of it beside another that comes before it.
    fn beside(&self, other: &Open<'_>) -> Option<&'static str> {
        if (self.number, self.protocol) != (other.number, other.protocol) {
            None
        } else if (self.host_ip, self.host_port) == (other.host_ip, other.host_port) {
            Some("duplicate")
        } else if self.host_port == 0 || other.host_port == 0 {
            Some("overlapping")
        } else if self.host_port == other.host_port
            && self.host_ip.is_empty() != other.host_ip.is_empty()
        {
            Some("dangerously ambiguous")
        } else {
            None
        }
    }
}

/// Names that ports of several containers have: within one container it would be an error.
fn warn_of_port_names(ports: &[(String, &ContainerPort)], warnings: &mut Vec<String>) {
    let mut known = BTreeMap::new();
    for (path, port) in ports.iter().take(MAX_PORTS) {
        let Some(name) = port.name.as_deref().filter(|name| !name.is_empty()) else { continue };
        match known.entry(name) {
            Entry::Vacant(first) => drop(first.insert(path)),
            Entry::Occupied(first) => warnings.push(format!(
                "{path}: duplicate port name {} with {other}, services and probes that select ports by \
                 name will use {other}",
                quote(name),
                other = first.get(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// What is warned of in a Pod with this container.
    fn container(mut rest: Value) -> Vec<String> {
        rest["name"] = json!("a");
        pod(json!({"containers": [rest]}))
    }

    fn pod(spec: Value) -> Vec<String> {
        let pod = json!({"metadata": {"name": "p"}, "spec": spec});
        of_pod(&serde_json::from_value(pod).expect("the test's own Pod is well typed"))
    }

    #[test]
    fn a_variable_that_adds_to_itself_hides_nothing() {
        let hides = "spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when \
                     using apply";
        let reads = json!({"fieldRef": {"fieldPath": "metadata.name"}});
        let rows = [
            (json!({"value": "x"}), json!({"value": "$(A):y"}), false),
            (json!({"value": "x"}), json!({"value": "$(A)"}), true),
            (json!({"value": "x"}), json!({"value": "y"}), true),
            (json!({"value": "x"}), json!({"valueFrom": reads}), true),
            (json!({"valueFrom": reads}), json!({"value": "$(A):y"}), false),
            (json!({}), json!({"value": "$(A):y"}), false),
            (json!({}), json!({}), true),
        ];
        for (mut first, mut second, is_hidden) in rows {
            (first["name"], second["name"]) = (json!("A"), json!("A"));
            let found = container(json!({"env": [first, second]}));
            let expected: &[&str] = if is_hidden { &[hides] } else { &[] };
            assert_eq!(found, expected, "{first} {second}");
        }
    }

    #[test]
    fn ports_of_two_containers_with_one_name() {
        let port = |number: u16| json!([{"containerPort": number, "name": "web"}]);
        let found = pod(json!({"containers": [
            {"name": "a", "ports": port(80)}, {"name": "b", "ports": port(81)},
        ]}));
        assert_eq!(
            found,
            [
                "spec.containers[1].ports[0]: duplicate port name \"web\" with spec.containers[0].ports[0], \
                 services and probes that select ports by name will use spec.containers[0].ports[0]"
            ]
        );
    }

    #[test]
    fn any_number_of_ports_takes_no_time_and_no_room() {
        let same = vec![json!({"containerPort": 80}); 50_000];
        assert_eq!(container(json!({"ports": same})).len(), MAX_WARNINGS);
        let host = |n: usize| json!({"containerPort": 80, "hostPort": 1 + n % 65_535, "hostIP": n.to_string()});
        let different: Vec<Value> = (0..50_000).map(host).collect();
        assert_eq!(container(json!({"ports": different})), Vec::<String>::new());
    }

    #[test]
    fn labels_that_nobody_should_use() {
        let found = pod(json!({"containers": [], "nodeSelector": {
            "node-role.kubernetes.io/master": "", "app.kubernetes.io/created-by": "x",
        }}));
        assert_eq!(
            found,
            [
                "spec.nodeSelector[app.kubernetes.io/created-by]: deprecated since v1.9",
                "spec.nodeSelector[node-role.kubernetes.io/master]: use \
                 \"node-role.kubernetes.io/control-plane\" instead",
            ]
        );
    }

    #[test]
    fn secrets_without_a_name_come_after_those_that_are_named_twice() {
        let secrets = json!([{}, {"name": "a"}, {"name": "a"}]);
        assert_eq!(
            pod(json!({"containers": [], "imagePullSecrets": secrets})),
            [
                "spec.imagePullSecrets[2].name: duplicate name \"a\"",
                "spec.imagePullSecrets[0].name: invalid empty name \"\"",
            ]
        );
    }
}
