//! One YAML document from its text to a tree.
//!
//! Scanning and grammar are the parser crate's; this file turns its events into
//! nodes: what scalars stand for, what aliases and merge keys bring in, and what
//! Kubernetes' reader would refuse. It knows nothing of types.
//!
//! What scalars mean is YAML 1.1, as in Kubernetes. Grammar is YAML 1.2, and
//! where the two differ the parser is the stricter one nearly everywhere: it
//! refuses quoted strings that go on in the column of their key, and text behind
//! the end of a document, which go-yaml silently drops.

use std::collections::HashMap;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, StrInput, StructureStyle, Tag};

use super::base64;
use super::chunk::{BLANKS, trimmed};
use super::node::{Node, NodeValue, shortened};
use super::problem::{Problem, ProblemKind};
use super::scalar::{Scalar, resolve_plain, resolve_tagged};
use super::tree::{Closed, Key, Stop, Tree, Weight, too_deep, weigh};
use super::{Document, MAX_DEPTH, yaml_syntax};
use crate::diagnostic::Span;
use crate::field_error::quote;

/// The tags that YAML defines itself, such as `!!str`, begin with this.
const YAML_TAG_PREFIX: &str = "tag:yaml.org,2002:";

/// Reads the document in `text[within]`. Nothing but that part of the text is
/// looked at. An empty document gives `None`.
pub(super) fn read(text: &str, within: Span) -> Option<Document> {
    let span = trimmed(text, within);
    if let Some(stop) = find_control_character(text, within) {
        return Some(Document { span, root: None, problems: vec![*stop], node_count: 0 });
    }
    let mut reader =
        Reader { text, within, tree: Tree::default(), anchors: HashMap::new(), styles: Vec::new() };
    let outcome = reader.run();
    let node_count = reader.tree.node_count();
    let (root, problems) = match outcome {
        Ok(()) => reader.tree.finish(),
        Err(stop) => (None, reader.tree.abandon(stop)),
    };
    let is_empty = |root: &Node| root.value == NodeValue::Null;
    if problems.is_empty() && root.as_ref().is_none_or(is_empty) {
        return None;
    }
    Some(Document { span, root, problems, node_count })
}

fn is_read_by_kubernetes(version: &granit_parser::YamlVersion) -> bool {
    (version.major, version.minor) == (1, 1)
}

struct Reader<'t> {
    text: &'t str,
    within: Span,
    tree: Tree,
    /// Anchored values that are complete, by the parser's number for them.
    anchors: HashMap<usize, (Node, Weight)>,
    /// How the open collections are written.
    styles: Vec<StructureStyle>,
}

