//! One value of a tree as serde sees it.
//!
//! A place is a serde deserializer that knows where it is. What to do about a
//! value of the wrong type is decided by the pass it belongs to.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::{BorrowedStrDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::formats::{is_quantity, is_rfc3339};
use super::node::{Entry, Node, NodeValue, path_name, shortened};
use super::problem::{Problem, ProblemKind};
use super::type_words::Expected;
use super::typed::{Fault, Pass};
use super::{base64, suggest};
use crate::field_error::quote;
use crate::field_path::{FieldPath, Segment};

/// A value about to be read, and where it is.
#[derive(Clone, Copy)]
pub(super) struct Place<'p, 'n> {
    pub(super) node: &'n Node,
    /// The member this is the value of, and the fields its struct has.
    key: Option<(&'n Entry, Fields)>,
    /// The value has a problem and is read as null instead.
    is_null: bool,
    pub(super) trail: &'p Trail<'p>,
    pass: &'p Pass,
}

/// The names of a struct's fields; none for a map, which takes any key.
type Fields = Option<&'static [&'static str]>;

impl<'p, 'n> Place<'p, 'n> {
    /// The root of a tree.
    pub(super) fn root(node: &'n Node, pass: &'p Pass) -> Self {
        Self {
            node,
            key: None,
            is_null: false,
            trail: &Trail { parent: None, step: Step::Root },
            pass,
        }
    }

    fn value(&self) -> &'n NodeValue {
        if self.is_null { &NodeValue::Null } else { &self.node.value }
    }

    /// Reports that the value is not what it should be. The caller hands out a
    /// stand-in, which the next pass does away with.
    fn mistyped(&self, expected: Expected) {
        self.pass.report(self.node, self.node.span, || {
            let (message, help) = expected.but_found(self.node);
            let mut problem = Problem::new(ProblemKind::Type, self.node.span, message)
                .at(self.trail.to_field_path());
            problem.help = help;
            problem
        });
        self.pass.leave_out(self.node);
    }

    fn unknown_field(&self, entry: &Entry, fields: &[&str]) {
        self.pass.report(self.node, entry.key_span, || {
            let message = format!("unknown field {}", quote(&shortened(&entry.key)));
            let help = match suggest::closest(&entry.key, fields.iter().copied()) {
                Some(field) => format!("did you mean \"{field}\"?"),
                None => format!("the fields here are: {}", fields.join(", ")),
            };
            Problem::new(ProblemKind::Unknown, entry.key_span, message)
                .at(self.trail.to_field_path())
                .help(help)
        });
    }

    /// The text of the value; a stand-in if it is no string.
    fn text(&self, expected: Expected) -> &'n str {
        match self.value() {
            NodeValue::String(text) => text,
            NodeValue::Null => "",
            _ => {
                self.mistyped(expected);
                ""
            }
        }
    }

    /// The value as an integer; a stand-in if it is none or out of range.
    fn integer(&self, min: i128, max: i128) -> i128 {
        let value = match self.value() {
            NodeValue::Null => return 0,
            NodeValue::Number(number) => number.as_integer(),
            _ => None,
        };
        match value {
            Some(value) if (min..=max).contains(&value) => value,
            _ => {
                self.mistyped(Expected::Integer(min, max));
                0
            }
        }
    }

    fn float(&self) -> f64 {
        match self.value() {
            NodeValue::Null => 0.0,
            NodeValue::Number(number) => number.as_f64(),
            _ => {
                self.mistyped(Expected::Number);
                0.0
            }
        }
    }

    fn items(&self) -> &'n [Node] {
        match self.value() {
            NodeValue::List(items) => items,
            NodeValue::Null => &[],
            _ => {
                self.mistyped(Expected::List);
                &[]
            }
        }
    }

    fn entries(&self) -> &'n [Entry] {
        match self.value() {
            NodeValue::Map(entries) => entries,
            NodeValue::Null => &[],
            _ => {
                self.mistyped(Expected::Mapping);
                &[]
            }
        }
    }

    /// A quantity may be written as a number, whose digits are kept as they are.
    fn quantity(&self) -> String {
        match self.value() {
            NodeValue::Null => return "0".to_owned(),
            NodeValue::Number(number) => return number.to_string(),
            NodeValue::String(text) if is_quantity(text.trim()) => return text.trim().to_owned(),
            _ => self.mistyped(Expected::Quantity),
        }
        "0".to_owned()
    }

    fn time(&self) -> String {
        match self.value() {
            NodeValue::String(text) if is_rfc3339(text) => return text.clone(),
            _ => self.mistyped(Expected::Time),
        }
        "1970-01-01T00:00:00Z".to_owned()
    }

    fn list<'s>(&'s self) -> Items<'s, 'n> {
        Items { items: self.items().iter().enumerate(), place: self }
    }

    fn members<'s>(&'s self, fields: Fields) -> Members<'s, 'n> {
        Members { entries: self.entries().iter(), current: None, fields, place: self }
    }
}

