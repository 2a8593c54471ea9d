//! `stint run`: the Jobs of manifests, to their end, in a cluster that lives as long.
//!
//! ```text
//!   manifests ─▶ creation ─▶ API ─▶ calls (watch) ─▶ progress ─▶ view, summary
//!                             └──▶ job_logs
//! ```
//!
//! This file holds the parts together; what they decide is theirs.

mod again;
mod change;
mod creation;
mod frame;
mod job_logs;
mod manifests;
mod needs;
mod origin;
mod overrides;
mod owners;
mod place;
mod printer;
mod room;
mod screen;
mod stock;
mod summary;
mod unheld;
mod view;

use std::collections::{HashMap, HashSet};
use std::future::pending;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use k8s_openapi::api::batch::v1::Job;
use serde_json::Value;
use stint_api::index_set::IndexSet;
use stint_local::{Cluster, Gate, GateKey, Identity, Options, StartError, TaskFailure};
use stint_node::{LogReaders, Logs, Runtime, RuntimeError};
use stint_store::StoreError;
use thiserror::Error;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep_until, timeout};

use self::creation::{CreationError, Here, Wanted, check_needs, find_node, make_job, make_others};
use self::job_logs::JobLogs;
use self::manifests::Manifests;
use self::place::Place;
use self::printer::Printer;
use self::screen::Screen;
use self::summary::Next;
use self::view::View;
use crate::calls::{CallError, Calls, JOBS, PODS, Seen, watch_jobs, watch_pods};
use crate::color::{Painter, takes_escapes};
use crate::ending::Ending;
use crate::input;
use crate::job_text::{MAX_SHOWN_FAILURES, TAIL_LINES, Tail};
use crate::objects::print_objects;
use crate::place::{Holder, NODE, PlaceError, elsewhere, hold_folder, remedy};
use crate::progress::{End, Failure, JobProgress, Progress, completions};
use crate::report::Report;
use crate::run_args::RunArgs;
use crate::serve::start_log;
use crate::signals::{EXIT_INTERRUPTED, Signals};
use crate::stdout::{EXIT_LEFT, has_left};

const EXIT_FAILED: u8 = 1;
const EXIT_USAGE: u8 = 2;
const EXIT_INTERNAL: u8 = 3;
const EXIT_TIMED_OUT: u8 = 124;

/// How much news may wait to be taken in.
const MAX_WAITING_NEWS: usize = 1024;

/// How often what is shown is drawn anew.
const TICK: Duration = Duration::from_millis(200);

/// How often the Jobs are looked at themselves: a watch that had to begin anew does not tell of
/// those that went meanwhile.
const LOOK: Duration = Duration::from_secs(10);

/// How long a Pod with a node may take to start before it is asked why, and how often that is.
const STALL_PATIENCE: Duration = Duration::from_secs(1);

/// About how many Pods it is asked at one time.
const MAX_STALLS_AT_ONCE: usize = 20;

/// How many failures have their last lines kept: those of more Jobs than anybody reads about, and
/// 16 MB at most, as each is some lines of a log.
const MAX_TAILS: usize = 1_000;

/// How many of them are read at one time, between which news is taken in.
const MAX_TAILS_AT_ONCE: usize = 20;

/// How long the disk may take nothing before that ends a run: long enough to make some room, if
/// somebody is there.
const DISK_PATIENCE: Duration = Duration::from_secs(10);

/// How long the last news of Pods may take after their Jobs have ended.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// How long standard error may take before the summary.
const SCREEN_TIME: Duration = Duration::from_secs(5);

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
    let report = Report { quiet: false, ..report };
    for written in &mut manifests.jobs {
        if let Some(parallelism) = args.parallelism {
            overrides::set_parallelism(&mut written.object, parallelism);
        }
        if let Some((field, message, help)) = why_never_ending(&written.object) {
            say(&written.origin.error(&[field.to_owned()], &message, help, report));
            return ExitCode::from(EXIT_USAGE);
        }
        overrides::set_variables(&mut written.object, &args.set);
    }
    if args.retry_failed && !has_been_used(args.data_dir.as_deref()) {
        let folder = args.data_dir.as_deref().unwrap_or(Path::new("")).display();
        say(&format!("error: nothing has been run in {folder} yet: leave out --retry-failed\n"));
        return ExitCode::from(EXIT_USAGE);
    }
    stint_node::raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return ExitCode::from(refuse(&RunError::Runtime(error))),
    };
    let ending = Ending::new(runtime, EXIT_INTERRUPTED);
    match ending.block_on(run_here(args, &manifests, report, &ending)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => ExitCode::from(refuse(&error)),
    }
}

