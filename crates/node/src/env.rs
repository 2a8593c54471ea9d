//! The environment of a container: what every container has here, then `envFrom`, then `env`,
//! the later over the earlier.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvVar, FileKeySelector, Pod};

use crate::env_file;
use crate::expand::expand;
use crate::field::{Surroundings, field, resource};
use crate::sources::Sources;
use crate::volumes::{self, Volumes};

/// A variable and its value, in the order in which they were set first.
#[derive(Clone, Debug, Default)]
struct Variables {
    order: Vec<String>,
    values: BTreeMap<String, String>,
}

impl Variables {
    fn set(&mut self, name: &str, value: String) {
        if self.values.insert(name.to_owned(), value).is_none() {
            self.order.push(name.to_owned());
        }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }
}

/// The environment of a container. `base` is what every container has.
///
/// # Errors
///
/// A sentence that says what is missing.
pub(crate) fn environment(
    pod: &Pod,
    container: &Container,
    base: &[(String, String)],
    sources: &Sources,
    volumes: &Volumes,
    around: &Surroundings,
) -> Result<Vec<(String, String)>, String> {
    let mut variables = Variables::default();
    for (name, value) in base {
        variables.set(name, value.clone());
    }
    set_from_sources(container, sources, &mut variables)?;
    for variable in container.env.iter().flatten() {
        let value = match &variable.value_from {
            None => {
                let text = variable.value.as_deref().unwrap_or("");
                Some(expand(text, |name| variables.get(name)))
            }
            Some(_) => referred(pod, container, variable, sources, volumes, around)?,
        };
        if let Some(value) = value {
            variables.set(&variable.name, value);
        }
    }
    let Variables { order, mut values } = variables;
    let take = |name: String| {
        let value = values.remove(&name).expect("every name in the order has a value");
        (name, value)
    };
    Ok(order.into_iter().map(take).collect())
}

fn set_from_sources(
    container: &Container,
    sources: &Sources,
    variables: &mut Variables,
) -> Result<(), String> {
    for source in container.env_from.iter().flatten() {
        let prefix = source.prefix.as_deref().unwrap_or("");
        let (data, kind, name, optional) = match (&source.config_map_ref, &source.secret_ref) {
            (Some(it), _) => {
                (sources.config_map_texts(&it.name), "configmap", &it.name, it.optional)
            }
            (None, Some(it)) => (sources.secret(&it.name), "secret", &it.name, it.optional),
            (None, None) => continue,
        };
        let Some(data) = data else {
            if optional == Some(true) {
                continue;
            }
            return Err(format!("{kind} \"{name}\" not found"));
        };
        for (key, value) in data {
            let full = format!("{prefix}{key}");
            // As a kubelet: names that cannot be variables, and bytes that are no text, are
            // passed over.
            if let (true, Ok(value)) = (is_variable_name(&full), std::str::from_utf8(value)) {
                variables.set(&full, value.to_owned());
            }
        }
    }
    Ok(())
}

/// The value that a variable refers to; none if it may be missing and is.
fn referred(
    pod: &Pod,
    container: &Container,
    variable: &EnvVar,
    sources: &Sources,
    volumes: &Volumes,
    around: &Surroundings,
) -> Result<Option<String>, String> {
    let Some(source) = &variable.value_from else { return Ok(None) };
    if let Some(reference) = &source.field_ref {
        return field(pod, &reference.field_path, around).map(Some);
    }
    if let Some(reference) = &source.resource_field_ref {
        return resource(pod, Some(container), reference, around).map(Some);
    }
    if let Some(reference) = &source.file_key_ref {
        return in_file(reference, volumes);
    }
    let (data, kind, name, key, optional) =
        match (&source.config_map_key_ref, &source.secret_key_ref) {
            (Some(it), _) => {
                (sources.config_map_texts(&it.name), "ConfigMap", &it.name, &it.key, it.optional)
            }
            (None, Some(it)) => {
                (sources.secret(&it.name), "Secret", &it.name, &it.key, it.optional)
            }
            (None, None) => {
                let name = &variable.name;
                return Err(format!("variable {name} has a valueFrom of a kind that is not known"));
            }
        };
    let is_optional = optional == Some(true);
    let Some(data) = data else {
        let missing = format!("{} \"{name}\" not found", kind.to_lowercase());
        return if is_optional { Ok(None) } else { Err(missing) };
    };
    match data.get(key.as_str()) {
        Some(value) => Ok(Some(String::from_utf8_lossy(value).into_owned())),
        None if is_optional => Ok(None),
        None => {
            let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
            Err(format!("couldn't find key {key} in {kind} {namespace}/{name}"))
        }
    }
}

