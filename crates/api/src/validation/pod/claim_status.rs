//! What is wrong with what a status says of resource claims.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PodSpec, PodStatus};

use super::super::push_invalid;
use super::items;
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::identifier;
use crate::resource_list::ResourceList;

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
    let requests = requests(spec);
    let mut seen = BTreeSet::new();
    for (i, mapping) in status.request_mappings.iter().enumerate() {
        let here = mappings_path.index(i);
        let (container_path, resource_path) =
            (here.child("containerName"), here.child("resourceName"));
        let (container, resource) = (&mapping.container_name, &mapping.resource_name);
        match requests.get(container.as_str()) {
            None => {
                let detail = "must match the name of an entry in spec.initContainers.name or \
                    spec.containers.name";
                errors.push(FieldError::invalid(&container_path, container, detail));
            }
            Some(requests) if !requests.is_some_and(|all| all.contains_key(resource)) => {
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

/// What each container asks for, by its name. Of two with one name the first counts.
fn requests(spec: &PodSpec) -> BTreeMap<&str, Option<&ResourceList>> {
    let containers = spec.containers.iter().chain(items(&spec.init_containers));
    let named = containers.rev().map(|container| {
        let resources = container.resources.as_ref();
        (container.name.as_str(), resources.and_then(|resources| resources.requests.as_ref()))
    });
    named.collect()
}
