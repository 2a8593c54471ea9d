//! What an API server itself warns of in a Pod template, in its own words.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, PodSpec, Volume};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as QuantityText;

use super::{Advice, for_each_container};
use crate::field_error::quote;
use crate::field_path::{FieldPath, Path};
use crate::quantity::Quantity;

pub(super) const DEAD_VOLUME: &str = "dead-volume";
pub(super) const EMPTY_PULL_SECRET: &str = "empty-pull-secret";
pub(super) const FRACTIONAL_BYTES: &str = "fractional-bytes";
pub(super) const HIDDEN_ENV: &str = "hidden-env";
pub(super) const REPEATED_PORT: &str = "repeated-port";
pub(super) const SELECTS_NO_POD: &str = "selects-no-pod";

/// Ports whose repetition is looked for. Each is compared with those of its number
/// before it, and nobody declares more.
const MAX_PORTS: usize = 1_000;

/// Advice on the Pods of a Job.
pub(super) fn advise(pod: &PodSpec, path: &Path<'_>, found: &mut Vec<Advice>) {
    advise_on_spread(pod, path, found);
    let volumes = path.child("volumes");
    for (index, volume) in pod.volumes.iter().flatten().enumerate() {
        advise_on_volume(volume, &volumes.index(index), found);
    }
    advise_on_pull_secrets(pod, path, found);
    for_each_container(pod, path, |container, here| {
        advise_on_bytes(container, here, found);
        advise_on_env(container, here, found);
    });
    advise_on_ports(pod, path, found);
}

fn advise_on_spread(pod: &PodSpec, path: &Path<'_>, found: &mut Vec<Advice>) {
    let list = path.child("topologySpreadConstraints");
    for (index, constraint) in pod.topology_spread_constraints.iter().flatten().enumerate() {
        if constraint.label_selector.is_none() {
            let here = list.index(index);
            found.push(Advice::new(
                SELECTS_NO_POD,
                &here.child("labelSelector"),
                "a null labelSelector results in matching no pod",
                "select the Pods that are to be spread",
            ));
        }
    }
}

fn advise_on_volume(volume: &Volume, path: &Path<'_>, found: &mut Vec<Advice>) {
    const SINCE_25: &str = "deprecated in v1.22, non-functional in v1.25+";
    const SINCE_31: &str = "deprecated in v1.28, non-functional in v1.31+";
    for (field, is_used, message) in [
        (
            "photonPersistentDisk",
            volume.photon_persistent_disk.is_some(),
            "deprecated in v1.11, non-functional in v1.16+",
        ),
        (
            "gitRepo",
            volume.git_repo.is_some(),
            "deprecated in v1.11, and disabled by default in v1.33+",
        ),
        ("scaleIO", volume.scale_io.is_some(), "deprecated in v1.16, non-functional in v1.22+"),
        ("flocker", volume.flocker.is_some(), SINCE_25),
        ("storageos", volume.storageos.is_some(), SINCE_25),
        ("quobyte", volume.quobyte.is_some(), SINCE_25),
        ("glusterfs", volume.glusterfs.is_some(), "deprecated in v1.25, non-functional in v1.26+"),
        ("cephfs", volume.cephfs.is_some(), SINCE_31),
        ("rbd", volume.rbd.is_some(), SINCE_31),
    ] {
        if is_used {
            let here = path.child(field);
            found.push(Advice::new(
                DEAD_VOLUME,
                &here,
                message,
                "use a CSI driver or another kind of volume",
            ));
        }
    }
}

fn advise_on_pull_secrets(pod: &PodSpec, path: &Path<'_>, found: &mut Vec<Advice>) {
    let list = path.child("imagePullSecrets");
    for (index, secret) in pod.image_pull_secrets.iter().flatten().enumerate() {
        if secret.name.is_empty() {
            let here = list.index(index);
            found.push(Advice::new(
                EMPTY_PULL_SECRET,
                &here.child("name"),
                "invalid empty name \"\"",
                "name the Secret, or remove the item",
            ));
        }
    }
}

