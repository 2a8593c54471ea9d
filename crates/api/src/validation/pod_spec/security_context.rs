//! Who a Pod and its containers run as, and what confines them.
//!
//! What a cluster's policies allow is not known here.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{AppArmorProfile, PodSpec, SeccompProfile, SecurityContext};

use super::items;
use super::local_path::validate_descending_path;
use super::windows_options::validate_windows_options;
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;
use crate::validation::validate_one_of_or_empty;

const PROFILE_TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
/// `PATH_MAX` less the final zero.
const APP_ARMOR_PROFILE_MAX_BYTES: usize = 4095;
const SYSCTL_MAX_BYTES: usize = 253;

/// How often a capability that is added many times is reported, each time with all of them:
/// nobody reads more, and the answer stays in proportion to the request.
const MAX_REPETITIONS: usize = 8;

/// Validates the Pod's security context; `path` is that of `securityContext`.
pub(super) fn validate_pod_security_context(
    spec: &PodSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Some(context) = &spec.security_context else {
        return;
    };
    validate_id(context.fs_group, &path.child("fsGroup"), errors);
    validate_id(context.run_as_user, &path.child("runAsUser"), errors);
    validate_id(context.run_as_group, &path.child("runAsGroup"), errors);
    let groups_path = path.child("supplementalGroups");
    for (i, group) in items(&context.supplemental_groups).iter().enumerate() {
        validate_id(Some(*group), &groups_path.index(i), errors);
    }
    if spec.share_process_namespace == Some(true) && spec.host_pid == Some(true) {
        // Upstream keeps this field inside the security context.
        let at = path.child("shareProcessNamespace");
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(FieldError::invalid(&at, true, detail));
    }
    validate_sysctls(spec, &path.child("sysctls"), errors);
    if let Some(policy) = &context.fs_group_change_policy {
        let policies = ["Always", "OnRootMismatch"];
        validate_one_of_or_empty(policy, &policies, &path.child("fsGroupChangePolicy"), errors);
    }
    validate_seccomp(context.seccomp_profile.as_ref(), &path.child("seccompProfile"), errors);
    if let Some(options) = &context.windows_options {
        validate_windows_options(options, &path.child("windowsOptions"), errors);
    }
    validate_app_armor(context.app_armor_profile.as_ref(), &path.child("appArmorProfile"), errors);
    if let Some(policy) = &context.supplemental_groups_policy {
        let at = path.child("supplementalGroupsPolicy");
        validate_one_of_or_empty(policy, &["Merge", "Strict"], &at, errors);
    }
    if let Some(policy) = &context.se_linux_change_policy {
        // MountOption is behind a feature gate that is off.
        let at = path.child("seLinuxChangePolicy");
        validate_one_of_or_empty(policy, &["Recursive"], &at, errors);
    }
}

/// Validates a container's security context.
pub(super) fn validate_security_context(
    context: &SecurityContext,
    host_users: bool,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    validate_id(context.run_as_user, &path.child("runAsUser"), errors);
    validate_id(context.run_as_group, &path.child("runAsGroup"), errors);
    if let Some(mount) = &context.proc_mount {
        let at = path.child("procMount");
        validate_one_of_or_empty(mount, &["Default", "Unmasked"], &at, errors);
        if host_users && mount == "Unmasked" {
            let detail = "`hostUsers` must be false to use `Unmasked`";
            errors.push(FieldError::invalid(&at, mount, detail));
        }
    }
    validate_seccomp(context.seccomp_profile.as_ref(), &path.child("seccompProfile"), errors);
    validate_privilege_escalation(context, path, errors);
    if let Some(options) = &context.windows_options {
        validate_windows_options(options, &path.child("windowsOptions"), errors);
    }
    validate_app_armor(context.app_armor_profile.as_ref(), &path.child("appArmorProfile"), errors);
}

/// A user or group id that Linux can hold.
fn validate_id(id: Option<i64>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Some(id) = id {
        for detail in identifier::in_range(id, 0, i32::MAX.into()) {
            errors.push(FieldError::invalid(path, id, detail));
        }
    }
}

fn validate_privilege_escalation(
    context: &SecurityContext,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if context.allow_privilege_escalation != Some(false) {
        return;
    }
    if context.privileged == Some(true) {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        errors.push(FieldError::invalid(path, context, detail));
    }
    let added = context.capabilities.as_ref().and_then(|set| set.add.as_ref());
    let added = added.into_iter().flatten().filter(|name| *name == "CAP_SYS_ADMIN");
    for _ in added.take(MAX_REPETITIONS) {
        let detail =
            "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
        errors.push(FieldError::invalid(path, context, detail));
    }
}

