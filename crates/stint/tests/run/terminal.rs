//! What is shown on a terminal.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::kit::{Bench, indexed};

#[test]
fn a_terminal_shows_a_bar_and_the_latest_failure_and_then_the_summary() {
    let bench = Bench::new();
    let script = "echo the reason; test $JOB_COMPLETION_INDEX != 1; code=$?; sleep 1; exit $code";
    let file = bench.file("job.yaml", &indexed("bars", 3, "  backoffLimitPerIndex: 0", script));
    let mut command = bench.command(&["--parallelism", "1", &file]);
    command.env("TERM", "xterm");
    let (code, shown) = on_a_terminal(command, 150, Vec::new());
    assert_eq!(code, Some(1));
    for text in [
        "bars [",
        "0 of 3 done, 1 running, 2 waiting",
        "1 of 3 done, 1 index failed, 1 running",
        "bars: index 1 failed: exit code 1",
        "  | the reason",
        "\u{1b}[1;31mFailed\u{1b}[0m after ",
        "  completed  2 of 3: 0,2\r\n",
    ] {
        assert!(shown.contains(text), "{text:?}: {shown:?}");
    }
}

#[test]
fn a_usual_terminal_shows_all_counts_the_rate_and_the_time_left_and_a_wider_one_more_words() {
    let bench = Bench::new();
    let gate = bench.path("gate");
    let script = format!(
        "case $JOB_COMPLETION_INDEX in 0) sleep 1;; 1) exit 1;; 2) until test -e {gate}; do sleep \
         0.1; done;; esac"
    );
    let file = bench.file("job.yaml", &indexed("bars", 4, "  backoffLimitPerIndex: 0", &script));
    let mut command = bench.command(&["--parallelism", "1", "--timeout", "120s", &file]);
    command.env("TERM", "xterm");
    let few = "1/4, 1 failed, 1 run, 1 wait, ";
    let more = "1 of 4 done, 1 index failed, 1 running, 1 waiting, ";
    let steps: Vec<Step> = vec![
        (few, Box::new(|terminal| resize(terminal, 150))),
        (more, Box::new(move |_| std::fs::write(&gate, "").expect("it is ours"))),
    ];
    let (code, shown) = on_a_terminal(command, 80, steps);
    assert_eq!(code, Some(1), "{shown:?}");
    assert!(shown.contains("bars ["), "{shown:?}");
    for form in [few, more] {
        let told = shown.split(form).nth(1).unwrap_or_else(|| panic!("{form:?}: {shown:?}"));
        let (rate, told) = told.split_once(", ").expect("a rate comes first");
        assert!(rate.ends_with("/s") || rate.ends_with("/min"), "{rate:?}: {shown:?}");
        assert!(told.split(',').next().is_some_and(|it| it.ends_with(" left")), "{shown:?}");
    }
}

#[test]
fn a_terminal_without_movements_or_colours_is_sent_none() {
    let bench = Bench::new();
    let script = "test $JOB_COMPLETION_INDEX != 1";
    let file = bench.file("job.yaml", &indexed("plain", 2, "  backoffLimit: 0", script));
    let rows: [&[(&str, &str)]; 4] = [
        &[("TERM", "dumb")],
        &[],
        &[("TERM", "xterm"), ("NO_COLOR", "1")],
        &[("TERM", "xterm"), ("CLICOLOR", "0")],
    ];
    for variables in rows {
        let mut command = bench.command(&[&file]);
        command.envs(variables.iter().copied());
        let (code, shown) = on_a_terminal(command, 80, Vec::new());
        assert_eq!(code, Some(1), "{variables:?}: {shown:?}");
        assert!(shown.contains("plain: Failed after "), "{variables:?}: {shown:?}");
        assert!(!shown.contains('\u{1b}'), "{variables:?}: {shown:?}");
    }
}

#[test]
fn long_names_that_differ_at_their_end_are_told_apart() {
    let bench = Bench::new();
    let names = [
        "nightly-training-of-the-large-model-fold-1",
        "nightly-training-of-the-large-model-fold-2",
    ];
    let jobs = names.map(|name| indexed(name, 1, "", "sleep 1"));
    let file = bench.file("job.yaml", &jobs.join("---\n"));
    let mut command = bench.command(&[&file]);
    command.env("TERM", "xterm");
    let (code, shown) = on_a_terminal(command, 80, Vec::new());
    assert_eq!(code, Some(0), "{shown:?}");
    for bar in ["night…old-1 [", "night…old-2 ["] {
        assert!(shown.contains(bar), "{bar}: {shown:?}");
    }
}

/// What is done to a terminal once this text has been shown.
type Step = (&'static str, Box<dyn FnOnce(&File)>);

fn resize(terminal: impl AsFd, columns: u16) {
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("it is ours");
}

/// Runs it with a terminal of so many columns as its standard error, and takes these steps one after
/// the other: how it ended, and what it has sent there. Nothing is known of the terminal but what the
/// command says.
fn on_a_terminal(mut command: Command, columns: u16, steps: Vec<Step>) -> (Option<i32>, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are terminals");
    grantpt(&master).expect("it is ours");
    unlockpt(&master).expect("it is ours");
    resize(&master, columns);
    let name = ptsname(&master, Vec::new()).expect("it has one");
    let path = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
    let terminal = File::options().read(true).write(true).open(path).expect("it is ours");
    for name in ["TERM", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        if !command.get_envs().any(|(given, _)| given == name) {
            command.env_remove(name);
        }
    }
    let mut child = command.stderr(terminal).spawn().expect("the binary starts");
    // The terminal is at its end when nobody holds its other side any more.
    drop(command);
    let (mut shown, mut piece) = (Vec::new(), [0; 4096]);
    let mut master = File::from(master);
    let mut steps = steps.into_iter().peekable();
    while let Ok(count @ 1..) = master.read(&mut piece) {
        shown.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&shown);
        if let Some((_, take)) = steps.next_if(|(awaited, _)| text.contains(awaited)) {
            take(&master);
        }
    }
    let code = child.wait().expect("it ends").code();
    (code, String::from_utf8_lossy(&shown).into_owned())
}
