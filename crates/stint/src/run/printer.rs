//! Writes what containers print. Whoever reads that may be slow, or may not read at all: so a
//! thread of its own writes. What is not written stays in the log files until there is room.

use std::io::{self, IsTerminal, Write};
use std::thread;
use std::time::Duration;

use indicatif::MultiProgress;
use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;
use tokio::time::timeout;

/// How many lines are written at once.
const BATCH: usize = 64;

/// How long the last lines may take to come.
const LAST_LINES_TIME: Duration = Duration::from_secs(5);

/// The thread that writes.
pub(crate) struct Printer {
    state: watch::Receiver<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is nothing to write.
    Idle,
    Writing,
    /// There will be nothing any more.
    Over,
}

impl Printer {
    /// Writes lines to standard output, or else to standard error; `bars` are on the terminal, if
    /// there are any.
    pub(crate) fn start(
        mut lines: Receiver<Vec<u8>>,
        to_stderr: bool,
        bars: Option<MultiProgress>,
    ) -> io::Result<Self> {
        let bars = bars.filter(|_| to_stderr || io::stdout().is_terminal());
        let (sender, state) = watch::channel(State::Idle);
        let write = move || {
            let mut batch = Vec::new();
            while lines.blocking_recv_many(&mut batch, BATCH) > 0 {
                let text = batch.concat();
                batch.clear();
                sender.send_replace(State::Writing);
                match &bars {
                    Some(bars) => bars.suspend(|| put(&text, to_stderr)),
                    None => put(&text, to_stderr),
                }
                sender.send_replace(State::Idle);
            }
            sender.send_replace(State::Over);
        };
        thread::Builder::new().name("printer".into()).spawn(write)?;
        Ok(Printer { state })
    }

    /// Waits for the last lines: as long as somebody reads them, or however long that takes if
    /// `is_patient`.
    pub(crate) async fn end(mut self, is_patient: bool) {
        let all = async {
            loop {
                let state = *self.state.borrow_and_update();
                let changed = match state {
                    State::Over => return,
                    State::Writing => Ok(self.state.changed().await),
                    State::Idle => timeout(LAST_LINES_TIME, self.state.changed()).await,
                };
                if !matches!(changed, Ok(Ok(()))) {
                    return;
                }
            }
        };
        match is_patient {
            true => all.await,
            false => drop(timeout(LAST_LINES_TIME, all).await),
        }
    }
}

fn put(text: &[u8], to_stderr: bool) {
    // Nobody may be listening; that is no reason to stop.
    let _ = match to_stderr {
        true => io::stderr().lock().write_all(text),
        false => {
            let mut out = io::stdout().lock();
            out.write_all(text).and_then(|()| out.flush())
        }
    };
}
