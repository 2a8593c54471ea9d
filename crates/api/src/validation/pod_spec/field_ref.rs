//! References to a Pod's own fields and to its containers' resources, as
//! environment variables and downward API volumes make them.
//!
//! Which fields each of the two may read is told by the caller.

use k8s_openapi::api::core::v1::{ObjectFieldSelector, ResourceFieldSelector};

use super::{push_invalid, text};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;
use crate::quantity::Quantity;

/// Every field that the downward API has ever known by name.
const KNOWN_FIELDS: [&str; 15] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
    "spec.host",
];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const HUGE_PAGES: [&str; 2] = ["limits.hugepages-", "requests.hugepages-"];
const BYTE_DIVISORS: [&str; 13] =
    ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// Validates a reference to a field of the Pod; `supported` are those that can
/// be read whole here, in the order they are printed.
pub(super) fn validate_field_ref(
    reference: &ObjectFieldSelector,
    supported: &[&str],
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let version = text(&reference.api_version);
    if version.is_empty() {
        errors.push(FieldError::required(&path.child("apiVersion"), ""));
        return;
    }
    let field = reference.field_path.as_str();
    let field_path = path.child("fieldPath");
    if field.is_empty() {
        errors.push(FieldError::required(&field_path, ""));
        return;
    }
    let subscripted = split_subscript(field);
    let unconverted = match subscripted {
        _ if version != "v1" => Some(format!("unsupported pod version: {version}")),
        Some(("metadata.annotations" | "metadata.labels", _)) => None,
        Some(_) => Some(format!("field label does not support subscript: {field}")),
        None if KNOWN_FIELDS.contains(&field) => None,
        None => Some(format!("field label not supported: {field}")),
    };
    if let Some(why) = unconverted {
        let detail = format!("error converting fieldPath: {why}");
        errors.push(FieldError::invalid(&field_path, field, detail));
        return;
    }
    match subscripted {
        Some(("metadata.annotations", key)) => {
            let key = key.to_lowercase();
            push_invalid(path, &key, identifier::qualified_name(&key), errors);
        }
        Some((_, key)) => push_invalid(path, key, identifier::qualified_name(key), errors),
        None => {
            // The old name of spec.nodeName is read as the new one.
            let field = if field == "spec.host" { "spec.nodeName" } else { field };
            if !supported.contains(&field) {
                errors.push(FieldError::not_supported(&field_path, field, supported));
            }
        }
    }
}

/// Validates a reference to a container's resource. In a volume it must name
/// the container; in an environment variable it means its own.
pub(super) fn validate_resource_ref(
    reference: &ResourceFieldSelector,
    in_volume: bool,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let resource = reference.resource.as_str();
    let has_huge_pages = HUGE_PAGES.iter().any(|prefix| resource.starts_with(prefix));
    if in_volume && text(&reference.container_name).is_empty() {
        errors.push(FieldError::required(&path.child("containerName"), ""));
    } else if resource.is_empty() {
        errors.push(FieldError::required(&path.child("resource"), ""));
    } else if !RESOURCES.contains(&resource) && !has_huge_pages {
        let at = path.child("resource");
        errors.push(FieldError::not_supported(&at, resource, &RESOURCES));
    }
    let Some(divisor) = &reference.divisor else {
        return;
    };
    let at = path.child("divisor");
    match divisor.0.trim().parse::<Quantity>() {
        Ok(divisor) => validate_divisor(&divisor, resource, &at, errors),
        Err(error) => errors.push(FieldError::invalid(&at, &divisor.0, error.to_string())),
    }
}

fn validate_divisor(
    divisor: &Quantity,
    resource: &str,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if divisor.is_zero() {
        return;
    }
    let (supported, listed, what): (&[&str], String, &str) = match resource {
        "limits.cpu" | "requests.cpu" => (&["1m", "1"], "1m and 1".to_owned(), "cpu"),
        "limits.memory" | "requests.memory" => (&BYTE_DIVISORS, BYTE_DIVISORS.join(", "), "memory"),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => {
            (&BYTE_DIVISORS, BYTE_DIVISORS.join(", "), "local ephemeral storage")
        }
        _ if HUGE_PAGES.iter().any(|prefix| resource.starts_with(prefix)) => {
            (&BYTE_DIVISORS, BYTE_DIVISORS.join(", "), "hugepages")
        }
        _ => return,
    };
    if !supported.contains(&divisor.to_string().as_str()) {
        let detail =
            format!("only divisor's values {listed} are supported with the {what} resource");
        // Upstream prints the resource where the divisor would be expected.
        errors.push(FieldError::invalid(path, resource, detail));
    }
}

/// `metadata.labels['x']` as its field and its key.
fn split_subscript(field: &str) -> Option<(&str, &str)> {
    let (name, key) = field.strip_suffix("']")?.split_once("['")?;
    (!name.is_empty()).then_some((name, key))
}
