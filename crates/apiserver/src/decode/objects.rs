//! How many objects a body may hold. Its bytes are limited before; this is about what they
//! become.

use serde_json::Value;
use stint_api::decode::{Node, NodeValue};

use crate::status::Status;

/// How many objects a body may hold, nested ones counted. An empty one takes two bytes of the
/// body and, as a container, two kilobytes once it is read: this keeps 3 MiB from becoming
/// 3 GiB. It is one for every thirty bytes of the largest body; those of real objects are
/// larger.
pub(crate) const MAX_OBJECTS: usize = 100_000;

/// Refuses a JSON text with too many. Of what is no JSON it counts what a reader would come to
/// before it notices.
pub(crate) fn check_json(json: &[u8]) -> Result<(), Status> {
    // An object has a first and a last byte.
    if json.len() / 2 <= MAX_OBJECTS {
        return Ok(());
    }
    let mut bytes = json.iter();
    let (mut count, mut is_text) = (0, false);
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => is_text = !is_text,
            b'\\' if is_text => {
                bytes.next();
            }
            b'{' if !is_text => count += 1,
            _ => {}
        }
    }
    check(count)
}

/// Refuses a tree with too many.
pub(crate) fn check_node(root: &Node) -> Result<(), Status> {
    check(in_node(root))
}

/// Refuses a value with too many, beside so many that are kept with it.
pub(crate) fn check_value(value: &Value, kept: usize) -> Result<(), Status> {
    check(in_value(value) + kept)
}

fn check(count: usize) -> Result<(), Status> {
    if count > MAX_OBJECTS { Err(Status::too_many_objects(MAX_OBJECTS)) } else { Ok(()) }
}

/// Trees are no deeper than their reader lets them be, which makes the recursion safe.
fn in_node(node: &Node) -> usize {
    match &node.value {
        NodeValue::Map(entries) => {
            1 + entries.iter().map(|entry| in_node(&entry.value)).sum::<usize>()
        }
        NodeValue::List(items) => items.iter().map(in_node).sum(),
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) => 0,
    }
}

/// The same for values, whose depth patches limit.
fn in_value(value: &Value) -> usize {
    match value {
        Value::Object(fields) => 1 + fields.values().map(in_value).sum::<usize>(),
        Value::Array(items) => items.iter().map(in_value).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An object that holds a list of so many others.
    fn holding(count: usize) -> String {
        format!(r#"{{"a":[{}]}}"#, vec!["{}"; count].join(","))
    }

    #[test]
    fn objects_are_counted_the_same_in_every_form() {
        for (count, is_refused) in [(MAX_OBJECTS - 1, false), (MAX_OBJECTS, true)] {
            let text = holding(count);
            assert_eq!(check_json(text.as_bytes()).is_err(), is_refused, "{count}");
            let value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(check_value(&value, 0).is_err(), is_refused, "{count}");
            assert!(check_value(&value, 1).is_err() || count < MAX_OBJECTS - 1, "{count}");
            let read = stint_api::decode::read_str(&text).into_iter().find_map(|read| read.root);
            assert_eq!(check_node(&read.expect("a root")).is_err(), is_refused, "{count}");
        }
    }

    #[test]
    fn braces_in_a_text_are_no_objects() {
        let braces = "{".repeat(3 * MAX_OBJECTS);
        for text in [format!(r#"{{"a":"{braces}"}}"#), format!(r#"{{"a":"\"{braces}\\"}}"#)] {
            assert!(check_json(text.as_bytes()).is_ok());
        }
        assert!(check_json(format!(r#"{{"a":"\\",{braces}"#).as_bytes()).is_err());
    }
}
