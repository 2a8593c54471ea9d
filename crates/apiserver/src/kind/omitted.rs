//! What Go's types do not write: `false`, zero and empty texts of fields that are no pointers, and empty lists
//! and maps. Kubernetes reads them and forgets that they were there, so whoever sends one says nothing by it, owns no
//! field by it, and is not shown it again. Which fields these are is known by the schema. It must not know verbs.

use std::collections::HashSet;
use std::sync::LazyLock;

use memchr::memchr_iter;
use serde_json::{Map, Value};

use crate::object::KubernetesType;
use crate::schema::{self, Field, Holds, Message, Type};

/// An empty list of these is a wish of its own: that nobody owns anything any more.
const KEPT: &str = "managedFields";

/// Takes out of an object what Go would not write.
pub(super) fn drop_from<T: KubernetesType>(object: &mut T, message: Message) {
    let written = serde_json::to_value(&*object).expect("Kubernetes types serialise to JSON");
    let Value::Object(mut fields) = written else { unreachable!("an object is written as one") };
    if !is_in(&fields, message) {
        return;
    }
    drop_fields(&mut fields, message);
    // A time of a year below zero cannot be read again. What has one is refused when it is to be stored.
    if let Ok(read) = T::deserialize(Value::Object(fields)) {
        *object = read;
    }
}

/// Whether there may be something of the kind in a JSON text, by the names of its fields alone: most have
/// nothing, and need not be looked at any closer.
pub(super) fn may_be_in(json: &[u8]) -> bool {
    memchr_iter(b':', json).any(|colon| {
        // A name with escapes may be any.
        let may_be_omitted = |name: &[u8]| NAMES.contains(name) || name.contains(&b'\\');
        is_nothing(&json[colon + 1..]) && name_before(&json[..colon]).is_some_and(may_be_omitted)
    })
}

