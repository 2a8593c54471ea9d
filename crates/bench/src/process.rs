//! Many short commands: by `stint run`, by xargs and by GNU parallel.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::contest::{Entrant, Rounds, hold};
use crate::error::BenchError;
use crate::metric::Sample;
use crate::report::{Report, Subject};
use crate::spawned::{folder, measure, version, write};

/// How many commands run at once: enough to keep some cores busy, and few enough that none of the
/// programs is measured by how the machine copes with a crowd.
const AT_ONCE: u32 = 16;

/// The programs of others.
const PEERS: [&str; 2] = ["xargs", "parallel"];

/// What is measured.
#[derive(Clone, Debug)]
pub struct ProcessPlan {
    /// The numbers of commands.
    pub commands: Vec<u32>,
    /// How many at once.
    pub parallelism: u32,
    /// How often.
    pub rounds: Rounds,
}

impl ProcessPlan {
    /// The usual, or very little of it.
    pub fn new(is_quick: bool) -> Self {
        if is_quick {
            let rounds = Rounds { warmups: 0, repetitions: 1 };
            return ProcessPlan { commands: vec![20], parallelism: 4, rounds };
        }
        ProcessPlan {
            commands: vec![1_000, 10_000],
            parallelism: AT_ONCE,
            rounds: Rounds { warmups: 1, repetitions: 3 },
        }
    }
}

/// Measures it.
///
/// # Errors
///
/// [`BenchError`] if a program fails. One of others that is not installed is only noted.
pub fn process(subject: &Subject, plan: &ProcessPlan) -> Result<Report, BenchError> {
    let about = "Commands that do nothing (true): from the first process to the end of the last.";
    let mut report = Report::new("process", about, plan.rounds, subject);
    let mut peers = Vec::new();
    for peer in PEERS {
        match version(peer) {
            Some(version) => {
                report.add_version(peer, version);
                peers.push(peer);
            }
            None => report.note(format!("{peer} is not installed, and was not measured")),
        }
    }
    let folder = folder()?;
    for &commands in &plan.commands {
        let job = Errand::new(folder.path(), commands, plan.parallelism)?;
        let work = vec![("commands", json!(commands)), ("at once", json!(plan.parallelism))];
        let job = &job;
        let mut entrants = vec![Entrant::new("stint run", || job.by_stint(subject))];
        let by_peer = |&peer: &&'static str| Entrant::new(peer, move || job.by_peer(peer));
        entrants.extend(peers.iter().map(by_peer));
        report.add(hold(plan.rounds, &work, entrants)?);
    }
    report.note(
        "CPU is that of all processes, the commands with them; memory that of the first process"
            .to_owned(),
    );
    Ok(report.finish())
}

/// The same commands, in the words of each program.
struct Errand {
    /// Where whoever wants to may write.
    home: PathBuf,
    manifest: PathBuf,
    /// A line for each command.
    lines: PathBuf,
    parallelism: u32,
}

impl Errand {
    fn new(folder: &Path, commands: u32, parallelism: u32) -> Result<Self, BenchError> {
        let manifest = folder.join(format!("{commands}.json"));
        write(&manifest, &job(commands, parallelism).to_string())?;
        let lines = folder.join(format!("{commands}.lines"));
        let text: String = (0..commands).map(|index| format!("{index}\n")).collect();
        write(&lines, &text)?;
        Ok(Errand { home: folder.to_owned(), manifest, lines, parallelism })
    }

    fn by_stint(&self, subject: &Subject) -> Result<Sample, BenchError> {
        let mut command = Command::new(&subject.program);
        command.args(["run", "--quiet", "--log-level=warn"]).arg(&self.manifest);
        self.run(command)
    }

    fn by_peer(&self, peer: &str) -> Result<Sample, BenchError> {
        let mut command = Command::new(peer);
        match peer {
            "xargs" => command.args(["-n", "1", "-P"]),
            // It asks to be cited otherwise.
            _ => command.args(["--will-cite", "-j"]),
        };
        command.arg(self.parallelism.to_string()).arg("-a").arg(&self.lines).arg("true");
        self.run(command)
    }

    fn run(&self, mut command: Command) -> Result<Sample, BenchError> {
        command.env("HOME", &self.home).env("TMPDIR", &self.home).current_dir(&self.home);
        measure(&mut command)
    }
}

/// A Job of so many commands.
pub(crate) fn job(commands: u32, parallelism: u32) -> serde_json::Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "bench"},
        "spec": {
            "completions": commands, "parallelism": parallelism, "completionMode": "Indexed",
            "template": {"spec": {"restartPolicy": "Never", "containers": [
                {"name": "main", "image": "none", "command": ["true"]},
            ]}},
        },
    })
}
