//! How soon stint is there: `stint serve` from the start of its process until it is ready, and
//! `stint run` of a Job with one Pod, from start to exit.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use http::Request;
use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::contest::{Entrant, Rounds, hold};
use crate::error::BenchError;
use crate::metric::{Sample, WALL};
use crate::process::job;
use crate::report::{Report, Subject};
use crate::spawned::{Leashed, folder, measure, write};

/// What is measured.
#[derive(Clone, Debug)]
pub struct StartupPlan {
    /// How often.
    pub rounds: Rounds,
}

impl StartupPlan {
    /// The usual, or very little of it.
    pub fn new(is_quick: bool) -> Self {
        let usual = Rounds { warmups: 2, repetitions: 20 };
        let quick = Rounds { warmups: 0, repetitions: 1 };
        StartupPlan { rounds: if is_quick { quick } else { usual } }
    }
}

/// Measures it.
///
/// # Errors
///
/// [`BenchError`] if stint fails.
pub fn startup(subject: &Subject, plan: &StartupPlan) -> Result<Report, BenchError> {
    let about = "How soon stint is there.";
    let mut report = Report::new("startup", about, plan.rounds, subject);
    for step in [Step::Greeting, Step::Ready, Step::Exit] {
        let work = vec![("what", json!(step.words()))];
        let entrant = Entrant::new("stint", || match step {
            Step::Greeting | Step::Ready => serve(subject, step),
            Step::Exit => run_one(subject),
        });
        report.add(hold(plan.rounds, &work, vec![entrant])?);
    }
    Ok(report.finish())
}

/// Up to where the time is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The last line that it says when it serves.
    Greeting,
    /// The first 200 of /readyz.
    Ready,
    /// The end of the process.
    Exit,
}

impl Step {
    fn words(self) -> &'static str {
        match self {
            Step::Greeting => "stint serve, empty folder, to its greeting",
            Step::Ready => "stint serve, empty folder, to /readyz",
            Step::Exit => "stint run, a Job of one Pod, to its exit",
        }
    }
}

fn run_one(subject: &Subject) -> Result<Sample, BenchError> {
    let folder = folder()?;
    let manifest = folder.path().join("job.json");
    write(&manifest, &job(1, 1).to_string())?;
    let mut command = Command::new(&subject.program);
    command.args(["run", "--quiet", "--log-level=warn"]).arg(&manifest);
    command.env("HOME", folder.path()).env("TMPDIR", folder.path()).current_dir(folder.path());
    measure(&mut command)
}

fn serve(subject: &Subject, step: Step) -> Result<Sample, BenchError> {
    let folder = folder()?;
    let data = folder.path().join("data");
    let mut command = Command::new(&subject.program);
    command.args(["serve", "--listen=127.0.0.1:0", "--log-level=warn", "--data-dir"]).arg(&data);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let failed =
        |what: &str| BenchError::Program { program: "stint serve".into(), what: what.into() };
    let began = Instant::now();
    let child = command.spawn().map_err(|source| BenchError::Spawn {
        program: subject.program.display().to_string(),
        source,
    })?;
    let mut child = Leashed(child);
    let output = child.0.stdout.take().ok_or_else(|| failed("has no output"))?;
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    if !lines.any(|line| line.contains("Ctrl-C stops it")) {
        return Err(failed("has ended before it served"));
    }
    let greeted = began.elapsed();
    let took = if step == Step::Ready { until_ready(&data, began)? } else { greeted };
    // It is to leave nothing behind, so it is asked.
    let id = Pid::from_raw(child.0.id().cast_signed());
    if id.is_some_and(|id| kill_process(id, Signal::TERM).is_ok()) {
        let _ = child.0.wait();
    }
    Ok(Sample::default().with(WALL, took.as_secs_f64()))
}

/// How long it took until the server says that it is ready.
fn until_ready(data: &Path, began: Instant) -> Result<Duration, BenchError> {
    let path = data.join("kubeconfig");
    let text = fs::read_to_string(&path).map_err(|source| BenchError::File { path, source })?;
    let failed = |what: String| BenchError::Program { program: "stint serve".into(), what };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(BenchError::Runtime)?.block_on(async {
        let unread = |what: String| failed(format!("has written a kubeconfig of no use: {what}"));
        let config = Kubeconfig::from_yaml(&text).map_err(|error| unread(error.to_string()))?;
        let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await;
        let config = config.map_err(|error| unread(error.to_string()))?;
        let client = Client::try_from(config).map_err(|error| unread(error.to_string()))?;
        loop {
            let request = Request::get("/readyz").body(Vec::new()).expect("a request");
            match client.request_text(request).await {
                Ok(_) => return Ok(began.elapsed()),
                // It says that it is not ready yet.
                Err(kube::Error::Api(_)) => {}
                Err(source) => return Err(BenchError::Api { what: "/readyz", source }),
            }
        }
    })
}
