//! The ledger, row by row: a Job in YAML, steps in plain words, and the ops that the
//! ledger must ask for after each of them (`*.yaml` in this folder; `row.rs` has their
//! form).
//!
//! Every op is answered by a small obedient API server (`api.rs`) unless a step says
//! otherwise. `STINT_ROWS_PRINT=1 cargo test -p stint-ledger --test rows -- --nocapture`
//! prints what the rows that do not hold should say if the ledger is right.

mod api;
mod labels;
mod pages;
mod player;
mod print;
mod row;
mod step;

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use player::Player;
use row::Row;

/// A test for each file of rows.
macro_rules! files {
    ($($name:ident),* $(,)?) => {
        /// The files that have a test.
        const FILES: &[&str] = &[$(concat!(stringify!($name), ".yaml")),*];

        $(#[test]
        fn $name() {
            run(concat!(stringify!($name), ".yaml"));
        })*
    };
}

files! {
    backoff, counting, creating, deleting, elastic, end_state, events, failure_policy, gates,
    owners, per_index, replacement, success_policy, suspend, weather, writes,
}

#[test]
fn every_file_of_rows_has_a_test() {
    assert_eq!(row::files(), FILES);
}

/// Plays the rows of a file, and reports all that do not hold.
fn run(file: &str) {
    let mut report = String::new();
    for row in row::read(file) {
        if let Err(difference) = check(&row) {
            writeln!(report, "{}\n{difference}", row.name).unwrap();
        }
    }
    assert!(report.is_empty(), "rows of {file} that do not hold:\n{report}");
}

/// Plays a row, and tells where what comes of its steps is not what it expects.
fn check(row: &Row) -> Result<(), String> {
    let mut player = Player::new(row);
    let (mut actual, mut difference, mut holds) = (String::new(), String::new(), true);
    for exchange in &row.script {
        let played = catch_unwind(AssertUnwindSafe(|| step::play(&mut player, &exchange.step)));
        let is_over = played.is_err();
        let lines = played.unwrap_or_else(|_| vec!["(panics)".to_owned()]);
        for text in [&mut actual, &mut difference] {
            writeln!(text, "    > {}", exchange.step).unwrap();
        }
        lines.iter().for_each(|line| writeln!(actual, "    {line}").unwrap());
        if lines == exchange.expected {
            lines.iter().for_each(|line| writeln!(difference, "    {line}").unwrap());
        } else {
            holds = false;
            exchange.expected.iter().for_each(|line| writeln!(difference, "  - {line}").unwrap());
            lines.iter().for_each(|line| writeln!(difference, "  + {line}").unwrap());
        }
        if is_over {
            break;
        }
    }
    if !holds && std::env::var_os("STINT_ROWS_PRINT").is_some() {
        println!("\n- name: {}\n  script: |\n{actual}", row.name);
    }
    if holds { Ok(()) } else { Err(difference) }
}
