//! `stint run`: the Jobs of manifests, to their end, in a cluster that lives as long.
//!
//! ```text
//!   manifests ─▶ creation ─▶ API ─▶ calls (watch) ─▶ progress ─▶ view, summary
//!                             └──▶ job_logs
//! ```
//!
//! This file holds the parts together; what they decide is theirs.

mod calls;
mod creation;
mod job_logs;
mod manifests;
mod objects;
mod overrides;
mod place;
mod pod_sight;
mod progress;
mod signals;
mod summary;
mod view;
mod words;

use std::collections::HashSet;
use std::future::{Future, pending};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use k8s_openapi::api::batch::v1::Job;
use stint_local::{Cluster, Identity, Options, StartError, TaskFailure};
use stint_node::RuntimeError;
use stint_store::StoreError;
use thiserror::Error;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use self::calls::{Calls, Seen, watch_jobs, watch_pods};
use self::creation::{CreationError, Wanted, make_job, make_others};
use self::job_logs::JobLogs;
use self::manifests::Manifests;
use self::objects::print_objects;
use self::place::Place;
use self::progress::{End, Failure, Progress};
use self::signals::Signals;
use self::summary::{MAX_SHOWN_FAILURES, Next, TAIL_LINES, Tail};
use self::view::View;
use crate::color::Painter;
use crate::place::{NODE, PlaceError};
use crate::report::Report;
use crate::run_args::RunArgs;
use crate::serve::start_log;

const EXIT_FAILED: u8 = 1;
const EXIT_USAGE: u8 = 2;
const EXIT_INTERNAL: u8 = 3;
const EXIT_TIMED_OUT: u8 = 124;
const EXIT_INTERRUPTED: u8 = 130;

/// How much news may wait to be taken in.
const MAX_WAITING_NEWS: usize = 1024;

/// How often what is shown is drawn anew.
const TICK: Duration = Duration::from_millis(200);

/// How often the Jobs are looked at themselves: a watch that had to begin anew does not tell of
/// those that went meanwhile.
const LOOK: Duration = Duration::from_secs(10);

/// How long the last news of Pods may take after their Jobs have ended.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// How long the last lines of logs may take.
const LAST_LINES_TIME: Duration = Duration::from_secs(5);

/// Runs everything to its end.
pub(crate) fn run(args: &RunArgs) -> ExitCode {
    start_log(args.log_level);
    let is_colored = args.color.is_on(io::stderr().is_terminal(), |name| std::env::var_os(name));
    let painter = Painter::new(is_colored);
    let gates = args.feature_gates.unwrap_or_default();
    let report = Report { painter, quiet: args.quiet };
    let (said, manifests) = manifests::read(&args.files, args.recursive, gates, report);
    say(&said);
    let Some(mut manifests) = manifests else { return ExitCode::from(EXIT_USAGE) };
    for written in &mut manifests.jobs {
        if let Some(why) = why_never_ending(&written.object) {
            say(&format!("error: {}: {why}\n", written.place));
            return ExitCode::from(EXIT_USAGE);
        }
        if let Some(parallelism) = args.parallelism {
            overrides::set_parallelism(&mut written.object, parallelism);
        }
        overrides::set_variables(&mut written.object, &args.set);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return ExitCode::from(refuse(&RunError::Runtime(error))),
    };
    match runtime.block_on(run_here(args, &manifests, painter)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => ExitCode::from(refuse(&error)),
    }
}

