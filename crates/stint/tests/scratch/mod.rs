//! A directory of its own for a test, the program run in it, and a Job to feed it.

#![allow(dead_code, reason = "not every test file needs all of it")]

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A Job without anything to find fault with.
pub(crate) const JOB: &str = "\
apiVersion: batch/v1
kind: Job
metadata:
  name: x
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: busybox:1.36
        command: [\"true\"]
";

/// [`JOB`] whose spec starts with `fields`, which are indented by two spaces and stand
/// from line 6 on.
pub(crate) fn job(fields: &str) -> String {
    JOB.replacen("spec:\n", &format!("spec:\n{fields}"), 1)
}

/// A new directory, removed when the test is over, failed or not.
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes the directory; no other test and no other process has the same.
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("stint-test-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("a new directory can be made");
        Self { path }
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file, and the directories it is in.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.path.join(name);
        let parent = path.parent().expect("it is below the directory");
        fs::create_dir_all(parent).expect("directories can be made");
        fs::write(path, text).expect("a file can be written");
        self
    }

    /// `stint` with these arguments, to be run in the directory with a plain environment.
    pub(crate) fn stint(&self, args: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stint"));
        command.args(args).current_dir(&self.path).env_remove("NO_COLOR").stdin(Stdio::null());
        command
    }

    /// Runs `stint` with these arguments to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Finished {
        Finished::new(self.stint(args).output().expect("stint can be started"))
    }

    /// Runs `stint` with `text` on its standard input.
    pub(crate) fn run_with_stdin(&self, args: &[&str], text: &[u8]) -> Finished {
        let mut child = self
            .stint(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("stint can be started");
        let mut stdin = child.stdin.take().expect("it is piped");
        stdin.write_all(text).expect("stint reads all of it");
        drop(stdin);
        Finished::new(child.wait_with_output().expect("stint ends"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A directory left behind is no reason to hide how the test ended.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// How a run ended and what it wrote.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Finished {
    /// Reads the output, which is always text.
    pub(crate) fn new(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the output is UTF-8");
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}
