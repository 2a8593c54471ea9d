//! Runs that are stopped before their Jobs have ended.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command};

use rustix::io::ioctl_fionread;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::kit::{Bench, eventually, indexed, is_anybody_marked};

/// A Pod that does not end when it is asked to.
const STUBBORN: &str = "trap '' TERM; echo ready; while :; do sleep 1; done";

#[test]
fn the_time_can_be_limited() {
    let bench = Bench::new();
    let file = bench.file("job.yaml", &indexed("slow", 1, "", STUBBORN));
    let marker = format!("MARK={}", bench.path("limited"));
    let ended = bench.run(&["--timeout", "8s", "--set", &marker, "-o", "json", &file]);
    assert_eq!(ended.code, Some(124), "{ended:?}");
    assert!(ended.stderr.contains("slow: not finished after "), "{}", ended.stderr);
    assert!(!is_anybody_marked(&marker));
    let next = format!("-o json {file} runs what is left; give it a longer --timeout\n");
    assert!(ended.stderr.contains("next: stint run --only-indexes 0 "), "{}", ended.stderr);
    assert!(ended.stderr.contains(&next), "{}", ended.stderr);
    // Nothing of it runs any more.
    let status = &ended.json()["status"];
    assert!(status["active"].is_null() && status["ready"] == 0, "{status}");
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
    assert!(ended.stderr.contains("next: stint run --only-indexes 0 "), "{}", ended.stderr);
    assert!(ended.stderr.contains(" runs what is left\n"), "{}", ended.stderr);
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
    // It has no retry to lose: that it was stopped is not its failure.
    let job = indexed("goes-on", 2, "  backoffLimitPerIndex: 0", &script);
    let job = job.replace("parallelism: 8", "parallelism: 1");
    let file = bench.file("job.yaml", &job);
    let data = bench.path("data");
    let run = bench.start(&["--data-dir", &data, &file], "ready");
    run.signal(Signal::TERM);
    let ended = run.end();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(ended.stderr.contains("goes on from here\n"), "{}", ended.stderr);
    let stint = env!("CARGO_BIN_EXE_stint");
    let shown = Command::new(stint).args(["status", "-o", "json", "--data-dir", &data]).output();
    let shown: Value = serde_json::from_slice(&shown.expect("it runs").stdout).expect("JSON");
    assert!(shown["items"][0]["status"]["active"].is_null(), "{shown}");
    bench.file("gate", "");
    let ended = bench.run(&["--data-dir", &data, "--logs", &file]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("goes on where an earlier run left it"), "{}", ended.stderr);
    // What the earlier run has told is not told again, and what it stopped did not fail.
    assert_eq!(ended.stdout, "[goes-on/1] done\n", "{}", ended.stderr);
    assert!(!ended.stderr.contains("failed:"), "{}", ended.stderr);
    assert!(ended.stderr.contains("2 succeeded, 0 failed\n"), "{}", ended.stderr);
    let ended = bench.run(&["--data-dir", &data, "--retry-failed", "-o", "json", &file]);
    let status = &ended.json()["status"];
    assert_eq!((&status["succeeded"], &status["completedIndexes"]), (&2.into(), &"0,1".into()));
    assert!(status["failed"].is_null(), "{status}");
}