/// Whether there is something of the kind in these fields of a message.
pub(super) fn is_in(fields: &Map<String, Value>, message: Message) -> bool {
    message.iter().any(|field| {
        if let Holds::Inline(within) = field.holds {
            return is_in(fields, within);
        }
        let Some(value) = fields.get(field.name) else { return false };
        is_omitted(field, value)
            || within(field).is_some_and(|message| match value {
                Value::Object(fields) => is_in(fields, message),
                Value::Array(items) => {
                    items.iter().filter_map(Value::as_object).any(|item| is_in(item, message))
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
            })
    })
}

/// As deep as the schema, which has an end.
fn drop_fields(fields: &mut Map<String, Value>, message: Message) {
    for field in message {
        if let Holds::Inline(within) = field.holds {
            drop_fields(fields, within);
            continue;
        }
        let Some(value) = fields.get_mut(field.name) else { continue };
        if is_omitted(field, value) {
            fields.remove(field.name);
            continue;
        }
        let Some(message) = within(field) else { continue };
        match value {
            Value::Object(fields) => drop_fields(fields, message),
            Value::Array(items) => items
                .iter_mut()
                .filter_map(Value::as_object_mut)
                .for_each(|item| drop_fields(item, message)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// The message that a field holds once or often.
fn within(field: &Field) -> Option<Message> {
    match field.holds {
        Holds::One(of) | Holds::Nonzero(of) | Holds::List(of, _) => of.message(),
        Holds::Map(..) | Holds::Inline(_) => None,
    }
}

fn is_omitted(field: &Field, value: &Value) -> bool {
    match (field.holds, value) {
        (Holds::Nonzero(Type::Bool), Value::Bool(value)) => !value,
        (Holds::Nonzero(Type::Text | Type::Bytes), Value::String(text)) => text.is_empty(),
        (Holds::Nonzero(Type::Int32 | Type::Int64), Value::Number(number)) => {
            number.as_i64() == Some(0)
        }
        (Holds::List(..), Value::Array(items)) => can_be_omitted(field) && items.is_empty(),
        (Holds::Map(..), Value::Object(entries)) => can_be_omitted(field) && entries.is_empty(),
        _ => false,
    }
}

/// Whether there is a value of this field that Go would not write.
fn can_be_omitted(field: &Field) -> bool {
    match field.holds {
        Holds::Nonzero(_) => true,
        Holds::List(..) | Holds::Map(..) => !field.is_always && field.name != KEPT,
        Holds::One(_) | Holds::Inline(_) => false,
    }
}

/// The names of all fields that can be omitted, of any kind.
static NAMES: LazyLock<HashSet<&'static [u8]>> = LazyLock::new(|| {
    fn collect(message: Message, names: &mut HashSet<&'static [u8]>) {
        for field in message {
            if can_be_omitted(field) {
                names.insert(field.name.as_bytes());
            }
            let inline = if let Holds::Inline(within) = field.holds { Some(within) } else { None };
            inline.or(within(field)).into_iter().for_each(|message| collect(message, names));
        }
    }
    let mut names = HashSet::new();
    schema::KINDS.iter().for_each(|(.., message)| collect(message, &mut names));
    names
});

/// Whether a JSON text starts with a value that could be nothing.
fn is_nothing(json: &[u8]) -> bool {
    let is_closed_by = |rest: &[u8], end| rest.trim_ascii_start().first() == Some(&end);
    match json.trim_ascii_start() {
        [b'f' | b'0', ..] | [b'"', b'"', ..] => true,
        [b'[', rest @ ..] => is_closed_by(rest, b']'),
        [b'{', rest @ ..] => is_closed_by(rest, b'}'),
        _ => false,
    }
}

/// The name that a JSON text ends with.
fn name_before(json: &[u8]) -> Option<&[u8]> {
    let name = json.trim_ascii_end().strip_suffix(b"\"")?;
    let start = memchr::memrchr(b'"', name)?;
    Some(&name[start + 1..])
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    /// What is left of a Pod.
    fn left(pod: &Value) -> Value {
        let message = schema::of_kind("v1", "Pod").expect("Pods have a message");
        let mut read = Pod::deserialize(pod).expect("a Pod");
        drop_from(&mut read, message);
        serde_json::to_value(read).expect("JSON")["spec"].take()
    }

    #[test]
    fn what_go_does_not_write_is_dropped_and_all_else_stays() {
        let pod = json!({"spec": {
            "hostNetwork": false,
            "nodeName": "",
            "priority": 0,
            "enableServiceLinks": false,
            "nodeSelector": {},
            "tolerations": [],
            "securityContext": {},
            "volumes": [{"name": "v", "emptyDir": {"medium": ""}}],
            "containers": [{
                "name": "",
                "tty": false,
                "stdin": true,
                "command": [],
                "args": [""],
                "resources": {},
                "env": [{"name": "A", "value": ""}],
                "ports": [{"containerPort": 0, "hostPort": 0}],
                "livenessProbe": {"periodSeconds": 0, "exec": {"command": []}},
            }],
        }});
        let expected = json!({
            "priority": 0,
            "enableServiceLinks": false,
            "securityContext": {},
            "volumes": [{"name": "v", "emptyDir": {}}],
            "containers": [{
                "name": "",
                "stdin": true,
                "args": [""],
                "resources": {},
                "env": [{"name": "A"}],
                "ports": [{"containerPort": 0}],
                "livenessProbe": {"exec": {}},
            }],
        });
        assert_eq!(left(&pod), expected);
        assert_eq!(left(&json!({"spec": expected})), expected);
    }

    #[test]
    fn texts_that_may_hold_something_are_told_by_the_names_in_them() {
        for (text, expected) in [
            (r#"{"tty":false}"#, true),
            (r#"{"\u0074ty":false}"#, true),
            (r#"{"\u0074ty":true}"#, false),
            ("{\"tty\" :\n false}", true),
            (r#"{"value": ""}"#, true),
            (r#"{"hostPort":0}"#, true),
            (r#"{"labels":{ }}"#, true),
            (r#"{"args": [ ]}"#, true),
            (r#"{"tty":true,"value":"x","hostPort":80,"args":["x"]}"#, false),
            // These are shown whatever they are, pointers, or no fields at all.
            (r#"{"restartCount":0,"suspend":false,"emptyDir":{},"managedFields":[]}"#, false),
            (r#"{"data":{"some":""}}"#, false),
            (r#"{"a":"tty: false"}"#, false),
        ] {
            assert_eq!(may_be_in(text.as_bytes()), expected, "{text}");
        }
    }
}
