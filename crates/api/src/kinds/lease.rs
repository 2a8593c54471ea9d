//! A Lease: who holds something, since when, and for how long.
//!
//! `strategy` and `preferredHolder` belong to coordinated leader election, which is off
//! in Kubernetes 1.36 unless it is turned on: they are dropped.

use std::borrow::Cow;

use k8s_openapi::api::coordination::v1::Lease;

use super::{keep_identity, meta_field, once, validate_meta_update_of_any_kind};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::prepare::reset_server_fields;
use crate::validation::object_meta::{MetaRules, validate_object_meta_by};
use crate::validation::{text, validate_non_negative};

/// Whether a PUT may create a Lease.
pub const CREATES_ON_UPDATE: bool = true;
/// Whether a Lease may be updated without a resourceVersion: never, or two holders
/// could win.
pub const UPDATES_UNCONDITIONALLY: bool = false;

/// Leases take any finalizer.
const RULES: MetaRules = MetaRules { knows_finalizers: false, ..MetaRules::NAMESPACED };

/// Prepares a new Lease.
pub fn prepare_for_create(lease: &mut Lease) {
    drop_coordination(lease);
    reset_server_fields(&mut lease.metadata);
}

/// Prepares an update.
pub fn prepare_for_update(new: &mut Lease, old: &Lease) {
    drop_coordination(new);
    keep_identity(&mut new.metadata, &old.metadata);
}

/// Validates a prepared new Lease.
pub fn validate_create(lease: &Lease) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_object_meta_by(&RULES, &lease.metadata, &Path::field("metadata"), &mut errors);
    validate_spec(lease, &mut errors);
    errors
}

/// Validates a prepared update against the stored Lease. Without a resourceVersion that
/// is all that is said.
pub fn validate_update(new: &Lease, old: &Lease) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if text(&new.metadata.resource_version).is_empty() {
        let metadata = Path::field("metadata");
        let at = metadata.child("resourceVersion");
        return vec![FieldError::invalid(&at, 0, "must be specified for an update")];
    }
    validate_meta_update_of_any_kind(&RULES, &new.metadata, &old.metadata, &mut errors);
    validate_spec(new, &mut errors);
    once(errors)
}

/// What a field selector sees of a Lease.
pub fn field<'a>(lease: &'a Lease, name: &str) -> Option<Cow<'a, str>> {
    meta_field(&lease.metadata, name)
}

fn drop_coordination(lease: &mut Lease) {
    if let Some(spec) = &mut lease.spec {
        spec.strategy = None;
        spec.preferred_holder = None;
    }
}

fn validate_spec(lease: &Lease, errors: &mut Vec<FieldError>) {
    let Some(spec) = &lease.spec else {
        return;
    };
    let path = Path::field("spec");
    if let Some(seconds) = spec.lease_duration_seconds.filter(|&seconds| seconds <= 0) {
        let at = path.child("leaseDurationSeconds");
        errors.push(FieldError::invalid(&at, seconds, "must be greater than 0"));
    }
    let transitions = i64::from(spec.lease_transitions.unwrap_or(0));
    validate_non_negative(transitions, &path.child("leaseTransitions"), errors);
}