macro_rules! integers {
    ($($method:ident $type:ident $visit:ident $wide:ident,)*) => {$(
        fn $method<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Fault> {
            let value = self.integer(i128::from($type::MIN), i128::from($type::MAX));
            visitor.$visit(value as $wide)
        }
    )*};
}

impl<'n> Deserializer<'n> for Place<'_, 'n> {
    type Error = Fault;

    integers! {
        deserialize_i8 i8 visit_i64 i64,
        deserialize_i16 i16 visit_i64 i64,
        deserialize_i32 i32 visit_i64 i64,
        deserialize_i64 i64 visit_i64 i64,
        deserialize_u8 u8 visit_u64 u64,
        deserialize_u16 u16 visit_u64 u64,
        deserialize_u32 u32 visit_u64 u64,
        deserialize_u64 u64 visit_u64 u64,
    }

    /// Whatever the value is. Two types come here and say no more than their
    /// name: `IntOrString`, and JSON itself.
    fn deserialize_any<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Fault> {
        if Wanted(&visitor).to_string() == "IntOrString" {
            return match self.value() {
                NodeValue::String(text) => visitor.visit_str(text),
                NodeValue::Null => visitor.visit_i64(0),
                NodeValue::Number(number) => match number.as_integer().map(i32::try_from) {
                    Some(Ok(value)) => visitor.visit_i32(value),
                    _ => {
                        self.mistyped(Expected::IntOrString);
                        visitor.visit_i32(0)
                    }
                },
                _ => {
                    self.mistyped(Expected::IntOrString);
                    visitor.visit_i32(0)
                }
            };
        }
        match self.value() {
            NodeValue::Null => visitor.visit_unit(),
            NodeValue::Bool(value) => visitor.visit_bool(*value),
            NodeValue::String(text) => visitor.visit_str(text),
            NodeValue::Number(number) => match number.as_integer() {
                Some(value) => {
                    if let Ok(value) = u64::try_from(value) {
                        visitor.visit_u64(value)
                    } else if let Ok(value) = i64::try_from(value) {
                        visitor.visit_i64(value)
                    } else {
                        visitor.visit_f64(number.as_f64())
                    }
                }
                None => visitor.visit_f64(number.as_f64()),
            },
            NodeValue::List(_) => visitor.visit_seq(self.list()),
            NodeValue::Map(_) => visitor.visit_map(self.members(None)),
        }
    }

