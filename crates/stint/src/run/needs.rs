//! What the Pods of a Job cannot do without: ConfigMaps and Secrets that they read, and the
//! ServiceAccount that they are to have. Nobody can bring those while a run waits for them.

use std::fmt;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Container, KeyToPath, PodSpec, Volume};
use serde_json::Value;

use super::manifests::Beside;

/// An object that must be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    /// Where the Job asks for it.
    pub(crate) field: String,
    pub(crate) kind: Beside,
    pub(crate) name: String,
    part: Part,
}

/// What of it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Whole,
    /// A key whose text becomes a variable, which bytes cannot.
    Variable(String),
    /// A key that becomes a file.
    File(String),
}

impl Need {
    /// What is wrong with the object of that kind and name, or that there is none, and what to do about
    /// it; nothing if it is what is needed.
    pub(crate) fn lack(&self, found: Option<&Value>) -> Option<(String, String)> {
        let else_do = match self.kind {
            Beside::ServiceAccount => "take that out",
            Beside::ConfigMap | Beside::Secret | Beside::Namespace | Beside::Service => {
                "say optional: true there"
            }
        };
        let Some(object) = found else {
            let help = format!("add the file that has it to the command line, or {else_do}");
            return Some(("which is not there".to_owned(), help));
        };
        let has = |field: &str, key: &String| !object[field][key.as_str()].is_null();
        let (key, is_met) = match &self.part {
            Part::Whole => return None,
            Part::Variable(key) => (key, has("data", key)),
            Part::File(key) => (key, has("data", key) || has("binaryData", key)),
        };
        if is_met {
            return None;
        }
        if has("binaryData", key) {
            let lack = "which is in its binaryData, and no variable can be made of that";
            let help = format!("put it into data, or {else_do}");
            return Some((lack.to_owned(), help));
        }
        let help = format!("give it that key, read another, or {else_do}");
        Some((format!("and that has {}", keys_of(object)), help))
    }
}

/// Most keys of an object that are named.
const MAX_KEYS: usize = 8;

