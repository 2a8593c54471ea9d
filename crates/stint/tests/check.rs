//! `stint check` as a process: its inputs, streams and exit codes. What it says
//! about Jobs is in check_jobs.rs.

mod scratch;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use scratch::{Finished, JOB, Scratch};

/// The files of a JSON report, in their order.
fn files(finished: &Finished) -> Vec<String> {
    let report: serde_json::Value = serde_json::from_str(&finished.stdout).expect("a report");
    let files = report["files"].as_array().expect("a list of files");
    let name = |file: &serde_json::Value| file["file"].as_str().expect("a name").to_owned();
    files.iter().map(name).collect()
}

#[test]
fn a_valid_job_is_no_news() {
    let scratch = Scratch::new();
    scratch.write("job.yaml", JOB);
    let finished = scratch.run(&["check", "job.yaml"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(finished.stdout, "");
}

#[test]
fn help_tells_examples_and_exit_codes() {
    let scratch = Scratch::new();
    for args in [&["--help"][..], &["check", "--help"]] {
        let finished = scratch.run(args);
        assert_eq!(finished.code, Some(0));
        assert!(finished.stdout.contains("Examples:\n  stint "), "{}", finished.stdout);
        assert!(finished.stdout.contains("  stint check job.yaml "), "{}", finished.stdout);
        assert!(finished.stdout.contains("Exit codes:\n  0  "));
    }
    let version = scratch.run(&["--version"]);
    // With the commit and its date.
    assert!(version.stdout.starts_with(concat!("stint ", env!("CARGO_PKG_VERSION"), " (")));
    let version = scratch.run(&["-V"]);
    assert_eq!(version.stdout, concat!("stint ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn wrong_usage_exits_with_2_and_says_why() {
    let scratch = Scratch::new();
    scratch.write("job.yaml", JOB);
    let rows: [(&[&str], &str); 8] = [
        (&[], "Usage: stint"),
        (&["chek"], "'check'"),
        (&["check"], "<FILE>"),
        (&["check", "-", "job.yaml", "-"], "only once"),
        (&["check", "--print", "-o", "json", "job.yaml"], "use one of them"),
        (&["check", "-o", "xml", "job.yaml"], "json"),
        (
            &["check", "--feature-gates", "Nope=true", "job.yaml"],
            "known gates: JobBackoffLimitPerIndex",
        ),
        (&["check", "--colour", "never", "job.yaml"], "--color"),
    ];
    for (args, expected) in rows {
        let finished = scratch.run(args);
        assert_eq!(finished.code, Some(2), "{args:?}: {finished:?}");
        assert!(finished.stderr.contains(expected), "{args:?}: {finished:?}");
    }
}

#[test]
fn an_unreadable_input_does_not_hide_the_others() {
    let scratch = Scratch::new();
    scratch.write("a.yaml", JOB).write("b.yaml", JOB);
    let finished = scratch.run(&["check", "a.yaml", "gone.yaml", "b.yaml"]);
    assert_eq!(finished.code, Some(2));
    assert!(
        finished.stderr.contains(
            "error: cannot read gone.yaml: No such file or directory (os error 2)\n  \
             = help: check the spelling of the path\n"
        ),
        "{finished:?}"
    );
    assert!(finished.stderr.contains("3 inputs: "), "{finished:?}");
    assert!(finished.stderr.ends_with("1 input not read\n"), "{finished:?}");

    let finished = scratch.run(&["check", "-o", "json", "a.yaml", "gone.yaml", "b.yaml"]);
    assert_eq!(finished.code, Some(2));
    assert_eq!(finished.stderr, "");
    assert_eq!(files(&finished), ["a.yaml", "gone.yaml", "b.yaml"]);
    let report: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(report["files"][0]["error"], serde_json::Value::Null);
    assert_eq!(report["files"][1]["error"]["kind"], "unreadable");
    assert_eq!(report["summary"]["unreadable"], 1);
}

#[test]
fn what_is_no_file_is_refused_before_it_is_opened() {
    let scratch = Scratch::new();
    let finished = scratch.run(&["check", "/dev/zero"]);
    assert_eq!(finished.code, Some(2));
    assert!(
        finished
            .stderr
            .starts_with("error: cannot read /dev/zero: it is a character device, not a file\n"),
        "{finished:?}"
    );
}

#[test]
fn an_input_above_the_limit_is_refused() {
    let scratch = Scratch::new();
    let file = fs::File::create(scratch.path().join("big.yaml")).unwrap();
    // A hole takes no room on the disk.
    file.set_len((64 << 20) + 1).unwrap();
    let finished = scratch.run(&["check", "big.yaml"]);
    assert_eq!(finished.code, Some(2));
    assert!(finished.stderr.starts_with("error: big.yaml is larger than 64 MiB\n"), "{finished:?}");
}

#[test]
fn text_that_is_not_utf8_is_an_invalid_manifest() {
    let scratch = Scratch::new();
    scratch.write("latin1.yaml", b"a: 1\nname: caf\xe9\n");
    let finished = scratch.run(&["check", "latin1.yaml"]);
    assert_eq!(finished.code, Some(1));
    assert!(
        finished
            .stderr
            .starts_with("error: latin1.yaml is not UTF-8 text: byte 0xe9 at offset 14 (line 2)\n"),
        "{finished:?}"
    );
    let finished = scratch.run(&["check", "-o", "json", "latin1.yaml"]);
    assert_eq!(finished.code, Some(1));
    let report: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(report["files"][0]["error"]["kind"], "invalid");
    assert_eq!(report["files"][0]["error"]["line"], 2);
    assert_eq!(report["summary"]["errors"], 1);
}

#[test]
fn standard_input_is_an_input_like_others() {
    let scratch = Scratch::new();
    scratch.write("a.yaml", JOB);
    let args = ["check", "-o", "json", "a.yaml", "-"];
    let finished = scratch.run_with_stdin(&args, JOB.as_bytes());
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(files(&finished), ["a.yaml", "<stdin>"]);
}

#[test]
fn a_named_pipe_can_be_checked() {
    let scratch = Scratch::new();
    let program = env!("CARGO_BIN_EXE_stint");
    let script =
        r#"mkfifo pipe.yaml && { cat job.yaml > pipe.yaml & "$0" check -o json pipe.yaml; }"#;
    scratch.write("job.yaml", JOB);
    let output = Command::new("sh")
        .args(["-c", script, program])
        .current_dir(scratch.path())
        .output()
        .expect("there is a shell");
    let finished = Finished::new(output);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(files(&finished), ["pipe.yaml"]);
}

#[test]
fn of_a_directory_its_manifests_are_checked_in_order_of_names() {
    let scratch = Scratch::new();
    scratch
        .write("jobs/c.json", "{}")
        .write("jobs/a.yml", JOB)
        .write("jobs/b.yaml", JOB)
        .write("jobs/README.md", "not a manifest")
        .write("jobs/b/deeper.yaml", JOB)
        .write("jobs/trap.yaml/inner.yaml", JOB)
        .write("z.yaml", JOB);

    let finished = scratch.run(&["check", "-o", "json", "z.yaml", "jobs"]);
    assert_eq!(files(&finished), ["z.yaml", "jobs/a.yml", "jobs/b.yaml", "jobs/c.json"]);
    let finished = scratch.run(&["check", "-R", "-o", "json", "jobs"]);
    assert_eq!(
        files(&finished),
        [
            "jobs/a.yml",
            "jobs/b/deeper.yaml",
            "jobs/b.yaml",
            "jobs/c.json",
            "jobs/trap.yaml/inner.yaml"
        ]
    );
}

#[test]
fn a_directory_without_manifests_is_an_error_that_says_what_was_looked_for() {
    let scratch = Scratch::new();
    scratch.write("jobs/below/job.yaml", JOB).write("jobs/job.txt", JOB);
    fs::create_dir(scratch.path().join("empty")).unwrap();

    let finished = scratch.run(&["check", "jobs"]);
    assert_eq!(finished.code, Some(2));
    assert!(
        finished.stderr.starts_with(
            "error: no manifest in directory jobs: looked for *.yaml, *.yml and *.json\n  \
             = help: add -R to look in its subdirectories"
        ),
        "{finished:?}"
    );
    let finished = scratch.run(&["check", "-R", "empty"]);
    assert_eq!(finished.code, Some(2));
    assert!(finished.stderr.contains("in it and below\n"), "{finished:?}");
}

#[test]
fn links_to_files_are_followed_and_loops_of_links_end() {
    let scratch = Scratch::new();
    scratch.write("jobs/a.yaml", JOB).write("elsewhere.yaml", JOB);
    let jobs = scratch.path().join("jobs");
    symlink("../jobs", jobs.join("loop")).unwrap();
    symlink("../elsewhere.yaml", jobs.join("b.yaml")).unwrap();
    symlink("nowhere.yaml", jobs.join("c.yaml")).unwrap();
    symlink("d.yaml", jobs.join("d.yaml")).unwrap();

    let finished = scratch.run(&["check", "-R", "-o", "json", "jobs"]);
    assert_eq!(finished.code, Some(2));
    assert_eq!(files(&finished), ["jobs/a.yaml", "jobs/b.yaml", "jobs/c.yaml", "jobs/d.yaml"]);
    let report: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(report["summary"]["unreadable"], 2);
}

#[test]
fn inputs_without_a_job_are_worth_a_warning() {
    let scratch = Scratch::new();
    scratch.write("a.yaml", "apiVersion: v1\nkind: Pod\n").write("b.yaml", "# nothing\n");
    let finished = scratch.run(&["check", "a.yaml"]);
    assert_eq!(finished.code, Some(0));
    assert!(finished.stderr.contains("warning[no-job]: no Job found in a.yaml\n"), "{finished:?}");
    let finished = scratch.run(&["check", "a.yaml", "b.yaml"]);
    assert!(
        finished.stderr.contains("warning[no-job]: no Job found in 2 inputs\n"),
        "{finished:?}"
    );
    let finished = scratch.run(&["check", "-q", "a.yaml"]);
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""));
    let finished = scratch.run(&["check", "-q", "--deny-warnings", "a.yaml"]);
    assert_eq!(finished.code, Some(1));
    assert_eq!(finished.stderr, "error: 1 warning, and --deny-warnings is given\n");
    let finished = scratch.run(&["check", "--deny-warnings", "--allow", "no-job", "a.yaml"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let finished = scratch.run(&["check", "-o", "json", "a.yaml"]);
    let report: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(report["findings"][0]["name"], "no-job");
    assert_eq!(report["summary"]["warnings"], 1);
    assert_eq!(report["files"][0]["documents"][0]["valid"], serde_json::Value::Null);
}

#[test]
fn a_pipeline_that_delivers_nothing_does_not_pass() {
    let scratch = Scratch::new();
    for text in ["", "# nothing\n", "---\n---\n", "null\n"] {
        let finished = scratch.run_with_stdin(&["check", "-q", "-"], text.as_bytes());
        assert_eq!(finished.code, Some(1), "{text:?}");
        assert_eq!(finished.stderr, "error: no manifest found in <stdin>\n", "{text:?}");
    }
    let finished = scratch.run_with_stdin(&["check", "-o", "json", "-"], b"");
    assert_eq!(finished.code, Some(1));
    let report: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(report["findings"][0]["severity"], "error");
    assert_eq!(report["summary"]["errors"], 1);
}

#[test]
fn warnings_about_this_machine_are_not_denied() {
    let scratch = Scratch::new();
    scratch.write("job.yaml", JOB);
    let finished = scratch.run(&["check", "--deny-warnings", "job.yaml"]);
    assert!(finished.stderr.contains("warning[image-ignored]"), "{finished:?}");
    assert_eq!(finished.code, Some(0), "{finished:?}");
}

#[test]
fn a_json_report_is_one_line_with_the_documented_members() {
    let scratch = Scratch::new();
    scratch.write("job.yaml", JOB);
    let finished = scratch.run(&["check", "-o", "json", "job.yaml"]);
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""));
    assert_eq!(finished.stdout.matches('\n').count(), 1);
    assert!(finished.stdout.ends_with("}\n"));
    let report: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(report["files"][0]["file"], "job.yaml");
    assert!(report["files"][0]["documents"].is_array());
    for count in ["jobs", "errors", "warnings", "passedOver", "unreadable"] {
        assert!(report["summary"][count].is_u64(), "{count}");
    }
}

#[test]
fn colours_are_for_terminals_unless_asked_for() {
    let scratch = Scratch::new();
    let run = |args: &[&str], no_color: Option<&str>| {
        let mut command = scratch.stint(args);
        if let Some(value) = no_color {
            command.env("NO_COLOR", value);
        }
        let finished = Finished::new(command.output().unwrap());
        finished.stderr.contains('\x1b')
    };
    assert!(!run(&["check", "gone.yaml"], None));
    assert!(!run(&["check", "gone.yaml"], Some("1")));
    assert!(!run(&["check", "--color", "never", "gone.yaml"], None));
    assert!(run(&["check", "--color", "always", "gone.yaml"], None));
    assert!(run(&["check", "--color", "always", "gone.yaml"], Some("1")));
}

#[test]
fn names_of_files_cannot_drive_the_terminal() {
    let scratch = Scratch::new();
    let finished = scratch.run(&["check", "\u{1b}[2Jgone.yaml"]);
    assert!(finished.stderr.contains("\\u{1b}[2Jgone.yaml"), "{finished:?}");
    assert!(!finished.stderr.contains('\u{1b}'), "{finished:?}");
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let scratch = Scratch::new();
    // More than a pipe holds, so that the write fails for certain.
    let missing: Vec<String> = (0..4_000).map(|number| format!("{number}.yaml")).collect();
    let mut args = vec!["check", "-o", "json"];
    args.extend(missing.iter().map(String::as_str));
    let mut child =
        scratch.stint(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    let mut pipe = BufReader::new(child.stderr.take().unwrap());
    pipe.read_to_string(&mut stderr).unwrap();
    assert_eq!(stderr, "");
    assert_eq!(child.wait().unwrap().code(), Some(2));

    // The same while it is being read.
    let mut child = scratch.stint(&args).stdout(Stdio::piped()).spawn().unwrap();
    let mut pipe = BufReader::new(child.stdout.take().unwrap());
    assert!(!pipe.fill_buf().unwrap().is_empty());
    drop(pipe);
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let scratch = Scratch::new();
    scratch.write("job.yaml", JOB);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = scratch.stint(&["check", "-o", "json", "job.yaml"]);
    let finished = Finished::new(command.stdout(full).output().unwrap());
    assert_eq!(finished.code, Some(2));
    assert!(
        finished.stderr.starts_with("error: cannot write to standard output: "),
        "{finished:?}"
    );
}
