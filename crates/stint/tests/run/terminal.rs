//! What is shown on a terminal.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::emulator::{Emulator, Narrowed};
use crate::kit::{Bench, indexed};

#[test]
fn a_terminal_shows_a_bar_and_the_latest_failure_and_then_the_summary() {
    let bench = Bench::new();
    let script = "echo the reason; test $JOB_COMPLETION_INDEX != 1; code=$?; sleep 1; exit $code";
    let file = bench.file("job.yaml", &indexed("bars", 3, "  backoffLimitPerIndex: 0", script));
    let mut command = bench.command(&["--parallelism", "1", &file]);
    command.env("TERM", "xterm");
    let (code, shown, _) = on_a_terminal(command, 150, Vec::new());
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
        (few, Box::new(|window| window.resize(150))),
        (more, Box::new(move |_| std::fs::write(&gate, "").expect("it is ours"))),
    ];
    let (code, shown, _) = on_a_terminal(command, 80, steps);
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
        let (code, shown, _) = on_a_terminal(command, 80, Vec::new());
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
    let (code, shown, _) = on_a_terminal(command, 80, Vec::new());
    assert_eq!(code, Some(0), "{shown:?}");
    for bar in ["night…old-1 [", "night…old-2 ["] {
        assert!(shown.contains(bar), "{bar}: {shown:?}");
    }
}

#[test]
fn nothing_stays_behind_of_what_was_shown_when_the_terminal_is_resized() {
    let bench = Bench::new();
    let gate = bench.path("gate");
    let script = format!(
        "case $JOB_COMPLETION_INDEX in 1) echo the reason; exit 1;; *) until test -e {gate}; do \
         sleep 0.1; done;; esac"
    );
    let jobs = ["bars", "more"]
        .map(|name| indexed(name, 3, "  backoffLimitPerIndex: 0", &script))
        .join("---\n");
    let file = bench.file("job.yaml", &jobs);
    let mut command = bench.command(&["--timeout", "120s", &file]);
    command.env("TERM", "xterm");
    let wide = "bars [                ] 0 of 3 done, 1 index failed, 2 running";
    let steps: Vec<Step> = vec![
        ("  | the reason", Box::new(|_| {})),
        (wide, Box::new(|window| window.resize(70))),
        ("bars [     ] 0/3, 1 failed, 2 run", Box::new(|window| window.check().resize(33))),
        ("bars 0/3, 1 failed, 2 run", Box::new(|window| window.check().resize(110))),
        (
            "bars [          ] 0/3, 1 failed, 2 run",
            Box::new(move |window| {
                window.check();
                std::fs::write(&gate, "").expect("it is ours");
            }),
        ),
    ];
    let (code, shown, window) = on_a_terminal(command, 150, steps);
    assert_eq!(code, Some(1), "{shown:?}");
    for screen in &window.screens {
        let lines = screen.lines();
        let summary = lines.iter().position(|line| line.starts_with("bars: Failed after "));
        // Above it is what was said before there were bars.
        let before = &lines[..summary.unwrap_or_else(|| panic!("{lines:#?}"))];
        assert!(matches!(before, [note] if note.starts_with("note: ")), "{lines:#?}");
    }
}

#[test]
fn what_containers_print_stands_above_the_bars_whole() {
    let bench = Bench::new();
    let script =
        "for line in one two three; do echo $line of $JOB_COMPLETION_INDEX; sleep 0.3; done";
    let file = bench.file("job.yaml", &indexed("loud", 2, "", script));
    let mut command = bench.command(&["--logs", "-o", "name", &file]);
    command.env("TERM", "xterm");
    let (code, shown, window) = on_a_terminal(command, 80, Vec::new());
    assert_eq!(code, Some(0), "{shown:?}");
    assert!(shown.contains("loud ["), "{shown:?}");
    for screen in &window.screens {
        let lines = screen.lines();
        let summary = lines.iter().position(|line| line.starts_with("loud: Complete in "));
        let [note, printed @ ..] = &lines[..summary.unwrap_or_else(|| panic!("{lines:#?}"))] else {
            panic!("{lines:#?}");
        };
        assert!(note.starts_with("note: "), "{lines:#?}");
        let mut printed: Vec<&str> = printed.iter().map(String::as_str).collect();
        printed.sort_unstable();
        let expected = ["one", "three", "two"];
        let expected = ["0", "1"]
            .map(|index| expected.map(|line| format!("[loud/{index}] {line} of {index}")))
            .concat();
        assert_eq!(printed, expected, "{lines:#?}");
    }
}

/// What is done to a terminal once this text has been shown.
type Step = (&'static str, Box<dyn FnOnce(&mut Window)>);

/// A terminal, and what people see there.
struct Window {
    terminal: File,
    screens: [Emulator; 2],
}

impl Window {
    fn resize(&mut self, columns: u16) {
        self.screens.iter_mut().for_each(|screen| screen.resize(columns));
        resize(&self.terminal, columns);
    }

    /// Nothing of the Jobs is shown twice.
    fn check(&mut self) -> &mut Self {
        for screen in &self.screens {
            let lines = screen.lines();
            for name in ["bars ", "more "] {
                let bars = lines.iter().filter(|line| line.starts_with(name)).count();
                assert_eq!(bars, 1, "{name}: {lines:#?}");
            }
        }
        self
    }
}

/// The end of a drawing: wrapping is allowed again.
const DRAWN: &str = "\x1b[?7h";

/// How high terminals are.
const ROWS: u16 = 24;

fn resize(terminal: impl AsFd, columns: u16) {
    let size = Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("it is ours");
}

/// Runs it with a terminal of so many columns as its standard error, and takes these steps one after
/// the other: how it ended, what it has sent there, and what that looks like. Nothing is known of the
/// terminal but what the command says.
fn on_a_terminal(
    mut command: Command,
    columns: u16,
    steps: Vec<Step>,
) -> (Option<i32>, String, Window) {
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
    let screens =
        [Narrowed::Reflows, Narrowed::Cuts].map(|narrowed| Emulator::new(narrowed, columns, ROWS));
    let mut window = Window { terminal: File::from(master), screens };
    let mut steps = steps.into_iter().peekable();
    while let Ok(count @ 1..) = window.terminal.read(&mut piece) {
        shown.extend_from_slice(&piece[..count]);
        window.screens.iter_mut().for_each(|screen| screen.take(&piece[..count]));
        let text = String::from_utf8_lossy(&shown);
        // In the midst of a line the cursor is not where it rests.
        let is_whole = text.ends_with(DRAWN);
        if let Some((_, take)) = steps.next_if(|(awaited, _)| is_whole && text.contains(awaited)) {
            take(&mut window);
        }
    }
    let code = child.wait().expect("it ends").code();
    (code, String::from_utf8_lossy(&shown).into_owned(), window)
}
