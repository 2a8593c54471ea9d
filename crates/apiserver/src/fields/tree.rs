//! A JSON text as a tree of its pieces: where each value begins and ends, and nothing read that
//! nobody asks for. Two objects are compared by their texts, and where those are the same there
//! is nothing below to look at. It knows no types.
//!
//! # Assumptions
//!
//! The text was written by `serde_json` without spaces, so that what is equal is written alike.

use std::borrow::Cow;

/// A text and the values in it, each before those that it holds.
#[derive(Debug)]
pub struct Tree<'a> {
    text: &'a str,
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    start: u32,
    end: u32,
    /// The first node that is not within this one.
    after: u32,
    /// Where its key is, without quotes; empty in a list and at the root.
    key: (u32, u32),
}

/// A value in a tree.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    tree: &'a Tree<'a>,
    node: u32,
}

impl<'a> Tree<'a> {
    /// Finds the values of a text.
    pub fn of(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        assert!(u32::try_from(bytes.len()).is_ok(), "no body is that long");
        // One value for every sixteen bytes is what objects have.
        let mut nodes: Vec<Node> = Vec::with_capacity(bytes.len() / 16 + 1);
        let mut open: Vec<u32> = Vec::new();
        let mut key = None;
        let mut at = 0;
        while at < bytes.len() {
            let end = match bytes[at] {
                b',' => {
                    at += 1;
                    continue;
                }
                b'}' | b']' => {
                    let closed = open.pop().expect("what is closed was opened");
                    let after = nodes.len() as u32;
                    let node = &mut nodes[closed as usize];
                    (node.end, node.after) = (at as u32 + 1, after);
                    at += 1;
                    continue;
                }
                b'{' | b'[' => {
                    open.push(nodes.len() as u32);
                    at + 1
                }
                b'"' => {
                    let end = end_of_text(bytes, at);
                    let is_in_object = open
                        .last()
                        .is_some_and(|&of| bytes[nodes[of as usize].start as usize] == b'{');
                    if is_in_object && key.is_none() {
                        key = Some((at as u32 + 1, end as u32 - 1));
                        // Behind the colon, too.
                        at = end + 1;
                        continue;
                    }
                    end
                }
                _ => bytes[at..]
                    .iter()
                    .position(|byte| matches!(byte, b',' | b'}' | b']'))
                    .map_or(bytes.len(), |length| at + length),
            };
            let (start, end, after) = (at as u32, end as u32, nodes.len() as u32 + 1);
            nodes.push(Node { start, end, after, key: key.take().unwrap_or_default() });
            at = end as usize;
        }
        Tree { text, nodes }
    }

    /// The value that the text is.
    pub fn root(&'a self) -> Place<'a> {
        Place { tree: self, node: 0 }
    }
}

/// Where a text that starts here has ended.
fn end_of_text(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    loop {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

impl<'a> Place<'a> {
    /// The value as it is written.
    pub fn text(self) -> &'a str {
        let node = self.node();
        &self.tree.text[node.start as usize..node.end as usize]
    }

    /// Where it is in the text.
    pub fn range(self) -> std::ops::Range<usize> {
        self.node().start as usize..self.node().end as usize
    }

    /// Whether it is an object.
    pub fn is_object(self) -> bool {
        self.text().starts_with('{')
    }

    /// Whether it is a list.
    pub fn is_list(self) -> bool {
        self.text().starts_with('[')
    }

    /// The text that it is, without its quotes.
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        let text = self.text();
        text.starts_with('"').then(|| unescaped(&text[1..text.len() - 1]))
    }

    /// What it holds, with the keys as they are written.
    pub fn children(self) -> impl Iterator<Item = (&'a str, Place<'a>)> {
        let end = self.node().after;
        let mut next = self.node + 1;
        std::iter::from_fn(move || {
            (next < end).then(|| {
                let child = Place { tree: self.tree, node: next };
                next = child.node().after;
                let (start, end) = child.node().key;
                (&self.tree.text[start as usize..end as usize], child)
            })
        })
    }

    /// The value of a key that needs no escapes.
    pub fn get(self, key: &str) -> Option<Place<'a>> {
        if !self.is_object() {
            return None;
        }
        self.children().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    fn node(self) -> Node {
        self.tree.nodes[self.node as usize]
    }
}

/// A text without its escapes.
pub fn unescaped(raw: &str) -> Cow<'_, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    Cow::Owned(serde_json::from_str(&format!("\"{raw}\"")).expect("it is a text within JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// The value that a tree says there is.
    fn read(place: Place<'_>) -> Value {
        if place.is_object() {
            let member =
                |(key, value): (&str, Place<'_>)| (unescaped(key).into_owned(), read(value));
            Value::Object(place.children().map(member).collect())
        } else if place.is_list() {
            place.children().map(|(_, item)| read(item)).collect()
        } else {
            serde_json::from_str(place.text()).expect("a scalar")
        }
    }

    #[test]
    fn a_tree_has_what_its_text_has() {
        for value in [
            json!({}),
            json!([]),
            json!("a\"\\{[,"),
            json!(-1.5e30),
            json!(null),
            json!({"a": {"b": [], "c": [1, {"d": "}\\\""}, [[]], null, true]}, "": "", "k\"\n": {}}),
            json!([{"a": [{}]}, "x", [["y"]], {"é\u{1}": "\u{2028}"}]),
        ] {
            let text = value.to_string();
            assert_eq!(read(Tree::of(&text).root()), value, "{text}");
        }
    }

    #[test]
    fn a_member_is_found_by_its_key() {
        let tree = Tree::of(r#"{"a":{"b":1},"b":[2],"c":"x"}"#);
        let found = |key| tree.root().get(key).map(Place::text);
        assert_eq!(found("b"), Some("[2]"));
        assert_eq!(found("d"), None);
        assert_eq!(tree.root().get("b").and_then(|list| list.get("a")).map(Place::text), None);
    }
}
