//! What tools are given, member by member.

use serde_json::{Value, json};
use stint_api::diagnostic::DocumentKind;
use stint_api::field_path::Path;

use super::*;

fn written(report: &JsonReport, tally: &Tally) -> (String, Value) {
    let mut out = Vec::new();
    report.write(&mut out, tally).expect("a vector takes all");
    let text = String::from_utf8(out).expect("JSON is UTF-8");
    let value = serde_json::from_str(&text).expect("it is JSON");
    (text, value)
}

#[test]
fn a_report_has_the_documented_members() {
    let source = Source::new("jobs.yaml", "ä: [1]\nä: 2\n---\nkind: Service\n".to_owned());
    let spec = Path::field("spec");
    let finding = Diagnostic {
        severity: Severity::Error,
        name: None,
        path: spec.child("completions").to_field_path(),
        message: "Required value".to_owned(),
        span: Span { start: 4, end: 10 },
        help: None,
        related: Some(Related {
            span: Span { start: 0, end: 2 },
            note: "first given here".to_owned(),
        }),
    };
    let documents = vec![
        CheckedDocument {
            span: Span { start: 0, end: 13 },
            kind: DocumentKind::Job(None),
            api_version: Some("batch/v1".to_owned()),
            kind_name: Some("Job".to_owned()),
            name: Some("x".to_owned()),
            diagnostics: vec![finding],
        },
        CheckedDocument {
            span: Span { start: 18, end: 32 },
            kind: DocumentKind::Other,
            api_version: Some("v1".to_owned()),
            kind_name: Some("Service".to_owned()),
            name: None,
            diagnostics: Vec::new(),
        },
    ];
    let tally = Tally::of(&documents);
    let mut report = JsonReport::default();
    report.add_file(&source, documents);
    report.add_input_error(&InputError::TooLarge { name: "big.yaml".to_owned() });

    let (text, value) = written(&report, &tally);
    assert!(text.ends_with("}\n"));
    assert_eq!(text.lines().count(), 1);
    assert_eq!(
        value,
        json!({
            "files": [
                {
                    "file": "jobs.yaml",
                    "documents": [
                        {
                            "index": 0, "line": 1, "kind": "Job", "apiVersion": "batch/v1", "name": "x",
                            "valid": false,
                            "diagnostics": [{
                                "severity": "error", "name": null, "path": "spec.completions", "message": "Required value",
                                "line": 1, "column": 4, "endLine": 2, "endColumn": 2,
                                "help": null,
                                "related": {
                                    "note": "first given here",
                                    "line": 1, "column": 1, "endLine": 1, "endColumn": 2,
                                },
                            }],
                        },
                        {
                            "index": 1, "line": 4, "kind": "Service", "apiVersion": "v1", "name": null,
                            "valid": null, "diagnostics": [],
                        },
                    ],
                    "error": null,
                },
                {
                    "file": "big.yaml",
                    "documents": [],
                    "error": {
                        "kind": "unreadable",
                        "message": "big.yaml is larger than 64 MiB",
                        "help": "split it into smaller files",
                        "line": null,
                    },
                },
            ],
            "findings": [],
            "summary": { "jobs": 1, "errors": 1, "warnings": 0, "passedOver": 1, "unreadable": 0 },
        })
    );
}

#[test]
fn what_could_drive_a_terminal_is_escaped_and_means_the_same() {
    let name = "a\u{1b}b\u{9b}c\u{202e}d\u{e0041}e\u{7f}\"\\f";
    let mut report = JsonReport::default();
    report.add_file(&Source::new(name, String::new()), Vec::new());
    let (text, value) = written(&report, &Tally::default());
    let raw = text.trim_end().chars().find(|&c| is_unprintable(c));
    assert_eq!(raw, None, "{text}");
    assert_eq!(value["files"][0]["file"], name);
}
