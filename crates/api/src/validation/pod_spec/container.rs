//! Containers and init containers: name, image, ports, policies, and the parts
//! that have files of their own.
//!
//! A container knows its Pod only through [`PodContext`].

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, ContainerPort, ContainerResizePolicy};

use super::handler::validate_lifecycle;
use super::{
    PodContext, env, items, probe, push_invalid, resources, restart_rule, security_context, text,
    validate_one_of, volume_mount,
};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;
use crate::resource_list::is_sidecar;
use crate::validation::validate_given;

const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const SIDECARS_ONLY: &str = "may not be set for init containers without restartPolicy=Always";

/// Validates the list of containers.
pub(super) fn validate_containers(
    containers: &[Container],
    pod: &PodContext<'_>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if containers.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let mut names = BTreeSet::new();
    for (i, container) in containers.iter().enumerate() {
        let here = path.index(i);
        validate_container(container, pod, &here, errors);
        if !names.insert(&container.name) {
            let at = here.child("name");
            errors.push(FieldError::duplicate(&at, &container.name));
        }
        validate_running(container, pod, &here, errors);
        restart_rule::validate_restart_policy(container, &here, errors);
    }
    validate_host_port_conflicts(containers, path, errors);
}

/// Validates the list of init containers, sidecars among them.
pub(super) fn validate_init_containers(
    init_containers: &[Container],
    containers: &[Container],
    pod: &PodContext<'_>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let mut names: BTreeSet<&String> = containers.iter().map(|other| &other.name).collect();
    for (i, container) in init_containers.iter().enumerate() {
        let here = path.index(i);
        validate_container(container, pod, &here, errors);
        restart_rule::validate_init_restart_policy(container, &here, errors);
        if names.contains(&container.name) {
            let at = here.child("name");
            errors.push(FieldError::duplicate(&at, &container.name));
        } else if !container.name.is_empty() {
            names.insert(&container.name);
        }
        // They run one by one, so each may use the host ports of the others;
        // upstream judges each as a list of one, hence always index 0.
        validate_host_port_conflicts(std::slice::from_ref(container), path, errors);
        if is_sidecar(container) {
            validate_running(container, pod, &here, errors);
        } else {
            forbid_running(container, &here, errors);
            validate_init_resize_policy(items(&container.resize_policy), &here, errors);
        }
    }
}

/// A pull policy that is given and known.
pub(super) fn validate_pull_policy(policy: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    validate_one_of(policy, &PULL_POLICIES, path, errors);
}

/// What all kinds of container have in common.
fn validate_container(
    container: &Container,
    pod: &PodContext<'_>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let name_path = path.child("name");
    if container.name.is_empty() {
        errors.push(FieldError::required(&name_path, ""));
    } else {
        let wrong = identifier::dns1123_label(&container.name);
        push_invalid(&name_path, &container.name, wrong, errors);
    }
    validate_given(text(&container.image), &path.child("image"), errors);
    validate_one_of(
        text(&container.termination_message_policy),
        &["File", "FallbackToLogsOnError"],
        &path.child("terminationMessagePolicy"),
        errors,
    );
    validate_ports(items(&container.ports), &path.child("ports"), errors);
    env::validate_env(items(&container.env), &path.child("env"), errors);
    env::validate_env_from(items(&container.env_from), &path.child("envFrom"), errors);
    volume_mount::validate_mounts(container, pod, &path.child("volumeMounts"), errors);
    volume_mount::validate_devices(container, pod, &path.child("volumeDevices"), errors);
    validate_pull_policy(
        text(&container.image_pull_policy),
        &path.child("imagePullPolicy"),
        errors,
    );
    if let Some(requirements) = &container.resources {
        let at = path.child("resources");
        resources::validate_container_resources(requirements, &pod.claim_names, &at, errors);
    }
    let at = path.child("resizePolicy");
    validate_resize_policy(items(&container.resize_policy), pod.restart_policy, &at, errors);
    if let Some(context) = &container.security_context {
        let at = path.child("securityContext");
        security_context::validate_security_context(context, pod.host_users, &at, errors);
    }
}

