//! The simulator as a process: what it refuses, and what becomes of it when nobody reads.

use std::io;
use std::process::{Command, Output, Stdio};

fn sim(args: &[&str], stdout: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stint-sim"));
    command.args(args).stdout(stdout).output().expect("the simulator runs")
}

/// Runs it, and returns its exit code and what it says on each stream.
fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let output = sim(args, Stdio::piped());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn arguments_that_would_try_nothing_are_refused() {
    let wrong: &[&[&str]] = &[
        &["--seeds", "0"],
        &["--seeds", "-1"],
        &["--seeds", "many"],
        &["--seeds", "18446744073709551616"],
        &["--from", "18446744073709551615", "--seeds", "1"],
        &["--seed", "-1"],
        &["--seed", "1", "--seeds", "2"],
        &["--seed", "1", "--no-shrink"],
        &["--whole"],
        &["--seeds", "1", "--whole"],
        &["--seeds", "1", "--max-states", "9"],
        &["--seeds", "1", "--world", "scale-down"],
        &["--exhaustive", "--seed", "1"],
        &["--exhaustive", "--max-states", "0"],
        &["--seeds", "1", "--ignore", "nothing"],
        &["4711"],
    ];
    for args in wrong {
        let (code, stdout, stderr) = run(args);
        assert_eq!(code, Some(2), "{args:?}: {stdout}{stderr}");
        assert!(stdout.is_empty() && stderr.starts_with("error: "), "{args:?}: {stdout}{stderr}");
    }
}

#[test]
fn a_world_that_does_not_exist_is_refused_beside_one_that_does() {
    let args = ["--exhaustive", "--world", "scale-down", "--world", "scale-up"];
    let (code, stdout, stderr) = run(&args);
    assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
    assert!(stderr.contains("\"scale-up\"") && stderr.contains("\n  scale-down\n"), "{stderr}");
}

#[test]
fn the_name_of_a_world_means_no_other_that_contains_it() {
    let (code, stdout, _) = run(&["--exhaustive", "--world", "Indexed, 2", "--max-states", "2"]);
    assert_eq!(code, Some(1), "a search that is cut short has not seen everything: {stdout}");
    let searches = stdout.lines().filter(|line| line.starts_with("Indexed, 2 (")).count();
    assert_eq!(searches, 4, "{stdout}");
    assert!(!stdout.contains("NonIndexed"), "{stdout}");
}

#[test]
fn the_last_seeds_there_are_can_be_tried() {
    let (code, stdout, _) = run(&["--from", "18446743073709551615", "--seeds", "2"]);
    assert_eq!(code, Some(0), "{stdout}");
    assert!(stdout.ends_with("2 passed, 0 failed\n"), "{stdout}");
    assert_eq!(run(&["--seed", "18446744073709551615"]).0, Some(0));
}

#[test]
fn who_is_not_read_stops_without_a_noise() {
    let modes: [&[&str]; 3] =
        [&["--seeds", "3"], &["--seed", "3"], &["--exhaustive", "--max-states", "9"]];
    for args in modes {
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let output = sim(args, writer.into());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*stderr), (Some(2), ""), "{args:?}");
    }
}
