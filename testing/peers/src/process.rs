//! A program that runs beside the test, and never longer than it.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::leash;

/// How long a program may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(10);

/// How soon it is looked again whether it has.
const AGAIN: Duration = Duration::from_millis(5);

/// How much of a log a failure shows, in lines.
const TAIL: usize = 25;

/// A program that runs, or does not.
#[derive(Debug)]
pub struct Process {
    program: PathBuf,
    arguments: Vec<String>,
    log: PathBuf,
    child: Option<Child>,
}

impl Process {
    /// A program that is not started yet. What it says is added to `log`.
    pub fn new(program: &Path, arguments: Vec<String>, log: PathBuf) -> Self {
        Process { program: program.to_owned(), arguments, log, child: None }
    }

    /// Starts it, with the arguments that it had before.
    pub fn start(&mut self) -> io::Result<()> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        // Ctrl-C is for the test, which ends its programs itself.
        command.process_group(0);
        leash::end_with_parent(&mut command);
        self.child = Some(command.spawn()?);
        Ok(())
    }

    /// Asks it to end, and waits until it has.
    pub async fn stop(&mut self) {
        self.signal(Signal::TERM);
        let began = Instant::now();
        while self.is_running() && began.elapsed() < GRACE {
            tokio::time::sleep(AGAIN).await;
        }
        self.end();
    }

    /// Ends it in the middle of what it does.
    pub async fn kill(&mut self) {
        self.end();
    }

    /// Stops its clock, so to speak (SIGSTOP).
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on (SIGCONT).
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Whether it runs.
    pub fn is_running(&mut self) -> bool {
        let is_running =
            self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)));
        if !is_running {
            // Its id may be somebody else's from now on.
            self.child = None;
        }
        is_running
    }

    /// Its process id, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// The last lines that it has said.
    pub fn last_words(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let tail = &lines[lines.len().saturating_sub(TAIL)..];
        format!("{}:\n{}", self.log.display(), tail.join("\n"))
    }

    /// Ends it, if it runs, and waits until it is gone: a moment, as nothing stops that signal.
    fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn signal(&self, signal: Signal) {
        let id = self.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(id) = id {
            let _ = kill_process(id, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs a program to its end, and answers with what it has written.
pub(crate) async fn output(mut command: Command) -> io::Result<Output> {
    let running = tokio::task::spawn_blocking(move || command.output());
    running.await.expect("running a program does not panic")
}
