//! What is wrong with the statuses of a Pod's containers: what may follow what, and what
//! they hold.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{
    Container, ContainerRestartRule, ContainerStateTerminated, ContainerStatus, ContainerUser,
    PodSpec, PodStatus, ResourceHealth, ResourceStatus,
};

use super::super::validate_one_of_or_empty;
use super::{items, text};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;

const HEALTHS: [&str; 3] = ["Healthy", "Unhealthy", "Unknown"];
const HEALTH_MESSAGE_MAX_BYTES: usize = 1024;
/// The highest uid or gid.
const ID_MAX: i64 = i32::MAX as i64;
const RESTART_ALL: &str = "RestartAllContainers";

/// A container that has ended, and will not be started again, stays ended.
pub(super) fn validate_transitions(
    new: &PodStatus,
    old: &PodStatus,
    spec: &PodSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let init_containers = items(&spec.init_containers);
    let lists = [
        (
            "containerStatuses",
            (&new.container_statuses, &old.container_statuses),
            spec.containers.as_slice(),
        ),
        (
            "initContainerStatuses",
            (&new.init_container_statuses, &old.init_container_statuses),
            init_containers,
        ),
    ];
    // Where one end may start everything again, nothing stays ended.
    if !may_restart_all(&spec.containers) && !may_restart_all(init_containers) {
        for (field, (new, old), containers) in lists {
            let containers = by_name(containers);
            validate_list(items(new), items(old), &path.child(field), errors, |name, end| {
                let container = containers.get(name);
                container.is_some_and(|container| restarts(container, spec, end.exit_code))
            });
        }
    }
    let at = path.child("ephemeralContainerStatuses");
    let new = items(&new.ephemeral_container_statuses);
    let old = items(&old.ephemeral_container_statuses);
    validate_list(new, old, &at, errors, |_, _| false);
}

/// Validates what the statuses of all containers hold.
pub(super) fn validate_statuses(
    status: &PodStatus,
    spec: &PodSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let is_windows = spec.os.as_ref().is_some_and(|os| os.name == "windows");
    let none: &[Container] = &[];
    let lists = [
        ("containerStatuses", &status.container_statuses, spec.containers.as_slice()),
        ("initContainerStatuses", &status.init_container_statuses, items(&spec.init_containers)),
        ("ephemeralContainerStatuses", &status.ephemeral_container_statuses, none),
    ];
    for (field, statuses, _) in &lists {
        let list_path = path.child(field);
        for (i, status) in items(statuses).iter().enumerate() {
            if let Some(user) = &status.user {
                let here = list_path.index(i);
                validate_user(user, is_windows, &here.child("user"), errors);
            }
        }
    }
    for (field, statuses, containers) in &lists {
        let list_path = path.child(field);
        let (containers, claims) = (by_name(containers), claims(containers));
        for (i, status) in items(statuses).iter().enumerate() {
            let here = list_path.index(i);
            let at = here.child("allocatedResourcesStatus");
            let allocated = items(&status.allocated_resources_status);
            if *field != "ephemeralContainerStatuses" {
                let container = containers.get(status.name.as_str()).copied();
                validate_allocated(allocated, container, &claims, &at, errors);
            } else if !allocated.is_empty() {
                let detail = "must not be specified in container status";
                errors.push(FieldError::forbidden(&at, detail));
            }
        }
    }
}

/// Containers by their names. Of two with one name the first counts.
fn by_name(containers: &[Container]) -> BTreeMap<&str, &Container> {
    containers.iter().rev().map(|container| (container.name.as_str(), container)).collect()
}

/// The claims of all containers, each with its container's name, as statuses spell them.
fn claims(containers: &[Container]) -> BTreeSet<(&str, String)> {
    let claims = by_name(containers).into_iter().flat_map(|(name, container)| {
        let resources = container.resources.as_ref();
        let claims = resources.map(|resources| items(&resources.claims)).unwrap_or_default();
        claims.iter().map(move |claim| (name, claim))
    });
    let spelled = claims.map(|(name, claim)| match text(&claim.request) {
        "" => (name, claim.name.clone()),
        request => (name, format!("{}/{request}", claim.name)),
    });
    spelled.collect()
}

fn validate_list(
    new: &[ContainerStatus],
    old: &[ContainerStatus],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
    may_restart: impl Fn(&str, &ContainerStateTerminated) -> bool,
) {
    let unended = new.iter().filter(|status| end(status).is_none());
    let unended: BTreeSet<&str> = unended.map(|status| status.name.as_str()).collect();
    for (i, old) in old.iter().enumerate() {
        if let Some(end) = end(old)
            && unended.contains(old.name.as_str())
            && !may_restart(&old.name, end)
        {
            let detail = "may not be transitioned to non-terminated state";
            errors.push(FieldError::forbidden(&path.index(i).child("state"), detail));
        }
    }
}

