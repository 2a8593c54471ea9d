//! `stint logs`: what the Pods of a Job have printed, from a cluster that runs or from what is
//! left of one.
//!
//! ```text
//!   reach ─▶ job_lookup ─▶ wanted ─▶ past, or follow ─▶ said ─▶ standard output
//! ```

mod follow;
mod past;
mod said;
mod wanted;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use thiserror::Error;
use tokio::sync::mpsc::channel;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use self::follow::{FollowError, follow};
use self::past::tell;
use self::said::{Ending, print};
use self::wanted::{Wanted, WantedError};
use crate::calls::{CallError, Calls};
use crate::job_lookup::{LookupError, bare_name, find_job, pods_of};
use crate::log_lines::{MAX_WAITING_LINES, Part};
use crate::logs_args::LogsArgs;
use crate::progress::is_ended;
use crate::reach::{ReachError, Reached};
use crate::signals::Signals;
use crate::spool::Spool;
use crate::stdout::EXIT_LEFT;

const EXIT_ABSENT: u8 = 1;
const EXIT_USAGE: u8 = 2;
const EXIT_INTERNAL: u8 = 3;

/// Shows the logs of a Job.
pub(crate) fn run(args: &LogsArgs) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let shown = match runtime {
        Ok(runtime) => runtime.block_on(show(args)),
        Err(error) => Err(LogsError::Runtime(error)),
    };
    ExitCode::from(shown.unwrap_or_else(|error| {
        say(&format!("error: {error}\n"));
        error.exit_code()
    }))
}

/// Why logs are not shown, or not all of them.
#[derive(Debug, Error)]
enum LogsError {
    #[error(transparent)]
    Reach(#[from] ReachError),
    #[error(transparent)]
    Lookup(#[from] LookupError),
    #[error(transparent)]
    Wanted(#[from] WantedError),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Follow(#[from] FollowError),
    #[error("cannot write to standard output: {0}")]
    Output(#[source] io::Error),
    #[error("cannot start: {0}")]
    Runtime(#[source] io::Error),
}

impl LogsError {
    fn exit_code(&self) -> u8 {
        match self {
            LogsError::Reach(error) if error.is_wrong_usage() => EXIT_USAGE,
            LogsError::Wanted(_) => EXIT_USAGE,
            LogsError::Lookup(LookupError::Absent { .. }) => EXIT_ABSENT,
            LogsError::Lookup(LookupError::Call(_))
            | LogsError::Reach(_)
            | LogsError::Call(_)
            | LogsError::Follow(_)
            | LogsError::Output(_)
            | LogsError::Runtime(_) => EXIT_INTERNAL,
        }
    }
}

async fn show(args: &LogsArgs) -> Result<u8, LogsError> {
    // There is nothing to be put in order at the end.
    Signals::new().map_err(LogsError::Runtime)?.exit_at_next();
    let reached = Reached::find(&args.cluster).await?;
    let shown = show_from(&reached, args).await;
    reached.close().await;
    shown
}

async fn show_from(reached: &Reached, args: &LogsArgs) -> Result<u8, LogsError> {
    let calls = Calls::new(reached.client.clone());
    let found = find_job(&calls, &reached.namespace, bare_name(&args.job)).await?;
    let job = found.job;
    let wanted = Arc::new(Wanted::new(&job, args)?);
    let pods = pods_of(&calls, &job).await?;
    let (sender, said) = channel(MAX_WAITING_LINES);
    let (is_full, room) = watch::channel(false);
    let said = Spool::start(said, is_full, std::env::temp_dir()).map_err(LogsError::Runtime)?;
    let follows = args.follow && reached.is_alive();
    let has_ended = is_ended(&job);
    if args.follow && !reached.is_alive() {
        say(&reached.note().unwrap_or_default());
    }
    let part = Part { follows, ..args.part() };
    let telling = async {
        // What a Job that is over has said is told in order.
        if follows && !has_ended {
            return follow(&calls, &job, &pods, &wanted, part, sender, room).await;
        }
        tell(&calls, &job, &pods, &wanted, part, sender, room).await;
        Ok(())
    };
    let printing = spawn_blocking(move || print(&said));
    let (mut telling, mut printing) = (std::pin::pin!(telling), std::pin::pin!(printing));
    let ending = tokio::select! {
        // What is said goes out before a failure is told.
        told = &mut telling => {
            let ending = printing.await;
            told?;
            ending
        }
        // Nobody listens any more.
        ending = &mut printing => ending,
    };
    match ending.expect("printing does not panic").map_err(LogsError::Output)? {
        Ending::Done => Ok(0),
        Ending::Left => Ok(EXIT_LEFT),
        Ending::Failed => Ok(EXIT_ABSENT),
    }
}

/// Writes to standard error. If that fails there is nowhere left to say so.
fn say(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
