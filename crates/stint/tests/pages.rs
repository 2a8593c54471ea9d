//! The samples in README.md and docs/check.md: each shows what the program prints.

mod scratch;

use std::fs;
use std::path::Path;

use scratch::{Scratch, job};

/// A misspelt field and a missing one.
const README_JOB: &str = "\
apiVersion: batch/v1
kind: Job
metadata:
  name: hello
spec:
  paralelism: 4
  template:
    spec:
      containers:
      - name: main
        image: busybox:1.36
        command: [\"echo\", \"hello\"]
";

/// A policy that needs a field which is not there.
fn policy_job() -> String {
    job("  completions: 5
  completionMode: Indexed
  podFailurePolicy:
    rules:
    - action: FailIndex
      onExitCodes:
        operator: In
        values: [42]
")
}

/// The code blocks of a page that start with a prompt: the command, and what it prints.
fn sessions(page: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = fs::read_to_string(path).expect("the page is there");
    let mut sessions: Vec<(String, String)> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        let code = line.strip_prefix("    ");
        is_open &= code.is_some() || line.is_empty();
        match code.and_then(|code| code.strip_prefix("$ ")) {
            Some(command) => {
                sessions.push((command.to_owned(), String::new()));
                is_open = true;
            }
            None if is_open => {
                let (_, output) = sessions.last_mut().expect("a command came first");
                output.push_str(code.unwrap_or(""));
                output.push('\n');
            }
            None => {}
        }
    }
    for (_, output) in &mut sessions {
        output.truncate(output.trim_end().len());
        output.push('\n');
    }
    sessions
}

/// What the program prints for `job.yaml` with this text.
fn printed(args: &[&str], job: &str) -> String {
    let scratch = Scratch::new();
    let finished = scratch.write("job.yaml", job).run(args);
    assert_eq!(finished.code, Some(1), "the samples are broken: {finished:?}");
    finished.stdout + &finished.stderr
}

/// JSON in the layout of `jq`, as the program writes it: on one line.
fn on_one_line(json: &str) -> String {
    let line: String =
        json.lines().map(|line| line.trim_start().replacen("\": ", "\":", 1)).collect();
    line + "\n"
}

#[test]
fn the_readme_shows_what_is_printed() {
    let [(command, shown)] = &sessions("README.md")[..] else { panic!("one sample") };
    assert_eq!(command, "stint check job.yaml");
    assert_eq!(*shown, printed(&["check", "job.yaml"], README_JOB));
}

#[test]
fn the_page_on_check_shows_what_is_printed() {
    let [(command, shown), (json_command, json_shown)] = &sessions("docs/check.md")[..] else {
        panic!("two samples")
    };
    assert_eq!(command, "stint check job.yaml");
    assert_eq!(*shown, printed(&["check", "job.yaml"], &policy_job()));
    assert_eq!(json_command, "stint check -o json job.yaml | jq .");
    let json_printed = printed(&["check", "-o", "json", "job.yaml"], &policy_job());
    assert_eq!(on_one_line(json_shown), json_printed);
}
