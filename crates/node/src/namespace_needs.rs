//! What of a Pod cannot be had without namespaces: mounts, a hosts file and a host name of its own.
//! It must not know whether there are any.
//!
//! A `hostname` alone is not among it: every Pod of a Job with indexes has one, and few look at
//! it. Whoever wants to be found by that name, or to be called so, says more.

use k8s_openapi::api::core::v1::{Pod, PodSpec};

/// What to do where there are none.
pub(crate) const REMEDY: &str =
    "run stint as root, or allow this user to make user namespaces, or leave out what needs them";

/// The fields of a Pod that need namespaces, as paths; none if it can run without.
pub(crate) fn of(pod: &Pod) -> Vec<String> {
    let none = PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&none);
    let mut fields = Vec::new();
    for (list, containers) in [
        ("initContainers", spec.init_containers.as_deref().unwrap_or_default()),
        ("containers", &spec.containers),
    ] {
        for (i, container) in containers.iter().enumerate() {
            if container.volume_mounts.as_ref().is_some_and(|mounts| !mounts.is_empty()) {
                fields.push(format!("spec.{list}[{i}].volumeMounts"));
            }
        }
    }
    // On the machine's own network a Pod has the machine's own names.
    if spec.host_network == Some(true) {
        return fields;
    }
    let is_given = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    let names = [
        (spec.host_aliases.as_ref().is_some_and(|aliases| !aliases.is_empty()), "hostAliases"),
        (is_given(&spec.subdomain), "subdomain"),
        (is_given(&spec.hostname_override), "hostnameOverride"),
    ];
    fields.extend(names.iter().filter(|(is_so, _)| *is_so).map(|(_, name)| format!("spec.{name}")));
    fields
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_says_so_needs_namespaces() {
        let mounts = json!({"name": "c", "volumeMounts": [{"name": "v", "mountPath": "/v"}]});
        let rows = [
            (json!({"containers": []}), vec![]),
            (json!({"containers": [{"name": "c"}], "hostname": "h"}), vec![]),
            (json!({"containers": [], "volumes": [{"name": "v", "emptyDir": {}}]}), vec![]),
            (
                json!({"containers": [{"name": "c"}, mounts], "initContainers": [mounts]}),
                vec!["spec.initContainers[0].volumeMounts", "spec.containers[1].volumeMounts"],
            ),
            (
                json!({"containers": [], "hostname": "h", "subdomain": "s",
                    "hostAliases": [{"ip": "10.0.0.1"}]}),
                vec!["spec.hostAliases", "spec.subdomain"],
            ),
            (json!({"containers": [], "hostnameOverride": "h"}), vec!["spec.hostnameOverride"]),
            (json!({"containers": [], "hostNetwork": true, "subdomain": "s"}), vec![]),
        ];
        for (spec, expected) in rows {
            let pod = serde_json::from_value(json!({"spec": spec})).expect("a Pod");
            assert_eq!(of(&pod), expected, "{spec}");
        }
    }
}
