//! What was found, for tools: one JSON object.
//!
//! The schema is stable: members may be added, but none is renamed, removed or
//! given another meaning. docs/check.md tells it to users.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use stint_api::diagnostic::{CheckedDocument, Diagnostic, DocumentKind, Related, Severity, Span};

use crate::input::InputError;
use crate::lack::Lack;
use crate::printable::is_unprintable;
use crate::source::Source;
use crate::tally::Tally;

/// The whole report.
#[derive(Debug, Default, Serialize)]
pub(crate) struct JsonReport {
    files: Vec<JsonFile>,
    /// About the inputs as a whole.
    findings: Vec<JsonFinding>,
}

#[derive(Debug, Serialize)]
struct JsonFinding {
    severity: &'static str,
    name: Option<&'static str>,
    message: String,
}

#[derive(Debug, Serialize)]
struct JsonFile {
    file: String,
    documents: Vec<JsonDocument>,
    error: Option<JsonInputError>,
}

/// Why a file was not checked.
#[derive(Debug, Serialize)]
struct JsonInputError {
    /// `unreadable`, or `invalid` where the text was read and is no text.
    kind: &'static str,
    message: String,
    help: &'static str,
    line: Option<usize>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonDocument {
    /// From 0, within the file.
    index: usize,
    line: usize,
    kind: Option<String>,
    api_version: Option<String>,
    name: Option<String>,
    /// Null for what is passed over.
    valid: Option<bool>,
    diagnostics: Vec<JsonDiagnostic>,
}

#[derive(Debug, Serialize)]
struct JsonDiagnostic {
    severity: &'static str,
    /// What a warning can be silenced by.
    name: Option<&'static str>,
    /// Empty for the document itself.
    path: String,
    message: String,
    #[serde(flatten)]
    range: JsonRange,
    help: Option<String>,
    related: Option<JsonRelated>,
}

#[derive(Debug, Serialize)]
struct JsonRelated {
    note: String,
    #[serde(flatten)]
    range: JsonRange,
}

/// Lines and columns count from 1, columns in characters; the end is the place
/// after the last character.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonRange {
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonSummary {
    jobs: usize,
    errors: usize,
    warnings: usize,
    passed_over: usize,
    unreadable: usize,
}

impl JsonReport {
    /// Adds a file that was checked.
    pub(crate) fn add_file(&mut self, source: &Source, documents: Vec<CheckedDocument>) {
        let documents = documents
            .into_iter()
            .enumerate()
            .map(|(index, document)| json_document(source, index, document))
            .collect();
        self.files.push(JsonFile { file: source.name().to_owned(), documents, error: None });
    }

    /// Adds what the inputs lack as a whole.
    pub(crate) fn add_lack(&mut self, lack: Lack, names: &[String]) {
        self.findings.push(JsonFinding {
            severity: severity_word(lack.severity()),
            name: lack.name(),
            message: lack.message(names),
        });
    }

    /// Adds a file that could not be checked.
    pub(crate) fn add_input_error(&mut self, error: &InputError) {
        let kind = if error.is_invalid_text() { "invalid" } else { "unreadable" };
        self.files.push(JsonFile {
            file: error.name().to_owned(),
            documents: Vec::new(),
            error: Some(JsonInputError {
                kind,
                message: error.to_string(),
                help: error.help(),
                line: error.line(),
            }),
        });
    }

    /// Writes the report as one line.
    pub(crate) fn write(&self, mut out: impl Write, tally: &Tally) -> io::Result<()> {
        #[derive(Serialize)]
        struct Whole<'a> {
            #[serde(flatten)]
            report: &'a JsonReport,
            summary: JsonSummary,
        }
        let whole = Whole {
            report: self,
            summary: JsonSummary {
                jobs: tally.jobs,
                errors: tally.errors,
                warnings: tally.warnings,
                passed_over: tally.passed_over,
                unreadable: tally.unreadable,
            },
        };
        let mut serializer = Serializer::with_formatter(&mut out, TerminalSafe);
        whole.serialize(&mut serializer)?;
        out.write_all(b"\n")
    }
}

fn json_document(source: &Source, index: usize, document: CheckedDocument) -> JsonDocument {
    let valid = (document.kind != DocumentKind::Other).then(|| document.is_valid());
    JsonDocument {
        index,
        line: source.position(document.span.start).line,
        kind: document.kind_name,
        api_version: document.api_version,
        name: document.name,
        valid,
        diagnostics: document
            .diagnostics
            .into_iter()
            .map(|diagnostic| json_diagnostic(source, diagnostic))
            .collect(),
    }
}

fn json_diagnostic(source: &Source, diagnostic: Diagnostic) -> JsonDiagnostic {
    let related = |Related { span, note }| JsonRelated { note, range: json_range(source, span) };
    JsonDiagnostic {
        severity: severity_word(diagnostic.severity),
        name: diagnostic.name,
        path: diagnostic.path.to_string(),
        message: diagnostic.message,
        range: json_range(source, diagnostic.span),
        help: diagnostic.help,
        related: diagnostic.related.map(related),
    }
}

fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn json_range(source: &Source, span: Span) -> JsonRange {
    let span = source.clamp(span);
    let start = source.position(span.start);
    let end = source.position(span.end);
    JsonRange { line: start.line, column: start.column, end_line: end.line, end_column: end.column }
}

/// JSON in which whatever could drive a terminal is written as `\u` escapes, which
/// mean the same to every reader. JSON itself asks that only below U+0020.
struct TerminalSafe;

impl Formatter for TerminalSafe {
    fn write_string_fragment<W>(&mut self, out: &mut W, fragment: &str) -> io::Result<()>
    where
        W: ?Sized + Write,
    {
        let mut rest = fragment;
        while let Some(at) = rest.find(is_unprintable) {
            let c = rest[at..].chars().next().expect("found a character");
            out.write_all(&rest.as_bytes()[..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = &rest[at + c.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests;
