//! What can be said to `stint status`.

use clap::Args;

use crate::cluster_args::ClusterArgs;
use crate::color::ColorChoice;
use crate::run_args::ObjectFormat;

const EXAMPLES: &str = "\
Examples:
  stint status                            The Jobs, and how far they are
  stint status -A                         Those of all namespaces
  stint status work                       One Job: what failed, what runs, what waits and why
  stint status work -w                    Follow it to its end
  stint status work -o json | jq .status  Hand it to another tool
  stint status --data-dir ./work          After stint run --data-dir ./work job.yaml

Exit codes:
  0    It was shown, whatever the state of the Jobs
  1    There is no such Job
  2    Wrong usage, or the kubeconfig cannot be used
  3    There is no cluster, or it does not answer as it should
  130  It was interrupted by Ctrl-C or SIGTERM
  141  Whoever read standard output has left";

/// Show how far Jobs are, and what holds them up
///
/// Without JOB a line for each Job of the namespace. With JOB everything a person may act on:
/// its state and why, completed and failed indexes, Pods that run and Pods that wait and for what,
/// the latest failures with their last lines, and what to do next.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatusArgs {
    /// The name of a Job
    #[arg(value_name = "JOB")]
    pub(crate) job: Option<String>,

    /// The Jobs of all namespaces
    #[arg(short = 'A', long, conflicts_with_all = ["job", "namespace"])]
    pub(crate) all_namespaces: bool,

    /// Print the Jobs themselves on standard output
    #[arg(short, long, value_name = "FORMAT", value_enum)]
    pub(crate) output: Option<ObjectFormat>,

    /// Show every change, until the named Job has ended or it is interrupted
    #[arg(short, long, conflicts_with = "output")]
    pub(crate) watch: bool,

    /// When to use colours
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) color: ColorChoice,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
}
