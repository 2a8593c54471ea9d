//! What a probe or a lifecycle hook does: run a command, fetch a page, open a
//! socket, call a gRPC service, or sleep.
//!
//! It does not know what the answer is used for.

use k8s_openapi::api::core::v1::{
    ExecAction, GRPCAction, HTTPGetAction, Lifecycle, LifecycleHandler, Probe, SleepAction,
    TCPSocketAction,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{items, push_invalid, text};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;
use crate::validation::{validate_given, validate_one_of_or_empty};

/// The actions a handler names, of which exactly one may be given.
pub(super) struct Handler<'a> {
    exec: Option<&'a ExecAction>,
    http_get: Option<&'a HTTPGetAction>,
    tcp_socket: Option<&'a TCPSocketAction>,
    grpc: Option<&'a GRPCAction>,
    sleep: Option<&'a SleepAction>,
}

impl<'a> From<&'a Probe> for Handler<'a> {
    fn from(probe: &'a Probe) -> Self {
        Self {
            exec: probe.exec.as_ref(),
            http_get: probe.http_get.as_ref(),
            tcp_socket: probe.tcp_socket.as_ref(),
            grpc: probe.grpc.as_ref(),
            sleep: None,
        }
    }
}

impl<'a> From<&'a LifecycleHandler> for Handler<'a> {
    fn from(hook: &'a LifecycleHandler) -> Self {
        Self {
            exec: hook.exec.as_ref(),
            http_get: hook.http_get.as_ref(),
            tcp_socket: hook.tcp_socket.as_ref(),
            grpc: None,
            sleep: hook.sleep.as_ref(),
        }
    }
}

/// Validates the hooks of a container. `stopSignal` is not judged: its feature
/// gate is off, and the server drops it.
pub(super) fn validate_lifecycle(
    lifecycle: &Lifecycle,
    grace_period_seconds: Option<i64>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let hooks = [("postStart", &lifecycle.post_start), ("preStop", &lifecycle.pre_stop)];
    for (field, hook) in hooks {
        if let Some(hook) = hook {
            let at = path.child(field);
            validate_handler(&hook.into(), grace_period_seconds, &at, errors);
        }
    }
}

/// Validates that exactly one action is given, and that it is well formed.
pub(super) fn validate_handler(
    handler: &Handler<'_>,
    grace_period_seconds: Option<i64>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let given = [
        ("exec", handler.exec.is_some()),
        ("httpGet", handler.http_get.is_some()),
        ("tcpSocket", handler.tcp_socket.is_some()),
        ("grpc", handler.grpc.is_some()),
        ("sleep", handler.sleep.is_some()),
    ];
    let mut given = given.into_iter().filter(|(_, given)| *given);
    let Some((first, _)) = given.next() else {
        errors.push(FieldError::required(path, "must specify a handler type"));
        return;
    };
    let first_path = path.child(first);
    if let Some(exec) = handler.exec {
        if items(&exec.command).is_empty() {
            errors.push(FieldError::required(&first_path.child("command"), ""));
        }
    } else if let Some(http_get) = handler.http_get {
        validate_http_get(http_get, &first_path, errors);
    } else if let Some(tcp_socket) = handler.tcp_socket {
        validate_port(&tcp_socket.port, &first_path.child("port"), errors);
    } else if let Some(grpc) = handler.grpc {
        let port = IntOrString::Int(grpc.port);
        validate_port(&port, &first_path.child("port"), errors);
    } else if let Some(sleep) = handler.sleep {
        validate_sleep(sleep.seconds, grace_period_seconds, &first_path, errors);
    }
    for (field, _) in given {
        let detail = "may not specify more than 1 handler type";
        errors.push(FieldError::forbidden(&path.child(field), detail));
    }
}

fn validate_http_get(http_get: &HTTPGetAction, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    validate_given(text(&http_get.path), &path.child("path"), errors);
    validate_port(&http_get.port, &path.child("port"), errors);
    let at = path.child("scheme");
    validate_one_of_or_empty(text(&http_get.scheme), &["HTTP", "HTTPS"], &at, errors);
    for header in items(&http_get.http_headers) {
        let wrong = identifier::http_header_name(&header.name);
        push_invalid(&path.child("httpHeaders"), &header.name, wrong, errors);
    }
}

fn validate_port(port: &IntOrString, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    match port {
        IntOrString::Int(number) => {
            for detail in identifier::port_number((*number).into()) {
                errors.push(FieldError::invalid(path, number, detail));
            }
        }
        IntOrString::String(name) => {
            push_invalid(path, name, identifier::port_name(name), errors);
        }
    }
}

fn validate_sleep(
    seconds: i64,
    grace_period_seconds: Option<i64>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    // Without a valid grace period that one is the error to report.
    if let Some(grace) = grace_period_seconds
        && (seconds < 0 || seconds > grace)
    {
        let detail =
            format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        errors.push(FieldError::invalid(path, seconds, detail));
    }
}
