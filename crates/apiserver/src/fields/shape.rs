//! What the schema says of a value where fields are compared and merged. It knows no values.

use std::borrow::Cow;

use super::element::{Element, Scalar};
use crate::schema::{Field, Holds, Key, KeyDefault, ListType, MapType, Message, Type};

/// What of a value can be owned by itself.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// Nothing: it is a scalar.
    Scalar(Type),
    /// Nothing: it is owned as a whole, a list or an object.
    Atomic(Whole),
    /// Each of these fields.
    Message(Message),
    /// Each entry of a map; its values are scalars.
    Map(Type),
    /// Each value of a list; they are scalars.
    Set(Type),
    /// Each item of a list, which has these keys.
    Keyed(Type, &'static [Key]),
}

/// What is owned as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whole {
    /// A list of these.
    List(Type),
    /// A map of these.
    Map(Type),
    /// An object with these fields.
    Message(Message),
}

impl Shape {
    /// Of what a field holds.
    pub(super) fn of_field(field: &Field) -> Shape {
        match field.holds {
            Holds::One(of) | Holds::Nonzero(of) => Shape::of(of),
            Holds::List(of, ListType::Atomic) => Shape::Atomic(Whole::List(of)),
            Holds::List(of, ListType::Set) => Shape::Set(of),
            Holds::List(of, ListType::Map(keys)) => Shape::Keyed(of, keys),
            Holds::Map(of, MapType::Atomic) => Shape::Atomic(Whole::Map(of)),
            Holds::Map(of, MapType::Granular) => Shape::Map(of),
            Holds::Inline(message) => Shape::Message(message),
        }
    }

    /// Of an item, or of what is there once.
    pub(super) fn of(of: Type) -> Shape {
        match of {
            Type::Object(message) => Shape::Message(message),
            Type::Atomic(message) => Shape::Atomic(Whole::Message(message)),
            Type::Text
            | Type::Bool
            | Type::Int32
            | Type::Int64
            | Type::Bytes
            | Type::Time
            | Type::MicroTime
            | Type::Quantity
            | Type::IntOrString
            | Type::RawJson => Shape::Scalar(of),
        }
    }

    /// Of what is below a step, if the schema knows it.
    pub(super) fn below(self, element: &super::Element<'_>) -> Option<Shape> {
        use super::Element;
        match (self, element) {
            (Shape::Message(message), Element::Field(name)) => {
                find(message, name).map(Shape::of_field)
            }
            (Shape::Map(of), Element::Field(_)) | (Shape::Set(of), Element::Value(_)) => {
                Some(Shape::Scalar(of))
            }
            (Shape::Keyed(of, _), Element::Key(_)) => Some(Shape::of(of)),
            _ => None,
        }
    }
}

/// The field of a name.
pub(super) fn find(message: Message, name: &str) -> Option<&'static Field> {
    message.iter().find_map(|field| match field.holds {
        Holds::Inline(within) => find(within, name),
        _ => (field.name == name).then_some(field),
    })
}

/// Calls with every field that Go shows though nothing is set, and with how it shows it.
pub(super) fn each_always(message: Message, visit: &mut dyn FnMut(&'static Field, &'static str)) {
    for field in message {
        match field.holds {
            Holds::Inline(within) => each_always(within, visit),
            _ if !field.is_always => {}
            Holds::List(..) | Holds::Map(..) => visit(field, "null"),
            Holds::One(of) | Holds::Nonzero(of) => visit(field, zero(of)),
        }
    }
}

fn zero(of: Type) -> &'static str {
    match of {
        Type::Object(_) | Type::Atomic(_) => "{}",
        Type::Text | Type::Bytes => "\"\"",
        Type::Quantity => "\"0\"",
        Type::Bool => "false",
        Type::Int32 | Type::Int64 | Type::IntOrString => "0",
        Type::Time | Type::MicroTime | Type::RawJson => "null",
    }
}

/// What tells an item of a list apart by the values of its keys; nothing, if it has none of them.
pub(super) fn key_of<'v>(
    keys: &'static [Key],
    value: impl Fn(&str) -> Option<Scalar<'v>>,
) -> Option<Element<'v>> {
    let mut fields = Vec::with_capacity(keys.len());
    for key in keys {
        let value = match (value(key.name), key.default) {
            (Some(value), _) => value,
            (None, Some(KeyDefault::Text(text))) => Scalar::Text(Cow::Borrowed(text)),
            (None, Some(KeyDefault::Number(number))) => Scalar::Int(number),
            (None, None) => continue,
        };
        fields.push((Cow::Borrowed(key.name), value));
    }
    (!fields.is_empty()).then_some(Element::Key(fields))
}
