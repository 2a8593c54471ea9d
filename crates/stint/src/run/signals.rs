//! Ctrl-C and its like: the first asks for an end, the second is one.

use std::io;
use std::path::PathBuf;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that ask for an end.
pub(crate) struct Signals {
    all: [Signal; 3],
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        let [interrupt, terminate, hangup] =
            [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
        Ok(Signals { all: [interrupt?, terminate?, hangup?] })
    }

    /// Waits for one of them.
    pub(crate) async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.all;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }

    /// Ends the process at the next one. The helper that started the containers ends them when
    /// this process is gone.
    ///
    /// The temporary folder is removed first, as nobody else will.
    pub(crate) fn exit_at_next(mut self, temporary: Option<PathBuf>, code: u8) {
        tokio::spawn(async move {
            self.next().await;
            if let Some(folder) = temporary {
                let _ = std::fs::remove_dir_all(folder);
            }
            std::process::exit(i32::from(code));
        });
    }
}
