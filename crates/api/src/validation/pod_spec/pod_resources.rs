//! Resources of the Pod as a whole, and that its containers fit into them.
//!
//! What each container asks for is judged with the container.

use k8s_openapi::api::core::v1::{PodSpec, ResourceRequirements};

use super::PodContext;
use super::resources::{known_resource_name, validate_requirements};
use crate::field_error::FieldError;
use crate::field_path::Path;
use crate::resource_list::{amount_of, is_huge_page, parse_amount, sum_up};

const POD_LEVEL: [&str; 3] = ["cpu", "hugepages-", "memory"];

/// Validates `resources` of the Pod; `path` is the Pod's spec.
pub(super) fn validate_pod_resources(
    spec: &PodSpec,
    pod: &PodContext<'_>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Some(requirements) = &spec.resources else {
        return;
    };
    let here = path.child("resources");
    if spec.os.as_ref().is_some_and(|os| os.name == "windows") {
        let detail = "may not be set for a windows pod";
        errors.push(FieldError::forbidden(&here, detail));
        return;
    }
    if requirements.claims.is_some() {
        let detail = "claims may not be set for Resources at pod-level";
        errors.push(FieldError::forbidden(&here.child("claims"), detail));
    }
    validate_requirements(requirements, pod_level_name, &pod.claim_names, &here, errors);
    validate_containers_fit(spec, requirements, &here, errors);
}

fn pod_level_name(name: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let before = errors.len();
    known_resource_name(name, path, errors);
    let is_supported = matches!(name, "cpu" | "memory") || is_huge_page(name);
    if errors.len() == before && !is_supported {
        errors.push(FieldError::not_supported(path, name, &POD_LEVEL));
    }
}

fn validate_containers_fit(
    spec: &PodSpec,
    requirements: &ResourceRequirements,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let requested = sum_up(spec, |requirements| requirements.requests.as_ref());
    let requests_path = path.child("requests");
    for (name, sum) in &requested {
        if let Some(own) = amount_of(&requirements.requests, name)
            && *sum > own
        {
            let detail =
                format!("must be greater than or equal to aggregate container requests of {sum}");
            errors.push(FieldError::invalid(&requests_path.key(name), own.to_string(), detail));
        }
    }
    let limited = sum_up(spec, |requirements| requirements.limits.as_ref());
    let limits_path = path.child("limits");
    for (name, sum) in limited.iter().filter(|(name, _)| is_huge_page(name)) {
        if let Some(own) = amount_of(&requirements.limits, name)
            && *sum > own
        {
            let detail =
                format!("must be greater than or equal to aggregate container limits of {sum}");
            errors.push(FieldError::invalid(&limits_path.key(name), own.to_string(), detail));
        }
    }
    validate_container_limits(spec, requirements, path, errors);
}

fn validate_container_limits(
    spec: &PodSpec,
    requirements: &ResourceRequirements,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let containers_path = path.child("containers");
    for (i, container) in spec.containers.iter().enumerate() {
        let here = containers_path.index(i);
        let own = container.resources.as_ref();
        for (name, limit) in own.and_then(|own| own.limits.as_ref()).into_iter().flatten() {
            if let (Some(limit), Some(of_pod)) =
                (parse_amount(limit), amount_of(&requirements.limits, name))
                && limit > of_pod
            {
                // Upstream writes this path in an order of its own.
                let at = here.key(name);
                let at = at.child("limits");
                let detail = format!("must be less than or equal to pod limits of {of_pod}");
                errors.push(FieldError::invalid(&at, limit.to_string(), detail));
            }
        }
    }
}
