//! What a container may learn of its own Pod: the fields and resources of the downward API.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::{Container, Pod, ResourceFieldSelector};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as QuantityText;
use stint_api::quantity::Quantity;

/// What of a Pod's surroundings is not in the Pod.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    pub(crate) pod_address: Ipv4Addr,
    pub(crate) host_address: Ipv4Addr,
    /// What the node gives, where a container has no limit.
    pub(crate) cpu_millis: u64,
    pub(crate) memory_bytes: u64,
}

/// The value of a field of a Pod.
pub(crate) fn field(pod: &Pod, path: &str, around: &Surroundings) -> Result<String, String> {
    let meta = &pod.metadata;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let spec = pod.spec.as_ref();
    if let Some(key) = subscript(path, "metadata.labels") {
        return Ok(value_of(meta.labels.as_ref(), key));
    }
    if let Some(key) = subscript(path, "metadata.annotations") {
        return Ok(value_of(meta.annotations.as_ref(), key));
    }
    Ok(match path {
        "metadata.name" => text(&meta.name),
        "metadata.namespace" => text(&meta.namespace),
        "metadata.uid" => text(&meta.uid),
        "metadata.labels" => listed(meta.labels.as_ref()),
        "metadata.annotations" => listed(meta.annotations.as_ref()),
        "spec.nodeName" => spec.map(|spec| text(&spec.node_name)).unwrap_or_default(),
        "spec.serviceAccountName" => {
            spec.map(|spec| text(&spec.service_account_name)).unwrap_or_default()
        }
        "status.podIP" | "status.podIPs" => around.pod_address.to_string(),
        "status.hostIP" | "status.hostIPs" => around.host_address.to_string(),
        other => return Err(format!("unsupported fieldPath: {other}")),
    })
}

/// The value of a resource of a container, in units of its divisor, rounded up.
pub(crate) fn resource(
    pod: &Pod,
    own: Option<&Container>,
    selector: &ResourceFieldSelector,
    around: &Surroundings,
) -> Result<String, String> {
    let named = selector.container_name.as_deref().filter(|name| !name.is_empty());
    let container = match named {
        None => own.ok_or_else(|| "resourceFieldRef names no container".to_owned())?,
        Some(name) => {
            let spec = pod.spec.as_ref();
            let all = spec.into_iter().flat_map(|spec| {
                spec.init_containers.iter().flatten().chain(spec.containers.iter())
            });
            let found = all.into_iter().find(|container| container.name == name);
            found.ok_or_else(|| format!("container {name} not found"))?
        }
    };
    let resources = container.resources.as_ref();
    let of = |list: Option<&BTreeMap<String, QuantityText>>, what: &str| {
        list.and_then(|list| list.get(what)).and_then(|text| text.0.parse::<Quantity>().ok())
    };
    let divisor = selector.divisor.as_ref().and_then(|text| text.0.parse::<Quantity>().ok());
    let divisor = divisor.filter(|divisor| !divisor.is_zero());
    let limits = resources.and_then(|resources| resources.limits.as_ref());
    let requests = resources.and_then(|resources| resources.requests.as_ref());
    let (amount, is_cpu) = match selector.resource.as_str() {
        "limits.cpu" => {
            let millis = of(limits, "cpu").map(|limit| limit.milli_value());
            (millis.unwrap_or(around.cpu_millis as i64), true)
        }
        "requests.cpu" => (of(requests, "cpu").map_or(0, |request| request.milli_value()), true),
        "limits.memory" => {
            let bytes = of(limits, "memory").map(|limit| limit.value());
            (bytes.unwrap_or(around.memory_bytes as i64), false)
        }
        "requests.memory" => (of(requests, "memory").map_or(0, |request| request.value()), false),
        other => {
            let (list, what) = match other.split_once('.') {
                Some(("limits", what)) => (limits, what),
                Some(("requests", what)) => (requests, what),
                _ => return Err(format!("unsupported container resource: {other}")),
            };
            (of(list, what).map_or(0, |amount| amount.value()), false)
        }
    };
    let unit = match (&divisor, is_cpu) {
        (None, true) => 1000,
        (None, false) => 1,
        (Some(divisor), true) => divisor.milli_value().max(1),
        (Some(divisor), false) => divisor.value().max(1),
    };
    let amount = amount.max(0);
    Ok((amount / unit + i64::from(amount % unit != 0)).to_string())
}

