//! `stint check`: what is wrong with these manifests?

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use k8s_openapi::api::batch::v1::Job;
use stint_api::diagnostic::{CheckedDocument, DocumentKind};
use stint_api::manifest::Checker;

use crate::cli::{CheckArgs, OutputFormat};
use crate::color::Painter;
use crate::input::{self, InputError};
use crate::lack::Lack;
use crate::manifest_yaml;
use crate::report::Report;
use crate::report_json::JsonReport;
use crate::source::Source;
use crate::stdout::Closable;
use crate::tally::Tally;

/// A manifest is invalid.
const EXIT_INVALID: u8 = 1;

/// An input could not be read, or the output not be written. Wrong usage has the
/// same code, from clap.
const EXIT_UNREADABLE: u8 = 2;

/// Checks every input and reports on it.
pub(crate) fn run(args: &CheckArgs) -> ExitCode {
    let is_colored = args.color.is_on(io::stderr().is_terminal(), |name| std::env::var_os(name));
    let gates = args.feature_gates.unwrap_or_default();
    let checker = Checker::new(gates).allow(args.allow.iter().cloned());
    let mut check = Check {
        args,
        checker: if args.print { checker.keep_jobs() } else { checker },
        report: Report { painter: Painter::new(is_colored), quiet: args.quiet },
        json: (args.output == OutputFormat::Json).then(JsonReport::default),
        stdout: Closable::new(io::BufWriter::new(io::stdout().lock())),
        printed_count: 0,
        names: Vec::new(),
        total: Tally::default(),
        has_spoken: false,
    };
    match check.all() {
        Ok(()) => ExitCode::from(exit_code(&check.total, args.deny_warnings)),
        Err(error) => {
            say(&format!("error: cannot write to standard output: {error}\n"));
            ExitCode::from(EXIT_UNREADABLE)
        }
    }
}

/// The work and what came of it so far.
struct Check<'a, W: Write> {
    args: &'a CheckArgs,
    checker: Checker,
    report: Report,
    /// Present if the report is to be JSON; then nothing is said to people.
    json: Option<JsonReport>,
    stdout: Closable<W>,
    printed_count: usize,
    /// The inputs that were read.
    names: Vec<String>,
    total: Tally,
    /// Whether anything has been said to people.
    has_spoken: bool,
}

impl<W: Write> Check<'_, W> {
    /// Goes through the inputs one at a time, so that one text is held at a time.
    fn all(&mut self) -> io::Result<()> {
        let inputs = input::find(&self.args.files, self.args.recursive);
        let input_count = inputs.len();
        for input in inputs {
            match input.and_then(|input| input::read(&input)) {
                Ok(source) => self.file(&source, input_count)?,
                Err(error) => self.input_error(&error),
            }
        }
        self.finish(input_count)
    }

    fn file(&mut self, source: &Source, input_count: usize) -> io::Result<()> {
        let documents = self.documents(source)?;
        let tally = Tally::of(&documents);
        self.total += tally;
        self.names.push(source.name().to_owned());
        if let Some(json) = &mut self.json {
            json.add_file(source, documents);
            return Ok(());
        }
        let diagnostics = self.report.diagnostics(source, &documents);
        if self.has_spoken && !diagnostics.is_empty() {
            // Sets a file's findings off from what was said about the one before.
            say("\n");
        }
        say(&diagnostics);
        // Among many files those that are fine need no line of their own.
        let is_worth_a_line = tally.errors + tally.warnings + tally.passed_over > 0;
        let mut has_spoken = !diagnostics.is_empty();
        if input_count == 1 || is_worth_a_line {
            let summary = self.report.file_summary(source, &documents, &tally);
            has_spoken |= !summary.is_empty();
            say(&summary);
        }
        self.has_spoken |= has_spoken;
        Ok(())
    }

    fn input_error(&mut self, error: &InputError) {
        if error.is_invalid_text() {
            self.total.errors += 1;
        } else {
            self.total.unreadable += 1;
        }
        match &mut self.json {
            Some(json) => json.add_input_error(error),
            None => say(&self.report.input_error(error)),
        }
    }

    /// Checks a file and keeps what was found. A Job that is to be printed is written as
    /// soon as it has been checked, so that one is held at a time.
    fn documents(&mut self, source: &Source) -> io::Result<Vec<CheckedDocument>> {
        let mut checker = std::mem::take(&mut self.checker);
        let mut documents = Vec::new();
        let mut printed = Ok(());
        checker.check(source.text(), |mut document| {
            let is_valid = document.is_valid();
            if let DocumentKind::Job(job) = &mut document.kind
                && let (Some(job), true, true) = (job.take(), is_valid, printed.is_ok())
            {
                printed = self.print(&job);
            }
            documents.push(document);
        });
        self.checker = checker;
        printed.map(|()| documents)
    }

    /// Writes a Job as a YAML document.
    fn print(&mut self, job: &Job) -> io::Result<()> {
        if self.printed_count > 0 {
            self.stdout.write_all(b"---\n")?;
        }
        self.printed_count += 1;
        self.stdout.write_all(manifest_yaml::to_yaml(job).as_bytes())
    }

    fn finish(&mut self, input_count: usize) -> io::Result<()> {
        let lack = Lack::of(&self.total, &self.args.allow);
        match lack {
            Some(Lack::Anything) => self.total.errors += 1,
            Some(Lack::Jobs) => {
                self.total.warnings += 1;
                self.total.deniable += 1;
            }
            None => {}
        }
        if let Some(json) = &mut self.json {
            if let Some(lack) = lack {
                json.add_lack(lack, &self.names);
            }
            json.write(&mut self.stdout, &self.total)?;
            return self.stdout.flush();
        }
        self.stdout.flush()?;
        if let Some(lack) = lack {
            say(&self.report.lack(lack, &self.names));
        }
        if input_count > 1 {
            say(&self.report.total(input_count, &self.total));
        }
        let denied = self.total.deniable;
        let is_clean = self.total.errors == 0 && self.total.unreadable == 0;
        if self.args.deny_warnings && is_clean && denied > 0 {
            say(&self.report.warnings_denied(denied));
        }
        Ok(())
    }
}

fn exit_code(total: &Tally, deny_warnings: bool) -> u8 {
    if total.unreadable > 0 {
        EXIT_UNREADABLE
    } else if total.errors > 0 || (deny_warnings && total.deniable > 0) {
        EXIT_INVALID
    } else {
        0
    }
}

/// Writes to standard error. If that fails there is nowhere left to say so.
fn say(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_finding_decides_the_exit_code() {
        let job = Tally { jobs: 1, ..Tally::default() };
        let local = Tally { warnings: 1, ..job };
        let warned = Tally { warnings: 1, deniable: 1, ..job };
        let invalid = Tally { errors: 1, ..warned };
        let unreadable = Tally { unreadable: 1, ..invalid };
        let rows =
            [(job, 0, 0), (local, 0, 0), (warned, 0, 1), (invalid, 1, 1), (unreadable, 2, 2)];
        for (tally, code, code_if_denied) in rows {
            assert_eq!(exit_code(&tally, false), code, "{tally:?}");
            assert_eq!(exit_code(&tally, true), code_if_denied, "{tally:?}");
        }
    }
}
