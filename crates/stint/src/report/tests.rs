//! What people are shown, block by block.

use stint_api::diagnostic::Related;
use stint_api::field_path::Path;

use super::*;

const PLAIN: Report = Report { painter: Painter::new(false), quiet: false };

/// The first place of `needle` in `text`.
fn span_of(text: &str, needle: &str) -> Span {
    let start = text.find(needle).expect("the needle is in the text");
    Span { start, end: start + needle.len() }
}

fn diagnostic(severity: Severity, span: Span) -> Diagnostic {
    let spec = Path::field("spec");
    Diagnostic {
        severity,
        name: None,
        path: spec.child("completions").to_field_path(),
        message: "Required value: when completion mode is Indexed".to_owned(),
        span,
        help: None,
        related: None,
    }
}

fn document(
    kind: DocumentKind,
    name: Option<&str>,
    diagnostics: Vec<Diagnostic>,
) -> CheckedDocument {
    CheckedDocument {
        span: Span::default(),
        kind,
        api_version: None,
        kind_name: None,
        name: name.map(str::to_owned),
        diagnostics,
    }
}

fn job(diagnostics: Vec<Diagnostic>) -> CheckedDocument {
    document(DocumentKind::Job(None), Some("j"), diagnostics)
}

fn other(kind: &str, name: Option<&str>) -> CheckedDocument {
    let kind_name = Some(kind.to_owned());
    CheckedDocument { kind_name, ..document(DocumentKind::Other, name, Vec::new()) }
}

const TEXT: &str = "\
apiVersion: batch/v1
kind: Job
metadata:
  name: x
spec:
  parallelism: 2
  completionMode: Indexed
";

#[test]
fn an_error_is_shown_with_its_place_its_line_and_what_to_do() {
    let source = Source::new("jobs.yaml", TEXT.to_owned());
    let mut error = diagnostic(Severity::Error, span_of(TEXT, "completionMode"));
    error.help = Some("set spec.completions to the number of indexes".to_owned());
    assert_eq!(
        PLAIN.diagnostics(&source, &[job(vec![error])]),
        "\
error: spec.completions: Required value: when completion mode is Indexed
  --> jobs.yaml:7:3
   |
 7 |   completionMode: Indexed
   |   ^^^^^^^^^^^^^^
   = help: set spec.completions to the number of indexes

"
    );
}

#[test]
fn a_second_place_has_its_own_line_and_the_gutter_fits_both() {
    let text = format!("{}\na: 2\n", "a: 1\nb: 1\nc: 1\nd: 1\ne: 1\n".repeat(2));
    let source = Source::new("f.yaml", text.clone());
    let second = text.rfind("a: 2").unwrap();
    let mut error = diagnostic(Severity::Warning, Span { start: second, end: second + 1 });
    error.path = Default::default();
    error.message = "duplicate field \"a\"".to_owned();
    error.help = Some("remove one of them\nor rename it".to_owned());
    error.related =
        Some(Related { span: Span { start: 0, end: 1 }, note: "first given here".to_owned() });
    assert_eq!(
        PLAIN.diagnostics(&source, &[job(vec![error])]),
        "\
warning: duplicate field \"a\"
   --> f.yaml:12:1
    |
 12 | a: 2
    | ^
    = help: remove one of them
            or rename it
note: first given here
   --> f.yaml:1:1
    |
  1 | a: 1
    | -

"
    );
}

#[test]
fn an_empty_line_at_the_end_of_the_text_can_be_pointed_at() {
    let source = Source::new("f", "a:\n".to_owned());
    let mut error = diagnostic(Severity::Error, Span { start: 3, end: 3 });
    error.path = Default::default();
    error.message = "unexpected end".to_owned();
    assert_eq!(
        PLAIN.diagnostics(&source, &[job(vec![error])]),
        "error: unexpected end\n  --> f:2:1\n   |\n 2 |\n   | ^\n\n"
    );
}

