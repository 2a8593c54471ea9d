//! What is shown on a terminal.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::kit::{Bench, indexed};

#[test]
fn a_terminal_shows_a_bar_and_the_latest_failure_and_then_the_summary() {
    let bench = Bench::new();
    let script = "echo the reason; test $JOB_COMPLETION_INDEX != 1; code=$?; sleep 1; exit $code";
    let file = bench.file("job.yaml", &indexed("bars", 3, "  backoffLimitPerIndex: 0", script));
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are terminals");
    grantpt(&master).expect("it is ours");
    unlockpt(&master).expect("it is ours");
    let size = Winsize { ws_row: 24, ws_col: 130, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&master, size).expect("it is ours");
    let name = ptsname(&master, Vec::new()).expect("it has one");
    let path = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
    let terminal = File::options().read(true).write(true).open(path).expect("it is ours");
    let mut command = bench.command(&["--parallelism", "1", &file]);
    command.env("TERM", "xterm").env_remove("NO_COLOR").stderr(terminal);
    let mut child = command.spawn().expect("the binary starts");
    // The terminal is at its end when nobody holds its other side any more.
    drop(command);
    let (mut shown, mut piece) = (Vec::new(), [0; 4096]);
    let mut master = File::from(master);
    while let Ok(count @ 1..) = master.read(&mut piece) {
        shown.extend_from_slice(&piece[..count]);
    }
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    let shown = String::from_utf8_lossy(&shown);
    for text in [
        "bars [",
        "0 of 3 done, 1 running, 2 waiting",
        "bars: index 1 failed: exit code 1",
        "  | the reason",
        "\u{1b}[1;31mFailed\u{1b}[0m after ",
        "  completed  2 of 3: 0,2\r\n",
    ] {
        assert!(shown.contains(text), "{text:?}: {shown:?}");
    }
}
