//! What can be said on the command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use stint_api::advice;
use stint_api::feature_gates::FeatureGates;

use crate::bench_args::BenchArgs;
use crate::build::LONG_VERSION;
use crate::color::ColorChoice;
use crate::controller_args::ControllerArgs;
use crate::input;
use crate::job_args::JobArgs;
use crate::logs_args::LogsArgs;
use crate::node_args::NodeArgs;
use crate::run_args::{RunArgs, with_short_waits};
use crate::status_args::StatusArgs;

const EXAMPLES: &str = "\
Examples:
  stint run job.yaml        Run a Job to its end on this machine
  stint check job.yaml      Find what is wrong with a manifest, and where
  stint serve               A cluster for Jobs on this machine, for kubectl
  stint status              The Jobs of a cluster, and what holds them up
  stint logs work -f        What the Pods of a Job print
  stint controller          The Job controller of a Kubernetes cluster
  stint bench process       How fast all of this is, beside others

Exit codes:
  0  All is well
  1  What was asked about is wrong, such as an invalid manifest, or not there
  2  Wrong usage, or something could not be read
  3  stint could not start, or failed, or there is no cluster to look at

stint run has more; see stint run --help.";

/// Kubernetes Jobs in one binary.
#[derive(Debug, Parser)]
#[command(name = "stint", version, long_version = LONG_VERSION, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Reads the command line; help, the version and wrong usage end the program.
    pub(crate) fn read() -> Self {
        let command = Self::command().mut_subcommand("run", with_short_waits);
        let cli = Self::from_arg_matches(&command.get_matches());
        let cli = cli.unwrap_or_else(|error| error.exit());
        let (subcommand, wrong) = match &cli.command {
            Command::Bench(_) => ("bench", None),
            Command::Check(args) => ("check", args.wrong_usage()),
            Command::Controller(_) => ("controller", None),
            Command::Logs(_) => ("logs", None),
            Command::Run(args) => ("run", args.wrong_usage()),
            Command::Status(_) => ("status", None),
            Command::Serve(args) => ("serve", args.wrong_usage()),
        };
        if let Some((kind, message)) = wrong {
            let mut command = Self::command();
            // Names the subcommand in full in the usage line.
            command.build();
            command
                .find_subcommand_mut(subcommand)
                .expect("it was just parsed")
                .error(kind, message)
                .exit();
        }
        cli
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Bench(BenchArgs),
    Check(CheckArgs),
    Controller(Box<ControllerArgs>),
    Logs(LogsArgs),
    Run(Box<RunArgs>),
    Serve(ServeArgs),
    Status(StatusArgs),
}

const CHECK_EXAMPLES: &str = "\
Examples:
  stint check job.yaml                    Check every Job in a file
  stint check -R manifests/               Check a directory and those below it
  helm template . | stint check -         Check what another tool prints
  stint check --print job.yaml            Show the Job with its defaults filled in
  stint check -o json jobs/ | jq .summary Hand the findings to another tool
  stint check --deny-warnings jobs/       Let warnings fail the build

Exit codes:
  0  Every Job is valid; there may be warnings
  1  A manifest is invalid: an error was found, the text is not UTF-8, there is
     no manifest at all, or there are warnings and --deny-warnings is given
  2  Wrong usage, or an input could not be read; goes before 1";

/// Check Job manifests without a cluster
///
/// Reads every document of every FILE as the Kubernetes API server would, and shows each error
/// with its place, what is wrong and what is allowed. Warnings point out what is legal but may
/// surprise. Documents that are no Jobs are named and passed over.
///
/// Errors and warnings go to standard error; JSON and the printed manifests go to standard output.
#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub(crate) struct CheckArgs {
    /// Files or directories to check; - is standard input
    ///
    /// Of a directory its *.yaml, *.yml and *.json files are checked, in the order of their
    /// names.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Look in the subdirectories of directories too
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,

    /// How to show what was found
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) output: OutputFormat,

    /// Print each valid Job with its defaults filled in, as YAML
    #[arg(long)]
    pub(crate) print: bool,

    /// Turn Kubernetes features off or on: NAME=false,NAME=true
    ///
    /// The gates are JobBackoffLimitPerIndex, JobSuccessPolicy, JobPodReplacementPolicy and
    /// JobManagedBy; all are on unless they are turned off.
    #[arg(long, value_name = "GATES", value_parser = FeatureGates::parse)]
    pub(crate) feature_gates: Option<FeatureGates>,

    /// Say nothing about the warning NAME; several are separated by commas
    ///
    /// Every warning shows its name in brackets.
    #[arg(long, value_name = "NAME", value_delimiter = ',',
        value_parser = PossibleValuesParser::new(advice::NAMES))]
    pub(crate) allow: Vec<String>,

    /// Exit with 1 if there are warnings about a manifest
    ///
    /// Those about running it on this machine (image-ignored, no-command) do not count.
    #[arg(long)]
    pub(crate) deny_warnings: bool,

    /// Show errors only: no warnings, no summary
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// When to use colours
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) color: ColorChoice,
}

