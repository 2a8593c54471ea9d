//! The command as a process: what it does not begin.

use std::process::Command;

/// Runs it, and returns its exit code and what it says on each stream.
fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_stint-breakages")).args(args).output();
    let output = output.expect("the command runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_name_that_no_breakage_has_is_refused_with_those_that_there_are() {
    for odd in ["no such thing", "--seeds", "-1"] {
        let (code, stdout, stderr) = run(&["finalizer", odd]);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{odd}: {stderr}");
        assert!(stderr.contains(&format!("{odd:?}")), "{stderr}");
        assert!(stderr.contains("\n  an ignored failure is counted\n"), "{stderr}");
    }
}

#[test]
fn help_is_no_mistake() {
    for flag in ["--help", "-h"] {
        let (code, stdout, stderr) = run(&[flag]);
        assert_eq!((code, stderr.as_str()), (Some(0), ""));
        assert!(stdout.contains("Usage: "), "{stdout}");
    }
}
