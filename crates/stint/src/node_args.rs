//! What can be said about how Pods are run, to every command that runs them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use clap::error::ErrorKind;
use jiff::SignedDuration;
use stint_local::NodeOptions;
use stint_node::{BackoffOptions, Options, ProcessOptions, ProcessRuntime, RuntimeError};

use crate::job_args::read_duration;

/// How long Pods may take to end when stint stops.
const GRACE: Duration = Duration::from_secs(30);

/// How Pods are run.
#[derive(Debug, Args)]
#[command(next_help_heading = "How Pods are run")]
pub(crate) struct NodeArgs {
    /// The most Pods at once
    #[arg(long, value_name = "COUNT", default_value_t = 1000,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_pods: u32,

    /// How long a container that ended twice waits to be started again: 500ms, 10s, 2m
    ///
    /// Doubled with each end that follows. For Pods with restartPolicy OnFailure.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = read_duration)]
    pub(crate) crash_loop_backoff_base: SignedDuration,

    /// The longest such wait
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = read_duration)]
    pub(crate) crash_loop_backoff_max: SignedDuration,
}

impl NodeArgs {
    /// What clap cannot tell by itself.
    pub(crate) fn wrong_usage(&self) -> Option<(ErrorKind, &'static str)> {
        if self.crash_loop_backoff_base > self.crash_loop_backoff_max {
            let message = "--crash-loop-backoff-base is longer than --crash-loop-backoff-max: \
                           make one of them fit the other";
            return Some((ErrorKind::ArgumentConflict, message));
        }
        None
    }

    /// The node that is asked for, in a folder of its own; and what it cannot hold containers to
    /// on this machine, and why.
    pub(crate) async fn start(
        &self,
        name: &str,
        folder: &Path,
    ) -> Result<(NodeOptions, Vec<String>), RuntimeError> {
        let runtime = ProcessRuntime::start(ProcessOptions::new(folder)).await?;
        let notes = runtime.notes();
        for note in &notes {
            tracing::info!("{note}");
        }
        let backoff = BackoffOptions {
            base: self.crash_loop_backoff_base.unsigned_abs(),
            cap: self.crash_loop_backoff_max.unsigned_abs(),
            ..BackoffOptions::default()
        };
        let options = Options { max_pods: self.max_pods, backoff, ..Options::new(name, folder) };
        Ok((NodeOptions { runtime: Arc::new(runtime), options, grace: GRACE }, notes))
    }
}