fn validate_seccomp(
    profile: Option<&SeccompProfile>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Some(profile) = profile else { return };
    let at = path.child("type");
    if profile.type_.is_empty() {
        let detail = "type is required when seccompProfile is set";
        errors.push(FieldError::required(&at, detail));
    } else {
        validate_one_of_or_empty(&profile.type_, &PROFILE_TYPES, &at, errors);
    }
    let at = path.child("localhostProfile");
    match (&profile.localhost_profile, profile.type_ == "Localhost") {
        (None, true) => {
            let detail = "must be set when seccomp type is Localhost";
            errors.push(FieldError::required(&at, detail));
        }
        (Some(file), true) => validate_descending_path(file, &at, errors),
        (Some(_), false) => {
            let detail = "can only be set when seccomp type is Localhost";
            errors.push(FieldError::invalid(&at, profile, detail));
        }
        (None, false) => {}
    }
}

fn validate_app_armor(
    profile: Option<&AppArmorProfile>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Some(profile) = profile else { return };
    let (type_path, file_path) = (path.child("type"), path.child("localhostProfile"));
    match (profile.type_.as_str(), &profile.localhost_profile) {
        ("Localhost", None) => {
            let detail = "must be set when AppArmor type is Localhost";
            errors.push(FieldError::required(&file_path, detail));
        }
        ("Localhost", Some(file)) => validate_app_armor_file(file, &file_path, errors),
        ("RuntimeDefault" | "Unconfined", Some(file)) => {
            let detail = "can only be set when AppArmor type is Localhost";
            errors.push(FieldError::invalid(&file_path, file, detail));
        }
        ("RuntimeDefault" | "Unconfined", None) => {}
        ("", _) => {
            let detail = "type is required when appArmorProfile is set";
            errors.push(FieldError::required(&type_path, detail));
        }
        (other, _) => {
            errors.push(FieldError::not_supported(&type_path, other, &PROFILE_TYPES));
        }
    }
}

fn validate_app_armor_file(file: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if file.trim() != file {
        let detail = "must not be padded with whitespace";
        errors.push(FieldError::invalid(path, file, detail));
    } else if file.is_empty() {
        let detail = "must be set when AppArmor type is Localhost";
        errors.push(FieldError::required(path, detail));
    }
    if file.len() > APP_ARMOR_PROFILE_MAX_BYTES {
        errors.push(FieldError::too_long(path, APP_ARMOR_PROFILE_MAX_BYTES));
    }
}

fn validate_sysctls(spec: &PodSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let context = spec.security_context.as_ref();
    let sysctls = context.map_or(&[][..], |context| items(&context.sysctls));
    let mut seen = BTreeSet::new();
    for (i, sysctl) in sysctls.iter().enumerate() {
        let name = sysctl.name.as_str();
        let here = path.index(i);
        let at = here.child("name");
        let is_new = seen.insert(name);
        if name.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else if !is_sysctl_name(name) {
            let detail = "must have at most 253 characters and match regex \
                ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            errors.push(FieldError::invalid(&at, name, detail));
        } else if !is_new {
            errors.push(FieldError::duplicate(&at, name));
        }
        let shared = match sysctl_namespace(name) {
            Some(Namespace::Net) if spec.host_network == Some(true) => "hostNetwork",
            Some(Namespace::Ipc) if spec.host_ipc == Some(true) => "hostIPC",
            _ => continue,
        };
        let detail = format!("may not be specified when '{shared}' is true");
        errors.push(FieldError::invalid(&at, name, detail));
    }
}

fn is_sysctl_name(name: &str) -> bool {
    let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let inside = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
    name.len() <= SYSCTL_MAX_BYTES
        && name.split(['.', '/']).all(|segment| {
            edge(segment.bytes().next())
                && edge(segment.bytes().last())
                && segment.bytes().all(inside)
        })
}

/// The kernel namespace a sysctl belongs to.
enum Namespace {
    Net,
    Ipc,
}

fn sysctl_namespace(name: &str) -> Option<Namespace> {
    let name = normal_sysctl(name);
    let name = name.split('*').next().unwrap_or("");
    match name {
        "kernel.sem"
        | "kernel.shmall"
        | "kernel.shmmax"
        | "kernel.shmmni"
        | "kernel.shm_rmid_forced"
        | "kernel.msgmax"
        | "kernel.msgmnb"
        | "kernel.msgmni"
        | "kernel.msg" => Some(Namespace::Ipc),
        _ if name.starts_with("net.") => Some(Namespace::Net),
        _ if name.starts_with("fs.mqueue.") => Some(Namespace::Ipc),
        _ => None,
    }
}

/// A sysctl written with slashes first means dots and slashes the other way round.
fn normal_sysctl(name: &str) -> String {
    match name.find(['.', '/']) {
        Some(at) if name.as_bytes()[at] == b'/' => name
            .chars()
            .map(|c| match c {
                '.' => '/',
                '/' => '.',
                c => c,
            })
            .collect(),
        _ => name.to_owned(),
    }
}
