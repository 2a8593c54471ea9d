//! Runs of some of the indexes.

use crate::kit::{Bench, indexed};

#[test]
fn only_the_indexes_that_are_asked_for_run() {
    let bench = Bench::new();
    let job = indexed("some", 12, "", "echo ran");
    let file = bench.file("job.yaml", &job);
    let ended = bench.run(&["--logs", "--only-indexes", "7-9,3", &file]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.lines(), ["[some/3] ran", "[some/7] ran", "[some/8] ran", "[some/9] ran"]);
    assert!(ended.stderr.contains("completed  4 of 4: 3,7-9\n"), "{}", ended.stderr);
    assert!(ended.stderr.contains("4 succeeded, 0 failed\n"), "{}", ended.stderr);
    let beyond = bench.run(&["--only-indexes", "12", &file]);
    assert_eq!(beyond.code, Some(2), "{beyond:?}");
    assert!(beyond.stderr.contains("has the indexes 0 to 11"), "{}", beyond.stderr);
    let file = bench.file("job.yaml", &indexed("none", 0, "", "echo ran"));
    let none = bench.run(&["--only-indexes", "0", &file]);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(none.stderr.contains("spec.completions: 0, so that there is no index"), "{none:?}");
}

#[test]
fn what_failed_is_run_again_and_nothing_else() {
    let bench = Bench::new();
    let script = "echo ran; test $JOB_COMPLETION_INDEX != ${BAD:-none}";
    let file = bench.file("job.yaml", &indexed("again", 6, "  backoffLimitPerIndex: 0", script));
    let data = bench.path("data");
    let first = bench.run(&["--data-dir", &data, "--retry-failed", &file]);
    assert_eq!(first.code, Some(2), "{first:?}");
    assert!(!std::fs::exists(&data).expect("it can be looked for"), "a folder was made for it");
    let failed = bench.run(&["--data-dir", &data, "--set", "BAD=4", &file]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.stderr.contains("--retry-failed"), "{}", failed.stderr);
    let again = bench.run(&["--data-dir", &data, "--retry-failed", "--logs", &file]);
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), "[again/4] ran\n"), "{again:?}");
    let over = bench.run(&["--data-dir", &data, "--retry-failed", "-o", "json", &file]);
    assert_eq!(over.code, Some(0), "{over:?}");
    assert_eq!(over.json()["status"]["succeeded"], 6);
    assert!(over.stderr.contains("nothing to run again\n"), "{}", over.stderr);
    // Another manifest is another matter.
    let file =
        bench.file("job.yaml", &indexed("again", 6, "  backoffLimitPerIndex: 0", "echo changed"));
    let changed = bench.run(&["--data-dir", &data, "--retry-failed", &file]);
    let said = "its manifest has changed since: spec.template.spec.containers[0].command[2] was \
                \"echo ran; test $JOB_COMPLETION_INDEX != ${BAD:-none}\" and is \"echo changed\"; \
                leave out --retry-failed";
    assert!(changed.stderr.contains(said), "{}", changed.stderr);
    let file = bench.file("job.yaml", &indexed("again", 8, "", "echo grown"));
    let grown = bench.run(&["--data-dir", &data, "--retry-failed", "--logs", &file]);
    assert_eq!(grown.lines(), ["[again/6] grown", "[again/7] grown"], "{grown:?}");
}

#[test]
fn a_job_that_ended_is_run_anew() {
    let bench = Bench::new();
    let file = bench.file("job.yaml", &indexed("anew", 2, "", "echo ran"));
    let data = bench.path("data");
    for _ in 0..2 {
        let ended = bench.run(&["--data-dir", &data, "--logs", &file]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(ended.lines(), ["[anew/0] ran", "[anew/1] ran"]);
    }
}
