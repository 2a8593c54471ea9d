//! Runs the simulator on many seeds, or replays one.

use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use stint_sim::world::World;

const EXAMPLES: &str = "\
Examples:
  cargo run --release -p stint-sim -- --seeds 2000    Try 2,000 fresh seeds
  cargo run --release -p stint-sim -- --seed 42       Replay one, with its trace";

/// Tries to break the ledger.
#[derive(Debug, Parser)]
#[command(name = "stint-sim", after_help = EXAMPLES)]
struct Args {
    /// How many seeds to try
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    seeds: u64,

    /// The first of them; fresh ones if it is not given
    #[arg(long, value_name = "SEED")]
    from: Option<u64>,

    /// Replay this seed and show what happens
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "from"])]
    seed: Option<u64>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match args.seed {
        Some(seed) => replay(seed),
        None => try_all(args.from.unwrap_or_else(fresh_seed), args.seeds),
    }
}

fn try_all(from: u64, count: u64) -> ExitCode {
    println!("seeds {from} to {}", from + count - 1);
    let start = Instant::now();
    let (mut steps, mut ops, mut pods, mut failed) = (0, 0, 0, 0);
    for seed in from..from + count {
        match World::new(seed).run() {
            Ok(summary) => {
                steps += summary.steps;
                ops += summary.ops;
                pods += summary.pods;
            }
            Err(broken) => {
                failed += 1;
                eprintln!("seed {seed}: broken: {}\n  {}", broken.invariant, broken.details);
                eprintln!("  replay with: cargo run --release -p stint-sim -- --seed {seed}");
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{steps} steps, {ops} ops, {pods} Pods in {seconds:.1} s ({:.0} steps/s)",
        steps as f64 / seconds
    );
    println!("{} passed, {failed} failed", count - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn replay(seed: u64) -> ExitCode {
    let mut world = World::new(seed);
    let outcome = world.run();
    for line in &world.trace {
        println!("{line}");
    }
    match outcome {
        Ok(summary) => {
            println!("seed {seed}: nothing is broken: {summary:?}");
            ExitCode::SUCCESS
        }
        Err(broken) => {
            println!("seed {seed}: broken: {}\n  {}", broken.invariant, broken.details);
            ExitCode::FAILURE
        }
    }
}

/// A seed that nobody has tried; small enough to be typed.
fn fresh_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u64 % 1_000_000_000_000
}
