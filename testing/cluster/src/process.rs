//! A program that runs beside the test, and never longer than it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::leash;

/// How long a program may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(10);

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
        command.stdout(log.try_clone()?).stderr(log).kill_on_drop(true);
        // Ctrl-C is for the test, which ends its programs itself.
        command.process_group(0);
        leash::end_with_parent(&mut command);
        self.child = Some(command.spawn()?);
        Ok(())
    }

    /// Asks it to end, and waits until it has.
    pub async fn stop(&mut self) {
        self.signal(Signal::TERM);
        if let Some(child) = &mut self.child
            && tokio::time::timeout(GRACE, child.wait()).await.is_err()
        {
            let _ = child.kill().await;
        }
        self.child = None;
    }

    /// Ends it in the middle of what it does.
    pub async fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill().await;
        }
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
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Its process id, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.child.as_ref().and_then(Child::id)
    }

    /// The last lines that it has said.
    pub fn last_words(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let tail = &lines[lines.len().saturating_sub(TAIL)..];
        format!("{}:\n{}", self.log.display(), tail.join("\n"))
    }

    fn signal(&self, signal: Signal) {
        let id = self.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(id) = id {
            let _ = kill_process(id, signal);
        }
    }
}
