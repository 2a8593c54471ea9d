//! Runs the suites on real clusters.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use stint_cluster::attempt::keep_panics;
use stint_cluster::cluster::Options;
use stint_cluster::elsewhere::ELSEWHERE;
use stint_cluster::faults::Weather;
use stint_cluster::foreign::Crowd;
use stint_cluster::random::Seeds;
use stint_cluster::report::Report;
use stint_cluster::stint::Build;
use stint_cluster::suite::{self, Suite};
use tokio::signal::unix::{SignalKind, signal};

const EXAMPLES: &str = "\
Examples:
  testing/cluster/run                        Everything, on Kubernetes 1.36
  testing/cluster/run plays/retried          The scenarios with this in their name
  testing/cluster/run --kubernetes 1.34      On an older one; 1.37 is a newer one
  testing/cluster/run random --seeds 300     More Jobs by chance, from fresh seeds
  testing/cluster/run random --seed 4711     One of them again

Exit codes: 0 everything is right; 1 something is not; 2 the arguments are wrong, or there is no
cluster.";

/// The exit code of who has no answer: as clap's for wrong arguments.
const NO_ANSWER: u8 = 2;

/// Runs Jobs on real clusters, by stint and by the built-in controller.
#[derive(Debug, Parser)]
#[command(name = "testing/cluster/run", after_help = EXAMPLES)]
struct Args {
    /// Only scenarios with one of these in their names
    filter: Vec<String>,

    /// The version of Kubernetes, such as 1.34 or 1.37; 1.36 if it is not given
    #[arg(long, value_name = "VERSION")]
    kubernetes: Option<String>,

    /// Run this program as stint, and not the library within this process
    #[arg(long, value_name = "PATH")]
    stint: Option<PathBuf>,

    #[command(flatten)]
    weather: Weather,

    #[command(flatten)]
    crowd: Crowd,

    /// Keep the logs of the clusters, also if nothing fails
    #[arg(long)]
    keep: bool,

    /// How many fresh seeds the random differential is given
    #[arg(long, value_name = "COUNT", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,

    /// Give the random differential this seed alone
    #[arg(long, value_name = "SEED", conflicts_with = "seeds")]
    seed: Option<u64>,

    /// Only name the scenarios
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let suite = Suite {
        filters: args.filter,
        options: Options { version: args.kubernetes, ..Options::default() },
        build: args.stint.map_or(Build::Library, Build::Program),
        seeds: args.seed.map_or(Seeds::Fresh(args.seeds), Seeds::One),
        weather: args.weather,
        crowd: args.crowd,
        keeps_logs: args.keep,
    };
    let names: Vec<String> = suite::names().into_iter().filter(|name| suite.wants(name)).collect();
    if names.is_empty() {
        eprintln!("no scenario has that in its name; --list names all of them");
        return ExitCode::from(NO_ANSWER);
    }
    if args.list {
        names.iter().for_each(|name| println!("{name}"));
        println!("\nOn the embedded server alone (cargo test -p stint-controller):");
        ELSEWHERE.iter().for_each(|(what, why)| println!("  {what}: {why}"));
        return ExitCode::SUCCESS;
    }
    keep_panics();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime").block_on(run(&suite))
}

async fn run(suite: &Suite) -> ExitCode {
    let (began, mut report) = (Instant::now(), Report::default());
    let mut terminate = signal(SignalKind::terminate()).expect("signals can be listened to");
    let result = tokio::select! {
        result = suite.run(&mut report) => result,
        _ = terminate.recv() => {
            eprintln!("stopped");
            return ExitCode::FAILURE;
        }
        _ = tokio::signal::ctrl_c() => {
            eprintln!("stopped");
            return ExitCode::FAILURE;
        }
    };
    report.conclude(began.elapsed());
    match (result, report.failed()) {
        (Err(error), _) => {
            eprintln!("{error}");
            ExitCode::from(NO_ANSWER)
        }
        (Ok(()), 0) => ExitCode::SUCCESS,
        (Ok(()), _) => ExitCode::FAILURE,
    }
}
