//! Standard error while a run is under way. Whoever reads it may be slow, or may not read at all:
//! so a thread of its own writes, and nobody else waits for that.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::frame::Frame;

/// How much may wait to be written: some screens full.
const MAX_WAITING: usize = 256;

type Work = Box<dyn FnOnce() + Send>;

/// Where things are said and drawn, in their order.
#[derive(Clone)]
pub(crate) struct Screen {
    works: SyncSender<Work>,
    left_out: Arc<AtomicU64>,
    frame: Frame,
}

impl Screen {
    pub(crate) fn start() -> io::Result<Self> {
        let (works, received) = sync_channel::<Work>(MAX_WAITING);
        let write = move || received.into_iter().for_each(|work| work());
        thread::Builder::new().name("screen".into()).spawn(write)?;
        Ok(Screen { works, left_out: Arc::default(), frame: Frame::default() })
    }

    /// Writes a text. If too much waits already it is left out, and that is said later.
    pub(crate) fn say(&self, text: String) {
        let left_out = self.left_out.swap(0, Ordering::Relaxed);
        let text = match left_out {
            0 => text,
            count => format!("({count} lines were left out here: nobody read them)\n{text}"),
        };
        let frame = self.frame.clone();
        let work = move || {
            // If that fails there is nowhere left to say so.
            let _ = frame.above(text.as_bytes(), |text| io::stderr().lock().write_all(text));
        };
        if self.works.try_send(Box::new(work)).is_err() {
            self.left_out.fetch_add(left_out + 1, Ordering::Relaxed);
        }
    }

    /// What is drawn beneath all that is said.
    pub(crate) fn frame(&self) -> &Frame {
        &self.frame
    }

    /// Draws something that is drawn again soon: it is left out if too much waits.
    pub(crate) fn draw(&self, work: impl FnOnce() + Send + 'static) {
        let _ = self.works.try_send(Box::new(work));
    }

    /// Waits until all of that is written, for so long.
    pub(crate) async fn flush(&self, time: Duration) {
        let (done, is_done) = oneshot::channel();
        let work = move || {
            // Nobody may wait any more.
            let _ = done.send(());
        };
        if self.works.try_send(Box::new(work)).is_ok() {
            let _ = timeout(time, is_done).await;
        }
    }
}
