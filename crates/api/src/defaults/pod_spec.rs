//! What kube-apiserver fills in in the spec of a Pod, and of a template alike.
//!
//! A template gets less than a Pod does: what only a Pod gets is not here. A text
//! that is given but empty counts as absent, as it does in Go.

mod container;
mod image;
mod volume;

use k8s_openapi::api::core::v1::{PodSpec, ResourceFieldSelector, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as QuantityText;

use crate::quantity::Quantity;
use crate::resource_list::round_up;

const TERMINATION_GRACE_PERIOD_SECONDS: i64 = 30;

/// Fills in what a spec leaves out, and writes its quantities the way the API server
/// returns them. Doing it twice changes nothing more.
pub(super) fn default_pod_spec(spec: &mut PodSpec) {
    default_own_fields(spec);
    for volume in spec.volumes.iter_mut().flatten() {
        volume::default_volume(volume);
    }
    for container in spec.init_containers.iter_mut().flatten() {
        container::default_container(container);
    }
    for container in &mut spec.containers {
        container::default_container(container);
    }
    round_up(&mut spec.overhead);
    default_resources(&mut spec.resources);
}

fn default_own_fields(spec: &mut PodSpec) {
    default_text(&mut spec.dns_policy, "ClusterFirst");
    default_text(&mut spec.restart_policy, "Always");
    spec.security_context.get_or_insert_default();
    spec.termination_grace_period_seconds.get_or_insert(TERMINATION_GRACE_PERIOD_SECONDS);
    default_text(&mut spec.scheduler_name, "default-scheduler");
    // The old name of the service account is kept the same as the new one.
    let name = [&spec.service_account_name, &spec.service_account]
        .into_iter()
        .flatten()
        .find(|name| !name.is_empty())
        .cloned();
    if let Some(name) = name {
        spec.service_account = Some(name.clone());
        spec.service_account_name = Some(name);
    }
}

pub(super) fn default_resources(resources: &mut Option<ResourceRequirements>) {
    if let Some(resources) = resources {
        round_up(&mut resources.limits);
        round_up(&mut resources.requests);
    }
}

/// Writes a quantity that is not a resource as the server would.
fn rewrite(amount: &mut QuantityText) {
    if let Ok(quantity) = amount.0.trim().parse::<Quantity>() {
        amount.0 = quantity.to_string();
    }
}

/// A divisor is no pointer in Go, so that an absent one comes back as zero.
fn default_divisor(reference: &mut ResourceFieldSelector) {
    let zero = || QuantityText("0".to_owned());
    rewrite(reference.divisor.get_or_insert_with(zero));
}

fn default_text(field: &mut Option<String>, value: &str) {
    if field.as_deref().unwrap_or("").is_empty() {
        *field = Some(value.to_owned());
    }
}

fn default_number(field: &mut Option<i32>, value: i32) {
    if field.unwrap_or(0) == 0 {
        *field = Some(value);
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PodTemplateSpec;
    use serde_json::{Value, json};

    use crate::defaults::pod_template::default_pod_template;

    fn defaulted(template: Value) -> Value {
        let mut template: PodTemplateSpec = serde_json::from_value(template).expect("a template");
        default_pod_template(&mut template);
        let once = serde_json::to_value(&template).expect("JSON");
        default_pod_template(&mut template);
        assert_eq!(serde_json::to_value(&template).expect("JSON"), once);
        once
    }

    #[test]
    fn an_empty_template_gets_the_pods_defaults() {
        assert_eq!(
            defaulted(json!({}))["spec"],
            json!({
                "containers": [],
                "dnsPolicy": "ClusterFirst",
                "restartPolicy": "Always",
                "schedulerName": "default-scheduler",
                "securityContext": {},
                "terminationGracePeriodSeconds": 30,
            })
        );
    }

    #[test]
    fn an_empty_text_counts_as_absent() {
        let spec = json!({"containers": [], "dnsPolicy": "", "schedulerName": ""});
        let spec = &defaulted(json!({"spec": spec}))["spec"];
        assert_eq!(spec["dnsPolicy"], "ClusterFirst");
        assert_eq!(spec["schedulerName"], "default-scheduler");
    }

    #[test]
    fn the_two_names_of_a_service_account_are_the_same() {
        for given in ["serviceAccount", "serviceAccountName"] {
            let spec = &defaulted(json!({"spec": {"containers": [], given: "robot"}}))["spec"];
            assert_eq!(spec["serviceAccount"], "robot");
            assert_eq!(spec["serviceAccountName"], "robot");
        }
    }

    #[test]
    fn quantities_are_rounded_up_and_written_canonically() {
        let amounts = json!({"cpu": "0.5", "memory": "1024Mi", "a.io/x": "0.0001", "b.io/x": "no"});
        let template = json!({"spec": {
            "containers": [{"name": "a", "resources": {"limits": amounts}}],
            "overhead": {"cpu": "1.5"},
            "resources": {"requests": {"memory": "0.5Gi"}},
        }});
        let spec = &defaulted(template)["spec"];
        assert_eq!(
            spec["containers"][0]["resources"]["limits"],
            json!({"cpu": "500m", "memory": "1Gi", "a.io/x": "1m", "b.io/x": "no"})
        );
        assert_eq!(spec["overhead"]["cpu"], "1500m");
        assert_eq!(spec["resources"]["requests"]["memory"], "512Mi");
    }

    #[test]
    fn containers_and_their_parts_are_filled_in() {
        let probe = json!({"httpGet": {"port": 80}, "successThreshold": 2});
        let container = json!({"name": "a", "image": "busybox", "livenessProbe": probe,
            "readinessProbe": {"grpc": {"port": 1}},
            "lifecycle": {"preStop": {"httpGet": {"port": 80}}},
            "ports": [{"containerPort": 80}],
            "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "B", "valueFrom": {"fileKeyRef": {"key": "k", "path": "p",
                    "volumeName": "v"}}},
                {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu",
                    "divisor": "1000m"}}}]});
        let spec = json!({"containers": [container], "initContainers": [container]});
        let spec = &defaulted(json!({"spec": spec}))["spec"];
        for container in [&spec["containers"][0], &spec["initContainers"][0]] {
            assert_eq!(container["imagePullPolicy"], "Always");
            assert_eq!(container["terminationMessagePath"], "/dev/termination-log");
            assert_eq!(container["terminationMessagePolicy"], "File");
            assert_eq!(
                container["livenessProbe"],
                json!({"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}, "periodSeconds": 10,
                    "timeoutSeconds": 1, "successThreshold": 2, "failureThreshold": 3})
            );
            assert_eq!(container["readinessProbe"]["grpc"]["service"], "");
            assert_eq!(container["lifecycle"]["preStop"]["httpGet"]["path"], "/");
            assert_eq!(container["ports"][0]["protocol"], "TCP");
            let sources = &container["env"];
            assert_eq!(sources[0]["valueFrom"]["fieldRef"]["apiVersion"], "v1");
            assert_eq!(sources[1]["valueFrom"]["fileKeyRef"]["optional"], false);
            assert_eq!(sources[2]["valueFrom"]["resourceFieldRef"]["divisor"], "1");
        }
    }

    #[test]
    fn volumes_are_filled_in() {
        let volumes = json!([
            {"name": "a"},
            {"name": "b", "hostPath": {"path": "/"}},
            {"name": "c", "secret": {"secretName": "s"}},
            {"name": "d", "configMap": {"name": "m", "defaultMode": 256}},
            {"name": "e", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {"name": "f", "ephemeral": {"volumeClaimTemplate": {"spec":
                {"resources": {"requests": {"storage": "0.5Gi"}}}}}},
            {"name": "g", "image": {"reference": "busybox:1.36"}},
            {"name": "h", "rbd": {"image": "i", "monitors": []}},
        ]);
        let spec = json!({"containers": [], "volumes": volumes});
        let volumes = &defaulted(json!({"spec": spec}))["spec"]["volumes"];
        assert_eq!(volumes[0], json!({"name": "a", "emptyDir": {}}));
        assert_eq!(volumes[1]["hostPath"]["type"], "");
        assert_eq!(volumes[2]["secret"]["defaultMode"], 0o644);
        assert_eq!(volumes[3]["configMap"]["defaultMode"], 256);
        let token = &volumes[4]["projected"]["sources"][0]["serviceAccountToken"];
        assert_eq!(token["expirationSeconds"], 3600);
        let claim = &volumes[5]["ephemeral"]["volumeClaimTemplate"]["spec"];
        assert_eq!(claim["volumeMode"], "Filesystem");
        assert_eq!(claim["resources"]["requests"]["storage"], "512Mi");
        assert_eq!(volumes[6]["image"]["pullPolicy"], "IfNotPresent");
        assert_eq!(volumes[7]["rbd"]["keyring"], "/etc/ceph/keyring");
    }
}
