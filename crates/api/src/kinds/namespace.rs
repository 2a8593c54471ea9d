//! A Namespace: born Active with a finalizer of its own in its spec, which only the
//! `finalize` subresource takes away.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::{Namespace, NamespaceStatus};

use super::{
    CLUSTER_WIDE, keep_identity, leave_namespace, once, shown, validate_meta_of_any_kind,
    validate_meta_update_of_any_kind,
};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;
use crate::prepare::reset_server_fields;
use crate::validation::object_meta::{
    MetaRules, validate_kube_finalizer, validate_object_meta_by, validate_object_meta_update_by,
};
use crate::validation::{items, push_invalid, text};

/// Whether a PUT may create a Namespace.
pub const CREATES_ON_UPDATE: bool = false;
/// Whether a Namespace may be updated without a resourceVersion.
pub const UPDATES_UNCONDITIONALLY: bool = true;

/// The label that bears a Namespace's name, for label selectors.
pub const NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// The finalizer in the spec of every new Namespace.
pub const KUBERNETES_FINALIZER: &str = "kubernetes";
/// The phase of a Namespace that is in use.
pub const ACTIVE: &str = "Active";
/// The phase of a Namespace that is being deleted.
pub const TERMINATING: &str = "Terminating";

/// A Namespace's name is part of host names.
const RULES: MetaRules = MetaRules { name: identifier::dns1123_label, ..CLUSTER_WIDE };

/// Prepares a new Namespace: Active, labelled with its name, with its finalizer.
pub fn prepare_for_create(namespace: &mut Namespace) {
    set_defaults(namespace);
    reset_server_fields(&mut namespace.metadata);
    leave_namespace(&mut namespace.metadata);
    let phase = Some(ACTIVE.to_owned());
    namespace.status = Some(NamespaceStatus { phase, ..NamespaceStatus::default() });
    let finalizers = namespace.spec.get_or_insert_default().finalizers.get_or_insert_default();
    if !finalizers.iter().any(|finalizer| finalizer == KUBERNETES_FINALIZER) {
        finalizers.push(KUBERNETES_FINALIZER.to_owned());
    }
}

/// Prepares an update, in which neither the finalizers of the spec nor the status change.
pub fn prepare_for_update(new: &mut Namespace, old: &Namespace) {
    set_defaults(new);
    keep_identity(&mut new.metadata, &old.metadata);
    leave_namespace(&mut new.metadata);
    new.spec.clone_from(&old.spec);
    new.status.clone_from(&old.status);
}

/// Prepares an update of the status.
pub fn prepare_for_status_update(new: &mut Namespace, old: &Namespace) {
    set_defaults(new);
    keep_identity(&mut new.metadata, &old.metadata);
    leave_namespace(&mut new.metadata);
    new.spec.clone_from(&old.spec);
    let status = new.status.get_or_insert_default();
    if text(&status.phase).is_empty() {
        status.phase = Some(ACTIVE.to_owned());
    }
}

/// Prepares an update of the `finalize` subresource, in which the finalizers of the spec
/// may change and the status may not.
pub fn prepare_for_finalize(new: &mut Namespace, old: &Namespace) {
    set_defaults(new);
    keep_identity(&mut new.metadata, &old.metadata);
    leave_namespace(&mut new.metadata);
    new.spec.get_or_insert_default().finalizers.take_if(|finalizers| finalizers.is_empty());
    new.status.clone_from(&old.status);
}

/// Validates a prepared new Namespace.
pub fn validate_create(namespace: &Namespace) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate(namespace, &mut errors);
    if errors.is_empty() {
        validate_meta_of_any_kind(&RULES, &namespace.metadata, &mut errors);
    }
    errors
}

/// Validates a prepared update against the stored Namespace.
pub fn validate_update(new: &Namespace, old: &Namespace) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_meta_update_of_any_kind(&RULES, &new.metadata, &old.metadata, &mut errors);
    validate(new, &mut errors);
    validate_meta_update(new, old, &mut errors);
    once(errors)
}

/// Validates a prepared update of the status.
pub fn validate_status_update(new: &Namespace, old: &Namespace) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_meta_update_of_any_kind(&RULES, &new.metadata, &old.metadata, &mut errors);
    validate_meta_update(new, old, &mut errors);
    let phase = new.status.as_ref().map_or("", |status| text(&status.phase));
    let (expected, detail) = match new.metadata.deletion_timestamp {
        None => (ACTIVE, "may only be 'Active' if `deletionTimestamp` is empty"),
        Some(_) => (TERMINATING, "may only be 'Terminating' if `deletionTimestamp` is not empty"),
    };
    if phase != expected {
        let status = Path::field("status");
        // Upstream writes the phase with a capital.
        errors.push(FieldError::invalid(&status.child("Phase"), phase, detail));
    }
    once(errors)
}

/// Validates a prepared update of the `finalize` subresource.
pub fn validate_finalize(new: &Namespace, old: &Namespace) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_meta_update_of_any_kind(&RULES, &new.metadata, &old.metadata, &mut errors);
    validate_meta_update(new, old, &mut errors);
    let spec = Path::field("spec");
    let path = spec.child("finalizers");
    for (i, finalizer) in finalizers(new).iter().enumerate() {
        validate_finalizer(finalizer, &path.index(i), &mut errors);
    }
    once(errors)
}

/// What a field selector sees of a Namespace.
pub fn field<'a>(namespace: &'a Namespace, name: &str) -> Option<Cow<'a, str>> {
    match name {
        "metadata.name" => shown(&namespace.metadata.name),
        "status.phase" => match &namespace.status {
            Some(status) => shown(&status.phase),
            None => Some(Cow::Borrowed("")),
        },
        _ => None,
    }
}

/// Fills in what the API server fills in, whoever writes. To do it again changes nothing.
pub fn set_defaults(namespace: &mut Namespace) {
    if let Some(name) = namespace.metadata.name.clone().filter(|name| !name.is_empty()) {
        namespace.metadata.labels.get_or_insert_default().insert(NAME_LABEL.to_owned(), name);
    }
}

fn finalizers(namespace: &Namespace) -> &[String] {
    namespace.spec.as_ref().map_or(&[], |spec| items(&spec.finalizers))
}

fn validate(namespace: &Namespace, errors: &mut Vec<FieldError>) {
    validate_object_meta_by(&RULES, &namespace.metadata, &Path::field("metadata"), errors);
    let spec = Path::field("spec");
    for finalizer in finalizers(namespace) {
        validate_finalizer(finalizer, &spec.child("finalizers"), errors);
    }
}

fn validate_meta_update(new: &Namespace, old: &Namespace, errors: &mut Vec<FieldError>) {
    let path = Path::field("metadata");
    validate_object_meta_update_by(&RULES, &new.metadata, &old.metadata, &path, errors);
}

fn validate_finalizer(finalizer: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    push_invalid(path, finalizer, identifier::qualified_name(finalizer), errors);
    validate_kube_finalizer(finalizer, path, errors);
}
