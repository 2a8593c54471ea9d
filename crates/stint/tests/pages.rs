//! The samples in README.md, docs/check.md, docs/run.md and docs/serve.md: each shows what the
//! program prints.

mod scratch;

use std::fs;
use std::io::{BufRead, BufReader};
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

/// A code block of a page, from this line on, without its indentation of so many spaces.
fn block(page: &str, first: &str, indentation: usize) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = fs::read_to_string(path).expect("the page is there");
    let indent = " ".repeat(indentation);
    let mut shown = String::new();
    for line in text.lines().skip_while(|line| line.trim_start() != first) {
        match line.strip_prefix(&indent) {
            Some(code) => shown += code,
            None if line.is_empty() => {}
            None => break,
        }
        shown.push('\n');
    }
    shown.trim_end().to_owned()
}

/// A text without what differs from one run to the next: times, which were the slowest, and the
/// name of the temporary folder.
fn steady(text: &str) -> Vec<String> {
    let is_time = |word: &str| {
        let number = word.trim_end_matches([',', ':']).strip_suffix('s');
        number.is_some_and(|number| number.parse::<f64>().is_ok())
    };
    let word = |word: &str| match word.rsplit_once("/stint-") {
        Some((_, rest)) => format!("FOLDER{}", rest.find('/').map_or("", |at| &rest[at..])),
        None if is_time(word) => "TIME".to_owned(),
        None => word.to_owned(),
    };
    let line = |line: &str| match line.trim_start().starts_with("slowest ") {
        true => "  slowest".to_owned(),
        false => line.split(' ').map(word).collect::<Vec<String>>().join(" "),
    };
    text.lines().map(line).collect()
}

/// `stint` at the top of the repository, with a folder of its own for temporary files.
fn stint(folder: &tempfile::TempDir) -> std::process::Command {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_stint"));
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    command.env("TMPDIR", folder.path()).stdin(std::process::Stdio::null());
    command
}

#[test]
fn the_page_on_run_shows_the_summary_that_is_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    let command = "stint run examples/execute-all.yaml";
    let mut run = stint(&folder);
    let output = run.args(command.split(' ').skip(1)).output().expect("it runs");
    let printed = String::from_utf8(output.stderr).expect("it is UTF-8");
    // What comes before depends on how fast it goes.
    let summary = |text: &str| {
        let lines = steady(text).into_iter();
        lines.skip_while(|line| !line.contains(": Failed after")).collect::<Vec<String>>()
    };
    let shown = summary(&block("docs/run.md", command, 4));
    assert!(shown.len() > 10, "{shown:?}");
    assert_eq!(shown, summary(&printed));
}

#[test]
fn the_page_on_run_shows_how_a_job_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let container = "        resources: {limits: {nvidia.com/gpu: 1}}\n        \
                     command: [python3, train.py]\n";
    let manifest = format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: train}}\nspec:\n  template:\n    \
         spec:\n      restartPolicy: Never\n      containers:\n      - name: main\n        \
         image: python\n{container}"
    );
    fs::write(folder.path().join("train.yaml"), manifest).expect("it is ours");
    let mut run = stint(&folder);
    run.current_dir(folder.path()).args(["run", "train.yaml"]);
    let output = run.output().expect("it runs");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let printed = String::from_utf8(output.stderr).expect("it is UTF-8");
    // What of a manifest is not held depends on the machine, and is told before.
    let printed: Vec<&str> =
        printed.trim_end().lines().filter(|line| !line.starts_with("note: ")).collect();
    let shown = block("docs/run.md", "$ stint run train.yaml", 6);
    let (_, shown) = shown.split_once('\n').expect("the command comes first");
    assert_eq!(shown.lines().collect::<Vec<&str>>(), printed);
}

#[test]
fn the_page_on_serve_shows_the_greeting() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let mut command = stint(&folder);
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(&data);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().expect("it runs");
    let out = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut greeting = Vec::new();
    for line in out.lines() {
        let line = line.expect("it writes text");
        let is_last = line.contains("Ctrl-C stops it");
        greeting.push(line.replace(data.to_str().expect("UTF-8"), "/home/me/.local/share/stint"));
        if is_last {
            break;
        }
    }
    child.kill().expect("it runs");
    child.wait().expect("it has ended");
    let port = greeting.iter_mut().find(|line| line.contains("https://")).expect("an address");
    *port = port.rsplit_once(':').expect("it has a port").0.to_owned() + ":6440";
    let shown = block("docs/serve.md", "$ stint serve", 4);
    let (_, shown) = shown.split_once('\n').expect("the command comes first");
    assert_eq!(shown.lines().collect::<Vec<&str>>(), greeting);
}
