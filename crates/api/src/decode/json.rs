//! JSON documents from their text to trees.
//!
//! Strict RFC 8259, one document after the other as in a stream. The reader is
//! its own, rather than serde_json's, because every value needs its place and
//! duplicate keys must be seen.

use super::chunk::BLANKS;
use super::node::{Node, NodeValue};
use super::number::Number;
use super::problem::{Problem, ProblemKind};
use super::tree::{Key, Stop, Tree};
use super::{Document, MAX_DOCUMENT_BYTES, document_too_large};
use crate::diagnostic::Span;

/// Reads the first document in `text[within]`, if there is one. It has no root if it
/// could not be read to its end. Behind another document only an object is one.
pub(super) fn read(text: &str, within: Span, is_first: bool) -> Option<Document> {
    let mut reader = Reader::new(text, within.start, within.end);
    reader.skip_space();
    if reader.at == within.end {
        return None;
    }
    let start = reader.at;
    let outcome = if is_first || reader.peek() == Some(b'{') {
        reader.document()
    } else {
        Err(reader.stray_text())
    };
    let span = Span { start, end: reader.at };
    let node_count = reader.tree.node_count();
    let (root, problems) = match outcome {
        Ok(()) => reader.tree.finish(),
        Err(stop) => (None, reader.tree.abandon(stop)),
    };
    Some(Document { span, root, problems, node_count })
}

