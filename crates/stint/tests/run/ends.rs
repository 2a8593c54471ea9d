//! How runs end: exit codes, summaries, objects, and what is left behind.

use crate::kit::{Bench, ended, example, indexed};

#[test]
fn the_blogs_failing_indexes_end_as_the_blog_says() {
    let bench = Bench::new();
    let ended = bench.run(&["-o", "json", &example("execute-all.yaml")]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let status = &ended.json()["status"];
    assert_eq!(status["completedIndexes"], "0,3-7");
    assert_eq!(status["failedIndexes"], "1,2");
    assert_eq!((&status["succeeded"], &status["failed"]), (&6.into(), &4.into()));
    let conditions = status["conditions"].as_array().expect("it has some");
    let failed = conditions.iter().find(|it| it["type"] == "Failed").expect("it failed");
    assert_eq!(failed["reason"], "FailedIndexes");
    for line in [
        "execute-all: Failed after ",
        "FailedIndexes: Job has failed indexes\n",
        "completed  6 of 8: 0,3-7\n",
        "failed     2 indexes: 1,2\n",
        "6 succeeded, 4 failed; 2 retries\n",
        "index 1 failed in container example, 2 times: exit code 1\n    | index 1 fails\n",
    ] {
        assert!(ended.stderr.contains(line), "{line}: {}", ended.stderr);
    }
}

#[test]
fn a_run_that_succeeds_leaves_nothing_behind() {
    let bench = Bench::new();
    let ended = bench.run(&[&example("indexed.yaml")]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("completed  8 of 8: 0-7\n"), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
    assert!(bench.left().is_empty(), "{:?}", bench.left());
}

#[test]
fn the_logs_of_a_run_that_failed_are_kept_and_named() {
    let bench = Bench::new();
    let job = indexed("broken", 2, "  backoffLimit: 0", "echo the reason; exit 7");
    let ended = bench.run(&[&bench.file("job.yaml", &job)]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("in container main: exit code 7"), "{}", ended.stderr);
    assert!(ended.stderr.contains("    | the reason\n"), "{}", ended.stderr);
    let [folder] = &bench.left()[..] else { panic!("{:?}", bench.left()) };
    assert!(ended.stderr.contains(&format!("rm -r {}\n", folder.display())), "{}", ended.stderr);
    let of_pod = std::fs::read_dir(folder.join("logs")).expect("it is there").next();
    let of_pod = of_pod.expect("there is one").expect("it can be read").path();
    let log = std::fs::read_to_string(of_pod.join("main/0.0.log")).expect("it is there");
    assert!(log.contains("the reason"), "{log}");
}

#[test]
fn keep_keeps_the_logs_of_a_run_that_succeeded() {
    let bench = Bench::new();
    let ended = bench.run(&["--keep", &example("hello.yaml")]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let [folder] = &bench.left()[..] else { panic!("{:?}", bench.left()) };
    assert!(folder.join("node/logs").is_dir(), "{}", ended.stderr);
}

#[test]
fn two_hundred_indexes_are_counted_exactly() {
    let bench = Bench::new();
    let job = indexed("many", 200, "", "echo $JOB_COMPLETION_INDEX");
    let file = bench.file("job.yaml", &job);
    let ended = bench.run(&["-o", "json", "--parallelism", "20", &file]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let job = ended.json();
    assert_eq!(job["spec"]["parallelism"], 20);
    assert_eq!(job["status"]["succeeded"], 200);
    assert_eq!(job["status"]["failed"], serde_json::Value::Null);
    assert_eq!(job["status"]["completedIndexes"], "0-199");
    assert!(ended.stderr.contains("200 succeeded, 0 failed\n"), "{}", ended.stderr);
}

#[test]
fn objects_are_printed_as_they_were_asked_for_and_nothing_else() {
    let bench = Bench::new();
    let (hello, env) = (example("hello.yaml"), example("env.yaml"));
    let names = bench.run(&["-o", "name", "--logs", &hello, &env]);
    assert_eq!(names.stdout, "job.batch/hello\njob.batch/env\n");
    assert!(names.stderr.contains("Hello from a Job on hello"), "{}", names.stderr);
    let list = bench.run(&["-o", "json", &hello, &env]).json();
    assert_eq!((&list["kind"], &list["items"][1]["kind"]), (&"List".into(), &"Job".into()));
    let yaml = bench.run(&["-o", "yaml", &hello]).stdout;
    assert!(yaml.starts_with("apiVersion: batch/v1\nkind: Job\n"), "{yaml}");
    assert!(yaml.contains("  succeeded: 1\n"), "{yaml}");
    for printed in [yaml, list.to_string()] {
        assert!(!printed.contains("managedFields"), "{printed}");
    }
}

#[test]
fn what_an_index_wrote_that_failed_is_shown_even_if_its_log_is_gone_by_then() {
    let bench = Bench::new();
    // The second waits until the first has failed, for longer than anybody needs to read its
    // log, and removes that.
    let script = format!(
        "if [ $JOB_COMPLETION_INDEX = 0 ]; then echo the reason; exit 7; fi; \
         sleep 1; until rm -r {}/stint-*/node/logs/default_early-0-*; do sleep 1; done",
        bench.path("tmp")
    );
    let job = indexed("early", 2, "  backoffLimitPerIndex: 0", &script);
    let job = job.replace("parallelism: 8", "parallelism: 1");
    let ended = bench.run(&[&bench.file("job.yaml", &job)]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let said = "index 0 failed in container main: exit code 7\n    | the reason\n";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
}

#[test]
fn every_run_of_a_container_is_shown_and_counted_as_a_retry() {
    let bench = Bench::new();
    let count = bench.path("count");
    let script = format!("echo x >> {count}; n=$(wc -l < {count}); echo run $((n)); test $n -ge 3");
    let job = indexed("again", 1, "", &script).replace("Policy: Never", "Policy: OnFailure");
    let ended = bench.run(&["--logs", &bench.file("job.yaml", &job)]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let runs = "[again/0] run 1\n[again/0] run 2\n[again/0] run 3\n";
    assert_eq!(ended.stdout, runs, "{}", ended.stderr);
    assert!(ended.stderr.contains("1 succeeded, 0 failed; 2 retries\n"), "{}", ended.stderr);
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let bench = Bench::new();
    let full = || std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    for arguments in [["--logs", "-q"], ["-o", "json"]] {
        let mut command = bench.command(&arguments);
        let child = command.arg(example("hello.yaml")).stdout(full()).spawn().expect("it starts");
        let ended = ended(child);
        assert_eq!(ended.code, Some(3), "{ended:?}");
        assert!(ended.stderr.contains("cannot write to standard output: "), "{}", ended.stderr);
    }
}

#[test]
fn output_that_nobody_reads_any_more_is_lost_quietly_but_not_as_a_success() {
    let bench = Bench::new();
    let fails =
        bench.file("fails.yaml", &indexed("fails", 1, "  backoffLimit: 0", "echo a; exit 1"));
    for arguments in [["--logs", "-q"], ["-o", "json"]] {
        for (file, code) in [(&example("hello.yaml"), 141), (&fails, 1)] {
            let mut child = bench.command(&arguments).arg(file).spawn().expect("it starts");
            drop(child.stdout.take());
            let ended = ended(child);
            assert_eq!(ended.code, Some(code), "{ended:?}");
            assert!(!ended.stderr.contains("error: "), "{}", ended.stderr);
        }
    }
    // What Jobs came to says more than that their logs could not be written.
    let full = std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    let child = bench.command(&["--logs", &fails]).stdout(full).spawn().expect("it starts");
    let ended = ended(child);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("cannot write to standard output: "), "{}", ended.stderr);
}

#[test]
fn what_is_asked_for_and_not_held_is_noted_once() {
    let bench = Bench::new();
    let (hello, env) = (example("hello.yaml"), example("env.yaml"));
    let ended = bench.run(&["-o", "name", &hello, &env]);
    assert_eq!(ended.stderr.matches("note: images are not used").count(), 1, "{}", ended.stderr);
    assert_eq!(ended.stdout, "job.batch/hello\njob.batch/env\n");
    let ended = bench.run(&["-q", &hello]);
    assert!(!ended.stderr.contains("note: "), "{}", ended.stderr);
}

#[test]
fn the_time_runs_also_before_the_first_pod() {
    let bench = Bench::new();
    let file = bench.file("job.yaml", &indexed("late", 1, "", "echo ran"));
    let ended = bench.run(&["--logs", "--timeout", "1ms", &file]);
    assert_eq!((ended.code, &*ended.stdout), (Some(124), ""), "{ended:?}");
    let said = "the time of --timeout is up before all Jobs have begun\n";
    assert!(ended.stderr.ends_with(said), "{}", ended.stderr);
    assert!(bench.left().is_empty(), "{:?}", bench.left());
}
