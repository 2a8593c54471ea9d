//! A Pod that writes far more than anybody will read.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::home::{as_everybody, job};
use crate::kit::peak_bytes;

/// A line of 100 bytes, a million times.
const SCRIPT: &str = "\
line=$(printf '%099d' 0)
yes $line | head -n 1000000; echo the last";

/// Five parts of 10 MiB are kept; lines are whole, and have a time in front.
const MAX_LOG_BYTES: u64 = 51 << 20;

/// Far more than a server takes that holds none of the output.
const MAX_BYTES: u64 = 300 << 20;

/// The end of a log is found from its end.
const SOON: Duration = Duration::from_secs(30);

#[test]
fn a_hundred_megabytes_of_output_are_bounded_on_disk_and_in_memory() {
    as_everybody(|home| {
        let (server, kubectl) = home.server();
        kubectl.give(&job(home, "talker", 1, "  backoffLimit: 0\n", SCRIPT), "create -f -");
        let beside = job(home, "beside", 3, "  parallelism: 1\n", "echo beside");
        kubectl.give(&beside, "create -f -");
        kubectl.run("wait --for=condition=complete job/beside --timeout=60s");
        kubectl.run("wait --for=condition=complete job/talker --timeout=240s");
        let logs = home.path("data/node/logs");
        let kept = bytes_below(&logs);
        assert!((10 << 20..MAX_LOG_BYTES).contains(&kept), "{kept} bytes of logs");
        let begun = Instant::now();
        assert_eq!(kubectl.run("logs job/talker --tail=1"), "the last\n");
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
        assert_eq!(kubectl.run("logs -l job-name=beside").lines().count(), 3);
        let peak = peak_bytes(server.pid()).expect("it runs");
        assert!(peak < MAX_BYTES, "{peak} bytes");
        assert!(server.stop().success());
    });
}

/// Prints 700,000 lines of 99 characters as fast as it can. In the log each has some 45 bytes more: of all
/// that, half is kept there.
const TALK: &str = "line=$(printf '%099d' 0); yes $line | head -n 700000";

#[test]
fn a_reader_who_is_late_misses_nothing() {
    as_everybody(|home| {
        let talker = job(home, "talker", 1, "  backoffLimit: 0\n", TALK);
        // With several Jobs the end of each is told.
        let manifest = format!("{talker}---\n{}", job(home, "beside", 1, "", "true"));
        let file = home.file("job.yaml", &manifest);
        let mut command = home.run_command(&["--logs"]);
        let mut child = command.arg(file).spawn().expect("the binary starts");
        let mut said = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let is_end =
            |line: std::io::Result<String>| line.expect("text").contains("talker: Complete in");
        assert!(said.any(is_end), "it ended too early");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let is_whole = |line: &String| line.len() == "[talker/0] ".len() + 99;
        let whole = lines.map(|line| line.expect("text")).filter(is_whole).count();
        assert_eq!(whole, 700_000);
        let rest: Vec<String> = said.map(|line| line.expect("text")).collect();
        assert!(!rest.iter().any(|line| line.contains("left out")), "{rest:?}");
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
        assert!(home.strays().is_empty(), "{:?}", home.strays());
    });
}

#[test]
fn a_follower_who_is_late_misses_nothing() {
    as_everybody(|home| {
        let (server, kubectl) = home.server();
        // It waits until somebody listens.
        let heard = home.path("heard");
        let script =
            format!("echo up; until [ -e {} ]; do sleep 0.1; done; {TALK}", heard.display());
        kubectl.give(&job(home, "talker", 1, "  backoffLimit: 0\n", &script), "create -f -");
        let mut command = home.command(home.program());
        command.args(["logs", "talker", "-f", "--data-dir"]).arg(home.path("data"));
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        // Whether its name stands in front depends on whether it was there already.
        let first = lines.next().expect("a line").expect("text");
        assert!(["up", "[talker/0] up"].contains(&first.as_str()), "{first}");
        home.file("heard", "");
        kubectl.run("wait --for=condition=complete job/talker --timeout=240s");
        let whole = lines.filter(|line| line.as_ref().expect("text").len() >= 99).count();
        assert_eq!(whole, 700_000);
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
        assert!(server.stop().success());
        assert!(home.strays().is_empty(), "{:?}", home.strays());
    });
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("it is there").map(|entry| entry.expect("it is"));
    let bytes = entries.map(|entry| match entry.file_type().expect("it has one").is_dir() {
        true => bytes_below(&entry.path()),
        false => entry.metadata().expect("it is there").len(),
    });
    bytes.sum()
}