/// The keys that an object has.
fn keys_of(object: &Value) -> String {
    let of = |field: &str| object[field].as_object().into_iter().flat_map(|it| it.keys());
    let mut keys: Vec<&str> = of("data").chain(of("binaryData")).map(String::as_str).collect();
    keys.sort_unstable();
    match keys.as_slice() {
        [] => "no keys".to_owned(),
        [only] => format!("only {only}"),
        several if several.len() <= MAX_KEYS => format!("only {}", several.join(", ")),
        several => {
            let rest = several.len() - MAX_KEYS;
            format!("only {} and {rest} others", several[..MAX_KEYS].join(", "))
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Need { kind, name, part, .. } = self;
        let verb = if *kind == Beside::ServiceAccount { "names" } else { "reads" };
        let kind = kind.name();
        match part {
            Part::Variable(key) | Part::File(key) => {
                write!(f, "it {verb} the key {key} of the {kind} {name}")
            }
            Part::Whole => write!(f, "it {verb} the {kind} {name}"),
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
        needs.add(field, Beside::ServiceAccount, name, Part::Whole, None);
    }
    needs.all
}

pub(crate) const POD: &str = "spec.template.spec";

/// The containers of a Pod with the fields that they are in, in the order in which they run.
pub(crate) fn lists(pod: &PodSpec) -> [(String, &[Container]); 2] {
    let inits = pod.init_containers.as_deref().unwrap_or_default();
    [(format!("{POD}.initContainers"), inits), (format!("{POD}.containers"), &pod.containers)]
}

#[derive(Default)]
struct Needs {
    all: Vec<Need>,
}

impl Needs {
    fn add(&mut self, field: String, kind: Beside, name: &str, part: Part, optional: Option<bool>) {
        if optional != Some(true) {
            self.all.push(Need { field, kind, name: name.to_owned(), part });
        }
    }

    /// An object that becomes files: all of its keys, or those that are named.
    fn of_files(
        &mut self,
        field: &str,
        kind: Beside,
        name: &str,
        items: Option<&[KeyToPath]>,
        optional: Option<bool>,
    ) {
        self.add(field.to_owned(), kind, name, Part::Whole, optional);
        for (number, item) in items.unwrap_or_default().iter().enumerate() {
            let field = format!("{field}.items[{number}]");
            self.add(field, kind, name, Part::File(item.key.clone()), optional);
        }
    }

    fn of_container(&mut self, field: &str, container: &Container) {
        for (number, source) in container.env_from.iter().flatten().enumerate() {
            let field = format!("{field}.envFrom[{number}]");
            if let Some(it) = &source.config_map_ref {
                let field = format!("{field}.configMapRef");
                self.add(field, Beside::ConfigMap, &it.name, Part::Whole, it.optional);
            }
            if let Some(it) = &source.secret_ref {
                let field = format!("{field}.secretRef");
                self.add(field, Beside::Secret, &it.name, Part::Whole, it.optional);
            }
        }
        for (number, variable) in container.env.iter().flatten().enumerate() {
            let Some(source) = &variable.value_from else { continue };
            let field = format!("{field}.env[{number}].valueFrom");
            if let Some(it) = &source.config_map_key_ref {
                let field = format!("{field}.configMapKeyRef");
                let key = Part::Variable(it.key.clone());
                self.add(field, Beside::ConfigMap, &it.name, key, it.optional);
            }
            if let Some(it) = &source.secret_key_ref {
                let field = format!("{field}.secretKeyRef");
                let key = Part::Variable(it.key.clone());
                self.add(field, Beside::Secret, &it.name, key, it.optional);
            }
        }
    }

    fn of_volume(&mut self, field: &str, volume: &Volume) {
        if let Some(it) = &volume.config_map {
            let field = format!("{field}.configMap");
            self.of_files(&field, Beside::ConfigMap, &it.name, it.items.as_deref(), it.optional);
        }
        if let Some(it) = &volume.secret {
            let (field, name) = (format!("{field}.secret"), it.secret_name.as_deref());
            let name = name.unwrap_or_default();
            self.of_files(&field, Beside::Secret, name, it.items.as_deref(), it.optional);
        }
        let projected = volume.projected.as_ref().and_then(|it| it.sources.as_ref());
        for (number, source) in projected.into_iter().flatten().enumerate() {
            let field = format!("{field}.projected.sources[{number}]");
            if let Some(it) = &source.config_map {
                let (field, items) = (format!("{field}.configMap"), it.items.as_deref());
                self.of_files(&field, Beside::ConfigMap, &it.name, items, it.optional);
            }
            if let Some(it) = &source.secret {
                let (field, items) = (format!("{field}.secret"), it.items.as_deref());
                self.of_files(&field, Beside::Secret, &it.name, items, it.optional);
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
            "volumes": [{"name": "v", "configMap": {"name": "m",
                    "items": [{"key": "f", "path": "p"}]}},
                {"name": "w", "secret": {"secretName": "s"}},
                {"name": "x", "projected": {"sources": [{"configMap": {"name": "m"}},
                    {"secret": {"name": "s"}},
                    {"secret": {"name": "no", "optional": true}}]}}],
        }}}}))
        .expect("it is a Job");
        let told: Vec<String> =
            of_job(&job).iter().map(|it| format!("{} {it}", it.field)).collect();
        assert_eq!(
            told,
            [
                "spec.template.spec.initContainers[0].envFrom[0].secretRef it reads the Secret s",
                "spec.template.spec.containers[0].envFrom[0].configMapRef it reads the ConfigMap m",
                "spec.template.spec.containers[0].env[1].valueFrom.configMapKeyRef it reads the \
                 key k of the ConfigMap m",
                "spec.template.spec.containers[0].env[2].valueFrom.secretKeyRef it reads the key k of \
                 the Secret s",
                "spec.template.spec.volumes[0].configMap it reads the ConfigMap m",
                "spec.template.spec.volumes[0].configMap.items[0] it reads the key f of the \
                 ConfigMap m",
                "spec.template.spec.volumes[1].secret it reads the Secret s",
                "spec.template.spec.volumes[2].projected.sources[0].configMap it reads the ConfigMap m",
                "spec.template.spec.volumes[2].projected.sources[1].secret it reads the Secret s",
                "spec.template.spec.serviceAccountName it names the ServiceAccount who",
            ]
        );
        let [variable, file] = [2, 5].map(|number| of_job(&job)[number].clone());
        let lack = |need: &Need, object: &Value| need.lack(Some(object)).map(|(lack, _)| lack);
        let text = json!({"data": {"k": "", "f": ""}});
        assert_eq!((lack(&variable, &text), lack(&file, &text)), (None, None));
        // Bytes become a file, and no variable.
        let bytes = json!({"binaryData": {"k": "AA==", "f": "AA=="}});
        let told = lack(&variable, &bytes).expect("it is no text");
        assert!(told.starts_with("which is in its binaryData"), "{told}");
        assert_eq!(lack(&file, &bytes), None);
        let other = json!({"data": {"l": ""}, "binaryData": {"b": ""}});
        for need in [&variable, &file] {
            assert_eq!(lack(need, &other).as_deref(), Some("and that has only b, l"));
            assert_eq!(lack(need, &json!({})).as_deref(), Some("and that has no keys"));
            assert_eq!(need.lack(None).expect("there is none").0, "which is not there");
        }
        let many: serde_json::Map<String, Value> =
            (0..10).map(|it| (it.to_string(), json!(""))).collect();
        let told = lack(&file, &json!({"data": many}));
        assert_eq!(told.as_deref(), Some("and that has only 0, 1, 2, 3, 4, 5, 6, 7 and 2 others"));
    }
}
