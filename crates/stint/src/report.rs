//! What was found, for people: each error with its line and a caret, and a summary.
//!
//! The layout is that of rustc, which many know how to read. Everything here is
//! text made from values; where it goes is the caller's business.

use std::fmt::{self, Write};

use stint_api::diagnostic::{CheckedDocument, Diagnostic, DocumentKind, Severity, Span};

use crate::color::{Painter, Style};
use crate::input::InputError;
use crate::lack::Lack;
use crate::printable::{MAX_MESSAGE_CHARS, printable};
use crate::snippet::Snippet;
use crate::source::Source;
use crate::tally::{Tally, counted};

/// Most errors, and most warnings, shown for one file. Nobody reads more than a
/// screen or two before they mend something; JSON output has all of them.
const MAX_SHOWN: usize = 200;

/// Most passed-over documents named in a summary.
const MAX_NAMED_DOCUMENTS: usize = 5;

/// Most characters shown of a name. Names of objects have at most 253.
const MAX_NAME_CHARS: usize = 253;

/// How to show it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    /// Paints, or not.
    pub(crate) painter: Painter,
    /// Whether warnings and summaries are left out.
    pub(crate) quiet: bool,
}

impl Report {
    /// The errors and warnings of one file, each followed by an empty line.
    pub(crate) fn diagnostics(self, source: &Source, documents: &[CheckedDocument]) -> String {
        let mut shown = String::new();
        let mut seen = Seen::default();
        let all = documents.iter().flat_map(|document| &document.diagnostics);
        for diagnostic in all {
            let count = match diagnostic.severity {
                Severity::Error => &mut seen.errors,
                Severity::Warning if self.quiet => continue,
                Severity::Warning => &mut seen.warnings,
            };
            *count += 1;
            if *count <= MAX_SHOWN {
                shown += &self.diagnostic(source, diagnostic);
            }
        }
        if let Some(rest) = seen.not_shown() {
            infallible(writeln!(shown, "{rest}\n"));
        }
        shown
    }

    /// One error or warning, followed by an empty line.
    pub(crate) fn diagnostic(self, source: &Source, diagnostic: &Diagnostic) -> String {
        format!("{}\n", Block { painter: self.painter, source, diagnostic })
    }

    /// Why an input was not read, and what to do.
    pub(crate) fn input_error(self, error: &InputError) -> String {
        let head = self.painter.paint(Style::Error, "error");
        let message = self.painter.paint(Style::Message, format!(": {error}"));
        let equals = self.painter.paint(Style::Frame, "=");
        format!("{head}{message}\n  {equals} help: {}\n\n", error.help())
    }

    /// One line about one file; nothing if there is nothing to tell.
    pub(crate) fn file_summary(
        self,
        source: &Source,
        documents: &[CheckedDocument],
        tally: &Tally,
    ) -> String {
        if self.quiet {
            return String::new();
        }
        let name = printable(source.name(), MAX_MESSAGE_CHARS);
        let mut line = format!("{name}: {tally}");
        if tally.passed_over > 0 {
            infallible(write!(line, "; passed over: {}", passed_over(documents)));
        }
        line.push('\n');
        line
    }

    /// One line about all inputs together.
    pub(crate) fn total(self, input_count: usize, tally: &Tally) -> String {
        if self.quiet {
            return String::new();
        }
        format!("{}: {tally}\n", counted(input_count, "input"))
    }

    /// That the inputs were read and lack something.
    pub(crate) fn lack(self, lack: Lack, names: &[String]) -> String {
        if self.quiet && lack.severity() == Severity::Warning {
            return String::new();
        }
        let (word, style) = match lack.severity() {
            Severity::Error => ("error".to_owned(), Style::Error),
            Severity::Warning => (warning_word(lack.name()), Style::Warning),
        };
        let head = self.painter.paint(style, word);
        format!("{head}: {}\n", printable(&lack.message(names), MAX_MESSAGE_CHARS))
    }

    /// Why the exit code is 1 though there is no error. Said even if quiet, for
    /// otherwise nothing would tell.
    pub(crate) fn warnings_denied(self, warnings: usize) -> String {
        let head = self.painter.paint(Style::Error, "error");
        let warnings = counted(warnings, "warning");
        format!("{head}: {warnings}, and --deny-warnings is given\n")
    }
}

/// How many diagnostics of a file came by.
#[derive(Default)]
struct Seen {
    errors: usize,
    warnings: usize,
}

impl Seen {
    fn not_shown(&self) -> Option<String> {
        let errors = self.errors.saturating_sub(MAX_SHOWN);
        let warnings = self.warnings.saturating_sub(MAX_SHOWN);
        let errors = (errors > 0).then(|| counted(errors, "more error"));
        let warnings = (warnings > 0).then(|| counted(warnings, "more warning"));
        let parts: Vec<String> = errors.into_iter().chain(warnings).collect();
        (!parts.is_empty()).then(|| format!("… and {}", parts.join(" and ")))
    }
}

