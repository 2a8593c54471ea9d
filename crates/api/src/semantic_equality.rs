//! Whether two values mean the same to Kubernetes, however they are written.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::field_path::{FieldPath, Segment};
use crate::quantity::Quantity;

/// Whether two objects mean the same: an empty list, map or text is as good as none, and
/// so is `false` where nothing means false; an empty object is not (`securityContext: {}`).
/// Quantities are compared by amount.
pub(crate) fn semantically_equal(one: &Value, two: &Value) -> bool {
    same(one, two, Meaning::Plain)
}

/// Whether a value of this field of a Job is as good as none: the API server does not keep it.
pub fn is_as_good_as_none(field: &str, value: &Value) -> bool {
    unless_empty(field, Some(value)).is_null()
}

/// The fields in which two objects mean something else, as deep as both have them, and no
/// more than `max_count` of them. `path` is that of the objects.
pub(crate) fn differences(
    one: &Value,
    two: &Value,
    path: FieldPath,
    max_count: usize,
) -> Vec<FieldPath> {
    let mut search = Search { path, max_count, found: Vec::new() };
    search.visit(one, two, Meaning::Plain);
    search.found
}

/// The JSON of a Kubernetes type.
pub(crate) fn json(value: impl Serialize) -> Value {
    serde_json::to_value(value).expect("Kubernetes types serialise to JSON")
}

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// Part of an object.
    Plain,
    /// A quantity, or a map of them.
    Quantity,
    /// A map, whose entries mean something even if their values are empty.
    Entries,
}

/// The fields of a Job that hold maps, or metadata, whose absence means that it is empty.
/// In JSON nothing else tells them from an object.
const MAP_FIELDS: &[&str] = &[
    "annotations",
    "labels",
    "limits",
    "matchLabels",
    "metadata",
    "nodeSelector",
    "options",
    "overhead",
    "requests",
    "volumeAttributes",
];

/// The fields of a Job that are false when they are absent. Of other flags, absent means
/// that something else decides.
const PLAIN_FLAGS: &[&str] =
    &["hostIPC", "hostNetwork", "hostPID", "readOnly", "stdin", "stdinOnce", "tty"];

/// The fields of a Pod that are zero when they are absent, and have no default.
const PLAIN_NUMBERS: &[&str] = &["hostPort", "initialDelaySeconds"];

/// The fields of a Job that hold quantities, or maps of them.
const QUANTITY_FIELDS: &[&str] = &["divisor", "limits", "overhead", "requests", "sizeLimit"];

