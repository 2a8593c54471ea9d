//! The command line: reads it and hands over. Rules of any kind live elsewhere.

mod check;
mod cli;
mod color;
mod input;
mod job_args;
mod lack;
mod line_index;
mod manifest_yaml;
mod node_args;
mod place;
mod printable;
mod report;
mod report_json;
mod run;
mod run_args;
mod serve;
mod snippet;
mod source;
mod stdout;
mod tally;

use std::process::ExitCode;

use stint_node::{HELPER_ARGUMENT, process_helper};

fn main() -> ExitCode {
    // The process that starts containers is this program, too.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == HELPER_ARGUMENT) {
        process_helper();
    }
    let cli = cli::Cli::read();
    match &cli.command {
        cli::Command::Check(args) => check::run(args),
        cli::Command::Run(args) => run::run(args),
        cli::Command::Serve(args) => serve::run(args),
    }
}
