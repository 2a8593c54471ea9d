//! What the Pods of a Job cannot do without: ConfigMaps and Secrets that they read, and the
//! ServiceAccount that they are to have. Nobody can bring those while a run waits for them.

use std::fmt;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Container, PodSpec, Volume};
use serde_json::Value;

use super::manifests::Beside;

/// An object that must be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    /// Where the Job asks for it.
    field: String,
    pub(crate) kind: Beside,
    pub(crate) name: String,
    /// What it must have.
    key: Option<String>,
}

impl Need {
    /// What a person can do who does not have it.
    pub(crate) fn else_do(&self) -> &'static str {
        match self.kind {
            Beside::ServiceAccount => "take that out",
            _ => "say optional: true there",
        }
    }

    /// Whether an object of that kind and name is what is needed.
    pub(crate) fn is_met_by(&self, object: &Value) -> bool {
        let has = |key: &String| {
            ["data", "binaryData"].iter().any(|field| !object[field][key.as_str()].is_null())
        };
        self.key.as_ref().is_none_or(has)
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Need { field, kind, name, key } = self;
        let kind = kind.name();
        match key {
            None if kind == "ServiceAccount" => write!(f, "{field} names the {kind} {name}"),
            Some(key) => write!(f, "{field} reads the key {key} of the {kind} {name}"),
            None => write!(f, "{field} reads the {kind} {name}"),
        }
    }
}

/// All that a Job's Pods need.
pub(crate) fn of_job(job: &Job) -> Vec<Need> {
    let Some(pod) = job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref()) else {
        return Vec::new();
    };
    let mut needs = Needs::default();
    for (field, containers) in lists(pod) {
        for (number, container) in containers.iter().enumerate() {
            needs.of_container(&format!("{field}[{number}]"), container);
        }
    }
    for (number, volume) in pod.volumes.iter().flatten().enumerate() {
        needs.of_volume(&format!("{POD}.volumes[{number}]"), volume);
    }
    // The one that every namespace has need not be named.
    let account = pod.service_account_name.as_deref().or(pod.service_account.as_deref());
    if let Some(name) = account.filter(|name| !["", "default"].contains(name)) {
        let field = format!("{POD}.serviceAccountName");
        needs.add(field, Beside::ServiceAccount, name, None, None);
    }
    needs.all
}

const POD: &str = "spec.template.spec";

fn lists(pod: &PodSpec) -> [(String, &[Container]); 2] {
    let inits = pod.init_containers.as_deref().unwrap_or_default();
    [(format!("{POD}.initContainers"), inits), (format!("{POD}.containers"), &pod.containers)]
}

#[derive(Default)]
struct Needs {
    all: Vec<Need>,
}

impl Needs {
    fn add(
        &mut self,
        field: String,
        kind: Beside,
        name: &str,
        key: Option<&str>,
        optional: Option<bool>,
    ) {
        if optional != Some(true) {
            let (name, key) = (name.to_owned(), key.map(str::to_owned));
            self.all.push(Need { field, kind, name, key });
        }
    }

    fn of_container(&mut self, field: &str, container: &Container) {
        for (number, source) in container.env_from.iter().flatten().enumerate() {
            let field = format!("{field}.envFrom[{number}]");
            if let Some(it) = &source.config_map_ref {
                let field = format!("{field}.configMapRef");
                self.add(field, Beside::ConfigMap, &it.name, None, it.optional);
            }
            if let Some(it) = &source.secret_ref {
                let field = format!("{field}.secretRef");
                self.add(field, Beside::Secret, &it.name, None, it.optional);
            }
        }
        for (number, variable) in container.env.iter().flatten().enumerate() {
            let Some(source) = &variable.value_from else { continue };
            let field = format!("{field}.env[{number}].valueFrom");
            if let Some(it) = &source.config_map_key_ref {
                let field = format!("{field}.configMapKeyRef");
                self.add(field, Beside::ConfigMap, &it.name, Some(&it.key), it.optional);
            }
            if let Some(it) = &source.secret_key_ref {
                let field = format!("{field}.secretKeyRef");
                self.add(field, Beside::Secret, &it.name, Some(&it.key), it.optional);
            }
        }
    }

    fn of_volume(&mut self, field: &str, volume: &Volume) {
        if let Some(it) = &volume.config_map {
            let field = format!("{field}.configMap");
            self.add(field, Beside::ConfigMap, &it.name, None, it.optional);
        }
        if let Some(it) = &volume.secret {
            let name = it.secret_name.as_deref().unwrap_or_default();
            self.add(format!("{field}.secret"), Beside::Secret, name, None, it.optional);
        }
        let projected = volume.projected.as_ref().and_then(|it| it.sources.as_ref());
        for (number, source) in projected.into_iter().flatten().enumerate() {
            let field = format!("{field}.projected.sources[{number}]");
            if let Some(it) = &source.config_map {
                let field = format!("{field}.configMap");
                self.add(field, Beside::ConfigMap, &it.name, None, it.optional);
            }
            if let Some(it) = &source.secret {
                self.add(format!("{field}.secret"), Beside::Secret, &it.name, None, it.optional);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_is_found_that_is_not_optional() {
        let job: Job = serde_json::from_value(json!({"spec": {"template": {"spec": {
            "serviceAccountName": "who",
            "initContainers": [{"name": "i", "envFrom": [{"secretRef": {"name": "s"}}]}],
            "containers": [{"name": "c",
                "envFrom": [{"configMapRef": {"name": "m"}},
                    {"configMapRef": {"name": "no", "optional": true}}],
                "env": [{"name": "A", "value": "a"},
                    {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}},
                    {"name": "C", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}],
            "volumes": [{"name": "v", "configMap": {"name": "m"}},
                {"name": "w", "secret": {"secretName": "s"}},
                {"name": "x", "projected": {"sources": [{"configMap": {"name": "m"}},
                    {"secret": {"name": "s"}},
                    {"secret": {"name": "no", "optional": true}}]}}],
        }}}}))
        .expect("it is a Job");
        let told: Vec<String> = of_job(&job).iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "spec.template.spec.initContainers[0].envFrom[0].secretRef reads the Secret s",
                "spec.template.spec.containers[0].envFrom[0].configMapRef reads the ConfigMap m",
                "spec.template.spec.containers[0].env[1].valueFrom.configMapKeyRef reads the key k \
                 of the ConfigMap m",
                "spec.template.spec.containers[0].env[2].valueFrom.secretKeyRef reads the key k of \
                 the Secret s",
                "spec.template.spec.volumes[0].configMap reads the ConfigMap m",
                "spec.template.spec.volumes[1].secret reads the Secret s",
                "spec.template.spec.volumes[2].projected.sources[0].configMap reads the ConfigMap m",
                "spec.template.spec.volumes[2].projected.sources[1].secret reads the Secret s",
                "spec.template.spec.serviceAccountName names the ServiceAccount who",
            ]
        );
        let with_key = &of_job(&job)[2];
        assert!(with_key.is_met_by(&json!({"data": {"k": ""}})));
        assert!(with_key.is_met_by(&json!({"binaryData": {"k": "AA=="}})));
        assert!(!with_key.is_met_by(&json!({"data": {"l": ""}})));
    }
}
