//! What a Pod costs in calls and writes, which no machine changes. A change that makes it dearer is
//! to be seen here, and to be worth it.

use serde_json::Value;
use stint_bench::{Task, work};

const PODS: u32 = 200;

fn measured(task: Task, parallelism: u32) -> Value {
    let line = work(task, PODS, parallelism).expect("it is measured");
    serde_json::from_str(&line).expect("a line of JSON")
}

fn number(sample: &Value, key: &str) -> f64 {
    sample[key].as_f64().unwrap_or_else(|| panic!("no {key}: {sample:#}"))
}

/// Four writes are the least: the Pod is created, bound, said to have ended, and let go of. The server
/// counts the binding as a creation and the status as a patch.
#[test]
fn a_pod_of_the_embedded_cluster_costs_four_calls() {
    let sample = measured(Task::Unhurried, PODS);
    let of_pods = |(key, value): (&String, &Value)| {
        let is_call = key.starts_with("calls ") && key.ends_with(" pods");
        if is_call && key != "calls watch pods" { value.as_f64() } else { None }
    };
    let calls: f64 = sample.as_object().expect("a sample").iter().filter_map(of_pods).sum();
    assert_eq!(calls / f64::from(PODS), 4.0, "{sample:#}");
    // The Job's own statuses, the Events, and what a cluster writes when it starts: how many
    // statuses there are depends on how many Pods end at once, but never is there one for each.
    let others = number(&sample, "store_writes_per_pod") - 4.0;
    assert!((0.0..1.0).contains(&others), "{sample:#}");
}

/// A status counts a whole wave of Pods; the first says that it begins, the last that it is over.
#[test]
fn the_ledger_writes_a_status_for_each_wave_and_two_more() {
    let sample = measured(Task::Ledger, 50);
    assert_eq!(number(&sample, "status_writes"), 6.0, "{sample:#}");
}
