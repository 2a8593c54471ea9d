//! What is wrong with an object's `metadata`, at creation and at an update.
//!
//! The rules are those of namespaced objects whose name is a DNS subdomain (Jobs, Pods
//! and most others), unless [`MetaRules`] say otherwise. Which object it is, this does
//! not know.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    ManagedFieldsEntry, ObjectMeta, OwnerReference,
};
use serde::Serialize;

use super::{IMMUTABLE, MAX_ERRORS, items, push_invalid, text, validate_non_negative};
use crate::field_error::{FieldError, quote};
use crate::field_path::Path;
use crate::identifier;
use crate::names::finalizer::{FOREGROUND_DELETION, ORPHAN};

/// All annotations together, keys and values; upstream's limit.
const ANNOTATIONS_MAX_BYTES: usize = 256 * 1024;
/// How many controllers after the first are reported.
const MAX_FURTHER_CONTROLLERS: usize = 8;
/// The most bytes of what whoever writes calls itself.
pub const MANAGER_MAX_BYTES: usize = 128;
const SUBRESOURCE_MAX_BYTES: usize = 256;
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", ORPHAN, FOREGROUND_DELETION];

/// What a kind asks of its objects' metadata.
#[derive(Clone, Copy, Debug)]
pub struct MetaRules {
    /// Whether its objects are in a namespace; all others must not name one.
    pub is_namespaced: bool,
    /// What is wrong with a name.
    pub name: fn(&str) -> Vec<String>,
    /// Whether a finalizer without a domain must be one of Kubernetes' own.
    pub knows_finalizers: bool,
}

impl MetaRules {
    /// A namespaced kind whose names are DNS subdomains.
    pub const NAMESPACED: Self =
        Self { is_namespaced: true, name: identifier::dns1123_subdomain, knows_finalizers: true };
}

/// Validates the metadata of a new object, whose namespace and (from
/// `generateName`) name are already filled in.
pub fn validate_object_meta(meta: &ObjectMeta, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    validate_object_meta_by(&MetaRules::NAMESPACED, meta, path, errors);
}

/// Validates the metadata of a new object as its kind asks for it.
pub fn validate_object_meta_by(
    rules: &MetaRules,
    meta: &ObjectMeta,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let generate_name = text(&meta.generate_name);
    if !generate_name.is_empty() {
        let wrong = (rules.name)(&identifier::mask_trailing_dash(generate_name));
        push_invalid(&path.child("generateName"), generate_name, wrong, errors);
    }
    let name = text(&meta.name);
    let name_path = path.child("name");
    if name.is_empty() {
        let detail = "name or generateName is required";
        errors.push(FieldError::required(&name_path, detail));
    } else {
        push_invalid(&name_path, name, (rules.name)(name), errors);
    }
    validate_namespace(rules, text(&meta.namespace), &path.child("namespace"), errors);
    let generation = meta.generation.unwrap_or(0);
    validate_non_negative(generation, &path.child("generation"), errors);
    validate_labels(meta.labels.as_ref(), &path.child("labels"), errors);
    validate_annotations(meta.annotations.as_ref(), &path.child("annotations"), errors);
    let owners = items(&meta.owner_references);
    validate_owner_references(owners, &path.child("ownerReferences"), errors);
    let finalizers = items(&meta.finalizers);
    let finalizers_path = path.child("finalizers");
    validate_finalizers(finalizers, &finalizers_path, errors);
    let managed_fields = items(&meta.managed_fields);
    validate_managed_fields(managed_fields, &path.child("managedFields"), errors);
    if rules.knows_finalizers {
        validate_finalizer_domains(finalizers, &finalizers_path, errors);
    }
}

/// Validates the metadata of an update against that of the stored object.
pub fn validate_object_meta_update(
    new: &ObjectMeta,
    old: &ObjectMeta,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    validate_object_meta_update_by(&MetaRules::NAMESPACED, new, old, path, errors);
}

