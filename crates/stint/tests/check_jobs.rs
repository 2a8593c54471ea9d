//! What `stint check` says about Jobs, from the manifest to the screen: a few of
//! the rules, in the words of Kubernetes, and the examples of this repository.

mod scratch;

use std::path::Path;

use scratch::{Finished, Scratch, job};
use serde_json::Value;

/// What was found in `text`, as a report for tools.
fn check(text: &str) -> (Option<i32>, Value) {
    let finished = Scratch::new()
        .run_with_stdin(&["check", "-o", "json", "--allow", "image-ignored", "-"], text.as_bytes());
    let report = serde_json::from_str(&finished.stdout).expect("a report");
    (finished.code, report)
}

/// The diagnostics of the first document of `text`.
fn diagnostics(text: &str) -> Vec<Value> {
    let (_, report) = check(text);
    let diagnostics = &report["files"][0]["documents"][0]["diagnostics"];
    diagnostics.as_array().expect("a list").clone()
}

/// `path: message` of each, the way people and API clients see it.
fn messages(text: &str) -> Vec<String> {
    let text_of = |value: &Value| value.as_str().expect("a string").to_owned();
    diagnostics(text)
        .iter()
        .map(|found| format!("{}: {}", text_of(&found["path"]), text_of(&found["message"])))
        .collect()
}

#[test]
fn errors_are_worded_as_kubernetes_words_them() {
    let rows = [
        (
            job("").replace("      restartPolicy: Never\n", ""),
            r#"spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never""#,
        ),
        (
            job("  parallelism: 2\n  completionMode: Indexed\n"),
            "spec.completions: Required value: when completion mode is Indexed",
        ),
        (
            job("  parallelism: -1\n"),
            "spec.parallelism: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            job("").replace("  name: x\n", "  labels: {}\n"),
            "metadata.name: Required value: name or generateName is required",
        ),
    ];
    for (text, expected) in rows {
        let (code, _) = check(&text);
        assert_eq!(code, Some(1), "{text}");
        let messages = messages(&text);
        assert!(messages.iter().any(|message| message == expected), "{messages:#?}");
    }
}

#[test]
fn all_errors_are_told_at_once_in_the_order_of_the_text() {
    let found = diagnostics(&job("  parallelism: -1\n  completions: -2\n  backoffLimit: -3\n"));
    let lines: Vec<&Value> = found.iter().map(|found| &found["line"]).collect();
    assert_eq!(lines, [6, 7, 8]);
}

#[test]
fn an_error_is_shown_with_its_line_and_a_caret() {
    let scratch = Scratch::new();
    scratch.write("job.yaml", job("  parallelism: -1\n"));
    let finished = scratch.run(&["check", "job.yaml"]);
    assert_eq!(finished.code, Some(1));
    let expected = "\
error: spec.parallelism: Invalid value: -1: must be greater than or equal to 0
  --> job.yaml:6:16
   |
 6 |   parallelism: -1
   |                ^^
";
    assert!(finished.stderr.starts_with(expected), "{}", finished.stderr);
    assert!(finished.stderr.ends_with("job.yaml: 1 Job checked, 1 error\n"), "{}", finished.stderr);
}

#[test]
fn a_misspelt_field_is_pointed_at_and_the_right_one_named() {
    let found = diagnostics(&job("  paralellism: 2\n"));
    let [unknown] = &found[..] else {
        panic!("one error: {found:#?}");
    };
    assert!(unknown["message"].as_str().unwrap().contains("unknown field"));
    assert_eq!((&unknown["line"], &unknown["column"]), (&6.into(), &3.into()));
    assert_eq!(unknown["endColumn"], 14);
    let help = unknown["help"].as_str().expect("a suggestion");
    assert!(help.contains("did you mean"), "{help}");
    assert!(help.contains("parallelism"), "{help}");
}

#[test]
fn of_a_field_given_twice_both_places_are_told() {
    let found = diagnostics(&job("  parallelism: 1\n  completions: 1\n  parallelism: 2\n"));
    let [twice] = &found[..] else {
        panic!("one error: {found:#?}");
    };
    assert_eq!(twice["line"], 8);
    assert_eq!(twice["related"]["line"], 6);
}

#[test]
fn broken_yaml_is_an_error_with_a_place() {
    let (code, report) = check("apiVersion: batch/v1\nkind: Job\nmetadata: {name: x\n");
    assert_eq!(code, Some(1));
    assert!(report["summary"]["errors"].as_u64().unwrap() >= 1);
    let found = &report["files"][0]["documents"][0]["diagnostics"][0];
    assert!(found["line"].as_u64().unwrap() >= 3, "{found:#}");
}

#[test]
fn columns_count_characters() {
    let found = diagnostics(&job("").replace("[\"true\"]", "[\"ä漢\", 1]"));
    let [wrong_type] = &found[..] else {
        panic!("one error: {found:#?}");
    };
    assert_eq!((&wrong_type["line"], &wrong_type["column"]), (&12.into(), &25.into()));
}

#[test]
fn other_kinds_are_named_and_passed_over() {
    let scratch = Scratch::new();
    let service = "apiVersion: v1\nkind: Service\nmetadata:\n  name: my-svc\n---\n";
    scratch.write("jobs.yaml", format!("{service}{}", job("")));
    let finished = scratch.run(&["check", "--allow", "image-ignored", "jobs.yaml"]);
    assert_eq!(finished.code, Some(0));
    assert!(
        finished.stderr.ends_with(
            "jobs.yaml: 1 Job checked, no problems; passed over: Service my-svc (document 1)\n"
        ),
        "{}",
        finished.stderr
    );
}

