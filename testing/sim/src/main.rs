//! Runs the simulator on many seeds, replays one, or searches small worlds.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use stint_sim::exhaustive::{self, Case};
use stint_sim::invariant::Invariant;
use stint_sim::run::{self, Options, Run};
use stint_sim::shrink::shrink;

const EXAMPLES: &str = "\
Examples:
  cargo run --release -p stint-sim -- --seeds 2000    Try 2,000 fresh seeds
  cargo run --release -p stint-sim -- --seed 42       Replay one, with its trace
  cargo run --release -p stint-sim -- --exhaustive    Search every interleaving of small worlds

Exit codes: 0 nothing is broken; 1 something is, or a search has not seen everything;
2 the arguments are wrong, or what there is to say cannot be written.";

/// The exit code of who has no answer: as clap's for wrong arguments.
const NO_ANSWER: u8 = 2;

/// A run of so many seeds takes weeks; to try none would find nothing wrong.
const MAX_SEEDS: u64 = 1_000_000_000_000;

/// Tries to break the ledger.
#[derive(Debug, Parser)]
#[command(name = "stint-sim", after_help = EXAMPLES)]
struct Args {
    /// How many seeds to try
    #[arg(long, default_value_t = 1_000, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u64).range(1..=MAX_SEEDS))]
    seeds: u64,

    /// The first of them; fresh ones if it is not given
    #[arg(long, value_name = "SEED", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u64).range(..=u64::MAX - MAX_SEEDS))]
    from: Option<u64>,

    /// Replay this seed and show what happens
    #[arg(long, value_name = "SEED", allow_negative_numbers = true,
          conflicts_with_all = ["seeds", "from"])]
    seed: Option<u64>,

    /// With --seed: show the whole run and not the shortest that breaks the same
    #[arg(long, requires = "seed", conflicts_with_all = ["seeds", "from", "exhaustive"])]
    whole: bool,

    /// Search every interleaving of small worlds
    #[arg(long, conflicts_with_all = ["seeds", "from", "seed"])]
    exhaustive: bool,

    /// With --exhaustive: only the world of this name, or those with this in their name (may be
    /// repeated)
    #[arg(long, value_name = "PART", requires = "exhaustive",
          conflicts_with_all = ["seeds", "from", "seed"])]
    world: Vec<String>,

    /// With --exhaustive: stop a search after so many states
    #[arg(long, default_value_t = 5_000_000, value_name = "N", allow_negative_numbers = true,
          requires = "exhaustive", conflicts_with_all = ["seeds", "from", "seed"],
          value_parser = clap::value_parser!(u64).range(2..))]
    max_states: u64,

    /// With --seeds: count what breaks, and do not look for the shortest run that does
    #[arg(long, conflicts_with_all = ["seed", "exhaustive"])]
    no_shrink: bool,

    /// Do not look at this invariant (may be repeated)
    #[arg(long, value_name = "NAME", value_parser = invariant)]
    ignore: Vec<Invariant>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    // A panic of a ledger is reported as a broken invariant, once.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !run::is_catching() {
            report(panic);
        }
    }));
    let options = Options { ignored: args.ignore.iter().copied().collect(), ..Options::default() };
    match args.seed {
        _ if args.exhaustive => {
            let max_states = usize::try_from(args.max_states).unwrap_or(usize::MAX);
            search_all(&args.world, max_states, &options)
        }
        Some(seed) => replay(seed, args.whole, &options),
        None => {
            let from = args.from.unwrap_or_else(fresh_seed);
            try_all(from, args.seeds, !args.no_shrink, &options)
        }
    }
}

fn invariant(name: &str) -> Result<Invariant, String> {
    let names = || Invariant::ALL.map(Invariant::name).join(", ");
    Invariant::parse(name).ok_or_else(|| format!("there are: {}", names()))
}

/// Says a line. Who reads no further, as `head` does, wants no more of it either.
fn say(line: impl Display) {
    if let Err(error) = writeln!(io::stdout(), "{line}") {
        if error.kind() != io::ErrorKind::BrokenPipe {
            eprintln!("stint-sim: cannot write to standard output: {error}");
        }
        std::process::exit(i32::from(NO_ANSWER));
    }
}

