//! What the API server warns of in a new object that it takes: the warnings of its strategies for Pods,
//! Jobs and quotas, in its words and order. What is refused is not warned of; what may surprise whoever
//! checks a manifest is `advice`.
//!
//! Left out are the warnings about annotations that had a meaning once, and about paths of projected
//! volumes that overlap.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, NodeAffinity, NodeSelectorTerm, Pod, PodAffinityTerm, PodSpec,
    ResourceQuota, Volume, WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::api::resource;

use crate::field_error::quote;
use crate::field_path::Path;
use crate::quantity::Quantity;

/// The longest DNS label.
const LABEL_CHARS: usize = 63;

/// Labels of nodes that have another name by now, and since when.
const OLD_LABELS: [(&str, &str, &str); 5] = [
    ("beta.kubernetes.io/arch", "v1.14", "kubernetes.io/arch"),
    ("beta.kubernetes.io/os", "v1.14", "kubernetes.io/os"),
    ("failure-domain.beta.kubernetes.io/region", "v1.17", "topology.kubernetes.io/region"),
    ("failure-domain.beta.kubernetes.io/zone", "v1.17", "topology.kubernetes.io/zone"),
    ("beta.kubernetes.io/instance-type", "v1.17", "node.kubernetes.io/instance-type"),
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

/// What is said of a label that has another name by now.
fn old_label(key: &str) -> Option<String> {
    let (_, since, new) = OLD_LABELS.iter().find(|(old, ..)| *old == key)?;
    Some(format!("deprecated since {since}; use {} instead", quote(new)))
}

fn null_selector(path: &Path<'_>) -> String {
    format!("{}: a null labelSelector results in matching no pod", path.child("labelSelector"))
}

fn warn_of_node_affinity(rules: &NodeAffinity, path: &Path<'_>, warnings: &mut Vec<String>) {
    let mut of_term = |term: &NodeSelectorTerm, path: &Path<'_>| {
        let expressions = path.child("matchExpressions");
        for (index, expression) in term.match_expressions.iter().flatten().enumerate() {
            if let Some(why) = old_label(&expression.key) {
                let path = expressions.index(index);
                warnings.push(format!("{}: {} is {why}", path.child("key"), expression.key));
            }
        }
    };
    let required = path.child("requiredDuringSchedulingIgnoredDuringExecution");
    let terms = required.child("nodeSelectorTerms");
    let found = rules.required_during_scheduling_ignored_during_execution.iter();
    for (index, term) in found.flat_map(|found| &found.node_selector_terms).enumerate() {
        of_term(term, &terms.index(index));
    }
    let preferred = path.child("preferredDuringSchedulingIgnoredDuringExecution");
    let found = rules.preferred_during_scheduling_ignored_during_execution.iter().flatten();
    for (index, term) in found.enumerate() {
        of_term(&term.preference, &preferred.index(index).child("preference"));
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
    let asked = claim.and_then(|claim| claim.spec.resources.as_ref()?.requests.as_ref());
    let Some(amount) = asked.and_then(|asked| asked.get("storage")) else { return };
    let ephemeral = path.child("ephemeral");
    let template = ephemeral.child("volumeClaimTemplate");
    let spec = template.child("spec");
    let resources = spec.child("resources");
    warn_of_fraction(amount, &resources.child("requests").key("storage"), warnings);
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
        let path = secrets.index(index);
        if secret.name.is_empty() {
            warnings.push(format!("{}: invalid empty name \"\"", path.child("name")));
        } else if !seen.insert(&secret.name) {
            warnings.push(format!(
                "{}: duplicate name {}",
                path.child("name"),
                quote(&secret.name)
            ));
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
    let mut first = BTreeMap::new();
    for (index, variable) in container.env.iter().flatten().enumerate() {
        let Some(before) = first.get(&variable.name) else {
            first.insert(&variable.name, variable);
            continue;
        };
        // Whoever adds to the value of before hides nothing.
        let is_text = |value: &Option<String>| value.as_ref().is_some_and(|it| !it.is_empty());
        let adds = is_text(&before.value)
            && variable.value.as_ref().is_some_and(|value| {
                let reference = format!("$({})", variable.name);
                value.contains(&reference)
            });
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
    let host = |port: &ContainerPort| {
        (port.host_ip.clone().unwrap_or_default(), port.host_port.unwrap_or(0))
    };
    let protocol = |port: &ContainerPort| port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
    for (index, (path, port)) in ports.iter().enumerate() {
        let (host_ip, host_port) = host(port);
        if !host_ip.is_empty() && host_port == 0 {
            let name = port.name.as_deref().unwrap_or("");
            warnings.push(format!(
                "{path}: hostIP set without hostPort: {{Name:{name} HostPort:0 ContainerPort:{} \
                 Protocol:{} HostIP:{host_ip}}}",
                port.container_port,
                protocol(port)
            ));
        }
        for (other_path, other) in &ports[..index] {
            if (other.container_port, protocol(other)) != (port.container_port, protocol(port)) {
                continue;
            }
            let (other_ip, other_port) = host(other);
            let what = if (&other_ip, other_port) == (&host_ip, host_port) {
                "duplicate"
            } else if host_port == 0 || other_port == 0 {
                "overlapping"
            } else if host_port == other_port && host_ip.is_empty() != other_ip.is_empty() {
                "dangerously ambiguous"
            } else {
                continue;
            };
            warnings.push(format!("{path}: {what} port definition with {other_path}"));
        }
    }
}
