//! Any sequence of writes, compactions and restarts through the server gives lists and watches
//! equal to those of a plain model: a map, and a list of what happened to it.

#[path = "../kit/mod.rs"]
mod kit;
mod model;
mod operation;
mod run;
mod writers;

use proptest::prelude::*;
use proptest::test_runner::Config;

use operation::{Operation, operations, operations_and_restarts};

fn run(operations: &[Operation]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(run::run(operations));
}

proptest! {
    // A case is some 20 requests in memory.
    #![proptest_config(Config { cases: 192, ..Config::default() })]

    #[test]
    fn the_server_is_equal_to_the_model(operations in operations()) {
        run(&operations);
    }
}

proptest! {
    // Files are written and synced: some tenths of a second a case.
    #![proptest_config(Config { cases: 12, ..Config::default() })]

    #[test]
    fn the_server_is_equal_to_the_model_across_restarts(operations in operations_and_restarts()) {
        run(&operations);
    }
}
