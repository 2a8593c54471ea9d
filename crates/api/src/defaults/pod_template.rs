//! What kube-apiserver fills in in a Pod template.

use k8s_openapi::api::core::v1::PodTemplateSpec;

/// Fills in what a Pod template leaves out.
pub fn default_pod_template(template: &mut PodTemplateSpec) {
    let spec = template.spec.get_or_insert_default();
    if spec.restart_policy.as_deref().unwrap_or("").is_empty() {
        spec.restart_policy = Some("Always".to_owned());
    }
}