/// Validates the metadata of an update as its kind asks for it.
pub fn validate_object_meta_update_by(
    rules: &MetaRules,
    new: &ObjectMeta,
    old: &ObjectMeta,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let finalizers = items(&new.finalizers);
    let finalizers_path = path.child("finalizers");
    if old.deletion_timestamp.is_some() {
        validate_no_new_finalizers(finalizers, items(&old.finalizers), &finalizers_path, errors);
    }
    if text(&new.resource_version).is_empty() {
        let at = path.child("resourceVersion");
        let detail = "must be specified for an update";
        errors.push(FieldError::invalid(&at, "", detail));
    }
    let generation = new.generation.unwrap_or(0);
    if generation < old.generation.unwrap_or(0) {
        let at = path.child("generation");
        errors.push(FieldError::invalid(&at, generation, "must not be decremented"));
    }
    validate_identity(new, old, path, errors);
    validate_labels(new.labels.as_ref(), &path.child("labels"), errors);
    validate_annotations(new.annotations.as_ref(), &path.child("annotations"), errors);
    let owners = items(&new.owner_references);
    validate_owner_references(owners, &path.child("ownerReferences"), errors);
    let managed_fields = items(&new.managed_fields);
    validate_managed_fields(managed_fields, &path.child("managedFields"), errors);
    if rules.knows_finalizers {
        validate_finalizer_domains(finalizers, &finalizers_path, errors);
    }
}

/// A field that must stay what it was.
pub fn validate_same<T: PartialEq + Serialize>(
    new: T,
    old: T,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if new != old {
        errors.push(FieldError::invalid(path, new, IMMUTABLE));
    }
}

/// Labels: keys are qualified names, values are label values.
pub fn validate_labels(
    labels: Option<&BTreeMap<String, String>>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    for (key, value) in labels.into_iter().flatten() {
        push_invalid(path, key, identifier::qualified_name(key), errors);
        push_invalid(path, value, identifier::label_value(value), errors);
    }
}

/// Annotations: keys are qualified names in either case, and the whole has a limit.
pub fn validate_annotations(
    annotations: Option<&BTreeMap<String, String>>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let mut total_bytes = 0;
    for (key, value) in annotations.into_iter().flatten() {
        let wrong = identifier::qualified_name(&key.to_lowercase());
        push_invalid(path, key, wrong, errors);
        total_bytes += key.len() + value.len();
    }
    if total_bytes > ANNOTATIONS_MAX_BYTES {
        errors.push(FieldError::too_long(path, ANNOTATIONS_MAX_BYTES));
    }
}

fn validate_namespace(
    rules: &MetaRules,
    namespace: &str,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if !rules.is_namespaced {
        if !namespace.is_empty() {
            errors.push(FieldError::forbidden(path, "not allowed on this type"));
        }
    } else if namespace.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else {
        push_invalid(path, namespace, identifier::dns1123_label(namespace), errors);
    }
}

/// What an object is, when it came and when it goes is not its writer's to say.
fn validate_identity(
    new: &ObjectMeta,
    old: &ObjectMeta,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let texts = [
        ("name", &new.name, &old.name),
        ("namespace", &new.namespace, &old.namespace),
        ("uid", &new.uid, &old.uid),
    ];
    for (field, new, old) in texts {
        validate_same(text(new), text(old), &path.child(field), errors);
    }
    let times = [
        ("creationTimestamp", &new.creation_timestamp, &old.creation_timestamp),
        ("deletionTimestamp", &new.deletion_timestamp, &old.deletion_timestamp),
    ];
    for (field, new, old) in times {
        validate_same(new, old, &path.child(field), errors);
    }
    validate_same(
        new.deletion_grace_period_seconds,
        old.deletion_grace_period_seconds,
        &path.child("deletionGracePeriodSeconds"),
        errors,
    );
}

fn validate_owner_references(
    owners: &[OwnerReference],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let mut first_controller: Option<String> = None;
    let mut further_controllers = 0;
    for owner in owners {
        // Upstream gives no index here.
        validate_owner_reference(owner, path, errors);
        if owner.controller != Some(true) {
            continue;
        }
        let controller = format!("{}/{}", owner.kind, owner.name);
        match &first_controller {
            None => first_controller = Some(controller),
            // Each time with all owners: more would make an answer far larger than the request.
            Some(_) if further_controllers == MAX_FURTHER_CONTROLLERS => {}
            Some(first) => {
                further_controllers += 1;
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in \
                     references for {first} and {controller}"
                );
                errors.push(FieldError::invalid(path, owners, detail));
            }
        }
    }
}