fn try_all(from: u64, count: u64, shows: bool, options: &Options) -> ExitCode {
    say(format_args!("seeds {from} to {}", from + count - 1));
    let start = Instant::now();
    let (mut steps, mut ops, mut pods, mut failed) = (0, 0, 0, 0);
    let mut first: BTreeMap<Invariant, (u64, u64)> = BTreeMap::new();
    for seed in from..from + count {
        match run::from_seed(seed, options).result {
            Ok(stats) => {
                steps += stats.steps;
                ops += stats.ops;
                pods += stats.pods;
            }
            Err(broken) => {
                failed += 1;
                let (_, times) = first.entry(broken.invariant).or_insert_with(|| {
                    // At once: whoever has seen enough may stop a long run.
                    say(format_args!("seed {seed} breaks {}", broken.invariant));
                    (seed, 0)
                });
                *times += 1;
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    for (invariant, (seed, count)) in &first {
        say(format_args!("{invariant}: {count} seeds, the first is {seed}"));
        if shows {
            say(told(&shrink(&run::from_seed(*seed, options), options)));
        }
        say(format_args!("  replay with: cargo run --release -p stint-sim -- --seed {seed}"));
    }
    say(format_args!(
        "{steps} steps, {ops} requests, {pods} Pods in {seconds:.1} s ({:.0} steps/s)",
        steps as f64 / seconds
    ));
    say(format_args!("{} passed, {failed} failed", count - failed));
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn replay(seed: u64, is_whole: bool, options: &Options) -> ExitCode {
    let traced = Options { is_traced: true, ..options.clone() };
    let run = run::from_seed(seed, &traced);
    let is_broken = run.result.is_err();
    if is_broken && !is_whole {
        say(told(&shrink(&run, options)));
    } else {
        say(told(&run));
    }
    if is_broken { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// A run as a text: the Job, what happened, and what came of it.
fn told(run: &Run) -> String {
    let mut text = format!("  job {}", run.scenario.spec);
    for line in &run.trace {
        text.push_str("\n  ");
        text.push_str(line);
    }
    match &run.result {
        Ok(stats) => text + &format!("\n  nothing is broken: {stats:?}"),
        Err(broken) => text + &format!("\n  broken: {broken}"),
    }
}

fn search_all(wanted: &[String], max_states: usize, options: &Options) -> ExitCode {
    let worlds = Case::all();
    let means = |part: &str, case: &Case| {
        let is_a_name = worlds.iter().any(|world| world.name == part);
        if is_a_name { case.name == part } else { case.name.contains(part) }
    };
    if let Some(odd) = wanted.iter().find(|part| !worlds.iter().any(|case| means(part, case))) {
        let names: Vec<&str> = worlds.iter().map(|case| case.name).collect();
        let names = names.join("\n  ");
        eprintln!("stint-sim: no world has {odd:?} in its name. There are:\n  {names}");
        return ExitCode::from(NO_ANSWER);
    }
    let is_wanted = |case: &&Case| wanted.is_empty() || wanted.iter().any(|part| means(part, case));
    let cases: Vec<Case> = worlds.iter().filter(is_wanted).flat_map(Case::ladder).collect();
    let next = AtomicUsize::new(0);
    let states = AtomicUsize::new(0);
    let worker = || {
        let mut is_fine = true;
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let start = Instant::now();
            let search = exhaustive::search(case, max_states, options);
            states.fetch_add(search.states, Ordering::Relaxed);
            let seconds = start.elapsed().as_secs_f64();
            let (name, budget) = (case.name, &case.budget);
            let (found, tried) = (search.states, search.transitions);
            let rest = if search.is_complete { "" } else { ", not all" };
            is_fine &= search.is_complete && search.broken.is_none();
            let mut text =
                format!("{name} ({budget}): {found} states, {tried} steps in {seconds:.1} s{rest}");
            if let Some(run) = search.broken {
                text = format!("{text}\n{}", told(&shrink(&run, options)));
            }
            // In one piece: others have something to say as well.
            say(text);
        }
        is_fine
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let is_fine = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, bool>| {
            worker.join().expect("a search does not panic")
        };
        !workers.into_iter().map(join).collect::<Vec<_>>().contains(&false)
    });
    say(format_args!("{} states", states.load(Ordering::Relaxed)));
    if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A seed that nobody has tried; small enough to be typed.
fn fresh_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u64 % 1_000_000_000_000
}
