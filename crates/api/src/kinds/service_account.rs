//! A ServiceAccount, of which only the names of its Secrets are kept.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::{ObjectReference, ServiceAccount};

use super::{keep_identity, meta_field, once, validate_meta_update_of_any_kind};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::prepare::reset_server_fields;
use crate::validation::object_meta::{
    MetaRules, validate_object_meta, validate_object_meta_update,
};

/// Whether a PUT may create a ServiceAccount.
pub const CREATES_ON_UPDATE: bool = false;
/// Whether a ServiceAccount may be updated without a resourceVersion.
pub const UPDATES_UNCONDITIONALLY: bool = true;

/// Prepares a new ServiceAccount.
pub fn prepare_for_create(account: &mut ServiceAccount) {
    keep_secret_names(account);
    reset_server_fields(&mut account.metadata);
}

/// Prepares an update.
pub fn prepare_for_update(new: &mut ServiceAccount, old: &ServiceAccount) {
    keep_secret_names(new);
    keep_identity(&mut new.metadata, &old.metadata);
}

/// Validates a prepared new ServiceAccount.
pub fn validate_create(account: &ServiceAccount) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_object_meta(&account.metadata, &Path::field("metadata"), &mut errors);
    errors
}

/// Validates a prepared update against the stored ServiceAccount.
pub fn validate_update(new: &ServiceAccount, old: &ServiceAccount) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let metadata = Path::field("metadata");
    let rules = MetaRules::NAMESPACED;
    validate_meta_update_of_any_kind(&rules, &new.metadata, &old.metadata, &mut errors);
    validate_object_meta_update(&new.metadata, &old.metadata, &metadata, &mut errors);
    validate_object_meta(&new.metadata, &metadata, &mut errors);
    once(errors)
}

/// What a field selector sees of a ServiceAccount.
pub fn field<'a>(account: &'a ServiceAccount, name: &str) -> Option<Cow<'a, str>> {
    meta_field(&account.metadata, name)
}

fn keep_secret_names(account: &mut ServiceAccount) {
    for secret in account.secrets.iter_mut().flatten() {
        *secret = ObjectReference { name: secret.name.take(), ..ObjectReference::default() };
    }
}
