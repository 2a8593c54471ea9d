//! `stint status`: how far Jobs are, from a cluster that runs or from what is left of one.
//!
//! ```text
//!   reach ─▶ job_lookup ─▶ table (a line for each Job), page (all of one), or watch
//! ```

mod page;
mod shortage;
mod state;
mod table;
mod warning;
mod watch;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use self::page::{MAX_PODS, Page};
use self::shortage::missing;
use self::state::{State, at_rest};
use self::table::{Row, Table};
use self::warning::latest_warning;
use self::watch::{WatchError, Watched, watch};
use crate::calls::{CallError, Calls, JOBS};
use crate::color::Painter;
use crate::job_lookup::{LookupError, bare_name, find_job, job_watch_path, jobs_path, pods_of};
use crate::job_text::Tail;
use crate::objects::print_objects;
use crate::pod_sight::PodSight;
use crate::reach::{ReachError, Reached};
use crate::signals::Signals;
use crate::status_args::StatusArgs;
use crate::stdout::{EXIT_LEFT, has_left, write};

const EXIT_ABSENT: u8 = 1;
const EXIT_USAGE: u8 = 2;
const EXIT_INTERNAL: u8 = 3;

/// Shows Jobs.
pub(crate) fn run(args: &StatusArgs) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let shown = match runtime {
        Ok(runtime) => runtime.block_on(show(args)),
        Err(error) => Err(StatusError::Runtime(error)),
    };
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_unread() => ExitCode::from(EXIT_LEFT),
        Err(error) => {
            say(&format!("error: {error}\n"));
            ExitCode::from(error.exit_code())
        }
    }
}

/// Why nothing is shown, or nothing more.
#[derive(Debug, Error)]
enum StatusError {
    #[error(transparent)]
    Reach(#[from] ReachError),
    #[error(transparent)]
    Lookup(#[from] LookupError),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Watch(#[from] WatchError),
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
    #[error("cannot start: {0}")]
    Runtime(#[source] io::Error),
}

impl StatusError {
    /// Whether nobody is there to read more.
    fn is_unread(&self) -> bool {
        match self {
            StatusError::Output(error) | StatusError::Watch(WatchError::Output(error)) => {
                has_left(error)
            }
            _ => false,
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            StatusError::Reach(error) if error.is_wrong_usage() => EXIT_USAGE,
            StatusError::Lookup(LookupError::Absent { .. }) => EXIT_ABSENT,
            StatusError::Lookup(LookupError::Call(_))
            | StatusError::Reach(_)
            | StatusError::Call(_)
            | StatusError::Watch(_)
            | StatusError::Output(_)
            | StatusError::Runtime(_) => EXIT_INTERNAL,
        }
    }
}

async fn show(args: &StatusArgs) -> Result<(), StatusError> {
    // There is nothing to be put in order at the end.
    Signals::new().map_err(StatusError::Runtime)?.exit_at_next();
    let reached = Reached::find(&args.cluster).await?;
    if args.output.is_none() {
        say(&reached.note().unwrap_or_default());
    }
    let is_colored = args.color.is_on(io::stdout().is_terminal(), |name| std::env::var_os(name));
    let painter = Painter::new(is_colored);
    let calls = Calls::new(reached.client.clone());
    let shown = match &args.job {
        Some(name) => show_job(args, &reached, &calls, bare_name(name), painter).await,
        None => show_jobs(args, &reached, &calls, painter).await,
    };
    reached.close().await;
    shown
}

/// One Job.
async fn show_job(
    args: &StatusArgs,
    reached: &Reached,
    calls: &Calls,
    name: &str,
    painter: Painter,
) -> Result<(), StatusError> {
    let namespace = &reached.namespace;
    let mut found = find_job(calls, namespace, name).await?;
    if let Some(format) = args.output {
        return Ok(print_objects(vec![found.object], false, format)?);
    }
    if args.watch && reached.is_alive() {
        let path = job_watch_path(namespace, name);
        let uid = found.job.metadata.uid.clone().unwrap_or_default();
        let mut table = Table::new(false, painter);
        let jobs = std::slice::from_ref(&found.job);
        let client = reached.client.clone();
        match watch(client, path, jobs, Some(&uid), &mut table).await? {
            Watched::Ended => {}
            Watched::Gone => return Ok(()),
        }
        write("\n")?;
        found = find_job(calls, namespace, name).await?;
    }
    let job = if reached.is_alive() { found.job } else { at_rest(found.job) };
    let mut pods = pods_of(calls, &job).await?;
    let silent = pods.iter_mut().filter(|pod| pod.is_starting() && pod.why_waiting().is_none());
    for pod in silent.take(MAX_PODS) {
        if let Some(why) = calls.warning(pod.uid()).await {
            pod.explain(why);
        }
    }
    // Who waits without a Pod that says for what may have been told so: by a quota, for one.
    let is_idle = State::of(&job) == State::Waiting && !pods.iter().any(PodSight::is_under_way);
    let warning = match is_idle || missing(&job, &pods) > 0 {
        true => latest_warning(calls, &job).await.filter(|it| is_idle || it.is_current(&pods)),
        false => None,
    };
    let page = Page::new(job, &pods, warning);
    let mut tails: Vec<Tail> = Vec::new();
    for failure in page.shown_failures() {
        tails.push((calls.explained(failure).await, calls.tail(failure).await));
    }
    let goes_on = reached.goes_on();
    let again = args.cluster.again();
    write(&page.text(&tails, painter, Timestamp::now(), &again, goes_on.as_deref()))?;
    Ok(())
}

/// All Jobs of a namespace, or of all.
async fn show_jobs(
    args: &StatusArgs,
    reached: &Reached,
    calls: &Calls,
    painter: Painter,
) -> Result<(), StatusError> {
    let namespace = &reached.namespace;
    let path = if args.all_namespaces { JOBS.to_owned() } else { jobs_path(namespace) };
    let mut objects: Vec<Value> = calls.list(&path).await?;
    if let Some(format) = args.output {
        for object in &mut objects {
            // In a list that goes without saying.
            object["apiVersion"] = "batch/v1".into();
            object["kind"] = "Job".into();
        }
        return Ok(print_objects(objects, true, format)?);
    }
    let jobs: Vec<Job> =
        objects.iter().filter_map(|object| Job::deserialize(object).ok()).collect();
    let jobs = match reached.is_alive() {
        true => jobs,
        false => jobs.into_iter().map(at_rest).collect(),
    };
    let mut table = Table::new(args.all_namespaces, painter);
    if args.watch && reached.is_alive() {
        watch(reached.client.clone(), path, &jobs, None, &mut table).await?;
        return Ok(());
    }
    if jobs.is_empty() {
        say(&match args.all_namespaces {
            true => "no Jobs\n".to_owned(),
            false => format!(
                "no Jobs in namespace {namespace}; `stint status -A` shows those of all namespaces\n"
            ),
        });
        return Ok(());
    }
    let now = Timestamp::now();
    let rows: Vec<Row> = jobs.iter().map(|job| Row::new(job, false, now)).collect();
    let mut text = table.head(&rows);
    for row in &rows {
        text += &table.row(row);
    }
    write(&text)?;
    Ok(())
}

/// Writes to standard error. If that fails there is nowhere left to say so.
fn say(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