/// What may come next.
#[derive(Clone, Copy)]
enum Want {
    Value,
    /// A value or the end of an empty list.
    ItemOrEnd,
    Key,
    /// A key or the end of an empty object.
    KeyOrEnd,
    /// A comma, or the end of what is open.
    Next,
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    /// Where the text ends or the document becomes too large.
    end: usize,
    is_cut: bool,
    tree: Tree,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str, start: usize, text_end: usize) -> Self {
        let limit = text.floor_char_boundary(start.saturating_add(MAX_DOCUMENT_BYTES));
        Self {
            text,
            at: start,
            end: text_end.min(limit),
            is_cut: limit < text_end,
            tree: Tree::default(),
        }
    }

    /// Reads one value with all that is in it. What is open is on the tree's
    /// stack, not on this thread's.
    fn document(&mut self) -> Result<(), Stop> {
        let mut want = Want::Value;
        loop {
            if matches!(want, Want::Next) && self.tree.is_complete() {
                return Ok(());
            }
            self.skip_space();
            want = match (want, self.peek()) {
                (_, None) => return Err(self.ended_early()),
                (Want::ItemOrEnd, Some(b']')) | (Want::KeyOrEnd, Some(b'}')) => self.close(),
                (Want::Value | Want::ItemOrEnd, Some(byte)) => self.value(byte)?,
                (Want::Key | Want::KeyOrEnd, Some(byte)) => self.key(byte)?,
                (Want::Next, Some(byte)) => self.next(byte)?,
            };
        }
    }

    fn value(&mut self, first: u8) -> Result<Want, Stop> {
        let start = self.at;
        let value = match first {
            b'{' => {
                self.tree.open_map(start, 0)?;
                self.at += 1;
                return Ok(Want::KeyOrEnd);
            }
            b'[' => {
                self.tree.open_list(start, 0)?;
                self.at += 1;
                return Ok(Want::ItemOrEnd);
            }
            b'"' => NodeValue::String(self.string()?),
            b'-' | b'0'..=b'9' => NodeValue::Number(self.number()?),
            _ => self.word()?,
        };
        let span = Span { start, end: self.at };
        let bytes = match &value {
            NodeValue::String(text) => text.len(),
            _ => 0,
        };
        self.tree.charge_scalar(bytes, span)?;
        self.tree.place(Node::new(span, value));
        Ok(Want::Next)
    }

    fn key(&mut self, first: u8) -> Result<Want, Stop> {
        let start = self.at;
        if first != b'"' {
            return Err(self.no_key(first));
        }
        let name = self.string()?;
        let span = Span { start, end: self.at };
        self.tree.key(Key::Name(name, span))?;
        self.skip_space();
        match self.peek() {
            Some(b':') => self.at += 1,
            None => return Err(self.ended_early()),
            Some(_) => return Err(self.error("expected `:` after the key")),
        }
        Ok(Want::Value)
    }

    fn next(&mut self, byte: u8) -> Result<Want, Stop> {
        let in_map = self.tree.in_map();
        match byte {
            b',' => {
                let comma = self.here();
                self.at += 1;
                self.skip_space();
                match self.peek() {
                    Some(b'}' | b']') => {
                        let problem = "a comma must not come before the closing bracket";
                        Err(syntax(comma, problem, "remove the comma"))
                    }
                    _ if in_map => Ok(Want::Key),
                    _ => Ok(Want::Value),
                }
            }
            b'}' if in_map => Ok(self.close()),
            b']' if !in_map => Ok(self.close()),
            b'#' | b'/' => Err(self.comment()),
            _ if in_map => Err(self.error("expected `,` or `}` here")),
            _ => Err(self.error("expected `,` or `]` here")),
        }
    }

    fn close(&mut self) -> Want {
        self.at += 1;
        let closed = self.tree.close(Some(self.at));
        self.tree.place(closed.node);
        Want::Next
    }

    /// Reads a string from its opening quote to behind the closing one.
    fn string(&mut self) -> Result<String, Stop> {
        let quote = self.here();
        self.at += 1;
        let mut content = String::new();
        loop {
            let rest = &self.text[self.at..self.end];
            let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
            let Some(length) = rest.as_bytes().iter().position(special) else {
                if self.is_cut {
                    return Err(self.ended_early());
                }
                return Err(syntax(quote, "the string that starts here is never closed", ""));
            };
            content.push_str(&rest[..length]);
            self.at += length;
            match self.text.as_bytes()[self.at] {
                b'"' => {
                    self.at += 1;
                    return Ok(content);
                }
                b'\\' => content.push(self.escape()?),
                b'\n' | b'\r' => {
                    let help = "write a line break in a string as \\n";
                    return Err(syntax(quote, "the string is not closed on its line", help));
                }
                control => {
                    let message =
                        format!("a string must not hold the control character U+{control:04X}");
                    let help = format!("write it as \\u{control:04x}");
                    return Err(syntax(self.here(), message, help));
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, Stop> {
        let start = self.at;
        let escaped = self.text[..self.end][start + 1..].chars().next();
        let simple = match escaped {
            Some('u') => return self.unicode_escape(start),
            Some('"') => '"',
            Some('\\') => '\\',
            Some('/') => '/',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some(other) => {
                let span = Span { start, end: start + 1 + other.len_utf8() };
                let help = "write a backslash as \\\\";
                return Err(syntax(span, "this escape is unknown in JSON", help));
            }
            None => {
                self.at = self.end;
                return Err(self.ended_early());
            }
        };
        self.at += 2;
        Ok(simple)
    }

    /// A `\uXXXX`, or two of them that together make one character.
    fn unicode_escape(&mut self, start: usize) -> Result<char, Stop> {
        let first = self.hex_escape(start)?;
        let code = match first {
            0xd800..=0xdbff => {
                let second = match self.text[..self.end].get(self.at..self.at + 2) {
                    Some("\\u") => self.hex_escape(self.at)?,
                    _ => 0,
                };
                if !(0xdc00..=0xdfff).contains(&second) {
                    return Err(self.lone_surrogate(start));
                }
                0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            code => code,
        };
        char::from_u32(code).ok_or_else(|| self.lone_surrogate(start))
    }

    fn hex_escape(&mut self, start: usize) -> Result<u32, Stop> {
        let digits = self.text[..self.end].get(start + 2..start + 6);
        let is_hex = |digits: &&str| digits.bytes().all(|b| b.is_ascii_hexdigit());
        let Some(digits) = digits.filter(is_hex) else {
            let span = Span { start, end: start + 2 };
            return Err(syntax(span, "\\u needs four hexadecimal digits", ""));
        };
        self.at = start + 6;
        Ok(u32::from_str_radix(digits, 16).expect("four hexadecimal digits are a number"))
    }

    fn lone_surrogate(&self, start: usize) -> Stop {
        let span = Span { start, end: self.at };
        syntax(span, "this escape is one half of a surrogate pair", "")
    }

    fn number(&mut self) -> Result<Number, Stop> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let whole = self.digits();
        let has_leading_zero = whole > 1 && self.text.as_bytes()[self.at - whole] == b'0';
        let mut is_right = whole > 0 && !has_leading_zero;
        if self.peek() == Some(b'.') {
            self.at += 1;
            is_right &= self.digits() > 0;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            is_right &= self.digits() > 0;
        }
        let span = Span { start, end: self.at };
        if !is_right {
            let help = "JSON numbers have no leading zeros and digits on both sides of the dot";
            return Err(syntax(span, "this is not a JSON number", help));
        }
        Number::from_json_literal(&self.text[start..self.at]).ok_or_else(|| {
            let message = "the number is too large for a 64-bit float";
            Box::new(Problem::new(ProblemKind::Type, span, message))
        })
    }

    /// Steps over digits and counts them.
    fn digits(&mut self) -> usize {
        let rest = &self.text.as_bytes()[self.at..self.end];
        let count = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        self.at += count;
        count
    }

    fn word(&mut self) -> Result<NodeValue, Stop> {
        let rest = &self.text[self.at..self.end];
        let length = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let value = match &rest[..length] {
            "null" => NodeValue::Null,
            "true" => NodeValue::Bool(true),
            "false" => NodeValue::Bool(false),
            _ => return Err(self.no_value(length)),
        };
        self.at += length;
        Ok(value)
    }

    fn no_value(&self, length: usize) -> Stop {
        match self.peek() {
            Some(b'#' | b'/') => self.comment(),
            Some(b'\'') => {
                syntax(self.here(), "JSON strings need double quotes", "replace ' by \"")
            }
            Some(b',' | b'}' | b']') => syntax(self.here(), "a value is missing here", ""),
            _ if length > 0 => {
                let span = Span { start: self.at, end: self.at + length };
                let help = "JSON knows true, false and null; anything else needs double quotes";
                syntax(span, "this is not a JSON value", help)
            }
            _ => self.error("expected a value here"),
        }
    }

    fn no_key(&self, first: u8) -> Stop {
        match first {
            b'#' | b'/' => self.comment(),
            b'\'' => syntax(self.here(), "JSON strings need double quotes", "replace ' by \""),
            b',' => syntax(self.here(), "a key is missing here", ""),
            _ => {
                let help = "keys of JSON objects are in double quotes";
                syntax(self.here(), "expected a key in double quotes", help)
            }
        }
    }

    fn comment(&self) -> Stop {
        syntax(self.here(), "JSON has no comments", "remove the comment, or write YAML")
    }

    fn stray_text(&self) -> Stop {
        let help = "put a line `---` before the next document";
        syntax(self.here(), "there is text after the JSON document", help)
    }

    fn ended_early(&self) -> Stop {
        if self.is_cut {
            return Box::new(document_too_large(self.here()));
        }
        let before = self.text[..self.end].trim_end_matches(BLANKS);
        let last = before.chars().next_back().map_or(0, char::len_utf8);
        let span = Span { start: before.len() - last, end: before.len() };
        syntax(span, "the text ends inside the JSON document", "")
    }

    fn error(&self, message: &str) -> Stop {
        syntax(self.here(), message, "")
    }

    /// The character at hand.
    fn here(&self) -> Span {
        let width = self.text[self.at..].chars().next().map_or(0, char::len_utf8);
        Span { start: self.at, end: self.at + width }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes()[..self.end].get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }
}

fn syntax(span: Span, message: impl Into<String>, help: impl Into<String>) -> Stop {
    let problem = Problem::new(ProblemKind::Syntax, span, message);
    let help = help.into();
    Box::new(if help.is_empty() { problem } else { problem.help(help) })
}

#[cfg(test)]
mod tests;
