//! What can be said to `stint logs`.

use clap::Args;
use jiff::SignedDuration;
use stint_api::index_set::IndexSet;

use crate::cluster_args::ClusterArgs;
use crate::job_args::read_duration;
use crate::log_lines::Part;
use crate::run_args::read_indexes;

const EXAMPLES: &str = "\
Examples:
  stint logs work                         What the Pods of the Job work have printed
  stint logs work -f                      The same, as they print it, until the Job ends
  stint logs work --index 3,7-9           Of some indexes, every attempt
  stint logs work --since 5m --timestamps The last five minutes, with times
  stint logs work --tail 20 -c main       The last lines of one container
  stint logs work --data-dir ./work       After stint run --data-dir ./work job.yaml

Exit codes:
  0    What there is was shown
  1    There is no such Job, or no log of it is left or has begun, or
       one could not be read
  2    Wrong usage, or the kubeconfig cannot be used
  3    There is no cluster, or it does not answer as it should
  130  It was interrupted by Ctrl-C or SIGTERM
  141  Whoever read standard output has left";

/// Show what the Pods of a Job have printed
///
/// Index by index, and of each index the oldest Pod first. If there are several Pods each line
/// has its Job and index in front, or the Pod's name if the Job has no indexes, and the container
/// if there are several.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LogsArgs {
    /// The name of the Job
    #[arg(value_name = "JOB")]
    pub(crate) job: String,

    /// Only of these indexes: 3,7-9
    #[arg(long, value_name = "INDEXES", value_parser = read_indexes)]
    pub(crate) index: Option<IndexSet>,

    /// Go on as more is printed, and with Pods that come later, until the Job ends
    #[arg(short, long, conflicts_with = "previous")]
    pub(crate) follow: bool,

    /// Only of this container [default: all of them]
    #[arg(short, long, value_name = "NAME")]
    pub(crate) container: Option<String>,

    /// Only the last so many lines of each container
    #[arg(long, value_name = "COUNT")]
    pub(crate) tail: Option<u64>,

    /// Only what was printed in this time: 90s, 5m, 2h
    #[arg(long, value_name = "TIME", value_parser = read_since)]
    pub(crate) since: Option<SignedDuration>,

    /// Put the time in front of each line
    #[arg(long)]
    pub(crate) timestamps: bool,

    /// What containers printed before they were last started again
    #[arg(short, long)]
    pub(crate) previous: bool,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}

impl LogsArgs {
    /// Which part of each log is wanted.
    pub(crate) fn part(&self) -> Part {
        Part {
            follows: self.follow,
            is_previous: self.previous,
            run: None,
            has_timestamps: self.timestamps,
            tail_lines: self.tail,
            since_seconds: self.since.map(|since| since.as_secs().unsigned_abs()),
        }
    }
}

/// The API counts whole seconds.
fn read_since(text: &str) -> Result<SignedDuration, String> {
    let since = read_duration(text)?;
    if since < SignedDuration::from_secs(1) {
        return Err("it cannot be less than 1s".to_owned());
    }
    Ok(since)
}