/// Why a run does not come to an end of its own.
#[derive(Debug, Error)]
enum RunError {
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("cannot run Pods here: {0}")]
    Node(#[from] RuntimeError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Creation(#[from] CreationError),
    #[error("{0}; nothing can be run without it")]
    Failed(TaskFailure),
    #[error("it is not known whether everything was stored: {0}")]
    Close(#[source] StoreError),
    #[error("cannot start: {0}")]
    Runtime(#[source] io::Error),
    #[error("cannot write to standard output: {0}")]
    Output(#[source] io::Error),
}

fn refuse(error: &RunError) -> u8 {
    say(&format!("error: {error}\n"));
    match error {
        RunError::Creation(error) if error.is_wrong_usage() => EXIT_USAGE,
        _ => EXIT_INTERNAL,
    }
}

/// Why a Job would never end here.
fn why_never_ending(job: &Job) -> Option<String> {
    let spec = job.spec.as_ref()?;
    let name = job.metadata.name.as_deref().or(job.metadata.generate_name.as_deref());
    let name = name.unwrap_or_default();
    if spec.suspend == Some(true) {
        return Some(format!(
            "Job {name} has spec.suspend: true, so that it would wait forever; take that out, or \
             use stint serve, where it can be resumed"
        ));
    }
    match spec.managed_by.as_deref() {
        None | Some("kubernetes.io/job-controller") => None,
        Some(_) => Some(format!(
            "Job {name} is for another controller by spec.managedBy, so that it would wait \
             forever; take that out, or use stint serve, where that controller can run it"
        )),
    }
}

/// Why the wait for the Jobs is over.
enum Stop {
    /// They have ended.
    Ended,
    TimedOut,
    Interrupted,
    Failed(TaskFailure),
}

async fn run_here(args: &RunArgs, manifests: &Manifests, painter: Painter) -> Result<u8, RunError> {
    // Before anything else, so that nothing is stopped half-way.
    let mut signals = Signals::new().map_err(RunError::Runtime)?;
    let place = Place::choose(args.data_dir.as_deref())?;
    let node = args.pods.start(NODE, &place.pods()).await?;
    let cluster = Cluster::start(Options {
        storage: place.storage(),
        gates: args.feature_gates.unwrap_or_default(),
        jobs: Some(args.jobs.config()),
        node: Some(node),
        ..Options::default()
    })
    .await?;
    let calls = Calls::new(cluster.client(Identity::admin()));
    let begun = tokio::select! {
        begun = Run::begin(args, manifests, calls) => Some(begun),
        () = signals.next() => None,
    };
    let mut run = match begun {
        Some(Ok(run)) => run,
        stopped => {
            signals.exit_at_next(place.temporary_path(), EXIT_INTERRUPTED);
            let closed = cluster.shutdown().await.map_err(RunError::Close);
            return match stopped {
                Some(Err(error)) => Err(error.into()),
                _ => closed.map(|()| EXIT_INTERRUPTED),
            };
        }
    };
    let stop = tokio::select! {
        stop = run.until_the_end(args.timeout) => stop,
        () = signals.next() => Stop::Interrupted,
        failed = cluster.failed() => Stop::Failed(failed),
    };
    if let Some(word) = match stop {
        Stop::Interrupted => Some("interrupted"),
        Stop::TimedOut => Some("the time of --timeout is up"),
        Stop::Ended | Stop::Failed(_) => None,
    } {
        run.view.close();
        say(&format!("{word}: Pods are being ended; Ctrl-C again ends them at once\n"));
    }
    signals.exit_at_next(place.temporary_path(), EXIT_INTERRUPTED);
    let tails = run.tails().await;
    let closed = run.while_printing(cluster.shutdown()).await;
    run.view.close();
    closed.map_err(RunError::Close)?;
    run.finish(args, stop, &tails, place, painter)
}

/// A run under way.
struct Run {
    calls: Calls,
    progress: Progress,
    seen: Receiver<Seen>,
    view: View,
    /// If logs are wanted; and their lines.
    logs: Option<JobLogs>,
    lines: Option<Receiver<Vec<u8>>>,
    logs_to_stderr: bool,
    /// The latest failure that was looked up, and its last lines.
    latest: Option<(Failure, Vec<String>)>,
    /// The Jobs that were not there when they were last looked at.
    missing: HashSet<String>,
}

impl Run {
    /// Makes all objects.
    async fn begin(
        args: &RunArgs,
        manifests: &Manifests,
        calls: Calls,
    ) -> Result<Self, CreationError> {
        make_others(&calls, manifests).await?;
        let wanted = match (&args.only_indexes, args.retry_failed) {
            (Some(only), _) => Wanted::Only(only.clone()),
            (None, true) => Wanted::NotCompleted,
            (None, false) => Wanted::All,
        };
        let mut progress = Progress::default();
        for written in &manifests.jobs {
            let made = make_job(&calls, written, &wanted).await?;
            if let Some(note) = made.note.filter(|_| !args.quiet) {
                say(&format!("{note}\n"));
            }
            progress.add(made.job, made.preset, Instant::now());
        }
        let (sender, seen) = channel(MAX_WAITING_NEWS);
        tokio::spawn(watch_jobs(calls.client().clone(), sender.clone()));
        tokio::spawn(watch_pods(calls.client().clone(), sender));
        let (logs, lines) = if args.logs {
            let (logs, lines) = JobLogs::new(calls.client().clone());
            (Some(logs), Some(lines))
        } else {
            (None, None)
        };
        let is_terminal = io::stderr().is_terminal();
        let view = View::new(args.quiet, is_terminal, &progress, Instant::now());
        let logs_to_stderr = args.output.is_some();
        let (latest, missing) = (None, HashSet::new());
        Ok(Run { calls, progress, seen, view, logs, lines, logs_to_stderr, latest, missing })
    }

    /// Waits for the Jobs, and tells how they are.
    async fn until_the_end(&mut self, time: Option<Duration>) -> Stop {
        let limit = async move {
            match time {
                Some(time) => sleep(time).await,
                None => pending().await,
            }
        };
        let mut limit = std::pin::pin!(limit);
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.progress.is_over() {
            tokio::select! {
                Some(seen) = self.seen.recv() => self.observe(seen),
                Some(line) = next_line(&mut self.lines) => self.print(&line),
                _ = ticks.tick() => self.tick().await,
                _ = looks.tick() => self.look().await,
                () = &mut limit => return Stop::TimedOut,
            }
        }
        let settled = async {
            while !self.progress.is_settled() {
                let Some(seen) = self.seen.recv().await else { return };
                self.observe(seen);
            }
        };
        // What is not known by then is left out of the summary.
        let _ = timeout(SETTLE_TIME, settled).await;
        Stop::Ended
    }

    /// Looks at the Jobs that have not ended. One that is missing twice is gone: the first time
    /// its end may still be on its way here.
    async fn look(&mut self) {
        let unfinished: Vec<Job> = self.progress.unfinished().cloned().collect();
        let before = std::mem::take(&mut self.missing);
        for held in unfinished {
            let meta = &held.metadata;
            let namespace = meta.namespace.as_deref().unwrap_or_default();
            let name = meta.name.as_deref().unwrap_or_default();
            let uid = meta.uid.clone().unwrap_or_default();
            let path = format!("/apis/batch/v1/namespaces/{namespace}/jobs/{name}");
            let is_there = match self.calls.get(&path).await {
                // Another of the same name is not the one that is waited for.
                Ok(found) => found.is_some_and(|job| job["metadata"]["uid"] == uid),
                Err(_) => true,
            };
            if is_there {
                continue;
            }
            if before.contains(&uid) {
                self.observe(Seen::Job(Box::new(held), true));
            } else {
                self.missing.insert(uid);
            }
        }
    }

    fn observe(&mut self, seen: Seen) {
        let now = Instant::now();
        let changes = match seen {
            Seen::Job(job, is_gone) => self.progress.observe_job(*job, is_gone, now),
            Seen::Pod(pod, is_gone) => {
                if let (Some(logs), Some(job)) = (&mut self.logs, self.progress.job_of(&pod)) {
                    logs.observe(&pod, &job.title);
                }
                self.progress.observe_pod(&pod, is_gone, now)
            }
        };
        for change in &changes {
            self.view.show(change, &self.progress, now);
        }
    }

    async fn tick(&mut self) {
        let newest = self.progress.jobs().iter().rev().find_map(|job| job.latest_failure());
        let is_known = self.latest.as_ref().map(|(failure, _)| failure) == newest;
        if self.view.wants_tail() && !is_known {
            let newest = newest.cloned();
            if let Some(failure) = newest {
                let lines = tail(&self.calls, &failure).await;
                self.latest = Some((failure, lines));
            }
        }
        let tail = self.latest.as_ref().map_or(&[][..], |(_, lines)| lines);
        self.view.tick(&self.progress, tail, Instant::now());
    }

    /// Waits for something, and prints the logs that come meanwhile, to their end.
    async fn while_printing<T>(&mut self, work: impl Future<Output = T>) -> T {
        // Nobody is followed any more that is not already.
        self.logs = None;
        let mut work = std::pin::pin!(work);
        let done = loop {
            tokio::select! {
                done = &mut work => break done,
                Some(line) = next_line(&mut self.lines) => self.print(&line),
            }
        };
        let rest = async {
            while let Some(line) = match &mut self.lines {
                Some(lines) => lines.recv().await,
                None => None,
            } {
                self.print(&line);
            }
        };
        let _ = timeout(LAST_LINES_TIME, rest).await;
        done
    }

    fn print(&self, line: &[u8]) {
        self.view.print(|| {
            // Nobody may be listening; that is no reason to stop.
            let _ = match self.logs_to_stderr {
                true => io::stderr().lock().write_all(line),
                false => io::stdout().lock().write_all(line),
            };
        });
    }

    /// What the failed wrote last, Job by Job.
    async fn tails(&self) -> Vec<Vec<Tail>> {
        let mut all = Vec::new();
        for job in self.progress.jobs() {
            let mut tails = Vec::new();
            let failures = job.failures().take(MAX_SHOWN_FAILURES);
            for failure in failures.filter(|_| job.end() != End::Complete) {
                tails.push((failure.clone(), tail(&self.calls, failure).await));
            }
            all.push(tails);
        }
        all
    }

    fn finish(
        self,
        args: &RunArgs,
        stop: Stop,
        tails: &[Vec<Tail>],
        place: Place,
        painter: Painter,
    ) -> Result<u8, RunError> {
        let now = Instant::now();
        let jobs = self.progress.jobs();
        for (job, tails) in jobs.iter().zip(tails) {
            say(&summary::of_job(job, tails, painter, now));
        }
        let has_failed = jobs.iter().any(|job| job.end() == End::Failed || job.is_gone);
        let has_failures = jobs.iter().any(|job| job.latest_failure().is_some());
        let is_kept = match stop {
            Stop::Ended => has_failed,
            Stop::TimedOut => true,
            Stop::Interrupted | Stop::Failed(_) => has_failures,
        };
        let logs = place.leave(is_kept, args.keep);
        let next = match stop {
            _ if has_failed && jobs.iter().any(|job| job.is_indexed()) => Next::RetryIndexes,
            _ if has_failed => Next::Retry,
            Stop::TimedOut | Stop::Interrupted => Next::GoOn,
            Stop::Ended | Stop::Failed(_) => Next::Nothing,
        };
        say(&summary::advice(&logs, next, &named(&args.files)));
        if let Some(format) = args.output {
            let jobs: Vec<&Job> = jobs.iter().map(|job| &job.job).collect();
            print_objects(&jobs, format).map_err(RunError::Output)?;
        }
        match stop {
            Stop::Failed(failure) => Err(RunError::Failed(failure)),
            Stop::Ended if has_failed => Ok(EXIT_FAILED),
            Stop::Ended => Ok(0),
            Stop::TimedOut => Ok(EXIT_TIMED_OUT),
            Stop::Interrupted => Ok(EXIT_INTERRUPTED),
        }
    }
}

/// The next line of the logs; none ever if they are not wanted.
async fn next_line(lines: &mut Option<Receiver<Vec<u8>>>) -> Option<Vec<u8>> {
    match lines {
        Some(lines) => lines.recv().await,
        None => pending().await,
    }
}

async fn tail(calls: &Calls, failure: &Failure) -> Vec<String> {
    let Failure { namespace, pod, container, .. } = failure;
    match container {
        Some(container) => calls.tail(namespace, pod, container, TAIL_LINES).await,
        None => Vec::new(),
    }
}

fn named(files: &[PathBuf]) -> String {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(" ")
}

/// Writes to standard error. If that fails there is nowhere left to say so.
fn say(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
