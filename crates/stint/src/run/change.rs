//! Whether a manifest has changed since an object was made of it. Values in, an answer out.

use serde_json::Value;

/// Whether a manifest says anything that is not so in the object. What the API server has added
/// to that is no difference, and neither is what a manifest does not say any more.
pub(crate) fn says_otherwise(manifest: &Value, object: &Value) -> bool {
    match (manifest, object) {
        (Value::Object(said), Value::Object(held)) => {
            said.iter().any(|(name, value)| match held.get(name) {
                Some(held) => says_otherwise(value, held),
                None => !is_nothing(value),
            })
        }
        (Value::Array(said), Value::Array(held)) => {
            said.len() != held.len()
                || said.iter().zip(held).any(|(said, held)| says_otherwise(said, held))
        }
        (said, held) => !is_nothing(said) && said != held,
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
    fn what_a_server_adds_is_no_change_and_what_a_person_does_is() {
        let object = json!({
            "parallelism": 2, "suspend": false,
            "template": {"spec": {"restartPolicy": "Never", "containers": [
                {"name": "main", "command": ["a", "b"], "terminationMessagePath": "/x"},
            ]}},
        });
        let containers = |all: Value| json!({"template": {"spec": {"containers": all}}});
        let rows = [
            (json!({}), false),
            (json!({"parallelism": 2}), false),
            (json!({"parallelism": 3}), true),
            (json!({"completions": 3}), true),
            (json!({"template": {"metadata": {"labels": {}}}}), false),
            (containers(json!([{"name": "main", "command": ["a", "b"]}])), false),
            (containers(json!([{"name": "main", "command": ["a"]}])), true),
            (containers(json!([{"name": "main", "args": ["a"]}])), true),
            (containers(json!([{"name": "main"}, {"name": "other"}])), true),
        ];
        for (manifest, expected) in rows {
            assert_eq!(says_otherwise(&manifest, &object), expected, "{manifest}");
        }
    }
}
