//! The binary under test, with a temporary folder of its own for whatever it leaves.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// A folder for manifests and another for what runs leave.
pub(crate) struct Bench {
    folder: TempDir,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// What it printed, as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The lines of the standard output, sorted.
    pub(crate) fn lines(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = self.stdout.lines().collect();
        lines.sort_unstable();
        lines
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("tmp")).expect("it is ours");
        Bench { folder }
    }

    /// Writes a manifest.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).expect("it is ours");
        path
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("it is UTF-8").to_owned()
    }

    /// What is left in the temporary folder.
    pub(crate) fn left(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.temporary()).expect("it is there");
        entries.map(|entry| entry.expect("it can be read").path()).collect()
    }

    fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stint"));
        command.arg("run").args(arguments).env("TMPDIR", self.temporary());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        ended(self.command(arguments).spawn().expect("the binary starts"))
    }

    /// Runs it with a text on its standard input.
    pub(crate) fn run_with_input(&self, arguments: &[&str], text: &str) -> Ended {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("the binary starts");
        let mut input = child.stdin.take().expect("it is piped");
        input.write_all(text.as_bytes()).expect("it reads");
        drop(input);
        ended(child)
    }

    /// Starts it with `--logs`, and waits until a container has printed this line.
    pub(crate) fn start(&self, arguments: &[&str], line: &str) -> Started {
        let mut command = self.command(&["--logs"]);
        command.args(arguments);
        Self::launch(command, line)
    }

    /// The same as a shell runs it that ignores these signals.
    pub(crate) fn start_ignoring(&self, signals: &str, arguments: &[&str], line: &str) -> Started {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("trap '' {signals}; exec \"$0\" run --logs \"$@\"")]);
        command.arg(env!("CARGO_BIN_EXE_stint")).args(arguments).env("TMPDIR", self.temporary());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self::launch(command, line)
    }

    fn launch(mut command: Command, line: &str) -> Started {
        let mut child = command.spawn().expect("the binary starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut read = String::new();
        while !read.ends_with(&format!("{line}\n")) {
            let count = stdout.read_line(&mut read).expect("it writes text");
            assert!(count > 0, "it ended before {line:?} came: {read}");
        }
        Started { child, stdout, read }
    }
}

/// A run under way.
pub(crate) struct Started {
    child: Child,
    stdout: BufReader<ChildStdout>,
    read: String,
}

impl Started {
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Waits until it has said something on standard error, and returns that.
    pub(crate) fn wait_for_line(&mut self, text: &str) {
        let mut stderr = self.child.stderr.take().expect("it is piped");
        let (mut said, mut byte) = (Vec::new(), [0]);
        while !String::from_utf8_lossy(&said).contains(text) {
            let count = stderr.read(&mut byte).expect("it can be read");
            assert!(count > 0, "it ended before it said {text:?}");
            said.extend_from_slice(&byte);
        }
        self.child.stderr = Some(stderr);
    }

    pub(crate) fn end(mut self) -> Ended {
        self.stdout.read_to_string(&mut self.read).expect("it writes text");
        let ended = ended(self.child);
        Ended { stdout: self.read, ..ended }
    }
}

/// Waits for the end of a child whose outputs are piped.
pub(crate) fn ended(child: Child) -> Ended {
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("it writes UTF-8");
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// An example of the repository.
pub(crate) fn example(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    root.to_str().expect("it is UTF-8").to_owned()
}

/// An Indexed Job whose Pods run a script.
pub(crate) fn indexed(name: &str, completions: u32, more: &str, script: &str) -> String {
    format!(
        "\
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
spec:
  completions: {completions}
  parallelism: 8
  completionMode: Indexed
{more}
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: unused
        command: [sh, -c, {script:?}]
"
    )
}