fn validate_owner_reference(owner: &OwnerReference, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let (group, version) = match owner.api_version.split('/').collect::<Vec<_>>().as_slice() {
        [version] => ("", *version),
        [group, version] => (*group, *version),
        _ => ("", ""),
    };
    if version.is_empty() {
        let at = path.child("apiVersion");
        let detail = "version must not be empty";
        errors.push(FieldError::invalid(&at, &owner.api_version, detail));
    }
    let named = [("kind", &owner.kind), ("name", &owner.name), ("uid", &owner.uid)];
    for (field, value) in named {
        if value.is_empty() {
            let at = path.child(field);
            errors.push(FieldError::invalid(&at, value, "must not be empty"));
        }
    }
    if (group, version, owner.kind.as_str()) == ("", "v1", "Event") {
        let detail = "/v1, Kind=Event is disallowed from being an owner";
        errors.push(FieldError::invalid(path, owner, detail));
    }
}

fn validate_finalizers(finalizers: &[String], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for finalizer in finalizers {
        if errors.len() >= MAX_ERRORS {
            break;
        }
        push_invalid(path, finalizer, identifier::qualified_name(finalizer), errors);
    }
    let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
    if has(ORPHAN) && has(FOREGROUND_DELETION) {
        let detail = format!("finalizer {ORPHAN} and {FOREGROUND_DELETION} cannot be both set");
        errors.push(FieldError::invalid(path, finalizers, detail));
    }
}

/// A finalizer without a domain must be one of Kubernetes' own.
fn validate_finalizer_domains(
    finalizers: &[String],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    for (i, finalizer) in finalizers.iter().enumerate() {
        if errors.len() >= MAX_ERRORS {
            break;
        }
        validate_kube_finalizer(finalizer, &path.index(i), errors);
    }
}

/// A finalizer that has a domain or is one of Kubernetes' own.
pub(crate) fn validate_kube_finalizer(
    finalizer: &str,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer) {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        errors.push(FieldError::invalid(path, finalizer, detail));
    }
}

fn validate_no_new_finalizers(
    new: &[String],
    old: &[String],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let old: BTreeSet<&String> = old.iter().collect();
    let extra: BTreeSet<&String> = new.iter().filter(|name| !old.contains(name)).collect();
    if !extra.is_empty() {
        let names: Vec<String> = extra.into_iter().map(|name| quote(name)).collect();
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers \
             []string{{{}}}",
            names.join(", ")
        );
        errors.push(FieldError::forbidden(path, detail));
    }
}

fn validate_managed_fields(
    entries: &[ManagedFieldsEntry],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    for (i, entry) in entries.iter().enumerate() {
        let here = path.index(i);
        let operation = text(&entry.operation);
        if operation != "Apply" && operation != "Update" {
            let at = here.child("operation");
            let detail = "must be `Apply` or `Update`";
            errors.push(FieldError::invalid(&at, operation, detail));
        }
        let fields_type = text(&entry.fields_type);
        if !fields_type.is_empty() && fields_type != "FieldsV1" {
            let at = here.child("fieldsType");
            errors.push(FieldError::invalid(&at, fields_type, "must be `FieldsV1`"));
        }
        validate_manager(text(&entry.manager), &here.child("manager"), errors);
        if text(&entry.subresource).len() > SUBRESOURCE_MAX_BYTES {
            let at = here.child("subresource");
            errors.push(FieldError::too_long(&at, SUBRESOURCE_MAX_BYTES));
        }
    }
}

/// Validates what whoever writes calls itself.
pub fn validate_manager(manager: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if manager.len() > MANAGER_MAX_BYTES {
        errors.push(FieldError::too_long(path, MANAGER_MAX_BYTES));
    }
    for (at, c) in manager.char_indices() {
        if !is_printable(c) {
            let detail = format!("invalid character U+{:04X} (at position {at})", c as u32);
            errors.push(FieldError::invalid(path, manager, detail));
        }
    }
}

