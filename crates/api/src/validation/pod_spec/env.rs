//! Environment variables: their names and where their values come from.
//!
//! Whether a ConfigMap or Secret exists is not known here.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    EnvFromSource, EnvVar, EnvVarSource, FileKeySelector, PodSpec, Volume,
};

use super::field_ref::{validate_field_ref, validate_resource_ref};
use super::local_path::validate_no_backsteps;
use super::{each_container, items, push_invalid, text};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;

const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Validates `env`.
pub(super) fn validate_env(env: &[EnvVar], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (i, variable) in env.iter().enumerate() {
        let here = path.index(i);
        let at = here.child("name");
        if variable.name.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else {
            let wrong = identifier::env_var_name(&variable.name);
            push_invalid(&at, &variable.name, wrong, errors);
        }
        if let Some(source) = &variable.value_from {
            let at = here.child("valueFrom");
            validate_value_from(source, text(&variable.value), &at, errors);
        }
    }
}

/// Validates `envFrom`.
pub(super) fn validate_env_from(
    sources: &[EnvFromSource],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    for (i, source) in sources.iter().enumerate() {
        let here = path.index(i);
        let prefix = text(&source.prefix);
        if !prefix.is_empty() {
            let wrong = identifier::env_var_name(prefix);
            push_invalid(&here.child("prefix"), prefix, wrong, errors);
        }
        let names = [
            ("configMapRef", source.config_map_ref.as_ref().map(|map| &map.name)),
            ("secretRef", source.secret_ref.as_ref().map(|secret| &secret.name)),
        ];
        for (field, name) in names {
            if let Some(name) = name {
                let reference = here.child(field);
                validate_object_prefix(name, &reference.child("name"), errors);
            }
        }
        // Upstream reports these at the list.
        match names.iter().filter(|(_, name)| name.is_some()).count() {
            0 => {
                let detail = "must specify one of: `configMapRef` or `secretRef`";
                errors.push(FieldError::invalid(path, "", detail));
            }
            1 => {}
            _ => {
                let detail = "may not have more than one field specified at a time";
                errors.push(FieldError::invalid(path, "", detail));
            }
        }
    }
}

/// Validates that variables read from files name an emptyDir volume of the Pod.
pub(super) fn validate_file_key_volumes(
    spec: &PodSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    // Of two volumes with one name the later counts, as in upstream's map.
    let volumes: BTreeMap<&str, &Volume> =
        items(&spec.volumes).iter().map(|volume| (&*volume.name, volume)).collect();
    each_container(spec, path, |container, here| {
        let env_path = here.child("env");
        for (i, variable) in items(&container.env).iter().enumerate() {
            let source = variable.value_from.as_ref();
            if let Some(key) = source.and_then(|source| source.file_key_ref.as_ref()) {
                let env_path = env_path.index(i);
                let from_path = env_path.child("valueFrom");
                let key_path = from_path.child("fileKeyRef");
                let at = key_path.child("volumeName");
                validate_file_key_volume(&key.volume_name, &volumes, &at, errors);
            }
        }
    });
}

fn validate_value_from(
    source: &EnvVarSource,
    value: &str,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let mut sources = 0;
    if let Some(reference) = &source.field_ref {
        sources += 1;
        validate_field_ref(reference, &FIELDS, &path.child("fieldRef"), errors);
    }
    if let Some(reference) = &source.resource_field_ref {
        sources += 1;
        validate_resource_ref(reference, false, &path.child("resourceFieldRef"), errors);
    }
    if let Some(reference) = &source.config_map_key_ref {
        sources += 1;
        let at = path.child("configMapKeyRef");
        validate_key_ref(&reference.name, &reference.key, &at, errors);
    }
    if let Some(reference) = &source.secret_key_ref {
        sources += 1;
        let at = path.child("secretKeyRef");
        validate_key_ref(&reference.name, &reference.key, &at, errors);
    }
    if let Some(reference) = &source.file_key_ref {
        sources += 1;
        validate_file_key_ref(reference, &path.child("fileKeyRef"), errors);
    }
    let detail = match sources {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
             `secretKeyRef` or `fileKeyRef`"
        }
        _ if !value.is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.push(FieldError::invalid(path, "", detail));
}

fn validate_key_ref(name: &str, key: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let wrong = identifier::dns1123_subdomain(name);
    push_invalid(&path.child("name"), name, wrong, errors);
    let at = path.child("key");
    if key.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else {
        push_invalid(&at, key, identifier::config_map_key(key), errors);
    }
}

fn validate_file_key_ref(
    reference: &FileKeySelector,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let at = path.child("key");
    if reference.key.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else {
        let wrong = identifier::env_var_name(&reference.key);
        push_invalid(&at, &reference.key, wrong, errors);
    }
    let at = path.child("volumeName");
    if reference.volume_name.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else {
        let wrong = identifier::dns1123_label(&reference.volume_name);
        push_invalid(&at, &reference.volume_name, wrong, errors);
    }
    let at = path.child("path");
    if reference.path.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else {
        validate_no_backsteps(&reference.path, &at, errors);
    }
}

/// The name of an object, where upstream also takes what could be the start of one.
fn validate_object_prefix(name: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else {
        let wrong = identifier::dns1123_subdomain(&identifier::mask_trailing_dash(name));
        push_invalid(path, name, wrong, errors);
    }
}

fn validate_file_key_volume(
    name: &str,
    volumes: &BTreeMap<&str, &Volume>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    match volumes.get(name) {
        None => errors.push(FieldError::not_found(path, name)),
        Some(volume) if volume.empty_dir.is_none() => {
            let detail = "referenced volume must be of type emptyDir";
            errors.push(FieldError::invalid(path, name, detail));
        }
        Some(_) => {}
    }
}
