//! What a manifest says otherwise than the object that was made of it. Values in, values out.

use std::fmt;

use serde_json::Value;
use stint_api::semantic_equality::is_as_good_as_none;

use crate::printable::printable;

/// Most characters of a value that is told.
const MAX_VALUE_CHARS: usize = 120;

/// A field of which a manifest says something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Its path, as in `spec.template.spec.containers[0].image`.
    pub(crate) path: String,
    held: Option<Value>,
    said: Value,
}

impl Difference {
    /// The field of the spec that it is within.
    pub(crate) fn field(&self) -> &str {
        let second = self.path.find('.').map_or(0, |dot| dot + 1);
        let end = self.path[second..].find(['.', '[']).map(|end| second + end);
        &self.path[..end.unwrap_or(self.path.len())]
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Value| printable(&value.to_string(), MAX_VALUE_CHARS);
        let held = self.held.as_ref().map_or_else(|| "not there".to_owned(), shown);
        write!(f, "{} was {held} and is {}", self.path, shown(&self.said))
    }
}

/// The fields of which a manifest says what is not so in the object, in the order of their names;
/// `path` leads to both. What the API server has added to the object is no difference, and neither
/// is what a manifest does not say any more.
pub(crate) fn differences(path: &str, manifest: &Value, object: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(path, manifest, Some(object), &mut found);
    found
}

fn compare(path: &str, said: &Value, held: Option<&Value>, found: &mut Vec<Difference>) {
    match (said, held) {
        (Value::Object(said), Some(Value::Object(held))) => {
            for (name, value) in said {
                if !held.contains_key(name) && is_as_good_as_none(name, value) {
                    continue;
                }
                compare(&format!("{path}.{name}"), value, held.get(name), found);
            }
        }
        (Value::Array(said), Some(Value::Array(held))) if said.len() == held.len() => {
            for (number, (said, held)) in said.iter().zip(held).enumerate() {
                compare(&format!("{path}[{number}]"), said, Some(held), found);
            }
        }
        (said, held) if is_nothing(said) || Some(said) == held => {}
        (said, held) => {
            let (held, said) = (held.cloned(), said.clone());
            found.push(Difference { path: path.to_owned(), held, said });
        }
    }
}

/// Whether it is what the API server leaves out.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_nothing),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_server_adds_is_no_change_and_what_a_person_does_is_named() {
        let object = json!({
            "parallelism": 2, "suspend": false,
            "template": {"spec": {"restartPolicy": "Never", "containers": [
                {"name": "main", "command": ["a", "b"], "terminationMessagePath": "/x"},
            ]}},
        });
        let containers = |all: Value| json!({"template": {"spec": {"containers": all}}});
        let rows = [
            (json!({}), None),
            (json!({"parallelism": 2}), None),
            (json!({"parallelism": 3}), Some("spec.parallelism was 2 and is 3")),
            (json!({"completions": 3}), Some("spec.completions was not there and is 3")),
            (json!({"template": {"metadata": {"labels": {}}}}), None),
            // What Kubernetes does not keep.
            (containers(json!([{"name": "main", "workingDir": "", "tty": false}])), None),
            (
                containers(json!([{"name": ""}])),
                Some(r#"spec.template.spec.containers[0].name was "main" and is """#),
            ),
            (
                json!({"manualSelector": false}),
                Some("spec.manualSelector was not there and is false"),
            ),
            (containers(json!([{"name": "main", "command": ["a", "b"]}])), None),
            (
                containers(json!([{"name": "main", "command": ["a"]}])),
                Some(r#"spec.template.spec.containers[0].command was ["a","b"] and is ["a"]"#),
            ),
            (
                containers(json!([{"name": "main", "command": ["a", "c"]}])),
                Some(r#"spec.template.spec.containers[0].command[1] was "b" and is "c""#),
            ),
            (
                containers(json!([{"name": "main", "args": ["a"]}])),
                Some(r#"spec.template.spec.containers[0].args was not there and is ["a"]"#),
            ),
        ];
        for (manifest, expected) in rows {
            let found = differences("spec", &manifest, &object);
            let told = found.first().map(ToString::to_string);
            assert_eq!(told.as_deref(), expected, "{manifest}");
        }
        let more = containers(json!([{"name": "main"}, {"name": "other"}]));
        let found = differences("spec", &more, &object);
        assert_eq!(found[0].path, "spec.template.spec.containers");
    }
}
