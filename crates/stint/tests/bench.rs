//! `stint bench` as a process: each claim on the smallest sizes, and what its JSON has.

mod scratch;

use std::fs;

use scratch::Scratch;
use serde_json::Value;

/// Runs a benchmark on tiny sizes: its report, and its plot.
fn quick(what: &str) -> Value {
    let scratch = Scratch::new();
    let finished = scratch.run(&["bench", what, "--quick", "--json", "--svg", "plots"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let plot = fs::read_to_string(scratch.path().join(format!("plots/{what}.svg")));
    assert!(plot.expect("a plot").contains("<rect x="));
    let report: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    assert_eq!(report["benchmark"], what);
    assert_eq!((&report["warmups"], &report["repetitions"]), (&0.into(), &1.into()));
    let version = report["versions"]["stint"].as_str().expect("a version");
    assert!(version.starts_with(env!("CARGO_PKG_VERSION")), "{version}");
    for field in ["processor", "cores", "memory_bytes", "system", "load_before", "load_after"] {
        assert!(!report["machine"][field].is_null(), "{field}: {report:#}");
    }
    report
}

/// Each row has these figures, each with its middle, its ends and its samples.
fn has_figures(report: &Value, keys: &[&str]) {
    let rows = report["results"].as_array().expect("rows");
    assert!(!rows.is_empty());
    for row in rows {
        assert!(row["who"].is_string() && row["work"].is_object(), "{row:#}");
        for key in keys {
            let figure = &row["figures"][key];
            let [median, least, most] = ["median", "min", "max"].map(|it| figure[it].as_f64());
            assert!(least <= median && median <= most && median.is_some(), "{key}: {row:#}");
            assert_eq!(figure["samples"].as_array().map(Vec::len), Some(1), "{key}: {row:#}");
        }
    }
}

#[test]
fn the_ledger_is_measured() {
    let report = quick("ledger");
    has_figures(&report, &["wall_seconds", "cpu_seconds_per_pod", "peak_bytes", "status_writes"]);
    assert_eq!(report["results"][2]["work"]["at once"], "taken over");
}

#[test]
fn the_embedded_cluster_is_measured() {
    let report = quick("local");
    let keys = ["wall_seconds", "wall_seconds_per_pod", "cpu_seconds", "cpu_seconds_per_pod"];
    has_figures(&report, &keys);
    has_figures(&report, &["peak_bytes", "store_writes_per_pod", "api_calls_per_pod"]);
    // Each Pod is created and bound, and the server counts both as creations.
    let creations = &report["results"][0]["figures"]["calls create pods"]["median"];
    assert_eq!(creations.as_f64(), Some(100.0), "{report:#}");
}

#[test]
fn commands_are_measured_beside_those_of_others() {
    let report = quick("process");
    has_figures(&report, &["wall_seconds", "cpu_seconds", "peak_bytes"]);
    assert_eq!(report["results"][0]["who"], "stint run");
    let rows = report["results"].as_array().expect("rows");
    for peer in ["xargs", "parallel"] {
        let is_there = rows.iter().any(|row| row["who"] == peer);
        let is_noted = report["notes"].to_string().contains(&format!("{peer} is not installed"));
        assert!(is_there != is_noted, "{peer} is measured, or it is said why not: {report:#}");
    }
}

#[test]
fn the_start_is_measured() {
    let report = quick("startup");
    has_figures(&report, &["wall_seconds"]);
    assert_eq!(report["results"].as_array().map(Vec::len), Some(3));
}

/// The row of one who was measured.
fn row<'a>(report: &'a Value, who: &str) -> &'a Value {
    let rows = report["results"].as_array().expect("rows");
    rows.iter().find(|row| row["who"] == who).unwrap_or_else(|| panic!("no {who}: {report:#}"))
}

#[test]
fn controllers_are_measured_on_a_real_cluster() {
    let report = quick("cluster");
    has_figures(&report, &["wall_seconds", "api_calls_per_pod", "apiserver_cpu_seconds"]);
    assert!(report["versions"]["kube-apiserver"].is_string());
    for who in ["stint", "built-in, limits lifted", "built-in, defaults"] {
        let figures = &row(&report, who)["figures"];
        for key in ["cpu_seconds", "peak_bytes", "last_end_to_complete_seconds"] {
            assert!(figures[key]["median"].is_number(), "{who}: {key}: {report:#}");
        }
        assert_eq!(figures["calls post pods"]["median"], 5.0, "{who}: {report:#}");
        assert_eq!(figures["calls patch pods"]["median"], 5.0, "{who}: {report:#}");
    }
    // It does nothing else.
    assert_eq!(row(&report, "floor")["figures"]["api_calls_per_pod"]["median"], 2.0);
    let has_failing = |row: &Value| row["work"]["% failing"] == 50;
    assert!(report["results"].as_array().is_some_and(|rows| rows.iter().any(has_failing)));
}

#[test]
fn latency_is_measured_on_a_real_cluster_and_on_the_embedded_one() {
    let report = quick("latency");
    let keys = ["first_pod_p50_seconds", "first_pod_p99_seconds", "complete_p50_seconds"];
    has_figures(&report, &keys);
    has_figures(&report, &["complete_p99_seconds", "jobs"]);
    for who in ["stint", "built-in, limits lifted", "stint, embedded"] {
        assert_eq!(row(&report, who)["work"]["beside"], "nothing");
    }
    assert_eq!(report["results"][3]["work"]["beside"], "20 indexes");
}

#[test]
fn fairness_is_measured_alone_and_beside_a_large_job() {
    let report = quick("fairness");
    has_figures(&report, &["wall_seconds", "job_p50_seconds", "job_p99_seconds"]);
    assert_eq!(report["results"].as_array().map(Vec::len), Some(6), "{report:#}");
    assert!(row(&report, "beside 20 indexes")["time_ratio"].is_number());
}

#[test]
fn a_table_is_for_people() {
    let scratch = Scratch::new();
    let finished =
        scratch.run(&["bench", "ledger", "--quick", "--indexes", "7", "--parallelism=3"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let shown = finished.stdout;
    assert!(
        shown.contains("\n  indexes  at once  who ") && shown.contains(" CPU per Pod "),
        "{shown}"
    );
    assert!(shown.contains("Machine: ") && shown.contains("Version: stint "), "{shown}");
    assert!(finished.stderr.contains("indexes 7, at once 3: stint, round 1 of 1"));
}

#[test]
fn what_cannot_be_written_is_told() {
    let scratch = Scratch::new();
    scratch.write("plots", "a file");
    let finished = scratch.run(&["bench", "ledger", "--quick", "--indexes=1", "--svg=plots"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(finished.stderr.contains("error: cannot use plots/ledger.svg: "), "{finished:?}");
}
