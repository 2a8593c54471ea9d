//! Runs of some of the indexes.

use rustix::process::Signal;

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

#[test]
fn the_logs_of_a_failed_job_go_with_it_when_it_is_run_anew() {
    let bench = Bench::new();
    // The second time, it ends when nothing is left of the first.
    let script = "echo ran; test $OLD || exit 1; while test -e $OLD; do sleep 0.05; done";
    let file = bench.file("job.yaml", &indexed("anew", 1, "  backoffLimit: 0", script));
    let data = bench.path("data");
    let failed = bench.run(&["--data-dir", &data, "--set", "OLD=", &file]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let logs = || {
        let entries = std::fs::read_dir(format!("{data}/node/logs")).expect("it is there");
        let paths = entries.map(|entry| entry.expect("it can be read").path());
        paths.map(|path| path.to_str().expect("it is UTF-8").to_owned()).collect::<Vec<String>>()
    };
    let before = logs();
    assert_eq!(before.len(), 1, "{before:?}");
    let old = format!("OLD={}", before[0]);
    let ended = bench.run(&["--data-dir", &data, "--set", &old, "--timeout", "60s", &file]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(logs().len(), 1, "{:?}", logs());
}

#[test]
fn of_a_job_without_indexes_all_is_run_again_and_that_is_said() {
    let bench = Bench::new();
    let job = indexed("whole", 3, "  backoffLimit: 0", "test $FAILS || echo ran; exit $FAILS")
        .replace("completionMode: Indexed", "completionMode: NonIndexed");
    let file = bench.file("job.yaml", &job);
    let data = bench.path("data");
    let failed = bench.run(&["--data-dir", &data, "--set", "FAILS=1", &file]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let next = format!("next: mend what failed, then stint run --data-dir {data} --set FAILS=1");
    assert!(failed.stderr.contains(&next), "{}", failed.stderr);
    let note = "Job whole had no indexes by which to tell what is done: all of it runs again\n";
    let again =
        bench.run(&["--data-dir", &data, "--retry-failed", "--set", "FAILS=", "--logs", &file]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(again.stdout.lines().count(), 3, "{again:?}");
    assert!(again.stderr.contains(note), "{}", again.stderr);
    // Once it is Complete, nothing is.
    let over = bench.run(&["--data-dir", &data, "--retry-failed", "--set", "FAILS=", &file]);
    assert_eq!(over.code, Some(0), "{over:?}");
    assert!(over.stderr.contains("nothing to run again\n"), "{}", over.stderr);
}

#[test]
fn what_was_left_out_is_not_done_for_a_later_run() {
    let bench = Bench::new();
    let fixed = bench.path("fixed");
    let script =
        format!("echo ran; case $JOB_COMPLETION_INDEX in 1|4) [ -e {fixed} ] || exit 3;; esac");
    let job = indexed("some", 6, "  backoffLimitPerIndex: 0", &script);
    let file = bench.file("job.yaml", &job);
    let data = bench.path("data");
    let ended = bench.run(&["--data-dir", &data, &file]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    bench.file("fixed", "");
    let ended = bench.run(&["--data-dir", &data, "--only-indexes", "1", &file]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // Index 4 has failed, and was left out.
    let ended = bench.run(&["--data-dir", &data, "--retry-failed", "--logs", &file]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "[some/4] ran\n"), "{ended:?}");
    let said = "before     5: 0-3,5: completed by an earlier run\n";
    assert!(ended.stderr.contains(said) && !ended.stderr.contains("left out"), "{}", ended.stderr);
    let ended = bench.run(&["--data-dir", &data, "--retry-failed", &file]);
    assert!(ended.stderr.contains("there is nothing to run again"), "{}", ended.stderr);
    // In a fresh folder nothing is done but what was wanted.
    let data = bench.path("fresh");
    bench.run(&["--data-dir", &data, "--only-indexes", "2-5", &file]);
    let ended = bench.run(&["--data-dir", &data, "--retry-failed", "-o", "json", &file]);
    assert_eq!(ended.json()["status"]["completedIndexes"], "0-5");
    assert!(ended.stderr.contains("  Pods       2 succeeded"), "{}", ended.stderr);
}

#[test]
fn some_indexes_that_were_stopped_go_on_and_the_others_are_not_said_to_be_done() {
    let bench = Bench::new();
    let gate = bench.path("gate");
    let script = format!(
        "[ $JOB_COMPLETION_INDEX = 0 ] || [ -e {gate} ] || {{ echo ready; sleep 3600; }}; echo ran"
    );
    let job = indexed("some", 4, "", &script).replace("parallelism: 8", "parallelism: 1");
    let file = bench.file("job.yaml", &job);
    for (folder, again) in [("same", &["--only-indexes", "0,1"][..]), ("plain", &[])] {
        let _ = std::fs::remove_file(&gate);
        let data = bench.path(folder);
        let run = bench.start(&["--data-dir", &data, "--only-indexes", "0,1", &file], "ready");
        run.signal(Signal::TERM);
        assert_eq!(run.end().code, Some(130));
        bench.file("gate", "");
        let other = bench.run(&["--data-dir", &data, "--only-indexes", "1,2", &file]);
        assert_eq!(other.code, Some(2), "{other:?}");
        // Whether index 0 was counted before it was stopped nobody knows.
        let said = ["goes on with index 1: leave out", "goes on with the indexes 0,1: leave out"];
        assert!(said.iter().any(|said| other.stderr.contains(said)), "{}", other.stderr);
        let all = [&["--data-dir", &data, "--logs"][..], again, &[&file]].concat();
        let ended = bench.run(&all);
        assert_eq!((ended.code, &*ended.stdout), (Some(0), "[some/1] ran\n"), "{ended:?}");
        for said in ["completed  2 of 2: 0,1\n", "left out   2: 2,3:", "2 succeeded, 0 failed\n"] {
            assert!(ended.stderr.contains(said), "{said}: {}", ended.stderr);
        }
        let note =
            "without the indexes 2,3, as --only-indexes had it: --retry-failed runs the rest";
        assert_eq!(ended.stderr.contains(note), again.is_empty(), "{}", ended.stderr);
        let rest = bench.run(&["--data-dir", &data, "--logs", "--retry-failed", &file]);
        assert_eq!(rest.lines(), ["[some/2] ran", "[some/3] ran"], "{rest:?}");
    }
}
