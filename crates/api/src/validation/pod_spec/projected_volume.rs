//! Projected volumes: several sources in one directory, whose files must not collide.
//!
//! Cluster trust bundles and Pod certificates are not judged: their feature
//! gates are off, and the server drops them.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    KeyToPath, ProjectedVolumeSource, ServiceAccountTokenProjection, VolumeProjection,
};

use super::items;
use super::local_path::validate_local_path;
use super::volume::{validate_downward_file, validate_key_to_path, validate_mode};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::validation::validate_given;

/// Tokens that live shorter could not be renewed in time.
const TOKEN_MIN_SECONDS: i64 = 10 * 60;
const TOKEN_MAX_SECONDS: i64 = 1 << 32;

/// What is shown of a name that is reported once for each of its files. No object has a
/// longer one.
const NAMED_MAX_CHARS: usize = 253;

/// Validates a projected volume.
pub(super) fn validate_projected(
    source: &ProjectedVolumeSource,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    validate_mode(source.default_mode, &path.child("defaultMode"), errors);
    let sources_path = path.child("sources");
    let mut files = Files { taken: BTreeSet::new(), volume: path };
    for (i, projection) in items(&source.sources).iter().enumerate() {
        validate_projection(projection, &mut files, &sources_path.index(i), errors);
    }
}

/// The files of a projected volume so far.
struct Files<'a> {
    taken: BTreeSet<&'a str>,
    volume: &'a Path<'a>,
}

impl<'a> Files<'a> {
    /// Takes a file's place; `named` is what upstream prints when it is taken already.
    fn take(&mut self, file: &'a str, named: &str, errors: &mut Vec<FieldError>) {
        if !file.is_empty() && !self.taken.insert(file) {
            let detail = "conflicting duplicate paths";
            let named: String = named.chars().take(NAMED_MAX_CHARS).collect();
            errors.push(FieldError::invalid(self.volume, named, detail));
        }
    }
}

fn validate_projection<'a>(
    projection: &'a VolumeProjection,
    files: &mut Files<'a>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let mut sources = 0;
    if let Some(secret) = &projection.secret {
        sources += 1;
        let at = path.child("secret");
        validate_keys(&secret.name, items(&secret.items), files, &at, errors);
    }
    if let Some(config_map) = &projection.config_map {
        sources += 1;
        let at = path.child("configMap");
        validate_keys(&config_map.name, items(&config_map.items), files, &at, errors);
    }
    if let Some(downward) = &projection.downward_api {
        sources += 1;
        let at = path.child("downwardAPI");
        for file in items(&downward.items) {
            validate_downward_file(file, &at, errors);
            files.take(&file.path, &file.path, errors);
        }
    }
    if let Some(token) = &projection.service_account_token {
        sources += 1;
        validate_token(token, files.volume, &path.child("serviceAccountToken"), errors);
    }
    if sources > 1 {
        let detail = "may not specify more than 1 volume type per source";
        errors.push(FieldError::forbidden(path, detail));
    }
}

fn validate_keys<'a>(
    name: &str,
    keys: &'a [KeyToPath],
    files: &mut Files<'a>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    validate_given(name, &path.child("name"), errors);
    let items_path = path.child("items");
    for (i, key) in keys.iter().enumerate() {
        validate_key_to_path(key, &items_path.index(i), errors);
        files.take(&key.path, name, errors);
    }
}

/// Upstream reports a token's path at the volume.
fn validate_token(
    token: &ServiceAccountTokenProjection,
    volume: &Path<'_>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let seconds = token.expiration_seconds.unwrap_or(0);
    let at = path.child("expirationSeconds");
    if seconds < TOKEN_MIN_SECONDS {
        let detail = "may not specify a duration less than 10 minutes";
        errors.push(FieldError::invalid(&at, seconds, detail));
    }
    if seconds > TOKEN_MAX_SECONDS {
        let detail = "may not specify a duration larger than 2^32 seconds";
        errors.push(FieldError::invalid(&at, seconds, detail));
    }
    let at = volume.child("path");
    validate_given(&token.path, &at, errors);
    validate_local_path(&token.path, &at, errors);
}
