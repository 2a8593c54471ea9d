//! Whether two values mean the same to Kubernetes, however they are written.

use serde::Serialize;
use serde_json::Value;

use crate::quantity::Quantity;

/// Whether two objects mean the same: an empty list or map is as good as none, but an
/// empty object is not (`securityContext: {}`), and quantities are compared by amount.
pub(crate) fn semantically_equal(one: &Value, two: &Value) -> bool {
    same(one, two, Meaning::Plain)
}

/// The JSON of a Kubernetes type.
pub(crate) fn json(value: impl Serialize) -> Value {
    serde_json::to_value(value).expect("Kubernetes types serialise to JSON")
}

/// What a text stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Plain,
    Quantity,
}

/// The fields of a Job that hold maps. In JSON nothing else tells a map from an object.
const MAP_FIELDS: &[&str] = &[
    "annotations",
    "labels",
    "limits",
    "matchLabels",
    "nodeSelector",
    "options",
    "overhead",
    "requests",
    "volumeAttributes",
];

/// The fields of a Job that hold quantities, or maps of them.
const QUANTITY_FIELDS: &[&str] = &["divisor", "limits", "overhead", "requests", "sizeLimit"];

fn same(one: &Value, two: &Value, meaning: Meaning) -> bool {
    match (one, two) {
        (Value::Object(one), Value::Object(two)) => {
            let keys = one.keys().chain(two.keys().filter(|key| !one.contains_key(*key)));
            keys.into_iter().all(|key| {
                let is_quantity =
                    meaning == Meaning::Quantity || QUANTITY_FIELDS.contains(&key.as_str());
                let meaning = if is_quantity { Meaning::Quantity } else { Meaning::Plain };
                same(unless_empty(key, one.get(key)), unless_empty(key, two.get(key)), meaning)
            })
        }
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| same(one, two, meaning))
        }
        (Value::String(one), Value::String(two)) if meaning == Meaning::Quantity => {
            one == two || same_amount(one, two)
        }
        _ => one == two,
    }
}

fn same_amount(one: &str, two: &str) -> bool {
    matches!((one.parse::<Quantity>(), two.parse::<Quantity>()), (Ok(one), Ok(two)) if one == two)
}

fn unless_empty<'a>(key: &str, value: Option<&'a Value>) -> &'a Value {
    match value {
        None => &Value::Null,
        Some(Value::Array(items)) if items.is_empty() => &Value::Null,
        Some(Value::Object(map)) if map.is_empty() && MAP_FIELDS.contains(&key) => &Value::Null,
        Some(value) => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_mean_the_same_are_equal() {
        let size = |text: &str| json!({"emptyDir": {"sizeLimit": text}});
        let limit = |name: &str, text: &str| json!({"limits": {name: text}});
        let rows = [
            (json!({"tolerations": []}), json!({}), true),
            (json!({"labels": {}}), json!({"labels": null}), true),
            (json!({"securityContext": {}}), json!({}), false),
            (limit("memory", "1000Ki"), limit("memory", "1024k"), true),
            (limit("cpu", "1"), limit("cpu", "1000m"), true),
            (limit("cpu", "1"), limit("cpu", "2"), false),
            (limit("cpu", "x"), limit("cpu", "y"), false),
            (size("1Gi"), size("1024Mi"), true),
            (json!({"image": "1"}), json!({"image": "1000m"}), false),
            (json!({"args": ["a", "b"]}), json!({"args": ["b", "a"]}), false),
        ];
        for (one, two, expected) in rows {
            assert_eq!(semantically_equal(&one, &two), expected, "{one} {two}");
            assert_eq!(semantically_equal(&two, &one), expected, "{two} {one}");
        }
    }
}
