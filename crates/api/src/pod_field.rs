//! The fields of a Pod that a field selector may name.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::Pod;

/// The value of a selectable field, and none if it is not selectable: kube-apiserver
/// answers `field label not supported: {field}` then. What the Pod does not say is empty,
/// or `false` for `spec.hostNetwork`.
pub fn pod_field<'a>(pod: &'a Pod, field: &str) -> Option<Cow<'a, str>> {
    let (spec, status) = (pod.spec.as_ref(), pod.status.as_ref());
    let value = match field {
        "metadata.name" => pod.metadata.name.as_deref(),
        "metadata.namespace" => pod.metadata.namespace.as_deref(),
        // The second is what the field was called in the first version of the API.
        "spec.nodeName" | "spec.host" => spec.and_then(|spec| spec.node_name.as_deref()),
        "spec.restartPolicy" => spec.and_then(|spec| spec.restart_policy.as_deref()),
        "spec.schedulerName" => spec.and_then(|spec| spec.scheduler_name.as_deref()),
        "spec.serviceAccountName" => spec.and_then(|spec| spec.service_account_name.as_deref()),
        "spec.hostNetwork" => {
            let host_network = spec.and_then(|spec| spec.host_network).unwrap_or(false);
            Some(if host_network { "true" } else { "false" })
        }
        "status.phase" => status.and_then(|status| status.phase.as_deref()),
        "status.podIP" => status.and_then(|status| status.pod_ip.as_deref()),
        // May be named, and is always empty.
        "status.podIPs" => None,
        "status.nominatedNodeName" => {
            status.and_then(|status| status.nominated_node_name.as_deref())
        }
        _ => return None,
    };
    Some(Cow::Borrowed(value.unwrap_or("")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_selectable_field_has_a_value_and_any_other_has_none() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "ns"},
            "spec": {"nodeName": "n1", "restartPolicy": "Never", "schedulerName": "s",
                "serviceAccountName": "robot", "hostNetwork": true, "containers": []},
            "status": {"phase": "Running", "podIP": "10.0.0.1", "nominatedNodeName": "n2",
                "podIPs": [{"ip": "10.0.0.1"}]},
        }))
        .expect("a Pod");
        let rows = [
            ("metadata.name", "p", ""),
            ("metadata.namespace", "ns", ""),
            ("spec.nodeName", "n1", ""),
            ("spec.host", "n1", ""),
            ("spec.restartPolicy", "Never", ""),
            ("spec.schedulerName", "s", ""),
            ("spec.serviceAccountName", "robot", ""),
            ("spec.hostNetwork", "true", "false"),
            ("status.phase", "Running", ""),
            ("status.podIP", "10.0.0.1", ""),
            ("status.podIPs", "", ""),
            ("status.nominatedNodeName", "n2", ""),
        ];
        for (field, value, empty) in rows {
            assert_eq!(pod_field(&pod, field).as_deref(), Some(value), "{field}");
            assert_eq!(pod_field(&Pod::default(), field).as_deref(), Some(empty), "{field}");
        }
        for field in ["metadata.uid", "spec.hostname", "status", ""] {
            assert_eq!(pod_field(&pod, field), None, "{field}");
        }
    }
}
