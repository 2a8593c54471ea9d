//! A document as a tree of plain values that know where they came from.
//!
//! A node is what JSON can say and nothing more: YAML's anchors, tags and styles
//! are gone by the time it exists. It knows nothing of Kubernetes types.

use std::fmt;

use serde_json::Value;

use super::number::Number;
use crate::diagnostic::Span;
use crate::field_path::{FieldPath, Segment};

/// A value and its place in the text.
///
/// The place of an aliased value is that of the alias; what is inside it keeps
/// the place of its definition.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where the value stands; empty where nothing is written, as after `key:`.
    pub span: Span,
    /// The value.
    pub value: NodeValue,
    /// How the text spells the value where JSON would spell it differently:
    /// `0644` for 420, `yes` for true.
    written: Option<Box<str>>,
}

/// What a node holds.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeValue {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    String(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the text, no key twice.
    Map(Vec<Entry>),
}

/// A member of a mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key; keys that are no strings in YAML are written out as Kubernetes does.
    pub key: String,
    /// Where the key stands.
    pub key_span: Span,
    /// The value.
    pub value: Node,
}

/// Where a path leads to in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The value at the end of the path, or the deepest one on the way to it.
    pub span: Span,
    /// The key of that value, if it is a member of a mapping.
    pub key_span: Option<Span>,
    /// Whether the whole path exists.
    pub exact: bool,
}

impl Node {
    /// A value at a place.
    pub fn new(span: Span, value: NodeValue) -> Self {
        Self { span, value, written: None }
    }

    /// The same node, with its spelling in the text.
    pub(super) fn written_as(mut self, text: &str) -> Self {
        self.written = Some(text.into());
        self
    }

    /// How the text spells the value, where that differs from JSON.
    pub(super) fn written(&self) -> Option<&str> {
        self.written.as_deref()
    }

    /// The member of a mapping with this key.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            NodeValue::Map(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// The text, if the value is one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            NodeValue::String(text) => Some(text),
            _ => None,
        }
    }

    /// Follows a path as far as it goes. Fields and map keys are both members of
    /// mappings here.
    pub fn locate(&self, path: &FieldPath) -> Place {
        let mut node = self;
        let mut key_span = None;
        for segment in path.segments() {
            let next = match segment {
                Segment::Field(name) => node.get(name).map(|e| (&e.value, Some(e.key_span))),
                Segment::Key(key) => node.get(key).map(|e| (&e.value, Some(e.key_span))),
                Segment::Index(index) => match &node.value {
                    NodeValue::List(items) => items.get(*index).map(|item| (item, None)),
                    _ => None,
                },
            };
            match next {
                Some((found, key)) => (node, key_span) = (found, key),
                None => {
                    return Place { span: node.span, key_span, exact: false };
                }
            }
        }
        Place { span: node.span, key_span, exact: true }
    }

    /// The tree as a JSON value. Trees from [`super::read`] are no deeper than
    /// [`super::MAX_DEPTH`], which is what makes the recursion safe.
    pub fn to_json(&self) -> Value {
        match &self.value {
            NodeValue::Null => Value::Null,
            NodeValue::Bool(value) => Value::Bool(*value),
            NodeValue::Number(number) => Value::Number(number.to_json()),
            NodeValue::String(text) => Value::String(text.clone()),
            NodeValue::List(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            NodeValue::Map(entries) => Value::Object(
                entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect(),
            ),
        }
    }
}

/// What the value is, in words: `the number 5`, `a list`.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            NodeValue::Null => f.write_str("nothing (null)"),
            NodeValue::Bool(value) => write!(f, "the boolean {value}"),
            NodeValue::Number(number) => match &self.written {
                Some(text) => write!(f, "the number {} (which is {number})", shortened(text)),
                None => write!(f, "the number {}", shortened(&number.to_string())),
            },
            NodeValue::String(text) => {
                write!(f, "the string {}", crate::field_error::quote(&shortened(text)))
            }
            NodeValue::List(_) => f.write_str("a list"),
            NodeValue::Map(_) => f.write_str("a mapping"),
        }
    }
}

/// The first line of a text, and no more of it than fits a message.
pub(super) fn shortened(text: &str) -> String {
    /// Half of a terminal's 80 columns leaves room for the rest of the message.
    const MAX_SHOWN_CHARS: usize = 40;
    let line = text.lines().next().unwrap_or("");
    let mut shown: String = line.chars().take(MAX_SHOWN_CHARS).collect();
    if shown.len() < text.trim_end().len() {
        shown.push('…');
    }
    shown
}

/// A key as a step of a path. Kubernetes' own names have no more than 317 bytes
/// (a prefix of 253, a slash and 63); a key that is much longer is cut, so that
/// a hundred problems below it do not hold a hundred copies of a megabyte.
pub(super) fn path_name(key: &str) -> String {
    const MAX_NAME_BYTES: usize = 1024;
    if key.len() <= MAX_NAME_BYTES {
        return key.to_owned();
    }
    format!("{}…", &key[..key.floor_char_boundary(MAX_NAME_BYTES)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field_path::Path;

    fn sample() -> Node {
        let text = "spec:\n  items:\n  - a\n  - b: 1\n";
        let mut documents = crate::decode::read_str(text);
        documents.remove(0).root.expect("the sample is YAML")
    }

    #[test]
    fn a_path_leads_to_the_value_and_its_key() {
        let root = sample();
        let spec = Path::field("spec");
        let items = spec.child("items");
        let second = items.index(1);
        let place = root.locate(&second.child("b").to_field_path());
        assert!(place.exact);
        assert_eq!(place.span, Span { start: 28, end: 29 });
        assert_eq!(place.key_span, Some(Span { start: 25, end: 26 }));
    }

    #[test]
    fn a_path_that_ends_early_leads_to_the_deepest_value_there_is() {
        let root = sample();
        let spec = Path::field("spec");
        let place = root.locate(&spec.child("missing").to_field_path());
        assert!(!place.exact);
        assert_eq!(place.key_span, Some(Span { start: 0, end: 4 }));
        let items = spec.child("items");
        let place = root.locate(&items.index(7).to_field_path());
        assert!(!place.exact);
        assert_eq!(place.key_span, Some(Span { start: 8, end: 13 }));
    }

    #[test]
    fn a_long_text_is_shown_in_part() {
        assert_eq!(shortened("short"), "short");
        assert_eq!(shortened("one\ntwo"), "one…");
        assert_eq!(shortened(&"x".repeat(50)).chars().count(), 41);
    }
}