fn end(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    status.state.as_ref()?.terminated.as_ref()
}

/// Whether an end of one of these containers may start all of the Pod's again.
fn may_restart_all(containers: &[Container]) -> bool {
    let mut rules = containers.iter().flat_map(|container| items(&container.restart_policy_rules));
    rules.any(|rule| rule.action == RESTART_ALL)
}

/// Whether a container is started again after this exit code: by its rules, else by its
/// own policy, else by its Pod's.
fn restarts(container: &Container, spec: &PodSpec, exit_code: i32) -> bool {
    let of_pod = match text(&spec.restart_policy) {
        "OnFailure" => exit_code != 0,
        "Never" => false,
        _ => true,
    };
    let Some(policy) = &container.restart_policy else {
        return of_pod;
    };
    let mut rules = items(&container.restart_policy_rules).iter();
    let rule = rules.find(|rule| matches(rule, exit_code));
    if rule.is_some_and(|rule| rule.action == "Restart" || rule.action == RESTART_ALL) {
        return true;
    }
    match policy.as_str() {
        "Always" => true,
        "OnFailure" => exit_code != 0,
        "Never" => false,
        _ => of_pod,
    }
}

fn matches(rule: &ContainerRestartRule, exit_code: i32) -> bool {
    rule.exit_codes.as_ref().is_some_and(|codes| {
        let is_listed = items(&codes.values).contains(&exit_code);
        match codes.operator.as_str() {
            "In" => is_listed,
            "NotIn" => !is_listed,
            _ => false,
        }
    })
}

fn validate_user(
    user: &ContainerUser,
    is_windows: bool,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Some(user) = &user.linux else {
        return;
    };
    let here = path.child("linux");
    if is_windows {
        errors.push(FieldError::forbidden(&here, "cannot be set for a windows pod"));
        return;
    }
    let groups_path = here.child("supplementalGroups");
    let mut judge = |id: i64, at: &Path<'_>| {
        for detail in identifier::in_range(id, 0, ID_MAX) {
            errors.push(FieldError::invalid(at, id, detail));
        }
    };
    judge(user.uid, &here.child("uid"));
    judge(user.gid, &here.child("gid"));
    for (i, group) in items(&user.supplemental_groups).iter().enumerate() {
        judge(*group, &groups_path.index(i));
    }
}

/// Devices that a container was given, and how they are.
fn validate_allocated(
    allocated: &[ResourceStatus],
    container: Option<&Container>,
    claims: &BTreeSet<(&str, String)>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    for (i, resource) in allocated.iter().enumerate() {
        let here = path.index(i);
        if let Some(container) = container {
            validate_allocated_name(&resource.name, container, claims, &here.child("name"), errors);
        }
        let mut seen = BTreeSet::new();
        let healths_path = here.child("resources");
        for (j, health) in items(&resource.resources).iter().enumerate() {
            let here = healths_path.index(j);
            validate_health(health, &here, errors);
            if !seen.insert(&health.resource_id) {
                let at = here.child("resourceID");
                errors.push(FieldError::duplicate(&at, &health.resource_id));
            }
        }
    }
}

fn validate_allocated_name(
    name: &str,
    container: &Container,
    claims: &BTreeSet<(&str, String)>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let (is_known, detail) = if let Some(claim) = name.strip_prefix("claim:") {
        let is_known = claims.contains(&(container.name.as_str(), claim.to_owned()));
        let detail = "must match one of the container's resource claims in a format \
            'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty";
        (is_known, detail)
    } else {
        let resources = container.resources.as_ref();
        let requests = resources.and_then(|resources| resources.requests.as_ref());
        let is_known = requests.is_some_and(|requests| requests.contains_key(name));
        (is_known, "must match one of the container's resource requests")
    };
    if !is_known {
        errors.push(FieldError::invalid(path, name, detail));
    }
}

fn validate_health(health: &ResourceHealth, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    validate_one_of_or_empty(text(&health.health), &HEALTHS, &path.child("health"), errors);
    if let Some(message) = &health.message {
        let at = path.child("message");
        if message.is_empty() {
            errors.push(FieldError::required(&at, "must be non-empty if specified"));
        } else if message.len() > HEALTH_MESSAGE_MAX_BYTES {
            errors.push(FieldError::too_long(&at, HEALTH_MESSAGE_MAX_BYTES));
        }
    }
}
