//! One thing that is wrong with a text, and a bounded list of such things.
//!
//! Problems are what the decoder finds; whether they end up as diagnostics on a
//! terminal or as a `Status` answer is for others to decide.

use std::fmt;

use super::MAX_PROBLEMS_PER_DOCUMENT;
use crate::diagnostic::{Related, Span};
use crate::field_path::FieldPath;

/// What kind of wrong it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProblemKind {
    /// The text is not YAML or JSON.
    Syntax,
    /// The text is larger, deeper or more numerous than this reader takes.
    Limit,
    /// A key is given twice in one mapping.
    Duplicate,
    /// A field that the type does not have.
    Unknown,
    /// A value of the wrong type or form.
    Type,
}

/// One problem: what, where, and what to do about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// What kind of problem it is.
    pub kind: ProblemKind,
    /// The field it is about; the root for problems of the text itself.
    pub path: FieldPath,
    /// The offending part of the text.
    pub span: Span,
    /// What is wrong, without the path.
    pub message: String,
    /// What to do about it, where that can be said.
    pub help: Option<String>,
    /// Another place that explains this one.
    pub related: Option<Related>,
}

impl Problem {
    /// A problem of the text itself.
    pub(super) fn new(kind: ProblemKind, span: Span, message: impl Into<String>) -> Self {
        Self {
            kind,
            path: FieldPath::root(),
            span,
            message: message.into(),
            help: None,
            related: None,
        }
    }

    /// The same problem, about this field.
    pub(super) fn at(mut self, path: FieldPath) -> Self {
        self.path = path;
        self
    }

    /// The same problem, with advice.
    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same problem, pointing to a second place.
    pub(super) fn related(mut self, span: Span, note: impl Into<String>) -> Self {
        self.related = Some(Related { span, note: note.into() });
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.segments().is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// The problems of one document: as many as anyone would read, and a count of
/// the rest.
#[derive(Debug, Default)]
pub(super) struct Problems {
    kept: Vec<Problem>,
    dropped_count: usize,
    last_dropped: Span,
}

impl Problems {
    /// Adds a problem. It is only built when it will be kept, so that a million
    /// of them cost no more than the first hundred.
    pub(super) fn add(&mut self, span: Span, build: impl FnOnce() -> Problem) {
        if self.kept.len() < MAX_PROBLEMS_PER_DOCUMENT {
            self.kept.push(build());
        } else {
            self.dropped_count += 1;
            self.last_dropped = span;
        }
    }

    /// The problems in the order of the text, then a word on those left out.
    pub(super) fn finish(mut self) -> Vec<Problem> {
        self.kept.sort_by_key(|problem| (problem.span.start, problem.span.end));
        if self.dropped_count > 0 {
            let message = match self.dropped_count {
                1 => "1 more problem is not shown".to_owned(),
                count => format!("{count} more problems are not shown"),
            };
            self.kept.push(Problem::new(ProblemKind::Limit, self.last_dropped, message));
        }
        self.kept
    }
}
