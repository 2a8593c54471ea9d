//! The schema against the types of k8s-openapi: neither has a field that the other does not.

use std::collections::BTreeSet;

use serde_json::Value;
use stint_apiserver::schema::{Holds, KINDS, Message, Type};

use crate::everything::Everything;
use crate::typed;

#[test]
fn the_schema_has_the_fields_of_the_types_and_no_others() {
    let mut count = 0;
    for (api_version, kind, message) in KINDS {
        let object = typed::through(api_version, kind, Everything::ROOT).expect("an object");
        let (mut typed, mut known) = (BTreeSet::new(), BTreeSet::new());
        paths_of_object(&object, kind, &mut typed);
        paths_of_message(message, kind, &mut known);
        let missing: Vec<_> = typed.difference(&known).collect();
        let unknown: Vec<_> = known.difference(&typed).collect();
        assert!(missing.is_empty(), "{api_version} {kind} lacks {missing:#?}");
        assert!(unknown.is_empty(), "{api_version} {kind} has {unknown:#?}");
        count += known.len();
    }
    assert!(count > 2000, "only {count} fields were compared");
}

/// The path of every value, with the JSON type of those that are no objects.
fn paths_of_object(value: &Value, path: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                paths_of_object(field, &format!("{path}.{name}"), into);
            }
            into.insert(path.to_owned());
        }
        Value::Array(items) => {
            items.iter().for_each(|item| paths_of_object(item, &format!("{path}[]"), into));
        }
        Value::Bool(_) => drop(into.insert(format!("{path} bool"))),
        Value::Number(_) => drop(into.insert(format!("{path} number"))),
        Value::String(_) | Value::Null => drop(into.insert(format!("{path} text"))),
    }
}

fn paths_of_message(message: Message, path: &str, into: &mut BTreeSet<String>) {
    into.insert(path.to_owned());
    for field in message {
        let path = format!("{path}.{}", field.name);
        match field.holds {
            Holds::One(of) | Holds::Nonzero(of) => paths_of_type(of, &path, into),
            Holds::List(of, _) => paths_of_type(of, &format!("{path}[]"), into),
            Holds::Map(of, _) => {
                into.insert(path.clone());
                paths_of_type(of, &format!("{path}.key"), into);
            }
            Holds::Inline(within) => {
                paths_of_message(within, path.trim_end_matches('.'), into);
            }
        }
    }
}

fn paths_of_type(of: Type, path: &str, into: &mut BTreeSet<String>) {
    let json = match of {
        Type::Object(message) | Type::Atomic(message) => {
            return paths_of_message(message, path, into);
        }
        Type::Bool => "bool",
        Type::Int32 | Type::Int64 => "number",
        Type::Text
        | Type::Bytes
        | Type::Time
        | Type::MicroTime
        | Type::Quantity
        | Type::IntOrString
        | Type::RawJson => "text",
    };
    into.insert(format!("{path} {json}"));
}