#[test]
fn a_manifest_may_change_before_a_run_goes_on_where_a_job_may() {
    let bench = Bench::new();
    let gate = bench.path("gate");
    let script = format!("[ -e {gate} ] || {{ echo ready; sleep 3600; }}");
    let job = indexed("changes", 2, "", &script);
    let file = bench.file("job.yaml", &job);
    let data = bench.path("data");
    let run = bench.start(&["--data-dir", &data, &file], "ready");
    run.signal(Signal::TERM);
    assert_eq!(run.end().code, Some(130));
    bench.file("gate", "");
    // The one may be changed, the other not.
    let changed = job.replace("sleep 3600", "sleep 1").replace("parallelism: 8", "parallelism: 3");
    bench.file("job.yaml", &changed);
    let refused = bench.run(&["--data-dir", &data, &file]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    for said in [
        "unfinished by an earlier run",
        "on the way: spec.template.spec.containers[0].command[2] was \"[ -e ",
        "sleep 3600; }\" and is \"[ -e ",
        "sleep 1; }\"; go on",
        "--data-dir",
    ] {
        assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
    }
    bench.file("job.yaml", &job.replace("parallelism: 8", "parallelism: 1"));
    let ended = bench.run(&["--data-dir", &data, "-o", "json", &file]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.json()["spec"]["parallelism"], 1);
    assert!(ended.stderr.contains("with what its manifest says now\n"), "{}", ended.stderr);
}

#[test]
fn what_a_stop_has_ended_can_be_counted_as_kubernetes_does() {
    let bench = Bench::new();
    let job = indexed("counts", 1, "  backoffLimitPerIndex: 0", "echo ready; sleep 3600");
    let file = bench.file("job.yaml", &job);
    let data = bench.path("data");
    let run = bench.start(&["--data-dir", &data, "--count-interrupted-pods", &file], "ready");
    run.signal(Signal::TERM);
    assert_eq!(run.end().code, Some(130));
    let ended = bench.run(&["--data-dir", &data, "--count-interrupted-pods", "-o", "json", &file]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.json()["status"]["failedIndexes"], "0");
}

#[test]
fn what_a_pod_waits_for_in_vain_is_told() {
    let bench = Bench::new();
    let job = indexed("hungry", 1, "", "true");
    let crowd = indexed("hungry", 2, "", "sleep 60");
    let file = "hostPath: {path: /nowhere/at/all, type: File}";
    let volume = format!("{job}      volumes: [{{name: v, {file}}}]\n");
    // Of two Pods that are made at once either may be there first.
    let rows = [(crowd, &[0, 1][..], "Unschedulable"), (volume, &[0], "FailedMount")];
    for (job, indexes, said) in rows {
        let file = bench.file("job.yaml", &job);
        let ended = bench.run(&["--timeout", "10s", "--max-pods", "1", &file]);
        assert_eq!(ended.code, Some(124), "{ended:?}");
        let is_told =
            |index: &&i32| ended.stderr.contains(&format!("hungry: index {index} waits: "));
        let told: Vec<&i32> = indexes.iter().filter(is_told).collect();
        let [index] = told[..] else { panic!("{told:?}: {}", ended.stderr) };
        assert!(
            ended.stderr.contains(&format!("  waiting    index {index}: ")),
            "{}",
            ended.stderr
        );
        assert!(ended.stderr.contains(said), "{said}: {}", ended.stderr);
    }
}

/// A run whose standard output nobody reads. It is gone with the test.
struct Unread {
    child: Child,
}

impl Unread {
    /// Starts it, and waits until its pipe is full: what is in it does not change any more.
    fn start(bench: &Bench, arguments: &[&str]) -> Self {
        let child = bench.command(arguments).spawn().expect("the binary starts");
        let run = Unread { child };
        let pipe = run.child.stdout.as_ref().expect("it is piped");
        let (mut last, mut times) = (0, 0);
        eventually("its output is full", || {
            let count = ioctl_fionread(pipe).expect("it is a pipe");
            times = if count == last { times + 1 } else { 0 };
            last = count;
            count >= 30_000 && times >= 20
        });
        run
    }

    fn interrupt(&self) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::INT).expect("it runs, or has ended just now");
    }

    /// Waits until it has ended: its exit code.
    fn code(&mut self, meanwhile: impl Fn(&Self)) -> Option<i32> {
        let mut status = None;
        eventually("it ends", || {
            status = self.child.try_wait().expect("it can be asked");
            if status.is_none() {
                meanwhile(self);
            }
            status.is_some()
        });
        status.and_then(|status| status.code())
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_time_is_limited_even_if_nobody_reads_the_logs() {
    let bench = Bench::new();
    let file = bench.file("job.yaml", &indexed("loud", 1, "", "yes $(printf '%099d' 0)"));
    let mut run = Unread::start(&bench, &["--logs", "--timeout", "8s", &file]);
    assert_eq!(run.code(|_| ()), Some(124));
    assert!(bench.left().len() <= 1, "{:?}", bench.left());
}

#[test]
fn interrupts_are_heard_even_if_nobody_reads_the_logs() {
    let bench = Bench::new();
    let script = "trap '' TERM; while :; do echo 0123456789012345678901234567890123456789; done";
    let job = indexed("loud", 1, "", script);
    let file = bench.file("job.yaml", &job.replace("PeriodSeconds: 1", "PeriodSeconds: 3600"));
    let marker = format!("MARK={}", bench.path("unread"));
    let mut run = Unread::start(&bench, &["--logs", "--set", &marker, &file]);
    assert_eq!(run.code(Unread::interrupt), Some(130));
    eventually("its Pods are gone", || !is_anybody_marked(&marker));
    assert!(bench.left().is_empty(), "{:?}", bench.left());
}

#[test]
fn an_interrupt_after_the_end_of_the_jobs_does_not_change_how_they_ended() {
    let bench = Bench::new();
    // Both have ended, and what they have printed is not read.
    let script = "yes $(printf '%099d' 0) | head -n 2000";
    let [one, two] = ["one", "two"].map(|name| indexed(name, 1, "", script));
    let file = bench.file("job.yaml", &format!("{one}---\n{two}"));
    let mut run = Unread::start(&bench, &["--logs", &file]);
    let mut stderr = BufReader::new(run.child.stderr.take().expect("it is piped")).lines();
    for _ in 0..2 {
        let is_end = |line: &str| line.contains(": Complete in ");
        assert!(stderr.any(|line| is_end(&line.expect("it is text"))), "it ended too early");
    }
    assert_eq!(run.code(Unread::interrupt), Some(0));
    assert!(bench.left().is_empty(), "{:?}", bench.left());
}

#[test]
fn nothing_is_left_by_a_second_interrupt_while_pods_write() {
    let bench = Bench::new();
    let script = "trap '' TERM; echo ready; i=0; \
                  while :; do i=$((i+1)); mkdir -p /scratch/$((i%50)); echo $i > /scratch/$((i%50))/$i; done";
    let job = indexed("writers", 6, "", script).replace("PeriodSeconds: 1", "PeriodSeconds: 3600")
        + "        volumeMounts: [{name: scratch, mountPath: /scratch}]
      volumes: [{name: scratch, emptyDir: {}}]
";
    let file = bench.file("job.yaml", &job);
    let marker = format!("MARK={}", bench.path("writers"));
    let mut run = bench.start(&["--set", &marker, &file], "ready");
    run.signal(Signal::INT);
    run.wait_for_line("Ctrl-C again");
    run.signal(Signal::TERM);
    let ended = run.end();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(!is_anybody_marked(&marker));
    assert!(bench.left().is_empty(), "{:?}", bench.left());
}

#[test]
fn a_signal_that_was_ignored_from_the_start_stays_so() {
    let bench = Bench::new();
    let gate = bench.path("gate");
    let script = format!("echo ready; until [ -e {gate} ]; do sleep 0.1; done");
    let file = bench.file("job.yaml", &indexed("nohup", 1, "", &script));
    let run = bench.start_ignoring("HUP INT", &[&file], "ready");
    run.signal(Signal::HUP);
    run.signal(Signal::INT);
    bench.file("gate", "");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let run = bench.start_ignoring(
        "USR1",
        &[&bench.file("job.yaml", &indexed("hung-up", 1, "", STUBBORN))],
        "ready",
    );
    run.signal(Signal::HUP);
    assert_eq!(run.end().code, Some(130));
}

/// Five parts of 10 MiB are kept of a log that nobody reads.
const MAX_LOG_BYTES: u64 = 51 << 20;

#[test]
fn nobody_is_waited_for_who_would_read_what_other_jobs_of_the_folder_print() {
    let bench = Bench::new();
    let (gate, over) = (bench.path("gate"), bench.path("over"));
    // Twice as much as is kept.
    let script = format!(
        "[ -e {gate} ] || {{ echo ready; sleep 3600; }}; yes $(printf '%099d' 0) | \
         head -n 700000; : > {over}"
    );
    let other = bench.file("other.yaml", &indexed("other", 1, "", &script));
    let data = bench.path("data");
    let run = bench.start(&["--data-dir", &data, &other], "ready");
    run.signal(Signal::TERM);
    assert_eq!(run.end().code, Some(130));
    bench.file("gate", "");
    let script = format!("until [ -e {over} ]; do sleep 0.05; done; echo mine");
    let mine = bench.file("mine.yaml", &indexed("mine", 1, "", &script));
    let ended = bench.run(&["--data-dir", &data, "--logs", "--timeout", "10m", &mine]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "[mine/0] mine\n"), "{}", ended.stderr);
    let kept = bytes_below(Path::new(&format!("{data}/node/logs")));
    assert!((10 << 20..MAX_LOG_BYTES).contains(&kept), "{kept} bytes of logs");
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("it is there").map(|it| it.expect("it is read"));
    let bytes = entries.map(|entry| match entry.metadata().expect("it is there") {
        found if found.is_dir() => bytes_below(&entry.path()),
        found => found.len(),
    });
    bytes.sum()
}