fn same(one: &Value, two: &Value, meaning: Meaning) -> bool {
    match (one, two) {
        (Value::Object(one), Value::Object(two)) => {
            members(one, two, meaning).all(|(_, one, two, meaning)| same(one, two, meaning))
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

/// The members of two objects by their names, with what they mean.
fn members<'a>(
    one: &'a Map<String, Value>,
    two: &'a Map<String, Value>,
    meaning: Meaning,
) -> impl Iterator<Item = (&'a str, &'a Value, &'a Value, Meaning)> {
    let keys = one.keys().chain(two.keys().filter(|key| !one.contains_key(*key)));
    keys.map(move |key| {
        let (one, two) = (one.get(key), two.get(key));
        if meaning == Meaning::Entries {
            let (one, two) = (one.unwrap_or(&Value::Null), two.unwrap_or(&Value::Null));
            return (key.as_str(), one, two, Meaning::Entries);
        }
        let meaning = match key.as_str() {
            _ if meaning == Meaning::Quantity => Meaning::Quantity,
            key if QUANTITY_FIELDS.contains(&key) => Meaning::Quantity,
            "metadata" => Meaning::Plain,
            key if MAP_FIELDS.contains(&key) => Meaning::Entries,
            _ => Meaning::Plain,
        };
        (key.as_str(), unless_empty(key, one), unless_empty(key, two), meaning)
    })
}

/// A walk down two objects to where they differ.
struct Search {
    path: FieldPath,
    max_count: usize,
    found: Vec<FieldPath>,
}

impl Search {
    fn visit(&mut self, one: &Value, two: &Value, meaning: Meaning) {
        if self.found.len() == self.max_count || same(one, two, meaning) {
            return;
        }
        match (one, two) {
            (Value::Object(one), Value::Object(two)) => {
                for (key, one, two, below) in members(one, two, meaning) {
                    let step = match meaning {
                        Meaning::Plain => Segment::Field(key.to_owned().into()),
                        Meaning::Quantity | Meaning::Entries => Segment::Key(key.to_owned()),
                    };
                    self.descend(step, one, two, below);
                }
            }
            (Value::Array(one), Value::Array(two)) if one.len() == two.len() => {
                for (index, (one, two)) in one.iter().zip(two).enumerate() {
                    self.descend(Segment::Index(index), one, two, meaning);
                }
            }
            _ => self.found.push(self.path.clone()),
        }
    }

    fn descend(&mut self, step: Segment, one: &Value, two: &Value, meaning: Meaning) {
        self.path.push(step);
        self.visit(one, two, meaning);
        self.path.pop();
    }
}

fn same_amount(one: &str, two: &str) -> bool {
    matches!((one.parse::<Quantity>(), two.parse::<Quantity>()), (Ok(one), Ok(two)) if one == two)
}

fn unless_empty<'a>(key: &str, value: Option<&'a Value>) -> &'a Value {
    match value {
        None => &Value::Null,
        Some(Value::Array(items)) if items.is_empty() => &Value::Null,
        Some(Value::Object(map)) if MAP_FIELDS.contains(&key) && is_hollow(map) => &Value::Null,
        Some(Value::String(text)) if text.is_empty() => &Value::Null,
        Some(Value::Bool(false)) if PLAIN_FLAGS.contains(&key) => &Value::Null,
        Some(Value::Number(number))
            if PLAIN_NUMBERS.contains(&key) && number.as_i64() == Some(0) =>
        {
            &Value::Null
        }
        Some(value) => value,
    }
}

/// Whether a map holds nothing, or only what means nothing. An entry of a map proper
/// (a label) means something even if its value is empty.
fn is_hollow(map: &Map<String, Value>) -> bool {
    map.iter().all(|(key, value)| !value.is_string() && unless_empty(key, Some(value)).is_null())
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
            (json!({"hostNetwork": false, "subPath": ""}), json!({}), true),
            (json!({"hostNetwork": true}), json!({}), false),
            (json!({"hostPort": 0, "initialDelaySeconds": 0}), json!({}), true),
            (json!({"hostPort": 1}), json!({}), false),
            (json!({"enableServiceLinks": false}), json!({}), false),
            (json!({"metadata": {"labels": {}}}), json!({}), true),
            (json!({"metadata": {"labels": {"a": ""}}}), json!({}), false),
            (json!({"labels": {"a": ""}}), json!({}), false),
            (json!({"labels": {"a": ""}}), json!({"labels": {"a": "", "b": ""}}), false),
        ];
        for (one, two, expected) in rows {
            assert_eq!(semantically_equal(&one, &two), expected, "{one} {two}");
            assert_eq!(semantically_equal(&two, &one), expected, "{two} {one}");
        }
    }
    #[test]
    fn differences_are_named_where_they_are() {
        let one = json!({"a": [{"b": 1, "limits": {"cpu": "1"}}], "c": [1], "d": 1, "e": 2});
        let two = json!({"a": [{"b": 2, "limits": {"cpu": "2"}}], "c": [1, 2], "e": 2});
        let named = |max_count| -> Vec<String> {
            let found = differences(&one, &two, FieldPath::root(), max_count);
            found.iter().map(ToString::to_string).collect()
        };
        assert_eq!(named(9), ["a[0].b", "a[0].limits[cpu]", "c", "d"]);
        assert_eq!(named(2), ["a[0].b", "a[0].limits[cpu]"]);
        assert!(differences(&one, &one, FieldPath::root(), 9).is_empty());
    }
}
