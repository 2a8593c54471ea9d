//! Runs that are stopped before their Jobs have ended.

use rustix::process::Signal;

use crate::kit::{Bench, eventually, indexed, is_anybody_marked};

/// A Pod that does not end when it is asked to.
const STUBBORN: &str = "trap '' TERM; echo ready; while :; do sleep 1; done";

#[test]
fn the_time_can_be_limited() {
    let bench = Bench::new();
    let file = bench.file("job.yaml", &indexed("slow", 1, "", STUBBORN));
    let marker = format!("MARK={}", bench.path("limited"));
    let ended = bench.run(&["--timeout", "1s", "--set", &marker, &file]);
    assert_eq!(ended.code, Some(124), "{ended:?}");
    assert!(ended.stderr.contains("slow: not finished after "), "{}", ended.stderr);
    assert!(!is_anybody_marked(&marker));
}

#[test]
fn an_interrupt_ends_even_pods_that_ignore_it() {
    let bench = Bench::new();
    let file = bench.file("job.yaml", &indexed("slow", 1, "", STUBBORN));
    let marker = format!("MARK={}", bench.path("once"));
    let run = bench.start(&["--set", &marker, &file], "ready");
    assert!(is_anybody_marked(&marker));
    run.signal(Signal::INT);
    let ended = run.end();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(ended.stderr.contains("slow: not finished after "), "{}", ended.stderr);
    assert!(!is_anybody_marked(&marker));
    assert!(bench.left().is_empty(), "{:?}", bench.left());
}

#[test]
fn a_second_interrupt_ends_everything_at_once() {
    let bench = Bench::new();
    let job = indexed("slow", 1, "", STUBBORN);
    let job = job.replace("PeriodSeconds: 1", "PeriodSeconds: 3600");
    let file = bench.file("job.yaml", &job);
    let marker = format!("MARK={}", bench.path("twice"));
    let mut run = bench.start(&["--set", &marker, &file], "ready");
    run.signal(Signal::INT);
    run.wait_for_line("Ctrl-C again");
    // The second may come before anybody waits for it: then it is asked again.
    eventually("it ends", || {
        run.signal(Signal::TERM);
        !is_anybody_marked(&marker)
    });
    assert_eq!(run.end().code, Some(130));
}

#[test]
fn a_run_that_was_stopped_goes_on_in_its_data_folder() {
    let bench = Bench::new();
    // Index 0 is done before it is stopped; index 1 waits for a file that is there later.
    let gate = bench.path("gate");
    let script = format!(
        "[ $JOB_COMPLETION_INDEX = 0 ] || [ -e {gate} ] || {{ echo ready; sleep 3600; }}; echo done"
    );
    let file = bench.file("job.yaml", &indexed("goes-on", 2, "", &script));
    let data = bench.path("data");
    let run = bench.start(&["--data-dir", &data, &file], "ready");
    run.signal(Signal::TERM);
    let ended = run.end();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(ended.stderr.contains("goes on from here\n"), "{}", ended.stderr);
    bench.file("gate", "");
    let ended = bench.run(&["--data-dir", &data, "-o", "json", &file]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("goes on where an earlier run left it"), "{}", ended.stderr);
    let status = &ended.json()["status"];
    assert_eq!((&status["succeeded"], &status["completedIndexes"]), (&2.into(), &"0,1".into()));
}

#[test]
fn what_a_pod_waits_for_in_vain_is_told() {
    let bench = Bench::new();
    let job = indexed("hungry", 1, "", "true");
    let large = format!("{job}        resources: {{requests: {{cpu: 100k}}}}\n");
    let missing = format!("{job}        envFrom: [{{configMapRef: {{name: nowhere}}}}]\n");
    for (job, said) in [(large, "Unschedulable"), (missing, "\"nowhere\" not found")] {
        let ended = bench.run(&["--timeout", "3s", &bench.file("job.yaml", &job)]);
        assert_eq!(ended.code, Some(124), "{ended:?}");
        assert!(ended.stderr.contains("hungry: index 0 waits: "), "{}", ended.stderr);
        assert!(ended.stderr.contains("  waiting    index 0: "), "{}", ended.stderr);
        assert!(ended.stderr.contains(said), "{said}: {}", ended.stderr);
    }
}
