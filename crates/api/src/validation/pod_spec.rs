//! What is wrong with the spec of a Pod, in the order the API server says it.
//!
//! This file walks the fields of the Pod itself; each part that has rules of its
//! own has a file below. It sees the spec after defaulting and knows nothing of who
//! owns it: that a Job's Pods may not be restarted Always is the Job's rule.
//!
//! Rules that depend on the cluster are judged as a server with
//! `--allow-privileged` and the feature gates of Kubernetes 1.36 would.

mod affinity;
pub(super) mod annotation;
mod container;
mod env;
mod field_ref;
mod handler;
mod legacy_volume;
mod local_path;
pub(super) mod network;
mod os;
mod pod_resources;
mod probe;
mod projected_volume;
mod resources;
mod restart_rule;
mod security_context;
mod spread;
pub(super) mod toleration;
mod volume;
mod volume_claim;
mod volume_mount;
mod windows_options;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, PodResourceClaim, PodSpec, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

pub(crate) use self::resources::{
    can_overcommit, container_resource_name, is_extended, is_native, known_resource_name,
    validate_amount,
};
use super::object_meta::validate_labels;
use super::{items, push_invalid, text, validate_one_of};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;

/// What a container's rules need to know of its Pod.
struct PodContext<'a> {
    /// The volumes that are valid themselves, by name.
    volumes: BTreeMap<&'a str, &'a Volume>,
    /// The names of the Pod's resource claims.
    claim_names: BTreeSet<&'a str>,
    grace_period_seconds: Option<i64>,
    restart_policy: &'a str,
    host_users: bool,
}

/// Validates the spec of a Pod or of a template. `pod` is the metadata of a real Pod; a
/// template has none, and is judged a little more leniently.
pub(super) fn validate_pod_spec(
    spec: &PodSpec,
    pod: Option<&ObjectMeta>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if spec.termination_grace_period_seconds.is_none() {
        let at = path.child("terminationGracePeriodSeconds");
        errors.push(FieldError::required(&at, ""));
    }
    let claims = items(&spec.resource_claims);
    let context = PodContext {
        volumes: volume::validate_volumes(spec, pod, &path.child("volumes"), errors),
        claim_names: claim_names(claims),
        grace_period_seconds: spec.termination_grace_period_seconds,
        restart_policy: text(&spec.restart_policy),
        host_users: spec.host_users.unwrap_or(true),
    };
    if pod.is_some_and(annotation::is_mirror) {
        // Upstream says it once for each claim, of no field at all.
        for _ in claims {
            let detail = "static pods do not support resource claims";
            errors.push(FieldError::forbidden(&Path::field("[]"), detail));
        }
    } else {
        validate_resource_claims(claims, &path.child("resourceClaims"), errors);
    }
    container::validate_containers(&spec.containers, &context, &path.child("containers"), errors);
    container::validate_init_containers(
        items(&spec.init_containers),
        &spec.containers,
        &context,
        &path.child("initContainers"),
        errors,
    );
    pod_resources::validate_pod_resources(spec, &context, path, errors);
    network::validate_host_network_ports(spec, pod.is_some(), path, errors);
    let restart_policies = ["Always", "OnFailure", "Never"];
    let at = path.child("restartPolicy");
    validate_one_of(context.restart_policy, &restart_policies, &at, errors);
    network::validate_dns_policy(text(&spec.dns_policy), &path.child("dnsPolicy"), errors);
    let at = path.child("nodeSelector");
    validate_labels(spec.node_selector.as_ref(), &at, errors);
    security_context::validate_pod_security_context(spec, &path.child("securityContext"), errors);
    affinity::validate_affinity(spec.affinity.as_ref(), &path.child("affinity"), errors);
    network::validate_dns_config(spec, &path.child("dnsConfig"), errors);
    validate_gates(spec, path, errors);
    let at = path.child("topologySpreadConstraints");
    spread::validate_spread(items(&spec.topology_spread_constraints), &at, errors);
    windows_options::validate_host_process(spec, path, errors);
    validate_host_users(spec, path, errors);
    network::validate_hostname_override(spec, path, errors);
    validate_names_and_numbers(spec, path, errors);
    toleration::validate_tolerations(items(&spec.tolerations), &path.child("tolerations"), errors);
    network::validate_host_aliases(items(&spec.host_aliases), &path.child("hostAliases"), errors);
    validate_classes(spec, path, errors);
    if let Some(overhead) = &spec.overhead {
        resources::validate_overhead(overhead, &path.child("overhead"), errors);
    }
    os::validate_os(spec, path, errors);
    env::validate_file_key_volumes(spec, path, errors);
}

fn claim_names(claims: &[PodResourceClaim]) -> BTreeSet<&str> {
    let names = claims.iter().map(|claim| claim.name.as_str());
    names.filter(|name| !name.is_empty()).collect()
}

