//! `stint bench`: hands over to `stint_bench`, and prints what it has found.

use std::io;
use std::process::ExitCode;

use stint_bench::{
    BenchError, BesidePlan, ClusterPlan, Crowd, LedgerPlan, LocalPlan, ProcessPlan, Report, Runner,
    StartupPlan, Subject, Task,
};
use thiserror::Error;

use crate::bench_args::{BenchArgs, BenchCommand, OutputArgs, SizeArgs};
use crate::build::LONG_VERSION;
use crate::stdout::{self, EXIT_LEFT, has_left};

/// Measures what is asked for.
pub(crate) fn run(args: &BenchArgs) -> ExitCode {
    match measure(&args.what) {
        Ok(()) => ExitCode::SUCCESS,
        Err(FailedBench::Output(error)) if has_left(&error) => ExitCode::from(EXIT_LEFT),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(3)
        }
    }
}

/// Why there is nothing to see.
#[derive(Debug, Error)]
enum FailedBench {
    #[error(transparent)]
    Bench(#[from] BenchError),
    #[error("cannot find this program: {0}")]
    Program(#[source] io::Error),
    #[error("cannot write to standard output: {0}")]
    Output(#[source] io::Error),
}

fn measure(what: &BenchCommand) -> Result<(), FailedBench> {
    let program = std::env::current_exe().map_err(FailedBench::Program)?;
    let subject = Subject { program, version: LONG_VERSION.to_owned() };
    match what {
        BenchCommand::Ledger { size, output } => {
            let mut plan = LedgerPlan::new(output.quick);
            plan.rounds = output.rounds(plan.rounds);
            if let Some(sizes) = sizes(size) {
                (plan.sizes, plan.takeover) = (sizes, None);
            }
            show(&stint_bench::ledger(&subject, &plan)?, output)
        }
        BenchCommand::Local { size, output } => {
            let mut plan = LocalPlan::new(output.quick);
            plan.rounds = output.rounds(plan.rounds);
            replace(&mut plan.indexes, &mut plan.parallelism, size);
            show(&stint_bench::local(&subject, &plan)?, output)
        }
        BenchCommand::Process { size, output } => {
            let mut plan = ProcessPlan::new(output.quick);
            plan.rounds = output.rounds(plan.rounds);
            replace(&mut plan.commands, &mut plan.parallelism, size);
            show(&stint_bench::process(&subject, &plan)?, output)
        }
        BenchCommand::Startup { output } => {
            let mut plan = StartupPlan::new(output.quick);
            plan.rounds = output.rounds(plan.rounds);
            show(&stint_bench::startup(&subject, &plan)?, output)
        }
        BenchCommand::Cluster { indexes, jobs, by, output } => {
            let mut plan = ClusterPlan::new(output.quick);
            plan.rounds = output.rounds(plan.rounds);
            plan.runners = by.runners(plan.runners, &ON_CLUSTERS);
            if !indexes.is_empty() {
                plan.loads = ClusterPlan::sizes(indexes);
            } else if !jobs.is_empty() {
                let is_wanted = |crowd: &Crowd| jobs.iter().any(|name| name == crowd.name());
                let wanted = Crowd::ALL.into_iter().filter(is_wanted);
                plan.loads = wanted.flat_map(Crowd::loads).collect();
            }
            show(&stint_bench::cluster(&subject, &plan)?, output)
        }
        BenchCommand::Latency { by, output } => {
            let mut plan = BesidePlan::new(100, output.quick);
            plan.rounds = output.rounds(plan.rounds);
            plan.runners = by.runners(plan.runners, &OF_JOBS);
            show(&stint_bench::latency(&subject, &plan)?, output)
        }
        BenchCommand::Fairness { by, output } => {
            let mut plan = BesidePlan::new(50, output.quick);
            plan.rounds = output.rounds(plan.rounds);
            plan.runners = by.runners(plan.runners, &OF_JOBS);
            show(&stint_bench::fairness(&subject, &plan)?, output)
        }
        BenchCommand::Worker { task, indexes, parallelism } => {
            let task = Task::ALL.into_iter().find(|it| it.name() == task);
            let task = task.expect("the command line knows no other");
            let line = stint_bench::work(task, *indexes, *parallelism)?;
            print(&format!("{line}\n"))
        }
    }
}

/// Who can be measured on a real cluster.
const ON_CLUSTERS: [Runner; 4] = [Runner::Stint, Runner::Lifted, Runner::Default, Runner::Floor];

/// Who runs Jobs, and not Pods alone.
const OF_JOBS: [Runner; 4] = [Runner::Stint, Runner::Lifted, Runner::Default, Runner::Embedded];

/// The sizes of the ledger's Jobs, if some are asked for.
fn sizes(size: &SizeArgs) -> Option<Vec<(u32, u32)>> {
    let indexes = match (&*size.indexes, size.parallelism) {
        ([], None) => return None,
        ([], Some(_)) => &[100_000],
        (indexes, _) => indexes,
    };
    Some(indexes.iter().map(|&count| (count, size.parallelism.unwrap_or(100))).collect())
}

fn replace(indexes: &mut Vec<u32>, parallelism: &mut u32, size: &SizeArgs) {
    if !size.indexes.is_empty() {
        indexes.clone_from(&size.indexes);
    }
    if let Some(count) = size.parallelism {
        *parallelism = count;
    }
}

fn show(report: &Report, output: &OutputArgs) -> Result<(), FailedBench> {
    if let Some(folder) = &output.svg {
        eprintln!("drawn: {}", report.draw(folder)?.display());
    }
    if output.json {
        return print(&format!("{:#}\n", report.json()));
    }
    print(&report.text())
}

fn print(text: &str) -> Result<(), FailedBench> {
    stdout::write(text).map_err(FailedBench::Output)
}