#[test]
fn nothing_from_the_outside_reaches_the_terminal_raw() {
    let text = "a: \u{1b}]0;x\u{7}\n";
    let source = Source::new("f\u{1b}[2J.yaml", text.to_owned());
    let mut error = diagnostic(Severity::Error, span_of(text, "a"));
    let labels = Path::field("labels");
    error.path = labels.key("\u{1b}[1m\u{202e}").to_field_path();
    error.message = "bad\n\u{9b}31m".to_owned();
    error.help = Some("h\u{1b}elp".to_owned());
    error.related =
        Some(Related { span: Span { start: 0, end: 1 }, note: "n\u{1b}ote".to_owned() });
    let documents = [job(vec![error]), other("Ki\u{1b}nd", Some("na\u{1b}me"))];
    let tally = Tally::of(&documents);
    for shown in [
        PLAIN.diagnostics(&source, &documents),
        PLAIN.file_summary(&source, &documents, &tally),
        PLAIN.lack(Lack::Jobs, &[source.name().to_owned()]),
    ] {
        let raw = shown.chars().find(|&c| c.is_control() && c != '\n');
        assert_eq!(raw, None, "{shown}");
        assert!(!shown.contains('\u{202e}'), "{shown}");
        assert!(shown.contains("\\u{1b}"), "{shown}");
    }
}

#[test]
fn of_many_findings_the_first_are_shown_and_the_rest_counted() {
    let source = Source::new("f", TEXT.to_owned());
    let span = span_of(TEXT, "spec");
    let mut findings = vec![diagnostic(Severity::Warning, span); MAX_SHOWN + 1];
    findings.extend(vec![diagnostic(Severity::Error, span); MAX_SHOWN + 12]);
    let documents = [job(findings)];

    let shown = PLAIN.diagnostics(&source, &documents);
    let heads = |word: &str| shown.lines().filter(|line| line.starts_with(word)).count();
    assert_eq!(heads("error: "), MAX_SHOWN);
    assert_eq!(heads("warning: "), MAX_SHOWN);
    assert!(shown.ends_with("\n\n… and 12 more errors and 1 more warning\n\n"));

    let quiet = Report { quiet: true, ..PLAIN };
    let shown = quiet.diagnostics(&source, &documents);
    assert!(!shown.contains("warning"), "{shown}");
    assert!(shown.ends_with("… and 12 more errors\n\n"));
    assert_eq!(quiet.file_summary(&source, &documents, &Tally::of(&documents)), "");
}

#[test]
fn a_summary_counts_the_jobs_and_names_what_was_passed_over() {
    let source = Source::new("jobs.yaml", TEXT.to_owned());
    let summary = |documents: &[CheckedDocument]| {
        PLAIN.file_summary(&source, documents, &Tally::of(documents))
    };
    let span = Span::default();
    let error = diagnostic(Severity::Error, span);
    let warning = diagnostic(Severity::Warning, span);

    assert_eq!(summary(&[job(vec![])]), "jobs.yaml: 1 Job checked, no problems\n");
    let documents = [
        job(vec![error.clone(), warning]),
        other("Service", Some("my-svc")),
        job(vec![error]),
        job(vec![]),
    ];
    assert_eq!(
        summary(&documents),
        "jobs.yaml: 3 Jobs checked, 2 errors, 1 warning; passed over: Service my-svc (document 2)\n"
    );
    let many = vec![other("List", None); MAX_NAMED_DOCUMENTS + 2];
    assert!(summary(&many).ends_with("List (document 5), and 2 more\n"));
}

#[test]
fn with_colours_the_text_stays_the_same() {
    let source = Source::new("jobs.yaml", TEXT.to_owned());
    let documents = [job(vec![diagnostic(Severity::Error, span_of(TEXT, "completionMode"))])];
    let colored = Report { painter: Painter::new(true), ..PLAIN }.diagnostics(&source, &documents);
    assert!(colored.starts_with("\x1b[1;31merror\x1b[0m\x1b[1m: spec.completions: "));
    let mut without = String::new();
    for (number, piece) in colored.split('\x1b').enumerate() {
        let text = if number == 0 {
            piece
        } else {
            piece.split_once('m').expect("an escape ends with m").1
        };
        without.push_str(text);
    }
    assert_eq!(without, PLAIN.diagnostics(&source, &documents));
}
