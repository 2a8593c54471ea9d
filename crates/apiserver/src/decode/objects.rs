//! How many objects and other values a body may hold. Its bytes are limited before; this is about what they
//! become.

use serde_json::Value;
use stint_api::decode::{Node, NodeValue};

use crate::status::Status;

/// How many objects a body may hold, nested ones counted. An empty one takes two bytes of the
/// body and, as a container, two kilobytes once it is read: this keeps 3 MiB from becoming
/// 3 GiB. It is one for every thirty bytes of the largest body; those of real objects are
/// larger.
pub(crate) const MAX_OBJECTS: usize = 100_000;

/// How many values a body may hold that hold no others, texts and numbers. A list of empty texts has
/// one for every three bytes, and each becomes a text of its own, with an error or two about it. It is
/// one for every eight bytes of the largest body: an entry of a map, which is what legal objects are
/// full of, takes at least as many once there are more than a thousand, as none has the name of another.
pub(crate) const MAX_SCALARS: usize = 3 * 1024 * 1024 / 8;

/// Refuses a JSON text with too many. Of what is no JSON it counts what a reader would come to
/// before it notices.
pub(crate) fn check_json(json: &[u8]) -> Result<(), Status> {
    // An object has a first and a last byte.
    if json.len() / 2 <= MAX_OBJECTS {
        return Ok(());
    }
    let mut bytes = json.iter();
    // What is not the first of a list or of an object comes after a comma.
    let (mut count, mut separators, mut is_text) = (0, 0, false);
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => is_text = !is_text,
            b'\\' if is_text => {
                bytes.next();
            }
            b'{' if !is_text => count += 1,
            b',' | b'[' if !is_text => separators += 1,
            _ => {}
        }
    }
    check(Count { objects: count, scalars: separators })
}

/// Refuses a tree with too many.
pub(crate) fn check_node(root: &Node) -> Result<(), Status> {
    check(in_node(root))
}

/// Refuses a value with too many, beside so many that are kept with it.
pub(crate) fn check_value(value: &Value, kept: usize) -> Result<(), Status> {
    let Count { objects, scalars } = in_value(value);
    check(Count { objects: objects + kept, scalars })
}

/// How much there is in a body.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    objects: usize,
    scalars: usize,
}

impl std::ops::Add for Count {
    type Output = Count;

    fn add(self, other: Count) -> Count {
        Count { objects: self.objects + other.objects, scalars: self.scalars + other.scalars }
    }
}

const OBJECT: Count = Count { objects: 1, scalars: 0 };
const SCALAR: Count = Count { objects: 0, scalars: 1 };

fn check(count: Count) -> Result<(), Status> {
    if count.objects > MAX_OBJECTS {
        return Err(Status::too_many_objects(MAX_OBJECTS));
    }
    if count.scalars > MAX_SCALARS { Err(Status::too_many_scalars(MAX_SCALARS)) } else { Ok(()) }
}

/// Trees are no deeper than their reader lets them be, which makes the recursion safe.
fn in_node(node: &Node) -> Count {
    match &node.value {
        NodeValue::Map(entries) => {
            entries.iter().fold(OBJECT, |count, entry| count + in_node(&entry.value))
        }
        NodeValue::List(items) => {
            items.iter().fold(Count::default(), |count, item| count + in_node(item))
        }
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) | NodeValue::String(_) => {
            SCALAR
        }
    }
}

/// The same for values, whose depth patches limit.
fn in_value(value: &Value) -> Count {
    match value {
        Value::Object(fields) => {
            fields.values().fold(OBJECT, |count, field| count + in_value(field))
        }
        Value::Array(items) => {
            items.iter().fold(Count::default(), |count, item| count + in_value(item))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => SCALAR,
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
    fn texts_and_numbers_are_counted_in_every_form() {
        for (item, count, is_refused) in [
            ("\"\"", MAX_SCALARS - 10, false),
            ("\"\"", MAX_SCALARS + 10, true),
            ("1", MAX_SCALARS + 10, true),
        ] {
            let text = format!(r#"{{"a":[{}]}}"#, vec![item; count].join(","));
            assert_eq!(check_json(text.as_bytes()).is_err(), is_refused, "{count}");
            let value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(check_value(&value, 0).is_err(), is_refused, "{count}");
        }
        // As many short keys as the largest body holds.
        let mut keys = String::new();
        for n in 0.. {
            keys.push_str(&format!(r#","{n:x}":"""#));
            if keys.len() > 3 * 1024 * 1024 - 20 {
                break;
            }
        }
        let text = format!(r#"{{"data":{{{}}}}}"#, &keys[1..]);
        assert!(check_json(text.as_bytes()).is_ok());
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