/// The value of a variable in a file of a volume; none if it may be missing and is.
fn in_file(reference: &FileKeySelector, volumes: &Volumes) -> Result<Option<String>, String> {
    let FileKeySelector { key, path, volume_name: volume, optional } = reference;
    let found = match volumes::file(volumes, volume, path)? {
        Some(file) => env_file::read(&file, key)?,
        None => None,
    };
    match found {
        None if *optional != Some(true) => Err(format!(
            "environment variable key {key:?} not found in file {path:?} of volume {volume:?}"
        )),
        found => Ok(found),
    }
}

/// Whether a name can be a variable: not empty, printable ASCII without `=`.
fn is_variable_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=')
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use serde_json::{Value, json};

    use super::*;

    fn built(container: Value) -> Result<Vec<String>, String> {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "ns", "labels": {"index": "7"}},
            "spec": {"containers": []},
        }))
        .expect("a Pod");
        let mut container = container;
        container["name"] = json!("main");
        let container: Container = serde_json::from_value(container).expect("a container");
        let mut sources = Sources::default();
        let map = json!({"data": {"A": "1", "b.c": "2"}, "binaryData": {"BIN": "aGk="}});
        let secret = json!({"data": {"KEY": "c2VjcmV0"}});
        sources.config_maps.insert("cm".into(), serde_json::from_value(map).expect("a map"));
        sources.secrets.insert("s".into(), serde_json::from_value(secret).expect("a secret"));
        let around = Surroundings {
            pod_address: Ipv4Addr::new(127, 64, 0, 1),
            host_address: Ipv4Addr::LOCALHOST,
            cpu_millis: 1000,
            memory_bytes: 1024,
        };
        let base = [("PATH".to_owned(), "/bin".to_owned())];
        let all = environment(&pod, &container, &base, &sources, &Volumes::new(), &around)?;
        Ok(all.into_iter().map(|(name, value)| format!("{name}={value}")).collect())
    }

    #[test]
    fn the_later_wins_and_may_use_the_earlier() {
        let container = json!({
            "envFrom": [{"configMapRef": {"name": "cm"}}, {"prefix": "S_", "secretRef": {"name": "s"}},
                {"configMapRef": {"name": "gone", "optional": true}}],
            "env": [
                {"name": "A", "value": "$(A)$(A)"},
                {"name": "B", "value": "$(A)-$(LATER)-$$(A)"},
                {"name": "LATER", "value": "x"},
                {"name": "PATH", "value": "/opt:$(PATH)"},
                {"name": "INDEX", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['index']"}}},
                {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                {"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "KEY"}}},
                {"name": "NONE", "valueFrom":
                    {"configMapKeyRef": {"name": "cm", "key": "no", "optional": true}}},
            ],
        });
        assert_eq!(
            built(container).expect("it is complete"),
            [
                "PATH=/opt:/bin",
                "A=11",
                "b.c=2",
                "S_KEY=secret",
                "B=11-$(LATER)-$(A)",
                "LATER=x",
                "INDEX=7",
                "CPU=1",
                "K=secret",
            ]
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let env = |source: Value| json!({"env": [{"name": "V", "valueFrom": source}]});
        let rows = [
            (json!({"envFrom": [{"secretRef": {"name": "x"}}]}), "secret \"x\" not found"),
            (
                env(json!({"configMapKeyRef": {"name": "x", "key": "k"}})),
                "configmap \"x\" not found",
            ),
            (
                env(json!({"configMapKeyRef": {"name": "cm", "key": "k"}})),
                "couldn't find key k in ConfigMap ns/cm",
            ),
            (
                env(json!({"configMapKeyRef": {"name": "cm", "key": "BIN"}})),
                "couldn't find key BIN in ConfigMap ns/cm",
            ),
            (
                env(json!({"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}})),
                "volume \"v\" is not there",
            ),
        ];
        for (container, expected) in rows {
            assert_eq!(built(container).expect_err("something is missing"), expected);
        }
    }
}
