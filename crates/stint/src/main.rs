//! The command line: reads it and hands over. Rules of any kind live elsewhere.

mod check;
mod cli;
mod color;
mod input;
mod lack;
mod line_index;
mod manifest_yaml;
mod printable;
mod report;
mod report_json;
mod serve;
mod snippet;
mod source;
mod stdout;
mod tally;

use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::Cli::read();
    match &cli.command {
        cli::Command::Check(args) => check::run(args),
        cli::Command::Serve(args) => serve::run(args),
    }
}
