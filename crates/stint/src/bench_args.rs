//! What can be said to `stint bench`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use stint_bench::{Crowd, Rounds, Runner, Task};

const EXAMPLES: &str = "\
Examples:
  stint bench process                     Short commands: stint run, xargs, GNU parallel
  stint bench cluster --indexes 100       Jobs on kube-apiserver: stint, the built-in controller
  stint bench local --indexes 10000       The embedded cluster alone, with one size
  stint bench ledger --json > ledger.json Every number, for another tool
  stint bench process --svg plots/        Draw what was measured

Everything that is measured runs in turn, round by round, after rounds to warm up. Tables show
medians; other work on the machine shows in the least and the most, and in the load.

Exit codes:
  0  All was measured
  2  Wrong usage
  3  Something could not be measured";

/// Measure stint, and others on the same work
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) what: BenchCommand,
}

/// What is measured.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Jobs on a real kube-apiserver: stint, the built-in controller, and the least that Jobs cost
    ///
    /// Needs etcd, kube-apiserver, kube-controller-manager and kubectl, and a checkout of stint:
    /// testing/peers/get there takes them from the environment (KUBE_APISERVER=/path), from
    /// KUBEBUILDER_ASSETS, or builds them, which needs Go and some minutes, once.
    Cluster {
        /// How many indexes; several sizes are separated by commas
        ///
        /// Each with all Pods at once and with a tenth of them, in place of the usual Jobs.
        #[arg(long, value_name = "COUNT", value_delimiter = ',',
            value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
        indexes: Vec<u32>,

        /// Only these Jobs; several are separated by commas
        ///
        /// sizes, of 100, 1,000 and 10,000 indexes; failing, of 1,000, of which 10 % and 50 % fail once;
        /// many, 100 Jobs of 20 Pods, 5 of each at once.
        #[arg(long, value_name = "WHICH", value_delimiter = ',', conflicts_with = "indexes",
            value_parser = PossibleValuesParser::new(Crowd::ALL.map(Crowd::name)))]
        jobs: Vec<String>,
        #[command(flatten)]
        by: RunnerArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// How soon a one-Pod Job is served, alone and beside a large one; needs what cluster needs
    Latency {
        #[command(flatten)]
        by: RunnerArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Whether a large Job makes small ones wait; needs what cluster needs
    Fairness {
        #[command(flatten)]
        by: RunnerArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// The Job state machine alone: cost of a Pod for 1,000 to 1,000,000 indexes
    Ledger {
        #[command(flatten)]
        size: SizeArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// The whole embedded cluster, with Pods that end at once: cost of a Pod, API calls, store writes
    Local {
        #[command(flatten)]
        size: SizeArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Short commands by stint run, xargs and GNU parallel
    Process {
        #[command(flatten)]
        size: SizeArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// How soon stint serve is ready, and how long stint run takes with one Pod
    Startup {
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Measures one thing in this process, for the others
    #[command(hide = true)]
    Worker {
        /// What
        #[arg(value_parser = PossibleValuesParser::new(Task::ALL.map(Task::name)))]
        task: String,
        /// How many indexes
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        indexes: u32,
        /// How many at once
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        parallelism: u32,
    },
}

/// Who is measured on a cluster.
#[derive(Debug, Args)]
pub(crate) struct RunnerArgs {
    /// Only these; several are separated by commas
    ///
    /// stint; lifted, the built-in controller without its limits; default, the same as it comes;
    /// floor, a loop that only creates Pods and removes finalizers (for cluster); embedded, stint's
    /// own cluster (not for cluster).
    #[arg(long, value_name = "WHO", value_delimiter = ',',
        value_parser = PossibleValuesParser::new(Runner::ALL.map(Runner::name)))]
    pub(crate) by: Vec<String>,
}

impl RunnerArgs {
    /// Those who are asked for among the ones that can be, in place of the usual ones.
    pub(crate) fn runners(&self, usual: Vec<Runner>, possible: &[Runner]) -> Vec<Runner> {
        let is_wanted = |runner: &Runner| self.by.iter().any(|name| name == runner.name());
        let wanted: Vec<Runner> = possible.iter().copied().filter(is_wanted).collect();
        if wanted.is_empty() { usual } else { wanted }
    }
}

/// How much work there is.
#[derive(Debug, Args)]
pub(crate) struct SizeArgs {
    /// How many indexes or commands; several sizes are separated by commas
    #[arg(long, value_name = "COUNT", value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    pub(crate) indexes: Vec<u32>,

    /// How many at once
    #[arg(long, value_name = "COUNT",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    pub(crate) parallelism: Option<u32>,
}

/// How often it is measured, and what comes of it.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Only see that it works: tiny sizes, once
    #[arg(long)]
    pub(crate) quick: bool,

    /// How many rounds are measured
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) repetitions: Option<u16>,

    /// How many rounds come before, and do not count
    #[arg(long, value_name = "COUNT")]
    pub(crate) warmups: Option<u16>,

    /// Print JSON, with every single measurement
    #[arg(long)]
    pub(crate) json: bool,

    /// Draw what was measured into this folder, as SVG
    #[arg(long, value_name = "DIR")]
    pub(crate) svg: Option<PathBuf>,
}

impl OutputArgs {
    /// The rounds that are asked for, in place of the usual ones.
    pub(crate) fn rounds(&self, usual: Rounds) -> Rounds {
        Rounds {
            warmups: self.warmups.map_or(usual.warmups, usize::from),
            repetitions: self.repetitions.map_or(usual.repetitions, usize::from),
        }
    }
}