impl CheckArgs {
    /// What clap cannot tell by itself.
    fn wrong_usage(&self) -> Option<(ErrorKind, &'static str)> {
        let stdin_count = self.files.iter().filter(|file| input::is_stdin(file)).count();
        if stdin_count > 1 {
            let message = "standard input (-) can be read only once";
            return Some((ErrorKind::ArgumentConflict, message));
        }
        if self.print && self.output == OutputFormat::Json {
            let message = "--print writes YAML to standard output, where --output json writes its report: \
                           use one of them";
            return Some((ErrorKind::ArgumentConflict, message));
        }
        None
    }
}

const SERVE_EXAMPLES: &str = "\
Examples:
  stint serve                             Keep data in your home, listen on 127.0.0.1:6440
  stint serve --in-memory --listen 127.0.0.1:0
                                          Leave nothing behind, take any free port
  stint serve --data-dir ./cluster        Keep everything in ./cluster
  export KUBECONFIG=~/.local/share/stint/kubeconfig; kubectl get ns
                                          Use it from another terminal

Exit codes:
  0    It was stopped by Ctrl-C, SIGTERM or SIGHUP
  2    Wrong usage
  3    It could not start, or failed while it ran
  130  It was stopped at once, by a second signal";

/// A cluster for Jobs on this machine, for kubectl and client libraries
///
/// Starts an API server, the Job controller and a node that runs Pods as processes of this
/// machine, writes a kubeconfig, and runs until it is stopped. What is created stays in the data
/// folder, and Jobs go on where they stood at the next start.
#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct ServeArgs {
    /// The folder that everything is kept in
    ///
    /// Certificates, tokens, the kubeconfig and the store. [default: STINT_DATA_DIR, or else
    /// stint in XDG_DATA_HOME, or else ~/.local/share/stint]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    /// Keep nothing: all is gone when it stops
    ///
    /// Only the kubeconfig is written, because clients need one.
    #[arg(long)]
    pub(crate) in_memory: bool,

    /// The address to listen on; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6440")]
    pub(crate) listen: SocketAddr,

    /// Let other machines connect, if the address is one that they reach
    ///
    /// They still need the kubeconfig's certificates.
    #[arg(long)]
    pub(crate) allow_remote: bool,

    /// A further name or address that clients use for this server; can be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) tls_name: Vec<String>,

    /// Where to write the kubeconfig [default: kubeconfig in the data folder, or in a new
    /// temporary folder with --in-memory]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Turn Kubernetes features off or on: NAME=false,NAME=true
    #[arg(long, value_name = "GATES", value_parser = FeatureGates::parse)]
    pub(crate) feature_gates: Option<FeatureGates>,

    /// Run no Pods: they wait for a node that somebody else plays
    ///
    /// For tests of tools that work on Jobs and Pods.
    #[arg(long)]
    pub(crate) no_node: bool,

    #[command(flatten)]
    pub(crate) jobs: JobArgs,

    #[command(flatten)]
    pub(crate) pods: NodeArgs,

    /// Write down who asks for what, and what came of it
    ///
    /// One JSON object a line, as Kubernetes has them at its audit level Metadata. Beyond 100 MiB
    /// the file makes room for the next one, and is kept as FILE.1 until that is full, too.
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_log: Option<PathBuf>,

    /// How much to tell of what happens inside
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t)]
    pub(crate) log_level: LogLevel,
}

impl ServeArgs {
    /// What clap cannot tell by itself.
    fn wrong_usage(&self) -> Option<(ErrorKind, &'static str)> {
        if self.in_memory && self.data_dir.is_some() {
            let message = "--in-memory keeps nothing, --data-dir says where: use one of them";
            return Some((ErrorKind::ArgumentConflict, message));
        }
        self.jobs.wrong_usage().or_else(|| self.pods.wrong_usage())
    }
}

/// How much is told on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// What is broken
    Error,
    /// What is odd
    Warn,
    /// What a person running it wants to know
    #[default]
    Info,
    /// What a person looking for a fault wants to know
    Debug,
}

/// The forms a report can take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people: each finding with its line and a caret
    #[default]
    Human,
    /// For tools: one JSON object with everything that was found
    Json,
}
