//! Searches of worlds small enough for every test run.

use serde_json::json;
use stint_sim::exhaustive::{Budget, Case, search};
use stint_sim::run::Options;

/// What a search may go through before it is too large for a test.
const MAX_STATES: usize = 30_000;

fn case(name: &'static str, spec: serde_json::Value, budget: Budget) -> Case {
    Case { budget, ..Case::new(name, spec, vec![]) }
}

fn check(case: &Case) {
    let search = search(case, MAX_STATES, &Options::default());
    println!("{}: {} states, {} transitions", case.name, search.states, search.transitions);
    if let Some(run) = search.broken {
        let choices: Vec<String> = run.choices.iter().map(ToString::to_string).collect();
        panic!("{}: {:?}\n{}", case.name, run.result, choices.join("\n"));
    }
    assert!(search.is_complete, "{}: more than {MAX_STATES} states", case.name);
}

#[test]
fn nothing_breaks_in_any_order_of_two_pods() {
    let budget = Budget::calm();
    check(&case("two Pods", json!({"completions": 2, "parallelism": 2}), budget.clone()));
    let indexed = json!({"completionMode": "Indexed", "completions": 2, "parallelism": 2});
    check(&case("two indexes", indexed, budget));
}

#[test]
fn nothing_breaks_when_a_job_of_one_pod_meets_a_crash_or_a_lost_answer() {
    let calm = Budget::calm();
    let spec = || json!({"completions": 1, "parallelism": 1});
    check(&case("one crash", spec(), Budget { crashes: 1, ..calm.clone() }));
    check(&case("one lost answer", spec(), Budget { lost: 1, ..calm.clone() }));
    check(&case("one eviction", spec(), Budget { evictions: 1, ..calm }));
}