impl Reader<'_> {
    fn run(&mut self) -> Result<(), Stop> {
        let mut document_count = 0;
        for next in parser(&self.text[self.within.start..self.within.end]) {
            let (event, span) = next.map_err(|error| self.syntax_error(&error))?;
            let span = self.span_of(&span);
            match event {
                Event::DocumentStart(_, version) => {
                    document_count += 1;
                    if document_count > 1 {
                        return Err(self.stray_text(span));
                    }
                    if version.is_some_and(|version| !is_read_by_kubernetes(&version)) {
                        return Err(self.wrong_version());
                    }
                }
                Event::Scalar(value, style, anchor, tag) => {
                    self.scalar(&value, style, tag.as_deref(), anchor, span)?;
                }
                Event::Alias(anchor) => self.alias(anchor, span)?,
                Event::UnresolvedAlias(name) => self.unresolved_alias(&name, span)?,
                Event::SequenceStart(style, anchor, _) => {
                    self.open(style, span)?;
                    self.tree.open_list(span.start, anchor)?;
                }
                Event::MappingStart(style, anchor, _) => {
                    self.open(style, span)?;
                    self.tree.open_map(span.start, anchor)?;
                }
                Event::SequenceEnd | Event::MappingEnd => self.close(span)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn open(&mut self, style: StructureStyle, span: Span) -> Result<(), Stop> {
        self.styles.push(style);
        self.no_tab_before(span)
    }

    /// A flow collection ends with its bracket. The parser places the end of a
    /// block collection at the next token, but it ends with its last member.
    fn close(&mut self, span: Span) -> Result<(), Stop> {
        let end = match self.styles.pop() {
            Some(StructureStyle::Flow) => Some(span.end),
            Some(StructureStyle::Block) | None => None,
        };
        let Closed { node, anchor } = self.tree.close(end);
        if self.tree.wants_key() {
            self.complex_key(node.span);
            return self.tree.key(Key::Broken);
        }
        self.anchor(anchor, &node)?;
        self.tree.place(node);
        Ok(())
    }

    fn scalar(
        &mut self,
        value: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        anchor: usize,
        span: Span,
    ) -> Result<(), Stop> {
        let span = self.trimmed(span, style);
        let nothing_written = style == ScalarStyle::Plain && span.start == span.end;
        let value = if nothing_written { "" } else { value };
        let (scalar, decoded) = self.resolve(value, style, tag, span);
        let value = decoded.as_deref().unwrap_or(value);
        if self.tree.wants_key() || !self.tree.in_map() {
            self.no_tab_before(span)?;
        }
        if self.tree.wants_key() {
            let key = self.scalar_key(scalar, value, style, tag, span);
            let anchored = scalar.into_value(value).unwrap_or(NodeValue::Null);
            self.anchor(anchor, &Node::new(span, anchored))?;
            return self.tree.key(key);
        }
        self.tree.charge_scalar(value.len(), span)?;
        let span = match self.tree.key_end() {
            Some(key_end) if nothing_written => Span { start: key_end, end: key_end },
            _ => span,
        };
        let node = match scalar.into_value(value) {
            Some(number @ (NodeValue::Number(_) | NodeValue::Bool(_))) => {
                spelt(Node::new(span, number), value)
            }
            Some(other) => Node::new(span, other),
            None => {
                let message =
                    format!("{value} is a number that JSON, and so Kubernetes, cannot hold");
                let help = format!("if it is meant as text, quote it: {}", quote(value));
                self.tree.report(ProblemKind::Type, span, |p| p.help(help), message);
                Node::new(span, NodeValue::Null)
            }
        };
        self.anchor(anchor, &node)?;
        self.tree.place(node);
        Ok(())
    }

    /// What the scalar stands for, and its text where that is not the given one.
    fn resolve(
        &mut self,
        value: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: Span,
    ) -> (Scalar, Option<String>) {
        let Some(tag) = tag else {
            let scalar = match style {
                ScalarStyle::Plain => resolve_plain(value),
                _ => Scalar::String,
            };
            return (scalar, None);
        };
        let Some(name) = tag.suffix_in_namespace(YAML_TAG_PREFIX) else {
            return (Scalar::String, None);
        };
        if name == "binary" {
            let text = base64::decode(value).and_then(|bytes| String::from_utf8(bytes).ok());
            if text.is_none() {
                let message = "the value tagged !!binary is not base64 of a UTF-8 text";
                self.tree.report(ProblemKind::Type, span, |p| p, message);
            }
            return (Scalar::String, Some(text.unwrap_or_default()));
        }
        let scalar = resolve_tagged(&name, value).unwrap_or_else(|| {
            let found = resolve_plain(value).type_name();
            let message = format!("the value is tagged !!{} but is {found}", shortened(&name));
            self.tree.report(ProblemKind::Type, span, |p| p, message);
            Scalar::String
        });
        (scalar, None)
    }

    fn scalar_key(
        &mut self,
        scalar: Scalar,
        value: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: Span,
    ) -> Key {
        let tag_name = tag.and_then(|tag| tag.suffix_in_namespace(YAML_TAG_PREFIX));
        let untagged_merge = tag.is_none() && style == ScalarStyle::Plain;
        if value == "<<" && (untagged_merge || tag_name.as_deref() == Some("merge")) {
            return Key::Merge(span);
        }
        let written = &self.text[span.start..span.end];
        let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        if !is_block && written.contains('\n') {
            let message = "a key must stand on one line";
            self.tree.report(ProblemKind::Syntax, span, |p| p, message);
            return Key::Broken;
        }
        match scalar.into_key(value) {
            Some(name) => Key::Name(name, span),
            None => {
                let message = match scalar {
                    Scalar::Null if value.is_empty() => "a key is missing here",
                    Scalar::Null => "a key must not be null",
                    _ => "the number is too large for a key",
                };
                let help = format!("quote it: {}", quote(value));
                self.tree.report(ProblemKind::Syntax, span, |p| p.help(help), message);
                Key::Broken
            }
        }
    }

    /// An alias stands for a copy of its anchor's value, and every copy counts.
    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Stop> {
        let Some((node, weight)) = self.anchors.get(&anchor) else {
            let name = &self.text[span.start..span.end];
            let message =
                format!("the alias {} is inside the value it stands for", shortened(name));
            return Err(Box::new(Problem::new(ProblemKind::Syntax, span, message)));
        };
        self.tree.charge(*weight, span)?;
        let mut node = node.clone();
        node.span = span;
        if self.tree.wants_key() {
            let key = match node.value {
                NodeValue::String(name) => Key::Name(name, span),
                NodeValue::Number(number) => Key::Name(number.to_string(), span),
                NodeValue::Bool(value) => Key::Name(value.to_string(), span),
                NodeValue::Null | NodeValue::List(_) | NodeValue::Map(_) => {
                    self.complex_key(span);
                    Key::Broken
                }
            };
            return self.tree.key(key);
        }
        self.tree.place(node);
        Ok(())
    }

    fn unresolved_alias(&mut self, name: &str, span: Span) -> Result<(), Stop> {
        let message = format!("the alias *{} stands for nothing", shortened(name));
        let help = "an alias `*name` needs an anchor `&name` before it in the same document; \
                    a text that starts with `*` must be quoted";
        self.tree.report(ProblemKind::Syntax, span, |p| p.help(help), message);
        if self.tree.wants_key() {
            return self.tree.key(Key::Broken);
        }
        self.tree.charge_scalar(0, span)?;
        self.tree.place(Node::new(span, NodeValue::Null));
        Ok(())
    }

    /// Keeps a copy of an anchored value for its aliases. The copy counts too:
    /// anchors within anchors would otherwise multiply the text by their depth.
    fn anchor(&mut self, anchor: usize, node: &Node) -> Result<(), Stop> {
        if anchor != 0 {
            let weight = weigh(node);
            self.tree.charge(weight, node.span)?;
            self.anchors.insert(anchor, (node.clone(), weight));
        }
        Ok(())
    }

    /// Kubernetes' reader takes no tab for indentation, nor after a dash; the
    /// parser takes some of them.
    fn no_tab_before(&self, span: Span) -> Result<(), Stop> {
        if self.styles.last() != Some(&StructureStyle::Block) {
            return Ok(());
        }
        let line_start = yaml_syntax::line_start(self.text, self.within, span.start);
        match self.text[line_start..span.start].find('\t') {
            None => Ok(()),
            Some(column) => {
                let start = line_start + column;
                let end = start + 1;
                let kind = ErrorKind::TabInIndentation;
                Err(Box::new(yaml_syntax::problem(&kind, Span { start, end })))
            }
        }
    }

    fn complex_key(&mut self, span: Span) {
        let message = "a key must be a plain value, not a list, a mapping or null";
        let help = "if this is a template, quote it: \"{{ … }}\"";
        let adorn = |problem: Problem| match self.text.get(span.start..span.end) {
            Some(text) if text.starts_with('{') => problem.help(help),
            _ => problem,
        };
        self.tree.report(ProblemKind::Syntax, span, adorn, message);
    }

    fn syntax_error(&self, error: &granit_parser::ScanError) -> Stop {
        let offset = self.within.start + error.marker().byte_offset().unwrap_or(0);
        let offset = yaml_syntax::culprit(error.kind(), self.text, self.within, offset);
        let span = yaml_syntax::character_at(self.text, self.within, offset);
        if *error.kind() == ErrorKind::RecursionLimitExceeded {
            return too_deep(span);
        }
        if *error.kind() == ErrorKind::InvalidQuotedScalarIndent {
            return self.unclosed_quote(offset, span);
        }
        if let Some(problem) = yaml_syntax::long_key(error.kind(), self.text, self.within, span) {
            return Box::new(problem);
        }
        Box::new(yaml_syntax::problem(error.kind(), span))
    }

    /// A quoted string has run into text that is indented too little, which is
    /// where the parser notices. What ails it is mostly its closing quote, and
    /// reading up to here once more tells where the opening one is.
    fn unclosed_quote(&self, offset: usize, here: Span) -> Stop {
        let before = self.text[self.within.start..offset].trim_end_matches(BLANKS);
        let quote = parser(before)
            .find_map(Result::err)
            .filter(|error| *error.kind() == ErrorKind::UnclosedQuotedScalar)
            .and_then(|error| error.marker().byte_offset());
        let Some(quote) = quote else {
            return Box::new(yaml_syntax::problem(&ErrorKind::InvalidQuotedScalarIndent, here));
        };
        let start = self.within.start + quote;
        let span = yaml_syntax::character_at(self.text, self.within, start);
        let problem = yaml_syntax::problem(&ErrorKind::UnclosedQuotedScalar, span);
        let rest = &self.text[offset..self.within.end];
        Box::new(if rest.trim_matches(BLANKS).is_empty() {
            problem
        } else {
            problem
                .related(here, "the text here is indented too little to belong to it")
                .help("close the quote, or indent all lines of the string further than its key")
        })
    }

    /// Points at the `%YAML` line, which stands before everything else.
    fn wrong_version(&self) -> Stop {
        let part = &self.text[self.within.start..self.within.end];
        let offset = part.find('%').unwrap_or(0);
        let length = part[offset..].find(['\n', '\r']).unwrap_or(part.len() - offset);
        let start = self.within.start + offset;
        let message = "Kubernetes reads YAML 1.1 only";
        let problem =
            Problem::new(ProblemKind::Syntax, Span { start, end: start + length }, message);
        Box::new(problem.help("remove the line"))
    }

    fn stray_text(&self, span: Span) -> Stop {
        let span = yaml_syntax::character_at(self.text, self.within, span.start);
        Box::new(yaml_syntax::problem(&ErrorKind::ExpectedDocumentStart, span))
    }

    /// The parser's span as one of the whole text.
    fn span_of(&self, span: &granit_parser::Span) -> Span {
        let range = span.byte_range().expect("the parser counts bytes when it reads from a str");
        let place = |offset: usize| {
            let offset = (self.within.start + offset).min(self.within.end);
            self.text.floor_char_boundary(offset)
        };
        let (start, end) = (place(range.start), place(range.end));
        Span { start, end: end.max(start) }
    }

    /// The span without the line breaks that the parser counts to block scalars.
    fn trimmed(&self, span: Span, style: ScalarStyle) -> Span {
        match style {
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => span,
            _ => {
                let written = self.text[span.start..span.end].trim_end_matches(BLANKS);
                Span { start: span.start, end: span.start + written.len() }
            }
        }
    }
}

fn parser(text: &str) -> Parser<'_, StrInput<'_>> {
    let options = granit_parser::options! {
        emit_comments: false,
        emit_unresolved_aliases: true,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    Parser::new_from_str_with_options(text, options)
}

/// The node with its spelling, where JSON would spell it differently.
fn spelt(node: Node, value: &str) -> Node {
    let same = match &node.value {
        NodeValue::Number(number) => number.to_string() == value,
        NodeValue::Bool(truth) => truth.to_string() == value,
        _ => true,
    };
    if same { node } else { node.written_as(value) }
}

/// YAML forbids most control characters even in quotes, and the parser does not
/// look for all of them.
fn find_control_character(text: &str, within: Span) -> Option<Stop> {
    let part = &text[within.start..within.end];
    let (offset, c) = part.char_indices().find(|(_, c)| {
        !matches!(c,
            '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
    })?;
    let start = within.start + offset;
    let span = Span { start, end: start + c.len_utf8() };
    let message = if c == '\0' {
        "the text holds a NUL byte (U+0000)".to_owned()
    } else {
        format!("the text holds the control character U+{:04X}", c as u32)
    };
    let help = "remove it; in a double-quoted string it can be written as an escape";
    Some(Box::new(Problem::new(ProblemKind::Syntax, span, message).help(help)))
}
