//! Writes what containers print. Whoever reads that may be slow, or may not read at all: so a
//! thread of its own writes. What is not written waits in a spool until there is room.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;
use tokio::time::timeout;

use super::screen::Screen;
use crate::log_lines::Line;
use crate::spool::{Spool, told_lost};

/// How many lines are written at once.
const BATCH: usize = 64;

/// How long the last lines may take to come.
const LAST_LINES_TIME: Duration = Duration::from_secs(5);

/// The thread that writes.
pub(crate) struct Printer {
    state: watch::Receiver<State>,
    /// Why not everything is written.
    error: Arc<Mutex<Option<io::Error>>>,
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
    /// Writes lines to standard output, or else to standard error; those that wait are in `folder`
    /// meanwhile, and what had to be left out is told on `screen`.
    pub(crate) fn start(
        lines: Receiver<Line>,
        is_full: watch::Sender<bool>,
        folder: PathBuf,
        to_stderr: bool,
        screen: Screen,
    ) -> io::Result<Self> {
        let lines = Spool::start(lines, is_full, folder)?;
        let is_on_screen = to_stderr || io::stdout().is_terminal();
        let (sender, state) = watch::channel(State::Idle);
        let error: Arc<Mutex<Option<io::Error>>> = Arc::default();
        let seen = error.clone();
        let write = move || {
            loop {
                let batch = lines.take(BATCH);
                for (whose, bytes) in lines.take_lost(Instant::now()) {
                    screen.say(told_lost(&whose, bytes));
                }
                if batch.is_empty() {
                    break;
                }
                let text: Vec<u8> = batch.into_iter().flat_map(|line| line.text).collect();
                sender.send_replace(State::Writing);
                let put = match is_on_screen {
                    true => screen.frame().above(&text, |text| put(text, to_stderr)),
                    false => put(&text, to_stderr),
                };
                // The others are still tried: there may be room again. If nobody listens any
                // more, as behind `head`, that is no reason to stop either.
                if let Err(error) = put {
                    seen.lock().expect("nobody panics here").get_or_insert(error);
                }
                sender.send_replace(State::Idle);
            }
            sender.send_replace(State::Over);
        };
        thread::Builder::new().name("printer".into()).spawn(write)?;
        Ok(Printer { state, error })
    }

    /// Waits for the last lines: as long as somebody reads them, or however long that takes if
    /// `is_patient`. Why some are not written, if there was a reason.
    pub(crate) async fn end(mut self, is_patient: bool) -> Option<io::Error> {
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
        self.error.lock().expect("nobody panics here").take()
    }
}

fn put(text: &[u8], to_stderr: bool) -> io::Result<()> {
    match to_stderr {
        true => io::stderr().lock().write_all(text),
        false => {
            let mut out = io::stdout().lock();
            out.write_all(text).and_then(|()| out.flush())
        }
    }
}