/// Whether a character can be shown: no control characters and odd spaces, as far as the standard
/// library can tell.
pub fn is_printable(c: char) -> bool {
    !c.is_control() && (!c.is_whitespace() || c == ' ')
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn meta(value: Value) -> ObjectMeta {
        serde_json::from_value(value).expect("an ObjectMeta")
    }

    #[track_caller]
    fn check_new(value: Value, expected: &[&str]) {
        let mut errors = Vec::new();
        validate_object_meta(&meta(value), &Path::field("metadata"), &mut errors);
        let errors: Vec<String> = errors.iter().map(FieldError::to_string).collect();
        assert_eq!(errors, expected);
    }

    #[track_caller]
    fn check_update(new: Value, old: Value, expected: &[&str]) {
        let mut errors = Vec::new();
        let path = Path::field("metadata");
        validate_object_meta_update(&meta(new), &meta(old), &path, &mut errors);
        let errors: Vec<String> = errors.iter().map(FieldError::to_string).collect();
        assert_eq!(errors, expected);
    }

    #[test]
    fn a_plain_object_is_fine() {
        check_new(
            json!({"name": "a.b", "generateName": "a-", "namespace": "default", "labels": {"a": ""},
                "annotations": {"A.io/X": "any text"}, "finalizers": ["a.io/b", "orphan"]}),
            &[],
        );
    }

    #[test]
    fn a_name_and_a_namespace_are_required() {
        check_new(
            json!({}),
            &[
                "metadata.name: Required value: name or generateName is required",
                "metadata.namespace: Required value",
            ],
        );
    }

    #[test]
    fn finalizers_are_qualified_and_do_not_contradict() {
        check_new(
            json!({"name": "a", "namespace": "b",
                "finalizers": ["orphan", "foregroundDeletion", "mine"]}),
            &[
                "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\",\"mine\"]: \
                 finalizer orphan and foregroundDeletion cannot be both set",
                "metadata.finalizers[2]: Invalid value: \"mine\": name is neither a standard \
                 finalizer name nor is it fully qualified",
            ],
        );
    }

    #[test]
    fn an_owner_is_named_and_only_one_controls() {
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "1",
            "controller": true});
        let mut errors = Vec::new();
        let value = meta(json!({"name": "a", "namespace": "b", "ownerReferences": [job, job,
            {"apiVersion": "v1/", "kind": "", "name": "", "uid": ""}]}));
        validate_object_meta(&value, &Path::field("metadata"), &mut errors);
        let errors: Vec<String> = errors.iter().map(FieldError::to_string).collect();
        assert_eq!(errors.len(), 5);
        assert!(errors[0].ends_with("in references for Job/a and Job/a"));
        assert_eq!(
            errors[1],
            "metadata.ownerReferences.apiVersion: Invalid value: \"v1/\": version must not be empty"
        );
        assert_eq!(
            errors[4],
            "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty"
        );
    }

    #[test]
    fn annotations_have_a_limit_together() {
        check_new(
            json!({"name": "a", "namespace": "b", "annotations": {"a": "x".repeat(262_144)}}),
            &["metadata.annotations: Too long: may not be more than 262144 bytes"],
        );
    }

    #[test]
    fn identity_never_changes() {
        let old = json!({"name": "a", "namespace": "b", "uid": "1", "resourceVersion": "7",
            "generation": 2, "creationTimestamp": "2026-01-02T03:04:05Z"});
        check_update(old.clone(), old.clone(), &[]);
        check_update(
            json!({"name": "x", "namespace": "y", "uid": "2", "generation": 1,
                "deletionTimestamp": "2026-01-02T03:04:05Z", "deletionGracePeriodSeconds": 3}),
            old,
            &[
                "metadata.resourceVersion: Invalid value: \"\": must be specified for an update",
                "metadata.generation: Invalid value: 1: must not be decremented",
                "metadata.name: Invalid value: \"x\": field is immutable",
                "metadata.namespace: Invalid value: \"y\": field is immutable",
                "metadata.uid: Invalid value: \"2\": field is immutable",
                "metadata.creationTimestamp: Invalid value: null: field is immutable",
                "metadata.deletionTimestamp: Invalid value: \"2026-01-02T03:04:05Z\": field is \
                 immutable",
                "metadata.deletionGracePeriodSeconds: Invalid value: 3: field is immutable",
            ],
        );
    }

    #[test]
    fn an_object_being_deleted_gets_no_new_finalizer() {
        let old = json!({"name": "a", "namespace": "b", "resourceVersion": "7",
            "finalizers": ["a.io/a"], "deletionTimestamp": "2026-01-02T03:04:05Z"});
        let mut new = old.clone();
        new["finalizers"] = json!(["a.io/c", "a.io/a", "a.io/b"]);
        check_update(
            new,
            old,
            &["metadata.finalizers: Forbidden: no new finalizers can be added if the object is \
                 being deleted, found new finalizers []string{\"a.io/b\", \"a.io/c\"}"],
        );
    }
}