#[test]
fn an_unreadable_input_outranks_an_invalid_one() {
    let scratch = Scratch::new();
    scratch.write("bad.yaml", job("  parallelism: -1\n"));
    assert_eq!(scratch.run(&["check", "bad.yaml"]).code, Some(1));
    assert_eq!(scratch.run(&["check", "bad.yaml", "gone.yaml"]).code, Some(2));
}

#[test]
fn warnings_do_not_fail_unless_they_are_denied() {
    let scratch = Scratch::new();
    let text = job("  completions: 2\n  completionMode: Indexed\n  backoffLimitPerIndex: 1\n");
    scratch.write("job.yaml", text.replace("Never", "OnFailure"));

    let finished = scratch.run(&["check", "job.yaml"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert!(finished.stderr.starts_with("warning[per-index-on-failure]: "), "{}", finished.stderr);
    let finished = scratch.run(&["check", "-q", "job.yaml"]);
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""));
    let finished = scratch.run(&["check", "--deny-warnings", "job.yaml"]);
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
}

#[test]
fn the_defaulted_manifest_is_printed_and_can_be_checked_again() {
    let scratch = Scratch::new();
    let text = job("  suspend: false\n").replace(
        "        command: [\"true\"]\n",
        "        command: [\"sh\", \"-c\", \"echo one\\necho two\\n\"]\n        \
         args: [\"yes\", \"010\", \"1e3\"]\n",
    );
    let printed = scratch.run_with_stdin(&["check", "--print", "-"], text.as_bytes());
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    for expected in [
        "apiVersion: batch/v1\nkind: Job\n",
        "\n  backoffLimit: 6\n",
        "\n  completionMode: NonIndexed\n",
        "\n  completions: 1\n",
        "\n  parallelism: 1\n",
        "- \"yes\"\n",
        "- \"010\"\n",
        "- \"1e3\"\n",
    ] {
        assert!(printed.stdout.contains(expected), "{expected}: {}", printed.stdout);
    }
    // What an API server sets by itself, and refuses in parts if it is given.
    for absent in ["status", "uid", "creationTimestamp", "generation", "null"] {
        assert!(!printed.stdout.contains(absent), "{absent}: {}", printed.stdout);
    }
    let again = scratch.run_with_stdin(&["check", "--print", "-"], printed.stdout.as_bytes());
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_eq!(again.stdout, printed.stdout);
}

#[test]
fn only_valid_jobs_are_printed() {
    let scratch = Scratch::new();
    let documents =
        [job(""), job("  parallelism: -1\n"), "apiVersion: v1\nkind: Pod\n".to_owned(), job("")];
    scratch.write("jobs.yaml", documents.join("---\n"));
    let finished = scratch.run(&["check", "--print", "jobs.yaml"]);
    assert_eq!(finished.code, Some(1));
    assert_eq!(finished.stdout.matches("kind: Job\n").count(), 2, "{}", finished.stdout);
    assert_eq!(finished.stdout.matches("\n---\n").count(), 1, "{}", finished.stdout);
    assert!(!finished.stdout.contains("Pod\n"), "{}", finished.stdout);
}

#[test]
fn a_feature_that_is_off_drops_its_fields() {
    let scratch = Scratch::new();
    let text = job("  completions: 2\n  completionMode: Indexed\n  backoffLimitPerIndex: 1\n");
    scratch.write("job.yaml", text);
    let printed = |gates: &str| {
        scratch.run(&["check", "--print", "--feature-gates", gates, "job.yaml"]).stdout
    };
    assert!(printed("JobBackoffLimitPerIndex=true").contains("backoffLimitPerIndex: 1\n"));
    let off = printed("JobBackoffLimitPerIndex=false");
    // Defaults are set before anything is dropped, as on an API server.
    assert!(off.contains("backoffLimit: 2147483647\n"), "{off}");
    assert!(!off.contains("backoffLimitPerIndex"), "{off}");
}

#[test]
fn a_manifest_cannot_drive_the_terminal() {
    let scratch = Scratch::new();
    let text = job("").replace("name: x", "name: \"\\e[31mred\\u202E\"");
    let finished = scratch.run_with_stdin(&["check", "-"], text.as_bytes());
    assert_eq!(finished.code, Some(1));
    assert!(!finished.stderr.contains(['\u{1b}', '\u{202e}']), "{:?}", finished.stderr);
}

#[test]
fn a_thousand_documents_with_errors_are_all_reported() {
    let bad = job("  parallelism: -1\n");
    let text: Vec<String> =
        (0..1_000).map(|n| bad.replacen("name: x", &format!("name: x{n}"), 1)).collect();
    let text = text.join("---\n");
    let (code, report) = check(&text);
    assert_eq!(code, Some(1));
    assert_eq!(report["summary"]["jobs"], 1_000);
    assert_eq!(report["summary"]["errors"], 1_000);
    // A document has 13 lines, and its separator one more.
    let last = &report["files"][0]["documents"][999];
    assert_eq!(last["diagnostics"][0]["line"], 999 * 14 + 6);

    let scratch = Scratch::new();
    let Finished { stderr, .. } = scratch.run_with_stdin(&["check", "-"], text.as_bytes());
    assert!(stderr.contains("\n… and 800 more errors\n"), "{stderr}");
}

#[test]
fn every_example_is_valid() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let examples = examples.to_str().expect("a path in UTF-8");
    let finished = Scratch::new().run(&["check", "-o", "json", examples]);
    let report: Value = serde_json::from_str(&finished.stdout).expect("a report");
    assert_eq!(finished.code, Some(0), "{report:#}");
    assert_eq!(report["summary"]["jobs"], 21, "{report:#}");
}
