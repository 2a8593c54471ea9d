//! Annotations that mean something to Kubernetes when a Pod carries them.
//!
//! Most are older than the fields that replaced them; where both are given they
//! must agree. Annotations in general are judged with the rest of `metadata`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PodSpec, SeccompProfile};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::each_container;
use super::local_path::validate_descending_path;
use super::text;
use crate::field_error::{FieldError, quote};
use crate::field_path::{Path, Segment};
use crate::names::annotation::{APP_ARMOR_PREFIX, MIRROR};

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// Validates the annotations Kubernetes itself reads.
pub(in crate::validation) fn validate_pod_annotations(
    annotations: &BTreeMap<String, String>,
    spec: &PodSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if let Some(value) = annotations.get(MIRROR)
        && text(&spec.node_name).is_empty()
    {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(FieldError::invalid(&path.key(MIRROR), value, detail));
    }
    if let Some(cost) = annotations.get(DELETION_COST)
        && !is_deletion_cost(cost)
    {
        let at = path.key(DELETION_COST);
        errors.push(FieldError::invalid(&at, cost, "must be a 32bit integer"));
    }
    if let Some(profile) = annotations.get(SECCOMP_POD) {
        validate_seccomp_annotation(SECCOMP_POD, profile, path, errors);
    }
    for (key, profile) in annotations {
        if key.starts_with(SECCOMP_CONTAINER) {
            validate_seccomp_annotation(key, profile, path, errors);
        }
    }
    let mut containers = BTreeSet::new();
    each_container(spec, path, |container, _| {
        containers.insert(container.name.clone());
    });
    for (key, profile) in annotations {
        if let Some(container) = key.strip_prefix(APP_ARMOR_PREFIX) {
            let is_known = containers.contains(container);
            validate_app_armor_annotation(container, is_known, profile, &path.key(key), errors);
        }
    }
}

/// Where a profile is given both as an annotation and as a field, both must say the same.
pub(in crate::validation) fn validate_profiles_match(
    annotations: &BTreeMap<String, String>,
    spec: &PodSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let pod_context = spec.security_context.as_ref();
    if let Some(profile) = pod_context.and_then(|context| context.seccomp_profile.as_ref())
        && let Some(annotation) = annotations.get(SECCOMP_POD)
    {
        let context_path = path.child("securityContext");
        let at = context_path.child("seccompProfile");
        validate_seccomp_match(annotation, profile, &at, errors);
    }
    each_container(spec, path, |container, here| {
        let context = container.security_context.as_ref();
        let key = format!("{SECCOMP_CONTAINER}{}", container.name);
        if let Some(profile) = context.and_then(|context| context.seccomp_profile.as_ref())
            && let Some(annotation) = annotations.get(&key)
        {
            let context_path = here.child("securityContext");
            let at = context_path.child("seccompProfile");
            validate_seccomp_match(annotation, profile, &at, errors);
        }
    });
    if spec.os.as_ref().is_some_and(|os| os.name == "windows") {
        return;
    }
    let pod_profile = pod_context.and_then(|context| context.app_armor_profile.as_ref());
    each_container(spec, path, |container, here| {
        let context = container.security_context.as_ref();
        let own = context.and_then(|context| context.app_armor_profile.as_ref());
        let key = format!("{APP_ARMOR_PREFIX}{}", container.name);
        if let (Some(profile), Some(annotation)) = (own.or(pod_profile), annotations.get(&key)) {
            let matched = profile_match(
                &profile.type_,
                profile.localhost_profile.as_deref(),
                annotation,
                &["runtime/default"],
            );
            let context_path = here.child("securityContext");
            let at = context_path.child("appArmorProfile");
            push_mismatch("apparmor", matched, &at, errors);
        }
    });
}

/// Whether a Pod mirrors one that its node runs without having been asked to.
pub(in crate::validation) fn is_mirror(pod: &ObjectMeta) -> bool {
    pod.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(MIRROR))
}

/// A 32-bit number, written without a plus sign or leading zeros.
fn is_deletion_cost(cost: &str) -> bool {
    let digits = cost.strip_prefix('-').unwrap_or(cost);
    let plain = cost == "0" || cost.starts_with('-') || !digits.starts_with(['0', '+']);
    plain && cost.parse::<i32>().is_ok()
}

fn validate_seccomp_annotation(
    key: &str,
    profile: &str,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let before = errors.len();
    match profile {
        "runtime/default" | "docker/default" | "unconfined" => {}
        _ => match profile.strip_prefix("localhost/") {
            Some(file) => validate_descending_path(file, path, errors),
            None => {
                errors.push(FieldError::invalid(path, profile, "must be a valid seccomp profile"))
            }
        },
    }
    // Upstream writes this key after a dot, where other annotations get brackets.
    for error in &mut errors[before..] {
        error.path.push(Segment::Field(Cow::Owned(key.to_owned())));
    }
}

fn validate_app_armor_annotation(
    container: &str,
    is_known: bool,
    profile: &str,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if !is_known {
        errors.push(FieldError::invalid(path, container, "container not found"));
    }
    let known = matches!(profile, "" | "runtime/default" | "unconfined");
    if !known && !profile.starts_with("localhost/") {
        let detail = format!("invalid AppArmor profile name: {}", quote(profile));
        errors.push(FieldError::invalid(path, profile, detail));
    }
}

fn validate_seccomp_match(
    annotation: &str,
    profile: &SeccompProfile,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let matched = profile_match(
        &profile.type_,
        profile.localhost_profile.as_deref(),
        annotation,
        &["runtime/default", "docker/default"],
    );
    push_mismatch("seccomp", matched, path, errors);
}

/// How an annotation and a profile field compare.
enum ProfileMatch {
    Same,
    OtherType,
    OtherFile,
}

fn profile_match(
    profile_type: &str,
    file: Option<&str>,
    annotation: &str,
    runtime_defaults: &[&str],
) -> ProfileMatch {
    match profile_type {
        "Unconfined" if annotation != "unconfined" => ProfileMatch::OtherType,
        "RuntimeDefault" if !runtime_defaults.contains(&annotation) => ProfileMatch::OtherType,
        "Localhost" => match annotation.strip_prefix("localhost/") {
            None => ProfileMatch::OtherType,
            Some(annotated) if file == Some(annotated) => ProfileMatch::Same,
            Some(_) => ProfileMatch::OtherFile,
        },
        _ => ProfileMatch::Same,
    }
}

fn push_mismatch(what: &str, matched: ProfileMatch, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let (field, part) = match matched {
        ProfileMatch::Same => return,
        ProfileMatch::OtherType => ("type", "type"),
        ProfileMatch::OtherFile => ("localhostProfile", "profile"),
    };
    let detail = format!("{what} {part} in annotation and field must match");
    errors.push(FieldError::forbidden(&path.child(field), detail));
}
