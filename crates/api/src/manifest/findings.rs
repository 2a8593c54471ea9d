//! What was found in one document: each thing once, not too many, in order.

use std::collections::HashSet;

use super::error_at;
use super::place::{blame, place_of};
use crate::advice::Advice;
use crate::decode::{Node, Problem, ProblemKind};
use crate::diagnostic::{Diagnostic, Severity};
use crate::field_error::{ErrorKind, FieldError};
use crate::field_path::FieldPath;
use crate::remedy::remedy;

/// Findings that are kept of one document. Nobody reads more than a few screens of
/// them, and a list of 100,000 wrong items is one mistake.
const MAX_FINDINGS_PER_DOCUMENT: usize = 1_000;

#[derive(Default)]
pub(super) struct Findings {
    kept: Vec<Diagnostic>,
    /// Path and message of the errors that are kept: the API server repeats some.
    said: HashSet<(String, String)>,
    /// Values that could not be read, and fields that nobody knows.
    unread: Vec<(FieldPath, ProblemKind)>,
    hidden_errors: usize,
    hidden_warnings: usize,
}

impl Findings {
    pub(super) fn from_problems(problems: Vec<Problem>) -> Self {
        let mut findings = Self::default();
        findings.add_problems(problems);
        findings
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Adds what the decoder found, which is bounded already.
    pub(super) fn add_problems(&mut self, problems: impl IntoIterator<Item = Problem>) {
        for problem in problems {
            if matches!(problem.kind, ProblemKind::Type | ProblemKind::Unknown) {
                self.unread.push((problem.path.clone(), problem.kind));
            }
            self.kept.push(Diagnostic::from(problem));
        }
    }

    pub(super) fn add(&mut self, diagnostic: Diagnostic) {
        self.kept.push(diagnostic);
    }

    /// Adds what validation found, unless it only follows from something that could not
    /// be read.
    pub(super) fn add_error(&mut self, error: &FieldError, node: &Node) {
        if self.is_consequence(error) {
            return;
        }
        if self.kept.len() >= MAX_FINDINGS_PER_DOCUMENT {
            self.hidden_errors += 1;
            return;
        }
        let message = error.body();
        if self.said.insert((error.path.to_string(), message.clone())) {
            self.kept.push(Diagnostic {
                severity: Severity::Error,
                name: None,
                path: error.path.clone(),
                message,
                span: blame(node, error),
                help: remedy(error),
                related: None,
            });
        }
    }

    pub(super) fn add_advice(&mut self, advice: &Advice, node: &Node) {
        // What is wrong altogether does not surprise on top of it.
        let is_wrong =
            |found: &Diagnostic| found.severity == Severity::Error && found.path == advice.path;
        if self.is_below_mistyped(&advice.path) || self.kept.iter().any(is_wrong) {
            return;
        }
        if self.kept.len() >= MAX_FINDINGS_PER_DOCUMENT {
            self.hidden_warnings += 1;
            return;
        }
        self.kept.push(Diagnostic {
            severity: Severity::Warning,
            name: Some(advice.name),
            path: advice.path.clone(),
            message: advice.message.clone(),
            span: place_of(node, &advice.path),
            help: Some(advice.help.clone()),
            related: None,
        });
    }

    /// All of it in the order of the text; errors before warnings at the same place.
    pub(super) fn finish(mut self) -> Vec<Diagnostic> {
        self.kept.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.severity));
        if self.hidden_errors + self.hidden_warnings > 0 {
            let last = hidden(&self.kept, self.hidden_errors, self.hidden_warnings);
            self.kept.push(last);
        }
        self.kept
    }

    /// A value of the wrong type is absent for validation: what that leads to is no news.
    fn is_consequence(&self, error: &FieldError) -> bool {
        self.is_below_mistyped(&error.path) || (asks_for_something(error) && self.lacks(error))
    }

    fn is_below_mistyped(&self, path: &FieldPath) -> bool {
        self.unread.iter().any(|(unread, kind)| {
            *kind == ProblemKind::Type && !unread.segments().is_empty() && path.starts_with(unread)
        })
    }

    /// Whether a member of what the error is about was given, but could not be read.
    fn lacks(&self, error: &FieldError) -> bool {
        let depth = error.path.segments().len();
        self.unread.iter().any(|(unread, _)| {
            unread.segments().len() == depth + 1 && unread.starts_with(&error.path)
        })
    }
}

/// Whether the error says that something is missing.
fn asks_for_something(error: &FieldError) -> bool {
    match error.kind {
        ErrorKind::Required => true,
        ErrorKind::Invalid => {
            error.detail.ends_with("is required") || error.detail.starts_with("at least one")
        }
        ErrorKind::NotSupported
        | ErrorKind::Duplicate
        | ErrorKind::Forbidden
        | ErrorKind::TooLong
        | ErrorKind::TooMany
        | ErrorKind::NotFound
        | ErrorKind::TypeInvalid
        | ErrorKind::Internal => false,
    }
}

/// Cuts a list of findings down to `room`, and to at least the one that says so.
pub(super) fn fit(found: &mut Vec<Diagnostic>, room: usize) {
    if found.len() <= room {
        return;
    }
    let mut cut = found.split_off(room);
    if cut.len() == 1 {
        // Saying that one is not shown would take as much room as showing it.
        found.append(&mut cut);
        return;
    }
    let errors = cut.iter().filter(|found| found.severity == Severity::Error).count();
    found.push(hidden(&cut, errors, cut.len() - errors));
}

/// Says how much is not said.
fn hidden(near: &[Diagnostic], errors: usize, warnings: usize) -> Diagnostic {
    let span = near.last().map(|found| found.span).unwrap_or_default();
    let severity = if errors > 0 { Severity::Error } else { Severity::Warning };
    let noun = if errors + warnings == 1 { "finding" } else { "findings" };
    let message = format!(
        "{} more {noun} of this document not shown, {errors} of them errors",
        errors + warnings
    );
    Diagnostic { severity, ..error_at(span, message) }
}

impl From<Problem> for Diagnostic {
    fn from(problem: Problem) -> Self {
        Self {
            severity: Severity::Error,
            name: None,
            path: problem.path,
            message: problem.message,
            span: problem.span,
            help: problem.help,
            related: problem.related,
        }
    }
}