    fn deserialize_bool<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value() {
            NodeValue::Bool(value) => visitor.visit_bool(*value),
            NodeValue::Null => visitor.visit_bool(false),
            _ => {
                self.mistyped(Expected::Boolean);
                visitor.visit_bool(false)
            }
        }
    }

    fn deserialize_f32<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_f64(self.float())
    }

    fn deserialize_f64<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_f64(self.float())
    }

    fn deserialize_string<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_str(self.text(Expected::String))
    }

    /// Strings that mean something else come here, byte strings among them.
    fn deserialize_str<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Fault> {
        if Wanted(&visitor).to_string() != "a base64-encoded string" {
            return visitor.visit_str(self.text(Expected::String));
        }
        let text = self.text(Expected::Base64);
        if base64::decode(text).is_none() {
            self.mistyped(Expected::Base64);
            return visitor.visit_str("");
        }
        // Go's decoder passes over line breaks, the type's own does not.
        visitor.visit_string(text.replace(['\n', '\r'], ""))
    }

    fn deserialize_option<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value() {
            NodeValue::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'n>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let text = match name {
            "Quantity" => self.quantity(),
            "Time" | "MicroTime" => self.time(),
            _ => return visitor.visit_newtype_struct(self),
        };
        let inner: StringDeserializer<Fault> = text.into_deserializer();
        visitor.visit_newtype_struct(inner)
    }

    fn deserialize_seq<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_seq(self.list())
    }

    fn deserialize_tuple<V: Visitor<'n>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_seq(self.list())
    }

    fn deserialize_tuple_struct<V: Visitor<'n>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_seq(self.list())
    }

    fn deserialize_map<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_map(self.members(None))
    }

    fn deserialize_struct<V: Visitor<'n>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.pass.charge(fields.len(), self.node)?;
        visitor.visit_map(self.members(Some(fields)))
    }

    fn deserialize_enum<V: Visitor<'n>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_enum(self.text(Expected::String).into_deserializer())
    }

    /// Types read a field they do not know this way.
    fn deserialize_ignored_any<V: Visitor<'n>>(self, visitor: V) -> Result<V::Value, Fault> {
        if let Some((entry, Some(fields))) = self.key {
            self.unknown_field(entry, fields);
        }
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        <W: Visitor<'n>>
        i128 u128 char bytes byte_buf unit unit_struct identifier
    }
}

struct Items<'p, 'n> {
    items: std::iter::Enumerate<std::slice::Iter<'n, Node>>,
    place: &'p Place<'p, 'n>,
}

impl<'n> SeqAccess<'n> for Items<'_, 'n> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'n>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let pass = self.place.pass;
        let Some((index, node)) = self.items.find(|(_, node)| !pass.is_removed(node)) else {
            return Ok(None);
        };
        let place = Place {
            node,
            key: None,
            is_null: pass.is_left_out(node),
            trail: &Trail { parent: Some(self.place.trail), step: Step::Index(index) },
            pass,
        };
        let value = seed.deserialize(place).map_err(|fault| fault.at(&place))?;
        Ok(Some(value))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Members<'p, 'n> {
    entries: std::slice::Iter<'n, Entry>,
    current: Option<&'n Entry>,
    fields: Fields,
    place: &'p Place<'p, 'n>,
}

impl<'n> MapAccess<'n> for Members<'_, 'n> {
    type Error = Fault;

    fn next_key_seed<S: DeserializeSeed<'n>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let pass = self.place.pass;
        self.current = self.entries.find(|entry| !pass.is_left_out(&entry.value));
        match self.current {
            Some(entry) => seed.deserialize(BorrowedStrDeserializer::new(&entry.key)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<S: DeserializeSeed<'n>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let entry = self.current.expect("a value is asked for after its key");
        let step = match self.fields {
            Some(_) => Step::Field(&entry.key),
            None => Step::Key(&entry.key),
        };
        let place = Place {
            node: &entry.value,
            key: Some((entry, self.fields)),
            is_null: false,
            trail: &Trail { parent: Some(self.place.trail), step },
            pass: self.place.pass,
        };
        seed.deserialize(place).map_err(|fault| fault.at(&place))
    }
}

/// The way from the root, as a chain of borrowed steps that costs nothing until
/// a problem is found.
#[derive(Clone, Copy)]
pub(super) struct Trail<'a> {
    parent: Option<&'a Trail<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

impl Trail<'_> {
    pub(super) fn to_field_path(self) -> FieldPath {
        let mut segments = Vec::new();
        let mut here = Some(&self);
        while let Some(trail) = here {
            match trail.step {
                Step::Root => {}
                Step::Field(name) => segments.push(Segment::Field(Cow::Owned(path_name(name)))),
                Step::Key(key) => segments.push(Segment::Key(path_name(key))),
                Step::Index(index) => segments.push(Segment::Index(index)),
            }
            here = trail.parent;
        }
        segments.reverse();
        FieldPath::from_segments(segments)
    }
}

/// What a visitor says it wants; types that serde has no name for can only be
/// told by it.
struct Wanted<'v, V>(&'v V);

impl<'n, V: Visitor<'n>> fmt::Display for Wanted<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }
}
