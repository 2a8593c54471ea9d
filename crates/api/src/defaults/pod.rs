//! What kube-apiserver fills in in a Pod, beyond what it fills in in any spec.
//!
//! What is added on admission, such as a service account, is not here: see
//! [`crate::prepare::pod`].

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, ContainerStatus, Pod, PodIP, PodSpec, PodStatus, ResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as QuantityText;

use super::pod_spec::{default_pod_spec, default_resources};
use crate::quantity::Quantity;
use crate::resource_list::{Amounts, is_huge_page, round_up, sum_up};

/// Annotations of a time when Pods had no init containers; the API server drops them.
const INIT_CONTAINER_ANNOTATIONS: [&str; 4] = [
    "pod.alpha.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.beta.kubernetes.io/init-containers",
];

/// Fills in what a Pod leaves out, and writes it the way the API server returns it.
/// Doing it twice changes nothing more. Ephemeral containers are left as they are.
pub fn default_pod(pod: &mut Pod) {
    drop_old_annotations(&mut pod.metadata.annotations);
    let spec = pod.spec.get_or_insert_default();
    for container in each_container(spec) {
        request_what_is_limited(&mut container.resources);
    }
    default_huge_page_limits(spec);
    default_pod_requests(spec);
    spec.enable_service_links.get_or_insert(true);
    if spec.host_network == Some(true) {
        each_container(spec).for_each(default_host_ports);
    }
    default_pod_spec(spec);
    // Of a Pod, but not of a template, a grace period below zero means at once.
    if spec.termination_grace_period_seconds.is_some_and(|seconds| seconds < 0) {
        spec.termination_grace_period_seconds = Some(1);
    }
    if let Some(status) = &mut pod.status {
        default_pod_status(status);
    }
}

/// Makes `podIP` and `podIPs` say the same, and writes quantities canonically. Where the
/// two differ, `podIP` holds, because old kubelets know only that.
pub fn default_pod_status(status: &mut PodStatus) {
    let first = status.pod_ips.iter().flatten().map(|ip| ip.ip.clone()).next();
    match status.pod_ip.as_ref().filter(|ip| !ip.is_empty()) {
        Some(ip) if first.as_ref() != Some(ip) => {
            status.pod_ips = Some(vec![PodIP { ip: ip.clone() }]);
        }
        Some(_) => {}
        None => status.pod_ip = first,
    }
    let statuses = [
        &mut status.init_container_statuses,
        &mut status.container_statuses,
        &mut status.ephemeral_container_statuses,
    ];
    for status in statuses.into_iter().flatten().flatten() {
        default_container_status(status);
    }
    round_up(&mut status.allocated_resources);
    default_resources(&mut status.resources);
}

fn default_container_status(status: &mut ContainerStatus) {
    round_up(&mut status.allocated_resources);
    default_resources(&mut status.resources);
}

fn drop_old_annotations(annotations: &mut Option<BTreeMap<String, String>>) {
    if let Some(annotations) = annotations {
        annotations.retain(|key, _| !INIT_CONTAINER_ANNOTATIONS.contains(&key.as_str()));
    }
}

fn each_container(spec: &mut PodSpec) -> impl Iterator<Item = &mut Container> {
    spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten())
}

/// What a container may use at most is what it asks for, where it asks for nothing.
fn request_what_is_limited(resources: &mut Option<ResourceRequirements>) {
    if let Some(resources) = resources
        && let Some(limits) = &resources.limits
    {
        let requests = resources.requests.get_or_insert_default();
        for (name, limit) in limits {
            requests.entry(name.clone()).or_insert_with(|| limit.clone());
        }
    }
}

fn default_host_ports(container: &mut Container) {
    for port in container.ports.iter_mut().flatten() {
        if port.host_port.unwrap_or(0) == 0 {
            port.host_port = Some(port.container_port);
        }
    }
}

/// The Pod's limits of huge pages are those of its containers, where the Pod as a whole
/// asks for something but not for them (KEP-2837).
fn default_huge_page_limits(spec: &mut PodSpec) {
    let limited = |spec: &PodSpec| sum_up(spec, |resources| resources.limits.as_ref());
    let Some((resources, totals)) = pod_resources(spec, limited) else {
        return;
    };
    if is_empty(&resources.limits) && is_empty(&resources.requests) {
        return;
    }
    let requested = resources.requests.clone().unwrap_or_default();
    let missing = totals.into_iter().filter(|(name, _)| is_huge_page(name));
    fill(&mut resources.limits, missing.filter(|(name, _)| !requested.contains_key(name)));
}

/// What the Pod as a whole asks for, where it only has limits: what its containers ask
/// for together, or its limits (KEP-2837).
fn default_pod_requests(spec: &mut PodSpec) {
    let requested = |spec: &PodSpec| sum_up(spec, |resources| resources.requests.as_ref());
    let Some((resources, totals)) = pod_resources(spec, requested) else {
        return;
    };
    if is_empty(&resources.limits) {
        return;
    }
    let missing = totals.into_iter().filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory"));
    fill(&mut resources.requests, missing);
    let requests = resources.requests.get_or_insert_default();
    for (name, limit) in resources.limits.iter().flatten() {
        if matches!(name.as_str(), "cpu" | "memory") || is_huge_page(name) {
            requests.entry(name.clone()).or_insert_with(|| limit.clone());
        }
    }
    if requests.is_empty() {
        resources.requests = None;
    }
}

/// The resources of the Pod as a whole, if it has any, and sums over its containers.
fn pod_resources(
    spec: &mut PodSpec,
    sum: impl Fn(&PodSpec) -> Amounts,
) -> Option<(&mut ResourceRequirements, Amounts)> {
    spec.resources.as_ref()?;
    let totals = sum(spec);
    spec.resources.as_mut().map(|resources| (resources, totals))
}

fn fill(
    list: &mut Option<BTreeMap<String, QuantityText>>,
    missing: impl Iterator<Item = (String, Quantity)>,
) {
    for (name, amount) in missing {
        let list = list.get_or_insert_default();
        list.entry(name).or_insert_with(|| QuantityText(amount.to_string()));
    }
}

fn is_empty(list: &Option<BTreeMap<String, QuantityText>>) -> bool {
    list.as_ref().is_none_or(BTreeMap::is_empty)
}