fn validate_resource_claims(
    claims: &[PodResourceClaim],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let mut seen = BTreeSet::new();
    for (i, claim) in claims.iter().enumerate() {
        let here = path.index(i);
        let name_path = here.child("name");
        if claim.name.is_empty() {
            errors.push(FieldError::required(&name_path, ""));
        } else if !seen.insert(claim.name.as_str()) {
            errors.push(FieldError::duplicate(&name_path, &claim.name));
        } else {
            let wrong = identifier::dns1123_label(&claim.name);
            push_invalid(&name_path, &claim.name, wrong, errors);
        }
        let sources = [
            ("resourceClaimName", &claim.resource_claim_name),
            ("resourceClaimTemplateName", &claim.resource_claim_template_name),
        ];
        let given = sources.iter().filter(|(_, name)| name.is_some()).count();
        if given == 2 {
            let detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified";
            errors.push(FieldError::invalid(&here, claim, detail));
        } else if given == 0 {
            let detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
            errors.push(FieldError::invalid(&here, claim, detail));
        }
        for (field, name) in sources {
            if let Some(name) = name {
                let wrong = identifier::dns1123_subdomain(name);
                push_invalid(&here.child(field), name, wrong, errors);
            }
        }
    }
}

fn validate_gates(spec: &PodSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let gates_path = path.child("readinessGates");
    for (i, gate) in items(&spec.readiness_gates).iter().enumerate() {
        let wrong = identifier::qualified_name(&gate.condition_type);
        let here = gates_path.index(i);
        push_invalid(&here.child("conditionType"), &gate.condition_type, wrong, errors);
    }
    let gates_path = path.child("schedulingGates");
    let mut seen = BTreeSet::new();
    for (i, gate) in items(&spec.scheduling_gates).iter().enumerate() {
        let here = gates_path.index(i);
        let wrong = identifier::qualified_name(&gate.name);
        push_invalid(&here, &gate.name, wrong, errors);
        if !seen.insert(&gate.name) {
            errors.push(FieldError::duplicate(&here, &gate.name));
        }
    }
}

/// A Pod with users of its own shares neither the host's namespaces nor raw devices.
fn validate_host_users(spec: &PodSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if spec.host_users != Some(false) {
        return;
    }
    let detail = "when `hostUsers` is false";
    // Upstream writes two of these fields with a capital letter.
    let shared = [
        ("hostNetwork", spec.host_network),
        ("HostPID", spec.host_pid),
        ("HostIPC", spec.host_ipc),
    ];
    for (field, set) in shared {
        if set == Some(true) {
            errors.push(FieldError::forbidden(&path.child(field), detail));
        }
    }
    each_container(spec, path, |container, here| {
        if !items(&container.volume_devices).is_empty() {
            errors.push(FieldError::forbidden(&here.child("volumeDevices"), detail));
        }
    });
}

fn validate_names_and_numbers(spec: &PodSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let names = [("serviceAccountName", &spec.service_account_name), ("nodeName", &spec.node_name)];
    for (field, name) in names {
        let name = text(name);
        if !name.is_empty() {
            push_invalid(&path.child(field), name, identifier::dns1123_subdomain(name), errors);
        }
    }
    if let Some(seconds) = spec.active_deadline_seconds {
        for detail in identifier::in_range(seconds, 1, i32::MAX.into()) {
            let at = path.child("activeDeadlineSeconds");
            errors.push(FieldError::invalid(&at, seconds, detail));
        }
    }
    for (field, name) in [("hostname", &spec.hostname), ("subdomain", &spec.subdomain)] {
        let name = text(name);
        if !name.is_empty() {
            push_invalid(&path.child(field), name, identifier::dns1123_label(name), errors);
        }
    }
}

fn validate_classes(spec: &PodSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let priority_class = text(&spec.priority_class_name);
    if !priority_class.is_empty() {
        let wrong = identifier::dns1123_subdomain(priority_class);
        push_invalid(&path.child("priorityClassName"), priority_class, wrong, errors);
    }
    if let Some(runtime_class) = &spec.runtime_class_name {
        let wrong = identifier::dns1123_subdomain(runtime_class);
        push_invalid(&path.child("runtimeClassName"), runtime_class, wrong, errors);
    }
    if let Some(policy) = &spec.preemption_policy {
        let at = path.child("preemptionPolicy");
        validate_one_of(policy, &["PreemptLowerPriority", "Never"], &at, errors);
    }
}

/// Every init container, then every container, each with its path.
fn each_container(spec: &PodSpec, path: &Path<'_>, mut visit: impl FnMut(&Container, &Path<'_>)) {
    let init_containers = path.child("initContainers");
    for (i, container) in items(&spec.init_containers).iter().enumerate() {
        visit(container, &init_containers.index(i));
    }
    let containers = path.child("containers");
    for (i, container) in spec.containers.iter().enumerate() {
        visit(container, &containers.index(i));
    }
}
