//! From bytes to typed objects, strictly, with the place of everything.
//!
//! ```text
//!   bytes ─▶ chunk ─▶ yaml | json ─▶ tree ─▶ Node ─▶ typed ─▶ T
//!                        └─────────────┴── problems ──┘
//! ```
//!
//! [`read`] splits a file into documents and reads each into a tree of plain
//! values ([`Node`]) the way Kubernetes would; [`decode`] turns a tree into a
//! Kubernetes type. Both report everything they find wrong, with its place, and
//! neither stops at the first error. There is no IO here and no knowledge of
//! what a Job means.
//!
//! # Guarantees
//!
//! No input makes this module panic, recurse without bound, or use time or memory
//! out of proportion: every dimension of a text has a limit below.

mod base64;
mod chunk;
mod formats;
mod json;
mod node;
mod number;
mod place;
mod problem;
mod scalar;
pub mod suggest;
mod tree;
mod type_words;
mod typed;
mod yaml;
mod yaml_syntax;

pub use node::{Entry, Node, NodeValue, Place};
pub use number::Number;
pub use problem::{Problem, ProblemKind};
pub use typed::{Decoded, decode};

use crate::diagnostic::Span;

/// Bytes in a file: room for 100,000 Jobs of 671 bytes, and little enough that
/// the text and all of its trees fit into a few hundred megabytes.
pub const MAX_FILE_BYTES: usize = 64 * 1024 * 1024;

/// Bytes in a document, before and after its aliases are expanded: the API
/// server's limit for a request body, so that nothing larger could be created.
pub const MAX_DOCUMENT_BYTES: usize = 3 * 1024 * 1024;

/// Collections within collections. The deepest field of a Job is some 16 levels
/// down; serde_json refuses to read back more than 128. With 100, recursion over
/// a tree takes well under 100 KiB of stack.
pub const MAX_DEPTH: usize = 100;

/// Values in a document, each alias counted as often as it is used. Manifests
/// spend 15 bytes and more on a value, which makes 200,000 in 3 MiB; twice that
/// and some, at about 100 bytes for a node, is 50 MB.
pub const MAX_NODES_PER_DOCUMENT: usize = 500_000;

/// Documents in a file: at [`MAX_FILE_BYTES`], 671 bytes for each, about the
/// size of a small Job.
pub const MAX_DOCUMENTS_PER_FILE: usize = 100_000;

/// Problems reported for a document. Nobody reads more than a few screens of
/// them; the rest is counted.
pub const MAX_PROBLEMS_PER_DOCUMENT: usize = 100;

/// One document of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Where it is in the text.
    pub span: Span,
    /// Its tree; `None` if the text could not be read to its end. Where a key was
    /// given twice, the tree holds the first.
    pub root: Option<Node>,
    /// What is wrong with the text itself, in its order.
    pub problems: Vec<Problem>,
}

/// Reads all documents of a file. Documents with nothing in them are left out.
///
/// All places are byte offsets into `text`. If `text` is not UTF-8, there is one
/// document without a root; its span and that of its problem are empty and lie
/// at the first wrong byte, so `text[..span.start]` is the longest prefix that is
/// a `str`, and rendering the place needs no more than that.
pub fn read(text: &[u8]) -> Vec<Document> {
    match std::str::from_utf8(text) {
        Ok(text) => read_str(text),
        Err(error) => vec![not_utf8(text, error.valid_up_to())],
    }
}

/// [`read`] for a text that is known to be UTF-8.
pub fn read_str(text: &str) -> Vec<Document> {
    if text.len() > MAX_FILE_BYTES {
        let message = format!("the file has more than {MAX_FILE_BYTES} bytes");
        let problem = Problem::new(ProblemKind::Limit, Span::default(), message);
        return vec![unread(problem.help("split it into several files"))];
    }
    let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let mut documents = Vec::new();
    for chunk in chunk::chunks(text, start) {
        if documents.len() == MAX_DOCUMENTS_PER_FILE {
            documents.push(too_many_documents(first_line(text, chunk)));
        }
        if documents.len() > MAX_DOCUMENTS_PER_FILE {
            break;
        }
        read_chunk(text, chunk, &mut documents);
    }
    documents
}

