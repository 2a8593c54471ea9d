//! What kube-apiserver fills in in a Pod template.
//!
//! Nothing here depends on what the admission of a Pod would add later.

use k8s_openapi::api::core::v1::PodTemplateSpec;

use super::pod_spec::default_pod_spec;

/// Fills in what a Pod template leaves out, and writes its quantities the way
/// the API server returns them. Doing it twice changes nothing more.
pub fn default_pod_template(template: &mut PodTemplateSpec) {
    default_pod_spec(template.spec.get_or_insert_default());
}