/// The key of `metadata.labels['key']`.
fn subscript<'p>(path: &'p str, field: &str) -> Option<&'p str> {
    path.strip_prefix(field)?.strip_prefix("['")?.strip_suffix("']")
}

fn value_of(map: Option<&BTreeMap<String, String>>, key: &str) -> String {
    map.and_then(|map| map.get(key)).cloned().unwrap_or_default()
}

/// A map as the downward API writes it into a file: a line for each key, the value quoted.
fn listed(map: Option<&BTreeMap<String, String>>) -> String {
    let mut text = String::new();
    for (key, value) in map.into_iter().flatten() {
        if !text.is_empty() {
            text.push('\n');
        }
        write!(text, "{key}={}", quoted(value)).expect("a text can be written to");
    }
    text
}

fn quoted(value: &str) -> String {
    let mut text = String::with_capacity(value.len() + 2);
    text.push('"');
    for c in value.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            c if c.is_control() => {
                write!(text, "\\u{:04x}", c as u32).expect("a text can be written to");
            }
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn around() -> Surroundings {
        Surroundings {
            pod_address: Ipv4Addr::new(127, 64, 0, 1),
            host_address: Ipv4Addr::new(127, 0, 0, 1),
            cpu_millis: 2000,
            memory_bytes: 1 << 30,
        }
    }

    fn pod() -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "ns", "uid": "u",
                "labels": {"a": "1", "b/c": "x"}, "annotations": {"note": "say \"hi\"\n"}},
            "spec": {"nodeName": "n", "serviceAccountName": "robot", "containers": [
                {"name": "main", "resources": {"limits": {"cpu": "1500m", "memory": "100Mi"},
                    "requests": {"cpu": "250m"}}},
                {"name": "free"},
            ]},
        }))
        .expect("a Pod")
    }

    #[test]
    fn fields_are_those_of_the_downward_api() {
        let rows = [
            ("metadata.name", Some("p")),
            ("metadata.namespace", Some("ns")),
            ("metadata.uid", Some("u")),
            ("metadata.labels['b/c']", Some("x")),
            ("metadata.labels['none']", Some("")),
            ("metadata.annotations['note']", Some("say \"hi\"\n")),
            ("metadata.labels", Some("a=\"1\"\nb/c=\"x\"")),
            ("metadata.annotations", Some("note=\"say \\\"hi\\\"\\n\"")),
            ("spec.nodeName", Some("n")),
            ("spec.serviceAccountName", Some("robot")),
            ("status.podIP", Some("127.64.0.1")),
            ("status.podIPs", Some("127.64.0.1")),
            ("status.hostIP", Some("127.0.0.1")),
            ("spec.hostname", None),
        ];
        for (path, expected) in rows {
            assert_eq!(field(&pod(), path, &around()).ok().as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn resources_are_rounded_up_and_default_to_what_the_node_gives() {
        let rows = [
            ("main", "limits.cpu", "0", Some("2")),
            ("main", "limits.cpu", "1m", Some("1500")),
            ("main", "requests.cpu", "1", Some("1")),
            ("main", "limits.memory", "1", Some("104857600")),
            ("main", "limits.memory", "1Mi", Some("100")),
            ("main", "limits.memory", "1G", Some("1")),
            ("free", "limits.cpu", "1", Some("2")),
            ("free", "limits.memory", "1Mi", Some("1024")),
            ("free", "requests.memory", "1", Some("0")),
            ("free", "limits.ephemeral-storage", "1", Some("0")),
            ("none", "limits.cpu", "1", None),
            ("main", "cpu", "1", None),
        ];
        for (container, resource_name, divisor, expected) in rows {
            let selector = json!(
                {"containerName": container, "resource": resource_name, "divisor": divisor});
            let selector = serde_json::from_value(selector).expect("a selector");
            let value = resource(&pod(), None, &selector, &around());
            assert_eq!(value.ok().as_deref(), expected, "{container} {resource_name} {divisor}");
        }
    }
}
