//! From bytes to typed objects, strictly, with the place of everything.
//!
//! ```text
//!   bytes ─▶ chunk ─▶ yaml | json ─▶ tree ─▶ Node ─▶ typed ─▶ T
//!                        └─────────────┴── problems ──┘
//! ```
//!
//! [`documents`] splits a file and reads one document after another into a tree of
//! plain values ([`Node`]) the way Kubernetes would; [`read`] reads all of them. [`decode`] turns a tree into a
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
mod documents;
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

pub use documents::{Documents, documents};
pub use node::{Entry, Node, NodeValue, Place};
pub use number::Number;
pub use problem::{Problem, ProblemKind};
pub use typed::{Decoded, decode};

use crate::diagnostic::Span;

/// Bytes in a file: room for 100,000 Jobs of 671 bytes, and little enough that
/// the text and all of its trees fit into a few hundred megabytes.
pub const MAX_FILE_BYTES: usize = 64 * 1024 * 1024;

/// Bytes in a document, before and after its aliases are expanded. An API server
/// takes requests of 3 MiB, but a list of Jobs, as `kubectl get` prints it, is one
/// document and many requests: twice that and some leaves room for both.
pub const MAX_DOCUMENT_BYTES: usize = 8 * 1024 * 1024;

/// Collections within collections. The deepest field of a Job is some 16 levels
/// down; serde_json refuses to read back more than 128. With 100, recursion over
/// a tree takes well under 100 KiB of stack.
pub const MAX_DEPTH: usize = 100;

/// Values in a document, each alias counted as often as it is used. Manifests
/// spend 15 bytes and more on a value, which makes 560,000 in 8 MiB; at about 100
/// bytes for a node, that is 60 MB.
pub const MAX_NODES_PER_DOCUMENT: usize = 600_000;

/// Values in all documents of a file, counted the same way: twice what
/// [`MAX_FILE_BYTES`] of manifests hold at 15 bytes a value, and little enough to
/// be read in two seconds. Aliases could make billions of them otherwise, document
/// by document.
pub const MAX_NODES_PER_FILE: usize = 10_000_000;

/// Fields of all objects in a document, given or not. What a type takes in memory
/// goes with its fields, at 50 to 100 bytes each: `containers: [~, ~, …]` spends
/// three bytes on a container, which has 26. A large Job has some thousands of
/// objects with 3 to 40 fields.
pub const MAX_FIELDS_PER_DOCUMENT: usize = 1_000_000;

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
    /// How many values it holds, each alias counted in full.
    node_count: usize,
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
    documents(text).collect()
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
    Problem::new(ProblemKind::Limit, span, message).help("split it into several documents")
}

/// A document of which nothing is known but what is wrong with it.
fn unread(problem: Problem) -> Document {
    Document { span: problem.span, root: None, problems: vec![problem], node_count: 0 }
}

#[cfg(test)]
mod tests;
