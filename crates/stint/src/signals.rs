//! Ctrl-C and its like: the first asks for an end; see `ending` for the second.

use std::future::pending;
use std::{fs, io};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit code of what was interrupted.
pub(crate) const EXIT_INTERRUPTED: u8 = 130;

/// The signals that ask for an end. Those that were ignored when the process was started stay
/// so: `nohup` is for closed terminals, and Ctrl-C is not for what a shell runs in the background.
pub(crate) struct Signals {
    all: [Option<Signal>; 3],
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        let ignored = ignored();
        let [interrupt, terminate, hangup] =
            [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(|kind| {
                let is_ignored = ignored >> (kind.as_raw_value() - 1) & 1 == 1;
                (!is_ignored).then(|| signal(kind)).transpose()
            });
        Ok(Signals { all: [interrupt?, terminate?, hangup?] })
    }

    /// Waits for one of them.
    pub(crate) async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.all;
        tokio::select! {
            () = received(interrupt) => {}
            () = received(terminate) => {}
            () = received(hangup) => {}
        }
    }

    /// Ends the process at the next one: for commands that leave nothing to be put in order.
    pub(crate) fn exit_at_next(mut self) {
        tokio::spawn(async move {
            self.next().await;
            std::process::exit(i32::from(EXIT_INTERRUPTED));
        });
    }
}

async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => pending().await,
    }
}

/// The signals that are ignored, each a bit; none where nobody tells.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
