//! The command line: reads it and hands over. Rules of any kind live elsewhere.

mod away;
mod bench;
mod bench_args;
mod build;
mod calls;
mod check;
mod cli;
mod cluster_args;
mod color;
mod controller;
mod controller_args;
mod ending;
mod input;
mod job_args;
mod job_lookup;
mod job_text;
mod kubeconfig;
mod lack;
mod last_lines;
mod line_index;
mod log_lines;
mod logs;
mod logs_args;
mod manifest_yaml;
mod node_args;
mod objects;
mod place;
mod pod_sight;
mod printable;
mod progress;
mod reach;
mod recent;
mod report;
mod report_json;
mod run;
mod run_args;
mod serve;
mod shell_word;
mod signals;
mod snippet;
mod source;
mod spool;
mod status;
mod status_args;
mod stdout;
mod tally;
mod temporary;
mod token_file;
mod words;

use std::process::ExitCode;

use stint_node::{HELPER_ARGUMENT, process_helper};

fn main() -> ExitCode {
    // The process that starts containers is this program, too.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == HELPER_ARGUMENT) {
        process_helper();
    }
    let cli = cli::Cli::read();
    match cli.command {
        cli::Command::Bench(args) => bench::run(&args),
        cli::Command::Check(args) => check::run(&args),
        cli::Command::Controller(args) => controller::run(*args),
        cli::Command::Logs(args) => logs::run(&args),
        cli::Command::Run(args) => run::run(&args),
        cli::Command::Serve(args) => serve::run(&args),
        cli::Command::Status(args) => status::run(&args),
    }
}
