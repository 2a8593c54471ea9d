//! Defaults of a container and its parts.

use k8s_openapi::api::core::v1::{Container, EnvVar, HTTPGetAction, Lifecycle, Probe};

use super::image::default_pull_policy;
use super::{default_divisor, default_number, default_resources, default_text};

/// Fills in what a container leaves out.
pub(super) fn default_container(container: &mut Container) {
    let image = container.image.as_deref().unwrap_or("");
    default_text(&mut container.image_pull_policy, default_pull_policy(image));
    default_text(&mut container.termination_message_path, "/dev/termination-log");
    default_text(&mut container.termination_message_policy, "File");
    for port in container.ports.iter_mut().flatten() {
        default_text(&mut port.protocol, "TCP");
    }
    for variable in container.env.iter_mut().flatten() {
        default_env_var(variable);
    }
    // The API server writes `resources: {}` where nothing is asked for.
    container.resources.get_or_insert_default();
    default_resources(&mut container.resources);
    let probes = [
        &mut container.liveness_probe,
        &mut container.readiness_probe,
        &mut container.startup_probe,
    ];
    for probe in probes.into_iter().flatten() {
        default_probe(probe);
    }
    if let Some(lifecycle) = &mut container.lifecycle {
        default_lifecycle(lifecycle);
    }
}

fn default_env_var(variable: &mut EnvVar) {
    let Some(source) = &mut variable.value_from else {
        return;
    };
    if let Some(reference) = &mut source.field_ref {
        default_text(&mut reference.api_version, "v1");
    }
    if let Some(reference) = &mut source.resource_field_ref {
        default_divisor(reference);
    }
    if let Some(reference) = &mut source.file_key_ref {
        reference.optional.get_or_insert(false);
    }
}

fn default_probe(probe: &mut Probe) {
    default_number(&mut probe.timeout_seconds, 1);
    default_number(&mut probe.period_seconds, 10);
    default_number(&mut probe.success_threshold, 1);
    default_number(&mut probe.failure_threshold, 3);
    if let Some(http_get) = &mut probe.http_get {
        default_http_get(http_get);
    }
    if let Some(grpc) = &mut probe.grpc {
        grpc.service.get_or_insert_default();
    }
}

fn default_lifecycle(lifecycle: &mut Lifecycle) {
    let hooks = [&mut lifecycle.post_start, &mut lifecycle.pre_stop];
    for hook in hooks.into_iter().flatten() {
        if let Some(http_get) = &mut hook.http_get {
            default_http_get(http_get);
        }
    }
}

fn default_http_get(http_get: &mut HTTPGetAction) {
    default_text(&mut http_get.path, "/");
    default_text(&mut http_get.scheme, "HTTP");
}