/// What only a container that stays running may have.
fn validate_running(
    container: &Container,
    pod: &PodContext<'_>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let grace_period_seconds = pod.grace_period_seconds;
    if let Some(lifecycle) = &container.lifecycle {
        let at = path.child("lifecycle");
        validate_lifecycle(lifecycle, grace_period_seconds, &at, errors);
    }
    if let Some(liveness) = &container.liveness_probe {
        probe::validate_once_successful(liveness, &path.child("livenessProbe"), errors);
    }
    if let Some(readiness) = &container.readiness_probe {
        probe::validate_readiness(readiness, &path.child("readinessProbe"), errors);
    }
    if let Some(startup) = &container.startup_probe {
        probe::validate_once_successful(startup, &path.child("startupProbe"), errors);
    }
}

fn forbid_running(container: &Container, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let fields = [
        ("lifecycle", container.lifecycle.is_some()),
        ("livenessProbe", container.liveness_probe.is_some()),
        ("readinessProbe", container.readiness_probe.is_some()),
        ("startupProbe", container.startup_probe.is_some()),
    ];
    for (field, given) in fields {
        if given {
            errors.push(FieldError::forbidden(&path.child(field), SIDECARS_ONLY));
        }
    }
}

fn validate_ports(ports: &[ContainerPort], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut names = BTreeSet::new();
    for (i, port) in ports.iter().enumerate() {
        let here = path.index(i);
        let name = text(&port.name);
        if !name.is_empty() {
            let at = here.child("name");
            let wrong = identifier::port_name(name);
            if wrong.is_empty() && !names.insert(name) {
                errors.push(FieldError::duplicate(&at, name));
            }
            push_invalid(&at, name, wrong, errors);
        }
        let at = here.child("containerPort");
        match port.container_port {
            0 => errors.push(FieldError::required(&at, "")),
            number => validate_port_number(number, &at, errors),
        }
        if let Some(number) = port.host_port.filter(|number| *number != 0) {
            validate_port_number(number, &here.child("hostPort"), errors);
        }
        let protocols = ["SCTP", "TCP", "UDP"];
        let at = here.child("protocol");
        validate_one_of(text(&port.protocol), &protocols, &at, errors);
    }
}

fn validate_port_number(number: i32, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for detail in identifier::port_number(number.into()) {
        errors.push(FieldError::invalid(path, number, detail));
    }
}

fn validate_host_port_conflicts(
    containers: &[Container],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let mut taken = BTreeSet::new();
    for (i, container) in containers.iter().enumerate() {
        let here = path.index(i);
        let ports_path = here.child("ports");
        for (j, port) in items(&container.ports).iter().enumerate() {
            let Some(number) = port.host_port.filter(|number| *number != 0) else {
                continue;
            };
            let address = format!("{}/{}/{number}", text(&port.protocol), text(&port.host_ip));
            if taken.contains(&address) {
                let port_path = ports_path.index(j);
                let at = port_path.child("hostPort");
                errors.push(FieldError::duplicate(&at, address));
            } else {
                taken.insert(address);
            }
        }
    }
}

fn validate_resize_policy(
    policies: &[ContainerResizePolicy],
    pod_restart_policy: &str,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let mut seen = BTreeSet::new();
    for (i, policy) in policies.iter().enumerate() {
        if !seen.insert(&policy.resource_name) {
            let at = path.index(i);
            errors.push(FieldError::duplicate(&at, &policy.resource_name));
        }
        // Upstream reports what is wrong inside an entry at the list.
        validate_one_of(&policy.resource_name, &["cpu", "memory"], path, errors);
        let restart = policy.restart_policy.as_str();
        validate_one_of(restart, &["NotRequired", "RestartContainer"], path, errors);
        if pod_restart_policy == "Never" && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(FieldError::invalid(path, restart, detail));
        }
    }
}

fn validate_init_resize_policy(
    policies: &[ContainerResizePolicy],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let policies_path = path.child("resizePolicy");
    for (i, policy) in policies.iter().enumerate() {
        if policy.restart_policy == "RestartContainer" {
            let here = policies_path.index(i);
            let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            let at = here.child("restartPolicy");
            errors.push(FieldError::invalid(&at, &policy.restart_policy, detail));
        }
    }
}
