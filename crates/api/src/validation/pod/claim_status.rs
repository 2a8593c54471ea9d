//! What is wrong with what a status says of resource claims.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{PodSpec, PodStatus};

use super::super::push_invalid;
use super::items;
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;

/// Validates `resourceClaimStatuses`.
pub(super) fn validate_claim_statuses(
    status: &PodStatus,
    spec: &PodSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let claims: BTreeSet<&str> =
        items(&spec.resource_claims).iter().map(|claim| claim.name.as_str()).collect();
    let mut seen = BTreeSet::new();
    for (i, status) in items(&status.resource_claim_statuses).iter().enumerate() {
        let here = path.index(i);
        let name_path = here.child("name");
        if !claims.contains(status.name.as_str()) {
            let detail = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(FieldError::invalid(&name_path, &status.name, detail));
        }
        if !seen.insert(&status.name) {
            errors.push(FieldError::duplicate(&name_path, &status.name));
        }
        if let Some(name) = &status.resource_claim_name {
            let wrong = identifier::dns1123_subdomain(name);
            push_invalid(&here.child("resourceClaimName"), name, wrong, errors);
        }
    }
}

/// Validates `extendedResourceClaimStatus`.
pub(super) fn validate_extended_claim_status(
    status: &PodStatus,
    spec: &PodSpec,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Some(status) = &status.extended_resource_claim_status else {
        return;
    };
    let mappings_path = path.child("requestMappings");
    if status.request_mappings.is_empty() {
        let detail = "at least one request mapping is required";
        errors.push(FieldError::required(&mappings_path, detail));
    }
    let mut seen = BTreeSet::new();
    for (i, mapping) in status.request_mappings.iter().enumerate() {
        let here = mappings_path.index(i);
        let (container_path, resource_path) =
            (here.child("containerName"), here.child("resourceName"));
        let (container, resource) = (&mapping.container_name, &mapping.resource_name);
        match requests_of(container, spec) {
            None => {
                let detail = "must match the name of an entry in spec.initContainers.name or \
                    spec.containers.name";
                errors.push(FieldError::invalid(&container_path, container, detail));
            }
            Some(requests) if !requests.contains(resource.as_str()) => {
                let detail = "must match the extended resource name of an entry in \
                    spec.initContainers.resources.requests or spec.containers.resources.requests";
                errors.push(FieldError::invalid(&resource_path, resource, detail));
            }
            Some(_) => {}
        }
        // Upstream leaves the mapping out of this path.
        let request = &mapping.request_name;
        let wrong = identifier::dns1123_label(request);
        push_invalid(&path.child("requestName"), request, wrong, errors);
        if !seen.insert((container, resource, request)) {
            errors.push(FieldError::duplicate(&container_path, container));
            errors.push(FieldError::duplicate(&resource_path, resource));
            errors.push(FieldError::duplicate(&here.child("requestName"), request));
        }
    }
    let (name, at) = (&status.resource_claim_name, path.child("resourceClaimName"));
    if name.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else {
        push_invalid(&at, name, identifier::dns1123_subdomain(name), errors);
    }
}

/// The names of what a container asks for, if there is such a container.
fn requests_of<'a>(name: &str, spec: &'a PodSpec) -> Option<BTreeSet<&'a str>> {
    let mut containers = spec.containers.iter().chain(items(&spec.init_containers));
    let container = containers.find(|container| container.name == name)?;
    let resources = container.resources.as_ref();
    let requests = resources.and_then(|resources| resources.requests.as_ref());
    Some(requests.into_iter().flatten().map(|(name, _)| name.as_str()).collect())
}
