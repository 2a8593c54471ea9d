//! What can be said to `stint run`.

use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, Command, ValueEnum};
use stint_api::feature_gates::FeatureGates;
use stint_api::index_set::IndexSet;

use crate::cli::LogLevel;
use crate::color::ColorChoice;
use crate::input;
use crate::job_args::{JobArgs, read_duration};
use crate::node_args::NodeArgs;

const EXAMPLES: &str = "\
Examples:
  stint run job.yaml                      Run a Job to its end, here
  stint run --logs job.yaml config.yaml   Show what its Pods print, as they print it
  stint run --set MODEL=small job.yaml    The same Job with another environment
  stint run --only-indexes 3,7-9 job.yaml Run some of its indexes
  stint run --data-dir work job.yaml      Keep objects and logs in ./work, and then
  stint run --data-dir work --retry-failed job.yaml
                                          run again what has failed
  stint run -o json job.yaml | jq .status Hand the result to another tool

Exit codes:
  0    Every Job is Complete
  1    A Job has failed
  2    Wrong usage, or a manifest is invalid or cannot be read
  3    stint itself could not start, or failed
  124  The time of --timeout was up
  130  It was interrupted by Ctrl-C, SIGTERM or SIGHUP before the Jobs had ended
  141  Every Job is Complete, but whoever read standard output has left before all of
       it was written";

/// Run Jobs to their end on this machine
///
/// Reads every document of every FILE as the Kubernetes API server would, runs the Jobs as
/// processes of this machine with the ConfigMaps, Secrets, Services, ServiceAccounts and
/// Namespaces beside them, and ends when they have ended. Nothing is left behind unless a Job
/// fails or time runs out; then the logs are kept, and the summary says where.
///
/// A Pod that failed is tried again after one second instead of Kubernetes' ten; see
/// --pod-failure-backoff-base.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// Files or directories to run; - is standard input
    ///
    /// Of a directory its *.yaml, *.yml and *.json files are run, in the order of their names.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Look in the subdirectories of directories too
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,

    /// Print the Jobs on standard output when they have ended, and nothing else there
    #[arg(short, long, value_name = "FORMAT", value_enum)]
    pub(crate) output: Option<ObjectFormat>,

    /// Show what containers print, each line with its Job and index
    ///
    /// On standard output, or on standard error with --output.
    #[arg(long)]
    pub(crate) logs: bool,

    /// How many Pods of each Job at once, whatever its manifest says
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) parallelism: Option<i32>,

    /// Set a variable in the environment of every container; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = read_variable)]
    pub(crate) set: Vec<(String, String)>,

    /// End everything after this time: 90s, 10m, 2h
    #[arg(long, value_name = "TIME", value_parser = read_timeout)]
    pub(crate) timeout: Option<Duration>,

    /// Run only these indexes: 3,7-9
    ///
    /// The others count as completed from the start. For Indexed Jobs.
    #[arg(long, value_name = "INDEXES", value_parser = read_indexes)]
    pub(crate) only_indexes: Option<IndexSet>,

    /// Run only what the last run in the data folder has not completed
    #[arg(long, requires = "data_dir", conflicts_with = "only_indexes")]
    pub(crate) retry_failed: bool,

    /// Keep objects and logs in this folder, as stint serve does
    ///
    /// A Job that an earlier run left unfinished goes on; one that ended is replaced.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    /// Keep the temporary folder with the logs, whatever comes of the Jobs
    #[arg(long, conflicts_with = "data_dir")]
    pub(crate) keep: bool,

    /// Show errors and the end only: no warnings, no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// When to use colours
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) color: ColorChoice,

    /// Turn Kubernetes features off or on: NAME=false,NAME=true
    #[arg(long, value_name = "GATES", value_parser = FeatureGates::parse)]
    pub(crate) feature_gates: Option<FeatureGates>,

    #[command(flatten)]
    pub(crate) jobs: JobArgs,

    #[command(flatten)]
    pub(crate) pods: NodeArgs,

    /// How much to tell of what happens inside
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = LogLevel::Error)]
    pub(crate) log_level: LogLevel,
}

impl RunArgs {
    /// What clap cannot tell by itself.
    pub(crate) fn wrong_usage(&self) -> Option<(ErrorKind, &'static str)> {
        let stdin_count = self.files.iter().filter(|file| input::is_stdin(file)).count();
        if stdin_count > 1 {
            let message = "standard input (-) can be read only once";
            return Some((ErrorKind::ArgumentConflict, message));
        }
        self.jobs.wrong_usage().or_else(|| self.pods.wrong_usage())
    }
}

/// A person waits for the end: a retry comes sooner than on a cluster.
pub(crate) fn with_short_waits(command: Command) -> Command {
    ["pod_failure_backoff_base", "crash_loop_backoff_base"]
        .into_iter()
        .fold(command, |command, name| command.mut_arg(name, |arg| arg.default_value("1s")))
}

/// How objects are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ObjectFormat {
    /// One JSON object: the Job, or a List of Jobs
    Json,
    /// A YAML document for each Job
    Yaml,
    /// A line for each Job: job.batch/NAME
    Name,
}

fn read_variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("give a name and a value, such as MODEL=small".to_owned()),
    }
}

fn read_timeout(text: &str) -> Result<Duration, String> {
    let duration = read_duration(text)?;
    if duration.is_zero() {
        return Err("it cannot be 0".to_owned());
    }
    Ok(duration.unsigned_abs())
}

/// Reads a list of indexes in any order.
pub(crate) fn read_indexes(text: &str) -> Result<IndexSet, String> {
    let wanted = || "give indexes and ranges of them, such as 3,7-9".to_owned();
    let mut all = IndexSet::new();
    for part in text.split(',') {
        let part = part.trim();
        let set = IndexSet::parse_strict(part, i32::MAX as u32).map_err(|_| wanted())?;
        if set.is_empty() {
            return Err(wanted());
        }
        all.union(&set);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_read_in_any_order() {
        let read = |text: &str| read_indexes(text).map(|set| set.to_string());
        let rows = [("3,7-9", "3,7-9"), ("7-9,3", "3,7-9"), ("1,1", "1"), ("0, 2-3,1", "0-3")];
        for (text, expected) in rows {
            assert_eq!(read(text).as_deref(), Ok(expected), "{text}");
        }
        for text in ["", "a", "3-", "9-7", "1,,2", "-1"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_variable_has_a_name_and_may_be_empty() {
        let pair = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(read_variable("A=b=c"), pair("A", "b=c"));
        assert_eq!(read_variable("A="), pair("A", ""));
        assert!(read_variable("A").is_err() && read_variable("=b").is_err());
    }
}
