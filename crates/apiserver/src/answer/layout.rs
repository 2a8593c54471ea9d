//! How the text of a list is laid out, piece by piece. It knows no objects.

use bytes::BytesMut;
use serde_json::Value;

use super::listed::member;
use crate::request::media::{AnswerFormat, Shape};

/// A way to lay a list out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// JSON without spaces.
    Json,
    /// JSON for people.
    Pretty,
    /// YAML.
    Yaml,
}

impl Layout {
    /// As a client wants it.
    pub(crate) fn of(shape: Shape) -> Self {
        match (shape.format, shape.is_pretty) {
            (AnswerFormat::Json, false) => Layout::Json,
            (AnswerFormat::Json, true) => Layout::Pretty,
            (AnswerFormat::Yaml, _) => Layout::Yaml,
        }
    }

    /// What comes before the items, which are called so.
    pub(super) fn head(self, members: &[(&str, Value)], items: &str) -> String {
        let mut head = String::new();
        match self {
            Layout::Json => {
                head.push('{');
                for (name, value) in members {
                    head.push_str(&format!("\"{name}\":{value},"));
                }
                head.push_str(&format!("\"{items}\":["));
            }
            Layout::Pretty => {
                head.push_str("{\n");
                for (name, value) in members {
                    head.push_str(&format!("  \"{name}\": {},\n", pretty(value, "  ")));
                }
                head.push_str(&format!("  \"{items}\": ["));
            }
            Layout::Yaml => {
                for (name, value) in members {
                    head.push_str(&yaml(&member(name, value)));
                }
                head.push_str(&format!("{items}:"));
            }
        }
        head
    }

    /// An item after so many others, which is written as JSON.
    pub(super) fn put_item(
        self,
        piece: &mut BytesMut,
        before: usize,
        put: impl FnOnce(&mut BytesMut),
    ) {
        if self == Layout::Json {
            if before > 0 {
                piece.extend_from_slice(b",");
            }
            return put(piece);
        }
        let mut json = BytesMut::new();
        put(&mut json);
        // What is too deep to be read again is left as it is: JSON is also YAML.
        let laid_out = |lay_out: &dyn Fn(&Value) -> String| match serde_json::from_slice(&json) {
            Ok(value) => lay_out(&value),
            Err(_) => String::from_utf8_lossy(&json).into_owned(),
        };
        match self {
            Layout::Json => unreachable!("it is written as it comes"),
            Layout::Pretty => {
                let text = laid_out(&|value| pretty(value, "    "));
                let comma = if before > 0 { "," } else { "" };
                piece.extend_from_slice(format!("{comma}\n    {text}").as_bytes());
            }
            Layout::Yaml => {
                let text = laid_out(&|value| indented(yaml(value).trim_end(), "  "));
                piece.extend_from_slice(format!("\n- {text}").as_bytes());
            }
        }
    }

    /// What comes after so many items.
    pub(super) fn end(self, count: usize) -> &'static str {
        match (self, count) {
            (Layout::Json, _) => "]}\n",
            (Layout::Pretty, 0) => "]\n}\n",
            (Layout::Pretty, _) => "\n  ]\n}\n",
            (Layout::Yaml, 0) => " []\n",
            (Layout::Yaml, _) => "\n",
        }
    }
}

fn pretty(value: &Value, indent: &str) -> String {
    indented(&serde_json::to_string_pretty(value).expect("JSON serialises"), indent)
}

fn yaml(value: &Value) -> String {
    serde_saphyr::to_string(value).expect("JSON can be written as YAML")
}

/// The same text further in, but for its first line. Lines of texts move with the others: JSON
/// escapes their ends, and YAML's blocks are as far in as they are written.
fn indented(text: &str, indent: &str) -> String {
    let mut moved = String::with_capacity(text.len() + text.len() / 4);
    for (at, line) in text.split('\n').enumerate() {
        if at > 0 {
            moved.push('\n');
            if !line.is_empty() {
                moved.push_str(indent);
            }
        }
        moved.push_str(line);
    }
    moved
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(layout: Layout, items: &[Value]) -> String {
        let head = [("kind", json!("List")), ("metadata", json!({"a": "1", "b": [1, 2]}))];
        let mut text = BytesMut::from(layout.head(&head, "items").as_bytes());
        for (before, item) in items.iter().enumerate() {
            layout.put_item(&mut text, before, |text| {
                text.extend_from_slice(item.to_string().as_bytes());
            });
        }
        text.extend_from_slice(layout.end(items.len()).as_bytes());
        String::from_utf8(text.to_vec()).expect("text")
    }

    #[test]
    fn every_layout_says_the_same() {
        let odd = json!({
            "text": "two\nlines\n", "ends": "a\n\n\n", "begins": "\n\n  a", "spaces": "  a\n b ",
            "last": "x\n\ty: - z\n", "empty": {}, "none": [], "list": [{"a": [[]]}, null, true],
            "like a number": "010", "key: odd": "- #", "tail": "no newline\nhere",
        });
        let many: Vec<Value> = vec![odd.clone(), json!({"a": 1}), json!({"z": "end\n"})];
        for items in [&[][..], &[odd], &many] {
            let expected = json!({
                "kind": "List", "metadata": {"a": "1", "b": [1, 2]}, "items": items
            });
            for layout in [Layout::Json, Layout::Pretty] {
                let text = text(layout, items);
                let read: Value = serde_json::from_str(&text).expect(&text);
                assert_eq!(read, expected, "{text}");
            }
            let text = text(Layout::Yaml, items);
            let document = stint_api::decode::read_str(&text).into_iter().next();
            let document = document.expect("a document");
            assert!(document.problems.is_empty(), "{text}\n{:?}", document.problems);
            assert_eq!(document.root.expect("a root").to_json(), expected, "{text}");
        }
    }

    #[test]
    fn pretty_is_as_serde_writes_it() {
        let items = [json!({"a": {"b": []}}), json!({"c": 1})];
        let expected = json!({"items": items});
        let mut text = BytesMut::from(Layout::Pretty.head(&[], "items").as_bytes());
        for (before, item) in items.iter().enumerate() {
            Layout::Pretty.put_item(&mut text, before, |text| {
                text.extend_from_slice(item.to_string().as_bytes());
            });
        }
        text.extend_from_slice(Layout::Pretty.end(2).as_bytes());
        let whole = serde_json::to_string_pretty(&expected).expect("JSON") + "\n";
        assert_eq!(String::from_utf8_lossy(&text), whole);
    }
}