/// Reads one part of the text: one YAML document, or a run of JSON documents.
///
/// As in kubectl, a text that starts with a brace is JSON; if it turns out not
/// to be, it may still be YAML, where braces are fine too. When it is neither, a
/// quoted first key tells that JSON was meant.
fn read_chunk(text: &str, chunk: Span, documents: &mut Vec<Document>) {
    let part = &text[chunk.start..chunk.end];
    let body = part.strip_prefix("---").unwrap_or(part);
    let body = body.trim_start_matches(chunk::BLANKS);
    if let Some(inner) = body.strip_prefix('{') {
        let start = chunk.end - body.len();
        let room = MAX_DOCUMENTS_PER_FILE - documents.len();
        let mut read = json::read(text, Span { start, ..chunk }, room);
        let json_was_meant = inner.trim_start_matches(chunk::BLANKS).starts_with('"');
        if !has_syntax_error(&read) || part.len() > MAX_DOCUMENT_BYTES {
            documents.append(&mut read);
        } else {
            let yaml: Vec<Document> = yaml::read(text, chunk).into_iter().collect();
            let neither = has_syntax_error(&yaml);
            documents.extend(if neither && json_was_meant { read } else { yaml });
        }
    } else if part.len() > MAX_DOCUMENT_BYTES {
        documents.push(unread(document_too_large(first_line(text, chunk))));
    } else {
        documents.extend(yaml::read(text, chunk));
    }
}

fn has_syntax_error(documents: &[Document]) -> bool {
    let mut problems = documents.iter().flat_map(|document| &document.problems);
    problems.any(|problem| problem.kind == ProblemKind::Syntax)
}

fn not_utf8(text: &[u8], valid_bytes: usize) -> Document {
    let span = Span { start: valid_bytes, end: valid_bytes };
    let is_utf16 = text.starts_with(&[0xff, 0xfe]) || text.starts_with(&[0xfe, 0xff]);
    let message = if is_utf16 {
        "the text is UTF-16, not UTF-8".to_owned()
    } else {
        let byte = text[valid_bytes];
        format!("the text is not UTF-8: wrong byte 0x{byte:02x} at offset {valid_bytes}")
    };
    unread(Problem::new(ProblemKind::Syntax, span, message).help("save the file as UTF-8"))
}

fn document_too_large(span: Span) -> Problem {
    let message = format!("the document has more than {MAX_DOCUMENT_BYTES} bytes");
    Problem::new(ProblemKind::Limit, span, message)
        .help("Kubernetes takes no larger request; split the document")
}

fn too_many_documents(span: Span) -> Document {
    let message = format!(
        "the file has more than {MAX_DOCUMENTS_PER_FILE} documents; those from here on are not read"
    );
    let problem = Problem::new(ProblemKind::Limit, span, message);
    unread(problem.help("split it into several files"))
}

/// A document of which nothing is known but what is wrong with it.
fn unread(problem: Problem) -> Document {
    Document { span: problem.span, root: None, problems: vec![problem] }
}

/// The first line of a chunk, which is enough to point to it.
fn first_line(text: &str, chunk: Span) -> Span {
    let part = &text[chunk.start..chunk.end];
    let length = part.find(['\n', '\r']).unwrap_or(part.len());
    /// A line of a terminal; a text of one long line is not shown in full.
    const MAX_SHOWN_BYTES: usize = 80;
    let end = text.floor_char_boundary(chunk.start + length.min(MAX_SHOWN_BYTES));
    Span { end, ..chunk }
}

#[cfg(test)]
mod tests;
