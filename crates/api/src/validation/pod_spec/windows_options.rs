//! Windows options of a security context, and containers that run on the
//! Windows host itself.
//!
//! Whether there is a Windows node is not known here.

use k8s_openapi::api::core::v1::{PodSpec, WindowsSecurityContextOptions};

use super::{each_container, push_invalid};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;

const CREDENTIAL_SPEC_MAX_KIB: usize = 64;
const DOMAIN_MAX_CHARS: usize = 256;
const USER_MAX_CHARS: usize = 104;
const NETBIOS_MAX_CHARS: usize = 15;
const DNS_LABEL_MAX_BYTES: usize = 63;

/// Validates Windows options.
pub(super) fn validate_windows_options(
    options: &WindowsSecurityContextOptions,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if let Some(name) = &options.gmsa_credential_spec_name {
        let wrong = identifier::dns1123_subdomain(name);
        push_invalid(&path.child("gmsaCredentialSpecName"), name, wrong, errors);
    }
    if let Some(spec) = &options.gmsa_credential_spec {
        let at = path.child("gmsaCredentialSpec");
        if spec.is_empty() {
            let detail = "gmsaCredentialSpec cannot be an empty string";
            errors.push(FieldError::invalid(&at, spec, detail));
        } else if spec.len() > CREDENTIAL_SPEC_MAX_KIB * 1024 {
            let detail = "gmsaCredentialSpec size must be under 64 KiB";
            errors.push(FieldError::invalid(&at, spec, detail));
        }
    }
    if let Some(name) = &options.run_as_user_name {
        for detail in wrong_user_name(name) {
            errors.push(FieldError::invalid(&path.child("runAsUserName"), name, detail));
        }
    }
}

/// Validates that either all containers run on the host or none; `path` is the Pod's spec.
pub(super) fn validate_host_process(spec: &PodSpec, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let of = |options: Option<&WindowsSecurityContextOptions>| options?.host_process;
    let pod_context = spec.security_context.as_ref();
    let of_pod = of(pod_context.and_then(|context| context.windows_options.as_ref()));
    let (mut count, mut on_host) = (0, 0);
    each_container(spec, path, |container, here| {
        let context = container.security_context.as_ref();
        let own = of(context.and_then(|context| context.windows_options.as_ref()));
        if let (Some(of_pod), Some(own)) = (of_pod, own)
            && of_pod != own
        {
            let context_path = here.child("securityContext");
            let options_path = context_path.child("windowsOptions");
            let detail = format!(
                "pod hostProcess value must be identical if both are specified, was {of_pod}"
            );
            let at = options_path.child("hostProcess");
            errors.push(FieldError::invalid(&at, own, detail));
        }
        count += 1;
        on_host += usize::from(own.or(of_pod) == Some(true));
    });
    if on_host == 0 {
        return;
    }
    if on_host != count {
        let detail = "If pod contains any hostProcess containers then all containers must be \
            HostProcess containers";
        errors.push(FieldError::invalid(path, "", detail));
    }
    if spec.host_network != Some(true) {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(FieldError::invalid(&path.child("hostNetwork"), false, detail));
    }
}

fn wrong_user_name(name: &str) -> Vec<&'static str> {
    if name.is_empty() {
        return vec!["runAsUserName cannot be an empty string"];
    }
    if name.chars().any(|c| c.is_ascii_control()) {
        return vec!["runAsUserName cannot contain control characters"];
    }
    let (domain, user) = match name.split('\\').collect::<Vec<_>>().as_slice() {
        [user] => (None, *user),
        [domain, user] => (Some(*domain), *user),
        _ => return vec!["runAsUserName cannot contain more than one backslash"],
    };
    let mut wrong = Vec::new();
    if domain.is_some_and(|domain| domain.len() >= DOMAIN_MAX_CHARS) {
        wrong.push("runAsUserName's Domain length must be under 256 characters");
    }
    if domain.is_some_and(|domain| !is_net_bios(domain) && !is_dns_domain(domain)) {
        wrong.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format");
    }
    if user.is_empty() {
        wrong.push("runAsUserName's User cannot be empty");
    } else if user.len() > USER_MAX_CHARS {
        wrong.push("runAsUserName's User length must not be longer than 104 characters");
    }
    if !user.is_empty() && user.chars().all(|c| c == '.' || c == ' ') {
        wrong.push("runAsUserName's User cannot contain only periods or spaces");
    }
    if user
        .contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']'])
    {
        wrong.push(
            "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]",
        );
    }
    wrong
}

fn is_net_bios(domain: &str) -> bool {
    (1..=NETBIOS_MAX_CHARS).contains(&domain.chars().count())
        && !domain.starts_with('.')
        && !domain.contains(['\\', '/', ':', '*', '?', '"', '<', '>', '|'])
}

fn is_dns_domain(domain: &str) -> bool {
    domain.split('.').all(|label| {
        (1..=DNS_LABEL_MAX_BYTES).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    })
}
