//! What is measured within a process of its own: this program starts itself again for it, and reads
//! a line of JSON. Memory and processor time are then those of one measurement.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::error::BenchError;
use crate::metric::Sample;
use crate::report::Subject;
use crate::{ledger, local};

/// How long an unhurried node waits: longer than a Pod takes on any machine.
const UNHURRIED: Duration = Duration::from_secs(300);

/// What a worker measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// A Job through the ledger alone.
    Ledger,
    /// A Job with all of its Pods there, taken over by a new ledger.
    Takeover,
    /// A Job through the whole embedded cluster.
    Local,
    /// The same with a node that says nothing of a Pod before it has ended, however long that takes:
    /// so that what is counted does not depend on how fast the machine is.
    Unhurried,
}

impl Task {
    /// All of them.
    pub const ALL: [Task; 4] = [Task::Ledger, Task::Takeover, Task::Local, Task::Unhurried];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Task::Ledger => "ledger",
            Task::Takeover => "takeover",
            Task::Local => "local",
            Task::Unhurried => "unhurried",
        }
    }
}

/// Measures something in this process, and answers with a line of JSON.
///
/// # Errors
///
/// [`BenchError`] if it could not be done.
pub fn work(task: Task, indexes: u32, parallelism: u32) -> Result<String, BenchError> {
    let sample = match task {
        Task::Ledger => ledger::run(indexes, parallelism),
        Task::Takeover => ledger::take_over(indexes),
        Task::Local => local::run(indexes, parallelism, None)?,
        Task::Unhurried => local::run(indexes, parallelism, Some(UNHURRIED))?,
    };
    Ok(sample.json().to_string())
}

/// Has a worker measure something.
pub(crate) fn employ(
    subject: &Subject,
    task: Task,
    indexes: u32,
    parallelism: u32,
) -> Result<Sample, BenchError> {
    let program = subject.program.display().to_string();
    let mut command = Command::new(&subject.program);
    command
        .args(["bench", "worker", task.name()])
        .args([indexes, parallelism].map(|it| it.to_string()));
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|source| BenchError::Spawn { program: program.clone(), source })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let sample = Sample::read(text.trim()).filter(|_| output.status.success());
    sample.ok_or_else(|| {
        let what = format!("has measured nothing ({}): {}", output.status, text.trim());
        BenchError::Program { program, what }
    })
}