/// Why a run does not come to an end of its own.
#[derive(Debug, Error)]
enum RunError {
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("cannot run Pods in {}: {source}", folder.display())]
    Node { folder: PathBuf, source: RuntimeError },
    #[error("cannot keep anything in {}: {source}{}", folder.display(), remedy(source, *is_temporary))]
    Start { folder: PathBuf, is_temporary: bool, source: StartError },
    #[error("cannot keep Jobs in {}: {source}; {}", folder.display(), elsewhere(*is_temporary))]
    Unkept { folder: PathBuf, is_temporary: bool, source: CallError },
    #[error(transparent)]
    Creation(#[from] CreationError),
    #[error("{0}; nothing can be run without it")]
    Failed(TaskFailure),
    #[error(
        "nothing could be stored in {} for {} seconds: {source}; make room there, and run it again \
         with the same --data-dir: Jobs go on where they stood",
        folder.display(), DISK_PATIENCE.as_secs()
    )]
    Disk { folder: PathBuf, source: StoreError },
    #[error("it is not known whether everything was stored: {0}")]
    Close(#[source] StoreError),
    #[error("cannot start: {0}")]
    Runtime(#[source] io::Error),
    #[error("cannot write to standard output: {0}")]
    Output(#[source] io::Error),
}

fn refuse(error: &RunError) -> u8 {
    match error {
        // It is told as other errors of manifests are.
        RunError::Creation(CreationError::Unmet(shown)) => say(shown),
        error => say(&format!("error: {error}\n")),
    }
    match error {
        RunError::Creation(error) if error.is_wrong_usage() => EXIT_USAGE,
        _ => EXIT_INTERNAL,
    }
}

/// Whether a data folder is there, without making it. One that cannot be looked at is refused
/// where it is taken.
fn has_been_used(data: Option<&Path>) -> bool {
    data.is_none_or(|data| !matches!(hold_folder(data), Ok(Holder::Absent)))
}

/// Why a Job would never end here: the field, what is wrong with it, and the remedy.
fn why_never_ending(job: &Job) -> Option<(&'static str, String, &'static str)> {
    let spec = job.spec.as_ref()?;
    let name = job.metadata.name.as_deref().or(job.metadata.generate_name.as_deref());
    let name = name.unwrap_or_default();
    if spec.suspend == Some(true) {
        let message = format!("Job {name} has spec.suspend: true, so that it would wait forever");
        let help = "take that out, or use stint serve, where it can be resumed";
        return Some(("spec.suspend", message, help));
    }
    if spec.parallelism == Some(0) && spec.completions != Some(0) {
        let message = format!("Job {name} has spec.parallelism: 0, so that it would wait forever");
        let help = "take that out, or say how many Pods at once with --parallelism";
        return Some(("spec.parallelism", message, help));
    }
    match spec.managed_by.as_deref() {
        None | Some("kubernetes.io/job-controller") => None,
        Some(_) => {
            let message = format!(
                "Job {name} is for another controller by spec.managedBy, so that it would wait forever"
            );
            let help = "take that out, or use stint serve, where that controller can run it";
            Some(("spec.managedBy", message, help))
        }
    }
}

/// Why the wait for the Jobs is over.
enum Stop {
    /// They have ended.
    Ended,
    TimedOut,
    Interrupted,
    Failed(TaskFailure),
    /// The disk takes nothing any more.
    Refused(StoreError),
}

async fn run_here(
    args: &RunArgs,
    manifests: &Manifests,
    report: Report,
    ending: &Ending,
) -> Result<u8, RunError> {
    let painter = report.painter;
    let deadline = args.timeout.and_then(|time| tokio::time::Instant::now().checked_add(time));
    // Before anything else, so that nothing is stopped half-way.
    let mut signals = Signals::new().map_err(RunError::Runtime)?;
    let screen = Screen::start().map_err(RunError::Runtime)?;
    let place = Place::choose(args.data_dir.as_deref())?;
    ending.remove(place.temporary_path());
    let own_jobs = OwnJobs::default();
    let (cluster, key, runtime) = start(args, manifests, &place, &screen, &own_jobs).await?;
    let calls = Calls::new(cluster.plain_client(Identity::admin()));
    let machine = Machine { runtime, opened_at: cluster.opened_at(), own_jobs };
    let stopped = async |signals: &mut Signals| {
        tokio::select! {
            () = signals.next() => Stop::Interrupted,
            () = passed(deadline) => Stop::TimedOut,
            failed = cluster.failed() => Stop::Failed(failed),
            why = cluster.refused(DISK_PATIENCE) => Stop::Refused(why),
        }
    };
    let begun = tokio::select! {
        begun = Run::begin(args, manifests, calls, &machine, &place, &screen, report) => {
            Ok(begun)
        }
        stop = stopped(&mut signals) => Err(stop),
    };
    let mut run = match begun {
        Ok(Ok(run)) => {
            key.open();
            run
        }
        begun => {
            ending.at_next(signals);
            if matches!(begun, Err(Stop::TimedOut)) {
                screen.say("the time of --timeout is up before all Jobs have begun\n".to_owned());
            }
            let closed = cluster.shutdown().await.map_err(RunError::Close);
            screen.flush(SCREEN_TIME).await;
            let code = why_unbegun(begun, &place)?;
            return closed.map(|()| code);
        }
    };
    let stop = tokio::select! {
        () = run.until_the_end() => Stop::Ended,
        stop = stopped(&mut signals) => stop,
    };
    let stop = match stop {
        // It was about to be told.
        Stop::Interrupted | Stop::TimedOut if run.progress.is_over() => Stop::Ended,
        stop => stop,
    };
    // From here on the result is known.
    ending.set_code(run.code(&stop));
    ending.at_next(signals);
    if let Some((word, again)) = match stop {
        Stop::Interrupted => Some(("interrupted", " again")),
        Stop::TimedOut => Some(("the time of --timeout is up", "")),
        Stop::Ended | Stop::Failed(_) | Stop::Refused(_) => None,
    } {
        run.view.close();
        screen.say(format!("{word}: Pods are being ended; Ctrl-C{again} ends them at once\n"));
    }
    let tails = run.tails().await;
    // Nobody is followed any more that is not already.
    run.logs = None;
    let resting = cluster.end_pods().await;
    run.take_stock(&place).await;
    let closed = resting.close().await;
    let unwritten = match run.printer.take() {
        Some(printer) => printer.end(matches!(stop, Stop::Ended)).await,
        None => None,
    };
    run.view.close();
    screen.flush(SCREEN_TIME).await;
    closed.map_err(RunError::Close)?;
    let code = run.finish(args, stop, &tails, place, painter, ending)?;
    match unwritten {
        None => Ok(code),
        Some(error) if has_left(&error) => Ok(unread(code)),
        Some(error) if code == 0 => Err(RunError::Output(error)),
        // What the Jobs came to says more.
        Some(error) => {
            say(&format!("error: {}\n", RunError::Output(error)));
            Ok(code)
        }
    }
}

/// Starts the cluster. Nothing is done for what an earlier run has left before somebody knows what is
/// wanted of it, and opens the gate.
async fn start(
    args: &RunArgs,
    manifests: &Manifests,
    place: &Place,
    screen: &Screen,
    own_jobs: &OwnJobs,
) -> Result<(Cluster, GateKey, Arc<dyn Runtime>), RunError> {
    let folder = || place.folder().to_owned();
    let pods = args.pods.start(NODE, &place.pods()).await;
    let (mut node, notes) = pods.map_err(|source| RunError::Node { folder: folder(), source })?;
    // The Pods of a Job that comes to a bad end are stopped and removed: as many as run at once.
    node.options.stopped_logs = node.options.max_pods as usize;
    if args.logs {
        node.options.log_readers = own_jobs.readers();
    }
    if !args.quiet {
        for note in unheld::notes(manifests, &notes) {
            screen.say(format!("note: {note}\n"));
        }
    }
    let runtime = node.runtime.clone();
    let (key, gate) = Gate::shut();
    let is_temporary = place.temporary_path().is_some();
    let started = Cluster::start(Options {
        storage: place.storage(),
        gates: args.feature_gates.unwrap_or_default(),
        jobs: Some(args.jobs.config()),
        node: Some(node),
        gate,
        // A folder that stays may be served to others later.
        tracks_owners: !is_temporary,
        ..Options::default()
    });
    let refused = |source| RunError::Start { folder: folder(), is_temporary, source };
    Ok((started.await.map_err(refused)?, key, runtime))
}

/// What a run ends with whose Jobs have not all begun.
fn why_unbegun(begun: Result<Result<Run, RunError>, Stop>, place: &Place) -> Result<u8, RunError> {
    let folder = || place.folder().to_owned();
    match begun {
        Ok(Err(RunError::Creation(error))) => Err(match error.into_failure() {
            Ok(source) => {
                let is_temporary = place.temporary_path().is_some();
                RunError::Unkept { folder: folder(), is_temporary, source }
            }
            Err(error) => RunError::Creation(error),
        }),
        Ok(Err(error)) => Err(error),
        Err(Stop::Failed(failure)) => Err(RunError::Failed(failure)),
        Err(Stop::Refused(source)) => Err(RunError::Disk { folder: folder(), source }),
        Err(Stop::TimedOut) => Ok(EXIT_TIMED_OUT),
        Ok(Ok(_)) | Err(Stop::Interrupted | Stop::Ended) => Ok(EXIT_INTERRUPTED),
    }
}

/// Waits for a time that may never come.
async fn passed(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}

/// What runs Pods here.
struct Machine {
    runtime: Arc<dyn Runtime>,
    /// The revision that the cluster began with.
    opened_at: u64,
    own_jobs: OwnJobs,
}

/// The uids of the Jobs of a run, once they are known, which is before any Pod begins. In a data
/// folder there may be others.
#[derive(Clone, Debug, Default)]
struct OwnJobs(Arc<OnceLock<HashSet<String>>>);

impl OwnJobs {
    /// Those whose output is shown: nobody comes to read that of others.
    fn readers(&self) -> LogReaders {
        let jobs = self.0.clone();
        LogReaders::of(move |pod| {
            let owners = pod.metadata.owner_references.iter().flatten();
            let mut uids = owners.filter(|it| it.controller == Some(true)).map(|it| &it.uid);
            jobs.get().is_some_and(|jobs| uids.any(|uid| jobs.contains(uid)))
        })
    }

    fn set(&self, progress: &Progress) {
        let uids = progress.jobs().iter().filter_map(|job| job.job.metadata.uid.clone());
        self.0.set(uids.collect()).expect("a run begins once");
    }
}

/// A run under way.
struct Run {
    calls: Calls,
    progress: Progress,
    seen: Receiver<Seen>,
    view: View,
    /// If logs are wanted; and who writes them.
    logs: Option<JobLogs>,
    printer: Option<Printer>,
    /// The latest failure that was looked up, and its last lines.
    latest: Option<(Failure, Vec<String>)>,
    /// What the failed wrote last, by their Job and Pod: their logs may be gone at the end.
    tails: HashMap<(usize, String), Tail>,
    /// What is left of the logs of Pods that are gone.
    left: Logs,
    /// The Jobs that were not there when they were last looked at.
    missing: HashSet<String>,
}

impl Run {
    /// Makes all objects.
    async fn begin(
        args: &RunArgs,
        manifests: &Manifests,
        calls: Calls,
        machine: &Machine,
        place: &Place,
        screen: &Screen,
        report: Report,
    ) -> Result<Self, RunError> {
        make_others(&calls, manifests).await?;
        let node = find_node(&calls, NODE, machine.opened_at).await;
        let here = Here { node: node.as_ref(), runtime: &*machine.runtime };
        check_needs(&calls, manifests, here, report).await?;
        let wanted = match (&args.only_indexes, args.retry_failed) {
            (Some(only), _) => Wanted::Only(only.clone()),
            (None, true) => Wanted::NotCompleted,
            (None, false) => Wanted::All,
        };
        let mut progress = Progress::default();
        let mut earlier_pods = Vec::new();
        for written in &manifests.jobs {
            let made = make_job(&calls, written, &wanted).await?;
            if let Some(note) = made.note.filter(|_| !args.quiet) {
                say(&format!("{note}\n"));
            }
            progress.add(made.job, made.preset, Instant::now());
            progress.note_earlier(made.earlier);
            let ended = made.earlier_pods.iter().filter(|pod| !pod.is_under_way());
            ended.for_each(|pod| progress.observe_earlier_pod(pod));
            earlier_pods.extend(made.earlier_pods);
        }
        machine.own_jobs.set(&progress);
        let (sender, seen) = channel(MAX_WAITING_NEWS);
        tokio::spawn(watch_jobs(calls.client().clone(), JOBS, sender.clone()));
        tokio::spawn(watch_pods(calls.client().clone(), PODS, sender));
        // A terminal that cannot go back a line has no use for bars.
        let takes_bars = takes_escapes(|name| std::env::var_os(name));
        let is_terminal = io::stderr().is_terminal() && takes_bars;
        let view = View::new(args.quiet, is_terminal, &progress, screen.clone(), Instant::now());
        let (logs, printer) = if args.logs {
            let (is_full, room) = watch::channel(false);
            let (mut logs, lines) = JobLogs::new(calls.client().clone(), screen.clone(), room);
            earlier_pods.iter().for_each(|pod| logs.leave_out(pod));
            let to_stderr = args.output.is_some();
            let folder = place.folder().to_owned();
            let printer = Printer::start(lines, is_full, folder, to_stderr, screen.clone());
            (Some(logs), Some(printer.map_err(RunError::Runtime)?))
        } else {
            (None, None)
        };
        Ok(Run {
            calls,
            progress,
            seen,
            view,
            logs,
            printer,
            latest: None,
            tails: HashMap::new(),
            left: Logs::left_in(&place.pods()),
            missing: HashSet::new(),
        })
    }

    /// Waits for the Jobs, and tells how they are.
    async fn until_the_end(&mut self) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stalls = interval(STALL_PATIENCE);
        stalls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.progress.is_over() {
            tokio::select! {
                Some(seen) = self.seen.recv() => self.observe(seen),
                _ = ticks.tick() => self.tick().await,
                _ = looks.tick() => self.look().await,
                _ = stalls.tick() => self.explain_stalls().await,
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

    /// Looks for the reason why Pods do not start, which is in no Pod but in its Events.
    async fn explain_stalls(&mut self) {
        let now = Instant::now();
        let stalled = self.progress.stalled(STALL_PATIENCE, now);
        for (job, uid) in stalled.into_iter().take(MAX_STALLS_AT_ONCE) {
            let Some(why) = self.calls.warning(&uid).await else { continue };
            if let Some(change) = self.progress.explain(job, &uid, &why) {
                self.view.show(&change, &self.progress, now);
            }
        }
    }

    fn observe(&mut self, seen: Seen) {
        let now = Instant::now();
        let changes = match seen {
            Seen::Job(job, is_gone) => self.progress.observe_job(*job, is_gone, now),
            Seen::Pod(pod, is_gone) => {
                if let (Some(logs), Some(job)) = (&mut self.logs, self.progress.job_of(&pod)) {
                    logs.observe(&pod, is_gone, &job.title);
                }
                self.progress.observe_pod(&pod, is_gone, now)
            }
            Seen::Lost(why) => {
                tracing::warn!(why, "cannot watch");
                Vec::new()
            }
        };
        for change in &changes {
            self.view.show(change, &self.progress, now);
        }
    }

    async fn tick(&mut self) {
        let newest = self.progress.latest_failure().map(|(_, failure)| failure);
        let is_known = self.latest.as_ref().map(|(failure, _)| failure) == newest;
        if self.view.wants_tail() && !is_known {
            let newest = newest.cloned();
            if let Some(failure) = newest {
                let lines = self.calls.tail(&failure).await;
                self.latest = Some((failure, lines));
            }
        }
        self.keep_tails().await;
        let tail = self.latest.as_ref().map_or(&[][..], |(_, lines)| lines);
        self.view.tick(&self.progress, tail, Instant::now());
    }

    /// Reads what those wrote last who failed since the last time and may stand in the summary,
    /// and forgets those who will not.
    async fn keep_tails(&mut self) {
        let jobs = self.progress.jobs().iter().enumerate();
        let shown: Vec<(usize, Failure)> = jobs
            .flat_map(|(number, job)| shown(job).map(move |failure| (number, failure.clone())))
            .collect();
        let shown = || {
            shown
                .iter()
                .take(MAX_TAILS)
                .map(|(number, failure)| ((*number, failure.pod.clone()), failure))
        };
        // A container that is run again and fails again has written something else.
        let is_known = |key: &(usize, String), failure: &Failure| {
            self.tails.get(key).is_some_and(|(known, _)| known == failure)
        };
        let unread = shown().filter(|(key, failure)| !is_known(key, failure));
        // What is known stays where it is until all is read: a signal may cut that short.
        let mut read = HashMap::new();
        for (key, failure) in unread.take(MAX_TAILS_AT_ONCE) {
            let lines = self.calls.tail(failure).await;
            read.insert(key, (failure.clone(), lines));
        }
        let mut before = std::mem::take(&mut self.tails);
        for (key, failure) in shown() {
            let known = before.remove(&key).filter(|(known, _)| known == failure);
            if let Some(tail) = read.remove(&key).or(known) {
                self.tails.insert(key, tail);
            }
        }
    }

    /// Looks at what is left of the Jobs that have not ended, when nothing runs any more.
    async fn take_stock(&mut self, place: &Place) {
        let is_kept = place.temporary_path().is_none();
        let unfinished: Vec<Job> = self.progress.unfinished().cloned().collect();
        for job in unfinished {
            let job = stock::taken(&self.calls, &job, is_kept).await;
            // It was told how they stand.
            self.progress.observe_job(job, false, Instant::now());
        }
    }

    /// What the failed wrote last, Job by Job.
    async fn tails(&self) -> Vec<Vec<Tail>> {
        let mut all = Vec::new();
        for (number, job) in self.progress.jobs().iter().enumerate() {
            let mut tails = Vec::new();
            for failure in shown(job).filter(|_| job.end() != End::Complete) {
                let known = self.tails.get(&(number, failure.pod.clone()));
                let mut lines = match known.filter(|(known, _)| known == failure) {
                    Some((_, lines)) => lines.clone(),
                    None => self.calls.tail(failure).await,
                };
                if lines.is_empty() {
                    lines = self.left_lines(failure);
                }
                tails.push((self.calls.explained(failure).await, lines));
            }
            all.push(tails);
        }
        all
    }

    /// The last lines that are left of a Pod which its Job has removed.
    fn left_lines(&self, failure: &Failure) -> Vec<String> {
        let Failure { namespace, pod, uid, .. } = failure;
        let of = |(container, _): (&str, Option<u32>)| {
            let text = self.left.last_words(namespace, pod, uid, container);
            let lines: Vec<&str> = text.lines().collect();
            let first = lines.len().saturating_sub(TAIL_LINES);
            lines[first..].iter().map(|line| (*line).to_owned()).collect()
        };
        failure.named_lines(failure.containers().map(of).collect())
    }

    fn finish(
        self,
        args: &RunArgs,
        stop: Stop,
        tails: &[Vec<Tail>],
        place: Place,
        painter: Painter,
        ending: &Ending,
    ) -> Result<u8, RunError> {
        let now = Instant::now();
        let code = self.code(&stop);
        let jobs = self.progress.jobs();
        for (job, tails) in jobs.iter().zip(tails) {
            say(&summary::of_job(job, tails, painter, now));
        }
        let has_failed = self.has_failed();
        let has_failures = jobs.iter().any(JobProgress::has_failures);
        let is_kept = match stop {
            Stop::Ended => has_failed,
            Stop::TimedOut => true,
            Stop::Interrupted | Stop::Failed(_) | Stop::Refused(_) => has_failures,
        };
        if is_kept || args.keep {
            ending.remove(None);
        }
        let folder = place.folder().to_owned();
        let logs = place.leave(is_kept, args.keep);
        // Of several Jobs, those that were asked for.
        let left = || open_indexes(jobs).or_else(|| args.only_indexes.clone());
        let next = match stop {
            _ if has_failed && has_no_indexes(jobs) => Next::Anew,
            // Those that were not asked for are not wanted now either.
            _ if has_failed && has_left_out(jobs) => Next::RetrySome(left()),
            _ if has_failed => Next::Retry(left()),
            Stop::TimedOut => Next::GoOn { left: left(), is_late: true },
            Stop::Interrupted => Next::GoOn { left: left(), is_late: false },
            Stop::Ended | Stop::Failed(_) | Stop::Refused(_) => Next::Nothing,
        };
        // The name of the program, and that of the command.
        let again = again::arguments(std::env::args_os().skip(2));
        let is_stdin = args.files.iter().any(|file| input::is_stdin(file));
        say(&summary::advice(&logs, &next, &again, is_stdin));
        let printed = args.output.map_or(Ok(()), |format| {
            let value =
                |job: &Job| serde_json::to_value(job).expect("Kubernetes types serialise to JSON");
            let jobs: Vec<Value> = jobs.iter().map(|job| value(&job.job)).collect();
            let is_list = jobs.len() != 1;
            print_objects(jobs, is_list, format)
        });
        match (stop, printed) {
            (Stop::Failed(failure), _) => Err(RunError::Failed(failure)),
            (Stop::Refused(why), _) => Err(RunError::Disk { folder, source: why }),
            (Stop::Ended | Stop::TimedOut | Stop::Interrupted, Ok(())) => Ok(code),
            (_, Err(error)) if has_left(&error) => Ok(unread(code)),
            (_, Err(error)) => Err(RunError::Output(error)),
        }
    }

    fn has_failed(&self) -> bool {
        self.progress.jobs().iter().any(|job| job.end() == End::Failed || job.is_gone)
    }

    /// The exit code.
    fn code(&self, stop: &Stop) -> u8 {
        match stop {
            Stop::Ended if self.has_failed() => EXIT_FAILED,
            Stop::Ended => 0,
            Stop::TimedOut => EXIT_TIMED_OUT,
            Stop::Interrupted => EXIT_INTERRUPTED,
            Stop::Failed(_) | Stop::Refused(_) => EXIT_INTERNAL,
        }
    }
}

/// The exit code if whoever was to read standard output has left: the Jobs' own if it says more.
fn unread(code: u8) -> u8 {
    if code == 0 { EXIT_LEFT } else { code }
}

/// The failures of a Job that the summary shows.
fn shown(job: &JobProgress) -> impl Iterator<Item = &Failure> {
    job.told_failures().take(MAX_SHOWN_FAILURES)
}

/// Whether there is one Job, and it has none.
fn has_no_indexes(jobs: &[JobProgress]) -> bool {
    matches!(jobs, [job] if !job.is_indexed())
}

/// Whether there are indexes that nobody has run.
fn has_left_out(jobs: &[JobProgress]) -> bool {
    jobs.iter().any(|job| !job.left_out().is_empty())
}

/// The indexes to run again, if there is one Job and it has indexes that can be chosen.
fn open_indexes(jobs: &[JobProgress]) -> Option<IndexSet> {
    let [job] = jobs else { return None };
    let has_policy = job.job.spec.as_ref().is_some_and(|spec| spec.success_policy.is_some());
    if !job.is_indexed() || has_policy {
        return None;
    }
    // Those that failed, and those that were stopped or never began.
    let mut done = job.completed_indexes();
    done.union(&job.preset);
    Some(done.complement(completions(&job.job)))
}

/// Writes to standard error. If that fails there is nowhere left to say so.
fn say(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
