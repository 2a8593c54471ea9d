//! The operating system a Pod asks for, and the fields that go with it.
//!
//! What those fields hold is judged elsewhere.

use k8s_openapi::api::core::v1::PodSpec;

use super::{each_container, items};
use crate::field_error::FieldError;
use crate::field_path::Path;

const NOT_ON_WINDOWS: &str = "cannot be set for a windows pod";
const NOT_ON_LINUX: &str = "windows options cannot be set for a linux pod";

/// Validates `os` and the fields that do not go with it; `path` is the Pod's spec.
pub(super) fn validate_os(spec: &PodSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(os) = &spec.os else { return };
    let os_path = path.child("os");
    match os.name.as_str() {
        "" => errors.push(FieldError::required(&os_path.child("name"), "")),
        "linux" => forbid_windows_fields(spec, path, errors),
        "windows" => {
            forbid_linux_pod_fields(spec, path, errors);
            forbid_linux_container_fields(spec, path, errors);
        }
        other => {
            let supported = ["linux", "windows"];
            errors.push(FieldError::not_supported(&os_path, other, &supported));
        }
    }
}

fn forbid_windows_fields(spec: &PodSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let context = spec.security_context.as_ref();
    if context.is_some_and(|context| context.windows_options.is_some()) {
        let context_path = path.child("securityContext");
        let at = context_path.child("windowsOptions");
        errors.push(FieldError::forbidden(&at, NOT_ON_LINUX));
    }
    each_container(spec, path, |container, here| {
        let context = container.security_context.as_ref();
        if context.is_some_and(|context| context.windows_options.is_some()) {
            let context_path = here.child("securityContext");
            let at = context_path.child("windowsOptions");
            errors.push(FieldError::forbidden(&at, NOT_ON_LINUX));
        }
    });
}

fn forbid_linux_pod_fields(spec: &PodSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let no_context = Default::default();
    let context = spec.security_context.as_ref().unwrap_or(&no_context);
    let context_path = path.child("securityContext");
    let fields = [
        (&context_path, "appArmorProfile", context.app_armor_profile.is_some()),
        (&context_path, "seLinuxOptions", context.se_linux_options.is_some()),
        (path, "hostUsers", spec.host_users.is_some()),
        (path, "hostPID", spec.host_pid == Some(true)),
        (path, "hostIPC", spec.host_ipc == Some(true)),
        (&context_path, "seccompProfile", context.seccomp_profile.is_some()),
        (&context_path, "fsGroup", context.fs_group.is_some()),
        (&context_path, "fsGroupChangePolicy", context.fs_group_change_policy.is_some()),
        (&context_path, "sysctls", !items(&context.sysctls).is_empty()),
        (path, "shareProcessNamespace", spec.share_process_namespace.is_some()),
        (&context_path, "runAsUser", context.run_as_user.is_some()),
        (&context_path, "runAsGroup", context.run_as_group.is_some()),
        (&context_path, "supplementalGroups", context.supplemental_groups.is_some()),
        (&context_path, "supplementalGroupsPolicy", context.supplemental_groups_policy.is_some()),
        (&context_path, "seLinuxChangePolicy", context.se_linux_change_policy.is_some()),
    ];
    for (parent, field, given) in fields {
        if given {
            errors.push(FieldError::forbidden(&parent.child(field), NOT_ON_WINDOWS));
        }
    }
}

fn forbid_linux_container_fields(spec: &PodSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    each_container(spec, path, |container, here| {
        let Some(context) = &container.security_context else {
            return;
        };
        let context_path = here.child("securityContext");
        let fields = [
            ("appArmorProfile", context.app_armor_profile.is_some()),
            ("seLinuxOptions", context.se_linux_options.is_some()),
            ("seccompProfile", context.seccomp_profile.is_some()),
            ("capabilities", context.capabilities.is_some()),
            ("readOnlyRootFilesystem", context.read_only_root_filesystem.is_some()),
            ("privileged", context.privileged.is_some()),
            ("allowPrivilegeEscalation", context.allow_privilege_escalation.is_some()),
            ("procMount", context.proc_mount.is_some()),
            ("runAsUser", context.run_as_user.is_some()),
            ("runAsGroup", context.run_as_group.is_some()),
        ];
        for (field, given) in fields {
            if given {
                let at = context_path.child(field);
                errors.push(FieldError::forbidden(&at, NOT_ON_WINDOWS));
            }
        }
    });
}
