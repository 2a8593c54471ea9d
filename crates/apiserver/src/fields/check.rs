//! What is wrong with an applied object, by the schema and in Kubernetes' words. It knows no
//! rules of any kind.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Write};

use serde_json::Value;
use stint_api::field_error::quote;

use super::element::Element;
use super::merge::element_of;
use super::shape::{Shape, Whole, find};
use crate::schema::{Message, Type};

/// The most problems of an object that are told.
const MAX_PROBLEMS: usize = 100;

/// The most of a value, and the most of a path, that is told.
const MAX_TOLD_BYTES: usize = 1000;

/// What is wrong with an applied object, if something is.
pub fn problems(object: &Value, message: Message) -> Option<String> {
    let mut found = Vec::new();
    let mut path = Vec::new();
    // The type is no part of the schema.
    if let Value::Object(members) = object {
        for (name, value) in members {
            let is_type = matches!(name.as_str(), "apiVersion" | "kind");
            let shape =
                if is_type { Some(Shape::Scalar(Type::Text)) } else { field(message, name) };
            member(name, value, shape, &mut path, &mut found);
        }
    }
    found.truncate(MAX_PROBLEMS);
    match found.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("errors:\n  {}", many.join("\n  "))),
    }
}

fn field(message: Message, name: &str) -> Option<Shape> {
    find(message, name).map(Shape::of_field)
}

fn member<'v>(
    name: &'v str,
    value: &'v Value,
    shape: Option<Shape>,
    path: &mut Vec<Element<'v>>,
    found: &mut Vec<String>,
) {
    path.push(Element::Field(name.into()));
    match shape {
        Some(shape) => check(value, shape, path, found),
        None => push(found, path, "field not declared in schema"),
    }
    path.pop();
}

/// The depth is that of the schema.
fn check<'v>(value: &'v Value, shape: Shape, path: &mut Vec<Element<'v>>, found: &mut Vec<String>) {
    if value.is_null() || found.len() > MAX_PROBLEMS {
        return;
    }
    let members = |shape_of: &dyn Fn(&str) -> Option<Shape>,
                   path: &mut Vec<Element<'v>>,
                   found: &mut Vec<String>| {
        let Value::Object(members) = value else {
            return push(
                found,
                path,
                &format!("expected map, got &{{{}}}", shortened(go_text(value))),
            );
        };
        for (name, value) in members {
            let shape = shape_of(name);
            let is_unknown = shape.is_none();
            member(name, value, shape, path, found);
            if is_unknown {
                break;
            }
        }
    };
    match shape {
        Shape::Scalar(of) => {
            if let Some(why) = wrong_scalar(value, of) {
                push(found, path, &why);
            }
        }
        Shape::Message(message) | Shape::Atomic(Whole::Message(message)) => {
            members(&|name| field(message, name), path, found);
        }
        Shape::Map(of) | Shape::Atomic(Whole::Map(of)) => {
            members(&|_| Some(Shape::Scalar(of)), path, found);
        }
        Shape::Set(of) | Shape::Keyed(of, _) | Shape::Atomic(Whole::List(of)) => {
            check_items(value, shape, of, path, found);
        }
    }
}

fn check_items<'v>(
    value: &'v Value,
    shape: Shape,
    of: Type,
    path: &mut Vec<Element<'v>>,
    found: &mut Vec<String>,
) {
    let Value::Array(items) = value else {
        return push(
            found,
            path,
            &format!("expected list, got &{{{}}}", shortened(go_text(value))),
        );
    };
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let element = if matches!(shape, Shape::Atomic(_)) {
            Element::Index(index as i64)
        } else {
            match element_of(item, shape) {
                Some(element) => element,
                None => {
                    let why = wrong_item(item, shape);
                    return push(found, path, &format!("element {index}: {why}"));
                }
            }
        };
        if !matches!(shape, Shape::Atomic(_)) && !seen.insert(element.clone()) {
            push(found, path, &format!("duplicate entries for key {}", shortened(&element)));
        }
        path.push(element);
        check(item, Shape::of(of), path, found);
        path.pop();
    }
}

fn wrong_item(item: &Value, shape: Shape) -> String {
    match (shape, item) {
        (Shape::Keyed(..), Value::Null) => {
            "associative list with keys may not have a null element".into()
        }
        (Shape::Keyed(_, keys), Value::Object(_)) => {
            let names: Vec<String> = keys.iter().map(|key| quote(key.name)).collect();
            format!(
                "associative list with keys has an element that omits all key fields [{}] (and \
                 doesn't have default values for any key fields)",
                names.join(" ")
            )
        }
        (Shape::Keyed(..), _) => "associative list with keys may not have non-map elements".into(),
        (_, Value::Object(_)) => {
            "associative list without keys has an element that's a map type".into()
        }
        (_, Value::Array(_)) => "not supported: associative list with lists as elements".into(),
        (_, _) => "associative list without keys has an element that's an explicit null".into(),
    }
}

fn wrong_scalar(value: &Value, of: Type) -> Option<String> {
    match of {
        Type::Text | Type::Bytes if !value.is_string() => {
            let shown = shortened(go_syntax(value));
            Some(format!("expected string, got &value.valueUnstructured{{Value:{shown}}}"))
        }
        Type::Bool if !value.is_boolean() => {
            Some(format!("expected boolean, got &{{{}}}", shortened(go_text(value))))
        }
        Type::Int32 | Type::Int64 if !value.is_number() => {
            Some(format!("expected numeric (int or float), got {}", go_type(value)))
        }
        Type::Time | Type::MicroTime | Type::Quantity | Type::IntOrString
            if value.is_object() || value.is_array() =>
        {
            Some(format!("expected any scalar, got &{{{}}}", shortened(go_text(value))))
        }
        _ => None,
    }
}

fn push(found: &mut Vec<String>, path: &[Element<'_>], why: &str) {
    let mut told = Told::default();
    // It has no more room only when it has enough.
    let _ = path.iter().try_for_each(|element| write!(told, "{element}"));
    let path = told.0;
    found.push(if path.is_empty() { why.to_owned() } else { format!("{path}: {why}") });
}

/// As much of something as is told of it.
fn shortened(what: impl Display) -> String {
    let mut told = Told::default();
    let _ = write!(told, "{what}");
    told.0
}

/// A text that says so when it is cut.
#[derive(Default)]
struct Told(String);

impl fmt::Write for Told {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let room = MAX_TOLD_BYTES - self.0.len();
        if more.len() <= room {
            self.0.push_str(more);
            return Ok(());
        }
        self.0.push_str(&more[..more.floor_char_boundary(room)]);
        self.0.push_str("...");
        Err(fmt::Error)
    }
}

/// A value as Go's `%v` writes it.
fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_text).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("{name}:{}", go_text(value))).collect();
            format!("map[{}]", members.join(" "))
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// A value as Go's `%#v` writes it.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(members) => {
            let member =
                |(name, value): (&String, &Value)| format!("{}:{}", quote(name), go_syntax(value));
            let members: Vec<String> = members.iter().map(member).collect();
            format!("map[string]interface {{}}{{{}}}", members.join(", "))
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
        Value::Bool(_) => "bool",
        Value::Number(_) => "float64",
    }
}
