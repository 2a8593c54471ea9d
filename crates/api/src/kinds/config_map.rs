//! A ConfigMap: keys and their values, with a limit on the whole.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::ConfigMap;

use super::{
    DATA_MAX_BYTES, IMMUTABLE_WHEN_SET, keep_identity, meta_field, once,
    validate_meta_update_of_any_kind,
};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;
use crate::prepare::reset_server_fields;
use crate::validation::object_meta::{
    MetaRules, validate_object_meta, validate_object_meta_update,
};
use crate::validation::push_invalid;

/// Whether a PUT may create a ConfigMap.
pub const CREATES_ON_UPDATE: bool = false;
/// Whether a ConfigMap may be updated without a resourceVersion.
pub const UPDATES_UNCONDITIONALLY: bool = true;

/// Prepares a new ConfigMap, which has no defaults.
pub fn prepare_for_create(config_map: &mut ConfigMap) {
    reset_server_fields(&mut config_map.metadata);
}

/// Prepares an update.
pub fn prepare_for_update(new: &mut ConfigMap, old: &ConfigMap) {
    keep_identity(&mut new.metadata, &old.metadata);
}

/// Validates a prepared new ConfigMap.
pub fn validate_create(config_map: &ConfigMap) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate(config_map, &mut errors);
    errors
}

/// Validates a prepared update against the stored ConfigMap.
pub fn validate_update(new: &ConfigMap, old: &ConfigMap) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let metadata = Path::field("metadata");
    let rules = MetaRules::NAMESPACED;
    validate_meta_update_of_any_kind(&rules, &new.metadata, &old.metadata, &mut errors);
    validate_object_meta_update(&new.metadata, &old.metadata, &metadata, &mut errors);
    if old.immutable == Some(true) {
        let or_empty = |is_same: bool, field: &'static str| {
            (!is_same).then(|| FieldError::forbidden(&Path::field(field), IMMUTABLE_WHEN_SET))
        };
        errors.extend(or_empty(new.immutable == Some(true), "immutable"));
        let is_same = new.data.iter().flatten().eq(old.data.iter().flatten());
        errors.extend(or_empty(is_same, "data"));
        let is_same = new.binary_data.iter().flatten().eq(old.binary_data.iter().flatten());
        errors.extend(or_empty(is_same, "binaryData"));
    }
    validate(new, &mut errors);
    once(errors)
}

/// What a field selector sees of a ConfigMap.
pub fn field<'a>(config_map: &'a ConfigMap, name: &str) -> Option<Cow<'a, str>> {
    meta_field(&config_map.metadata, name)
}

fn validate(config_map: &ConfigMap, errors: &mut Vec<FieldError>) {
    validate_object_meta(&config_map.metadata, &Path::field("metadata"), errors);
    let (data, binary_data) = (Path::field("data"), Path::field("binaryData"));
    let mut total_bytes = 0;
    for (key, value) in config_map.data.iter().flatten() {
        let here = data.key(key);
        push_invalid(&here, key, identifier::config_map_key(key), errors);
        if config_map.binary_data.as_ref().is_some_and(|binary| binary.contains_key(key)) {
            let detail = "duplicate of key present in binaryData";
            errors.push(FieldError::invalid(&here, key, detail));
        }
        total_bytes += value.len();
    }
    for (key, value) in config_map.binary_data.iter().flatten() {
        push_invalid(&binary_data.key(key), key, identifier::config_map_key(key), errors);
        total_bytes += value.0.len();
    }
    if total_bytes > DATA_MAX_BYTES {
        // What upstream calls the whole object.
        errors.push(FieldError::too_long(&Path::field("[]"), DATA_MAX_BYTES));
    }
}