fn passed_over(documents: &[CheckedDocument]) -> String {
    let mut names = Vec::new();
    let mut count = 0;
    for (index, document) in documents.iter().enumerate() {
        if document.kind != DocumentKind::Other {
            continue;
        }
        count += 1;
        if count <= MAX_NAMED_DOCUMENTS {
            let kind = document.kind_name.as_deref().unwrap_or("object");
            let kind = printable(kind, MAX_NAME_CHARS);
            let name = match &document.name {
                Some(name) => format!(" {}", printable(name, MAX_NAME_CHARS)),
                None => String::new(),
            };
            names.push(format!("{kind}{name} (document {})", index + 1));
        }
    }
    let unnamed = count.saturating_sub(MAX_NAMED_DOCUMENTS);
    if unnamed > 0 {
        names.push(format!("and {unnamed} more"));
    }
    names.join(", ")
}

/// `warning[name]`: what it can be silenced by.
fn warning_word(name: Option<&str>) -> String {
    name.map_or_else(|| "warning".to_owned(), |name| format!("warning[{name}]"))
}

/// One diagnostic with its snippets.
struct Block<'a> {
    painter: Painter,
    source: &'a Source,
    diagnostic: &'a Diagnostic,
}

impl fmt::Display for Block<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let diagnostic = self.diagnostic;
        let (word, style) = match diagnostic.severity {
            Severity::Error => ("error".to_owned(), Style::Error),
            Severity::Warning => (warning_word(diagnostic.name), Style::Warning),
        };
        let path = diagnostic.path.to_string();
        let message = if path.is_empty() {
            diagnostic.message.clone()
        } else {
            format!("{path}: {}", diagnostic.message)
        };
        let gutter = self.gutter_width();

        self.headline(f, &word, style, &message)?;
        self.place(f, gutter, diagnostic.span, style, '^')?;
        if let Some(help) = &diagnostic.help {
            self.help(f, gutter, help)?;
        }
        if let Some(related) = &diagnostic.related {
            self.headline(f, "note", Style::Frame, &related.note)?;
            self.place(f, gutter, related.span, Style::Frame, '-')?;
        }
        Ok(())
    }
}

impl Block<'_> {
    /// Columns for the line numbers, the same for all snippets of the block.
    fn gutter_width(&self) -> usize {
        let line_of = |span: Span| self.source.position(span.start).line;
        let related = self.diagnostic.related.as_ref();
        let line =
            related.map_or(0, |related| line_of(related.span)).max(line_of(self.diagnostic.span));
        line.to_string().len()
    }

    fn headline(
        &self,
        f: &mut fmt::Formatter<'_>,
        word: &str,
        style: Style,
        message: &str,
    ) -> fmt::Result {
        let word = self.painter.paint(style, word);
        let message = printable(message, MAX_MESSAGE_CHARS);
        let message = self.painter.paint(Style::Message, format!(": {message}"));
        writeln!(f, "{word}{message}")
    }

    /// The file, line and column of `span`, and its line with a mark.
    fn place(
        &self,
        f: &mut fmt::Formatter<'_>,
        gutter: usize,
        span: Span,
        style: Style,
        mark: char,
    ) -> fmt::Result {
        let position = self.source.position(span.start);
        let snippet = Snippet::new(self.source, span);
        let name = printable(self.source.name(), MAX_MESSAGE_CHARS);
        let frame = |text: String| self.painter.paint(Style::Frame, text);

        let arrow = frame(format!("{:gutter$} -->", ""));
        let bar = frame(format!("{:gutter$}  |", ""));
        let number = frame(format!(" {:gutter$} |", position.line));
        let marks = mark.to_string().repeat(snippet.mark_width);
        let marks = self.painter.paint(style, marks);

        writeln!(f, "{arrow} {name}:{}:{}", position.line, position.column)?;
        writeln!(f, "{bar}")?;
        if snippet.text.is_empty() {
            writeln!(f, "{number}")?;
        } else {
            writeln!(f, "{number} {}", snippet.text)?;
        }
        writeln!(f, "{bar} {}{marks}", " ".repeat(snippet.mark_start))
    }

    /// What to do; a help of several lines stays one paragraph.
    fn help(&self, f: &mut fmt::Formatter<'_>, gutter: usize, help: &str) -> fmt::Result {
        for (number, line) in help.lines().enumerate() {
            let line = printable(line, MAX_MESSAGE_CHARS);
            if number == 0 {
                let equals = self.painter.paint(Style::Frame, "=");
                writeln!(f, "{:gutter$}  {equals} help: {line}", "")?;
            } else {
                writeln!(f, "{:gutter$}          {line}", "")?;
            }
        }
        Ok(())
    }
}

fn infallible(written: fmt::Result) {
    written.expect("writing into a string cannot fail");
}

#[cfg(test)]
mod tests;
