//! The documents of a file, one after another.
//!
//! Only one tree exists at a time unless the caller keeps them: a file may hold
//! 64 MiB of text, and aliases make trees that are many times larger.

use super::chunk::{self, BLANKS};
use super::problem::{Problem, ProblemKind};
use super::{
    Document, MAX_DOCUMENT_BYTES, MAX_DOCUMENTS_PER_FILE, MAX_FILE_BYTES, MAX_NODES_PER_FILE,
    document_too_large, json, unread, yaml,
};
use crate::diagnostic::Span;

/// The documents of a text, as far as they are asked for. Documents with nothing in
/// them are left out.
pub fn documents(text: &str) -> Documents<'_> {
    let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let is_too_large = text.len() > MAX_FILE_BYTES;
    Documents {
        text,
        rest: Span { start, end: if is_too_large { start } else { text.len() } },
        json_rest: None,
        document_count: 0,
        node_count: 0,
        refusal: is_too_large.then(file_too_large),
    }
}

/// See [`documents`].
#[derive(Clone, Debug)]
pub struct Documents<'t> {
    text: &'t str,
    /// What has not been looked at yet.
    rest: Span,
    /// What is left of a part of the text that holds JSON documents.
    json_rest: Option<Span>,
    document_count: usize,
    node_count: usize,
    /// Why nothing more is read; said once, as a document of its own.
    refusal: Option<Problem>,
}

impl Iterator for Documents<'_> {
    type Item = Document;

    fn next(&mut self) -> Option<Document> {
        if let Some(problem) = self.refusal.take() {
            self.stop();
            return Some(unread(problem));
        }
        let document = self.next_json().or_else(|| self.next_chunk())?;
        if let Some(problem) = self.over_limit(&document) {
            self.stop();
            return Some(unread(problem));
        }
        self.document_count += 1;
        self.node_count += document.node_count;
        Some(document)
    }
}

impl Documents<'_> {
    /// The next of several JSON documents that follow each other.
    fn next_json(&mut self) -> Option<Document> {
        let within = self.json_rest.take()?;
        let document = json::read(self.text, within, false)?;
        self.go_on_with_json(&document, within);
        Some(document)
    }

    fn next_chunk(&mut self) -> Option<Document> {
        loop {
            let chunk = chunk::next(self.text, &mut self.rest)?;
            if let Some(document) = self.read_chunk(chunk) {
                return Some(document);
            }
        }
    }

    /// Reads one part of the text: a YAML document, or the first of some in JSON.
    ///
    /// As in kubectl, a text that starts with a brace is JSON; if it turns out not
    /// to be, it may still be YAML, where braces are fine too. When it is neither, a
    /// quoted first key tells that JSON was meant.
    fn read_chunk(&mut self, chunk: Span) -> Option<Document> {
        let part = &self.text[chunk.start..chunk.end];
        let body = part.strip_prefix("---").unwrap_or(part).trim_start_matches(BLANKS);
        let is_small = part.len() <= MAX_DOCUMENT_BYTES;
        let Some(inner) = body.strip_prefix('{') else {
            return if is_small {
                yaml::read(self.text, chunk)
            } else {
                Some(unread(document_too_large(first_line(self.text, chunk))))
            };
        };
        let within = Span { start: chunk.end - body.len(), ..chunk };
        let document = json::read(self.text, within, true)?;
        if is_small && has_syntax_error(&document) {
            let json_was_meant = inner.trim_start_matches(BLANKS).starts_with('"');
            let yaml = yaml::read(self.text, chunk);
            let is_yaml = yaml.as_ref().is_none_or(|yaml| !has_syntax_error(yaml));
            return if is_yaml || !json_was_meant { yaml } else { Some(document) };
        }
        self.go_on_with_json(&document, within);
        Some(document)
    }

    /// What follows a JSON document is JSON as well, unless that one is broken.
    fn go_on_with_json(&mut self, document: &Document, within: Span) {
        let rest = Span { start: document.span.end, ..within };
        self.json_rest = document.root.is_some().then_some(rest);
    }

    fn over_limit(&self, next: &Document) -> Option<Problem> {
        let message = if self.document_count >= MAX_DOCUMENTS_PER_FILE {
            format!("the file has more than {MAX_DOCUMENTS_PER_FILE} documents")
        } else if self.node_count + next.node_count > MAX_NODES_PER_FILE {
            format!("the file holds more than {MAX_NODES_PER_FILE} values, aliases counted in full")
        } else {
            return None;
        };
        let message = format!("{message}; what follows is not read");
        let problem = Problem::new(ProblemKind::Limit, first_line(self.text, next.span), message);
        Some(problem.help("split it into several files"))
    }

    fn stop(&mut self) {
        self.rest.start = self.rest.end;
        self.json_rest = None;
    }
}

fn file_too_large() -> Problem {
    let message = format!("the file has more than {MAX_FILE_BYTES} bytes");
    Problem::new(ProblemKind::Limit, Span::default(), message).help("split it into several files")
}

fn has_syntax_error(document: &Document) -> bool {
    document.problems.iter().any(|problem| problem.kind == ProblemKind::Syntax)
}

/// The first line of a part of the text, which is enough to point to it.
fn first_line(text: &str, part: Span) -> Span {
    /// A line of a terminal; a text of one long line is not shown in full.
    const MAX_SHOWN_BYTES: usize = 80;
    let shown = &text[part.start..part.end];
    let length = shown.find(['\n', '\r']).unwrap_or(shown.len());
    let end = text.floor_char_boundary(part.start + length.min(MAX_SHOWN_BYTES));
    Span { end, ..part }
}
