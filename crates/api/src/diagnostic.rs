//! What a reader of manifests says about a text: errors and warnings with their
//! place, and the Job that each document came to be.
//!
//! These are plain data. How they look on a terminal or as JSON is the command
//! line's business.

use k8s_openapi::api::batch::v1::Job;

use crate::field_path::FieldPath;

/// A range of bytes in the text that was read. `start <= end <= text.len()`, and
/// both lie on character boundaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// Whether a manifest can be used in spite of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The manifest cannot be used.
    Error,
    /// The manifest can be used, but may not do what its author thinks.
    Warning,
}

/// One thing to tell the author of a manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// The name by which a warning can be silenced; errors have none.
    pub name: Option<&'static str>,
    /// The field it is about; the root for problems of the text itself.
    pub path: FieldPath,
    /// What is wrong, without the path, in the words Kubernetes uses where it has any.
    pub message: String,
    /// The offending part of the text: the value, the key where the value is
    /// missing or misspelt, or the closest enclosing key.
    pub span: Span,
    /// What to do about it, where that can be said.
    pub help: Option<String>,
    /// Another place that explains this one, such as the first of two duplicates.
    pub related: Option<Related>,
}

/// A second place that a diagnostic points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Related {
    /// The place.
    pub span: Span,
    /// What is there: "first given here".
    pub note: String,
}

/// What a document of a file turned out to be.
#[derive(Clone, Debug, PartialEq)]
pub enum DocumentKind {
    /// A batch/v1 Job. The Job is there, with its defaults set, if it was asked for
    /// and could be read at all.
    Job(Option<Box<Job>>),
    /// An object of another kind: named and passed over.
    Other,
    /// Text that could not be read as an object, or a list with something wrong.
    Unreadable,
}

/// One document of a file, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedDocument {
    /// Where the document is in the text.
    pub span: Span,
    /// What it is.
    pub kind: DocumentKind,
    /// Its `apiVersion`, as written.
    pub api_version: Option<String>,
    /// Its `kind`, as written.
    pub kind_name: Option<String>,
    /// `metadata.name`, or `metadata.generateName` with a trailing `*`, if there is one.
    pub name: Option<String>,
    /// What there is to say about it, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

impl CheckedDocument {
    /// Whether the document has no error; warnings do not count.
    pub fn is_valid(&self) -> bool {
        self.diagnostics.iter().all(|diagnostic| diagnostic.severity != Severity::Error)
    }
}
