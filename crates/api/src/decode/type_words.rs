//! Type errors in plain words: what was expected, what was found, what to write.

use super::formats::is_quantity;
use super::node::{Node, NodeValue, shortened};
use crate::field_error::quote;

/// What a type wants at some place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    String,
    Boolean,
    /// An integer from the first number to the second.
    Integer(i128, i128),
    Number,
    List,
    Mapping,
    Quantity,
    IntOrString,
    Time,
    Base64,
}

impl Expected {
    /// The error for a value that is something else, and what to do about it.
    pub(super) fn but_found(self, node: &Node) -> (String, Option<String>) {
        (format!("expected {}, found {node}", self.words()), self.help(node))
    }

    fn words(self) -> String {
        let words = match self {
            Expected::String => "a string",
            Expected::Boolean => "true or false",
            Expected::Integer(min, max) => return format!("a whole number from {min} to {max}"),
            Expected::Number => "a number",
            Expected::List => "a list",
            Expected::Mapping => "a mapping",
            Expected::Quantity => "a quantity",
            Expected::IntOrString => "a string or a whole number of 32 bits",
            Expected::Time => "a time",
            Expected::Base64 => "a base64-encoded string",
        };
        words.to_owned()
    }

    fn help(self, node: &Node) -> Option<String> {
        match self {
            Expected::String => help_quote(node),
            Expected::IntOrString => Some("write a number, or a name in quotes".to_owned()),
            Expected::Boolean => match node.as_str() {
                Some(text @ ("true" | "false")) => Some(format!("remove the quotes: {text}")),
                _ => None,
            },
            Expected::Integer(min, max) => help_integer(node, min, max),
            Expected::Number => node
                .as_str()
                .filter(|text| text.parse::<f64>().is_ok_and(f64::is_finite))
                .map(|text| format!("remove the quotes: {}", shortened(text))),
            Expected::List => Some(help_list(node)),
            Expected::Mapping => help_mapping(node),
            Expected::Quantity => Some(help_quantity(node)),
            Expected::Time => {
                Some("write it as RFC 3339 does, such as \"2024-01-31T12:00:00Z\"".to_owned())
            }
            Expected::Base64 => Some("encode the value, for example with `base64`".to_owned()),
        }
    }
}

/// How to make a string of something that was read as something else.
fn help_quote(node: &Node) -> Option<String> {
    let spelling = match (&node.value, node.written()) {
        (NodeValue::Number(number), None) => number.to_string(),
        (NodeValue::Bool(value), None) => value.to_string(),
        (NodeValue::Bool(_), Some(word)) => {
            let quoted = quote(word);
            return Some(format!("YAML reads {word} as a boolean; quote it: {quoted}"));
        }
        (NodeValue::Number(_), Some(word)) => word.to_owned(),
        (NodeValue::Map(_), _) => {
            return Some("to pass a mapping as text, put `|` after the key".to_owned());
        }
        _ => return None,
    };
    Some(format!("quote it: {}", quote(&shortened(&spelling))))
}

fn help_integer(node: &Node, min: i128, max: i128) -> Option<String> {
    match &node.value {
        NodeValue::String(text) => text
            .parse::<i128>()
            .ok()
            .filter(|value| (min..=max).contains(value))
            // Without quotes, a leading zero makes it octal: that may be what is meant
            // (a file's mode), or may not.
            .map(|value| match text.trim_start_matches(['+', '-']) {
                digits if digits.len() > 1 && digits.starts_with('0') => {
                    format!("remove the quotes; with its leading zero, {text} is octal")
                }
                _ => format!("remove the quotes: {value}"),
            }),
        NodeValue::Number(number) if !number.is_integer() => {
            let value = number.as_f64();
            let whole = value.trunc();
            let is_whole = value == whole && whole.abs() < 1e15;
            Some(if is_whole {
                format!("write it without fraction and exponent: {whole}")
            } else {
                "fractions are not allowed here".to_owned()
            })
        }
        _ => None,
    }
}

fn help_quantity(node: &Node) -> String {
    const SUFFIXES: [&str; 13] =
        ["n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti"];
    let text = node.as_str().unwrap_or_default().trim();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let suffix = text[digits.len()..].trim().trim_end_matches(['b', 'B']);
    let meant = SUFFIXES.iter().find(|known| known.eq_ignore_ascii_case(suffix));
    match meant.filter(|_| is_quantity(digits)) {
        Some(suffix) => format!("did you mean {digits}{suffix}?"),
        None => {
            "write a number with an optional suffix, such as 500m, 0.5, 2k, 1Gi or 2e3".to_owned()
        }
    }
}

fn help_list(node: &Node) -> String {
    let item = match &node.value {
        NodeValue::String(text) if !text.contains('\n') => quote(&shortened(text)),
        NodeValue::Number(number) => shortened(&number.to_string()),
        NodeValue::Bool(value) => value.to_string(),
        _ => return "start each item with `- `".to_owned(),
    };
    format!("make it a list of one: [{item}]")
}

fn help_mapping(node: &Node) -> Option<String> {
    let help = match &node.value {
        NodeValue::List(_) => "write `key: value` lines without a leading `- `",
        NodeValue::String(text) if text.contains(':') => {
            "write `key: value` with a space after the colon, on lines of their own"
        }
        _ => "write `key: value` on lines of their own, indented further than this key",
    };
    Some(help.to_owned())
}