/// Memory and storage are counted in bytes; `100m` of them is a tenth of one.
fn advise_on_bytes(container: &Container, path: &Path<'_>, found: &mut Vec<Advice>) {
    let Some(resources) = &container.resources else {
        return;
    };
    let here = path.child("resources");
    let lists: [(&'static str, &Option<BTreeMap<String, QuantityText>>); 2] =
        [("limits", &resources.limits), ("requests", &resources.requests)];
    for (name, amounts) in lists {
        let list = here.child(name);
        for resource in ["memory", "ephemeral-storage"] {
            let amount = amounts.as_ref().and_then(|amounts| amounts.get(resource));
            let Some(amount) = amount.and_then(|amount| amount.0.trim().parse::<Quantity>().ok())
            else {
                continue;
            };
            if amount.milli_value() % 1_000 != 0 {
                let written = quote(&amount.to_string());
                found.push(Advice::new(
                    FRACTIONAL_BYTES,
                    &list.key(resource),
                    format!("fractional byte value {written} is invalid, must be an integer"),
                    "m means thousandths; for megabytes write M or Mi",
                ));
            }
        }
    }
}

/// A variable may be given again to add to its first value; anything else hides it.
fn advise_on_env(container: &Container, path: &Path<'_>, found: &mut Vec<Advice>) {
    let list = path.child("env");
    let mut seen = BTreeSet::new();
    for (index, variable) in container.env.iter().flatten().enumerate() {
        if variable.name.is_empty() || seen.insert(&variable.name) {
            continue;
        }
        let reference = format!("$({})", variable.name);
        let value = variable.value.as_deref().unwrap_or("");
        let adds_to_it =
            variable.value_from.is_none() && value != reference && value.contains(&reference);
        if !adds_to_it {
            let name = quote(&variable.name);
            found.push(Advice::new(
                HIDDEN_ENV,
                &list.index(index),
                format!(
                    "hides previous definition of {name}, which may be dropped when using apply"
                ),
                "give each variable once",
            ));
        }
    }
}

fn advise_on_ports(pod: &PodSpec, path: &Path<'_>, found: &mut Vec<Advice>) {
    let mut seen: BTreeMap<(i32, String), FieldPath> = BTreeMap::new();
    let mut port_count = 0;
    for_each_container(pod, path, |container, here| {
        let list = here.child("ports");
        for (index, port) in container.ports.iter().flatten().enumerate() {
            port_count += 1;
            // Of ports on the host, validation has its own to say.
            if port_count > MAX_PORTS || port.host_port.unwrap_or(0) != 0 {
                continue;
            }
            let protocol = port.protocol.clone().filter(|protocol| !protocol.is_empty());
            let key = (port.container_port, protocol.unwrap_or_else(|| "TCP".to_owned()));
            let here = list.index(index);
            match seen.get(&key) {
                Some(other) => found.push(Advice::new(
                    REPEATED_PORT,
                    &here,
                    format!("duplicate port definition with {other}"),
                    "declare each port once",
                )),
                None => {
                    seen.insert(key, here.to_field_path());
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The advice on a Pod, as `name path: message`.
    fn advice(pod: Value) -> Vec<String> {
        let pod = serde_json::from_value(pod).expect("the test's own Pod is well typed");
        let mut found = Vec::new();
        advise(&pod, &Path::field("spec"), &mut found);
        found
            .iter()
            .map(|advice| format!("{} {}: {}", advice.name, advice.path, advice.message))
            .collect()
    }

    fn container(rest: Value) -> Vec<String> {
        let mut container = json!({"name": "a"});
        container.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        advice(json!({"containers": [container]}))
    }

    fn none() -> Vec<String> {
        Vec::new()
    }

    #[test]
    fn a_variable_that_hides_another() {
        let env = |value: &str| {
            container(json!({"env": [{"name": "A", "value": "x"}, {"name": "A", "value": value}]}))
        };
        let hides = "hidden-env spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply";
        assert_eq!(env("z"), [hides]);
        assert_eq!(env("$(A)"), [hides]);
        assert_eq!(env("$(A):z"), none());
    }

    #[test]
    fn bytes_in_thousandths() {
        let memory = |text: &str| container(json!({"resources": {"limits": {"memory": text}}}));
        assert_eq!(
            memory("100m"),
            [
                "fractional-bytes spec.containers[0].resources.limits[memory]: fractional byte value \"100m\" is invalid, must be an integer"
            ]
        );
        assert_eq!(memory("1000m"), none());
        assert_eq!(memory("100M"), none());
        assert_eq!(container(json!({"resources": {"limits": {"cpu": "100m"}}})), none());
    }

    #[test]
    fn a_port_that_is_declared_twice() {
        let ports = |second: Value| container(json!({"ports": [{"containerPort": 80}, second]}));
        assert_eq!(
            ports(json!({"containerPort": 80, "protocol": "TCP"})),
            [
                "repeated-port spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]"
            ]
        );
        assert_eq!(ports(json!({"containerPort": 80, "protocol": "UDP"})), none());
        assert_eq!(ports(json!({"containerPort": 81})), none());
    }

    #[test]
    fn volumes_that_no_longer_work() {
        let volumes = json!([
            {"name": "a", "cephfs": {"monitors": []}}, {"name": "b", "emptyDir": {}},
        ]);
        assert_eq!(
            advice(json!({"containers": [], "volumes": volumes})),
            ["dead-volume spec.volumes[0].cephfs: deprecated in v1.28, non-functional in v1.31+"]
        );
    }

    #[test]
    fn names_and_selectors_that_are_not_there() {
        let pod = json!({
            "containers": [],
            "imagePullSecrets": [{"name": ""}, {"name": "x"}],
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule"},
                {"maxSkew": 1, "topologyKey": "l", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}},
            ],
        });
        assert_eq!(
            advice(pod),
            [
                "selects-no-pod spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
                "empty-pull-secret spec.imagePullSecrets[0].name: invalid empty name \"\"",
            ]
        );
    }
}
