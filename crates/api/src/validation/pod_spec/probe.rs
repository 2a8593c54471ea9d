//! The numbers of liveness, readiness and startup probes.
//!
//! What a probe does is a [`Handler`](super::handler::Handler).

use k8s_openapi::api::core::v1::Probe;

use super::handler::validate_handler;
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::validation::validate_non_negative;

/// Validates a liveness or startup probe, whose first success is enough.
pub(super) fn validate_once_successful(
    probe: &Probe,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    validate_probe(probe, path, errors);
    let threshold = probe.success_threshold.unwrap_or(0);
    if threshold != 1 {
        let at = path.child("successThreshold");
        errors.push(FieldError::invalid(&at, threshold, "must be 1"));
    }
}

/// Validates a readiness probe, which never ends its container.
pub(super) fn validate_readiness(probe: &Probe, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    validate_probe(probe, path, errors);
    if let Some(seconds) = probe.termination_grace_period_seconds {
        let at = path.child("terminationGracePeriodSeconds");
        let detail = "must not be set for readinessProbes";
        errors.push(FieldError::invalid(&at, seconds, detail));
    }
}

fn validate_probe(probe: &Probe, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    validate_handler(&probe.into(), None, path, errors);
    let numbers = [
        ("initialDelaySeconds", probe.initial_delay_seconds),
        ("timeoutSeconds", probe.timeout_seconds),
        ("periodSeconds", probe.period_seconds),
        ("successThreshold", probe.success_threshold),
        ("failureThreshold", probe.failure_threshold),
    ];
    for (field, number) in numbers {
        validate_non_negative(number.unwrap_or(0).into(), &path.child(field), errors);
    }
    if let Some(seconds) = probe.termination_grace_period_seconds
        && seconds <= 0
    {
        let at = path.child("terminationGracePeriodSeconds");
        errors.push(FieldError::invalid(&at, seconds, "must be greater than 0"));
    }
}
