//! Carries what a container writes from its pipes to its log, and to those who are attached. It
//! holds a line of each stream and what one read gives, whatever the container writes: a container that writes faster than the
//! disk, than those who read its log, or than somebody who is attached, waits.
//!
//! # Guarantees
//!
//! - What a container has written before its end is in its log when `finish` returns, however
//!   late it is read and whoever else holds its outputs.

use std::io;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::line::Cutter;
use super::writer::Writer;
use crate::clock::Clock;
use crate::console::Listeners;
use crate::inlet::{Found, Inlet};
use crate::session::piece;

/// What one read takes. Empty lines grow to 45 times their size in the log: 720 KiB at most.
const READ_BYTES: usize = 16 << 10;

/// How long output may come after its container has ended, from what it has left behind.
const LINGER: Duration = Duration::from_millis(250);

/// What is read of a container, and who listens.
#[derive(Debug)]
pub(crate) struct Inlets {
    out: Inlet,
    /// None if both outputs are one.
    err: Option<Inlet>,
    listeners: Listeners,
}

impl Inlets {
    pub(crate) fn new(out: Inlet, err: Option<Inlet>, listeners: Listeners) -> Self {
        Inlets { out, err, listeners }
    }
}

/// The pump of a run.
#[derive(Debug)]
pub(crate) struct Pump {
    task: JoinHandle<()>,
    ended: watch::Sender<bool>,
}

impl Pump {
    pub(crate) fn start(inlets: Inlets, writer: Writer, clock: Clock) -> Self {
        let (ended, end) = watch::channel(false);
        let streams = Streams {
            out: Stream { inlet: Some(inlets.out), cutter: Cutter::new(false) },
            err: Stream { inlet: inlets.err, cutter: Cutter::new(true) },
            writer: Some(writer),
            clock,
            listeners: inlets.listeners,
            ended: end.clone(),
        };
        Pump { task: tokio::spawn(streams.run(end)), ended }
    }

    /// The container has ended: waits until all that it wrote is in the log. Others who still hold
    /// its outputs are listened to for a moment more.
    pub(crate) async fn finish(self) {
        self.ended.send_replace(true);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "output of a container is lost");
        }
    }
}

/// Both outputs of a container.
struct Streams {
    out: Stream,
    err: Stream,
    /// Where lines go; none while they are being written.
    writer: Option<Writer>,
    clock: Clock,
    /// Those who are attached.
    listeners: Listeners,
    /// Whether the container has ended.
    ended: watch::Receiver<bool>,
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.listeners.close();
    }
}

/// One output of a container.
struct Stream {
    /// None once there is nothing more to be read.
    inlet: Option<Inlet>,
    cutter: Cutter,
}

impl Streams {
    async fn run(mut self, mut ended: watch::Receiver<bool>) {
        let mut is_awaited = true;
        while self.is_open() {
            let Streams { out, err, .. } = &self;
            let is_stderr = tokio::select! {
                ready = out.ready() => ready.map(|()| false),
                ready = err.ready() => ready.map(|()| true),
                told = ended.wait_for(|has_ended| *has_ended), if is_awaited => match told {
                    Ok(_) => break,
                    // Nobody will say when the container ends; its outputs do.
                    Err(_) => {
                        is_awaited = false;
                        continue;
                    }
                },
            };
            // Without events there is nothing to wait for: what is there is read below.
            let Ok(is_stderr) = is_stderr else { break };
            self.take(is_stderr, Inlet::read_ready).await;
            // A container that never stops writing leaves the others their turn.
            tokio::task::consume_budget().await;
        }
        self.drain().await;
        self.linger().await;
    }

    /// Reads what the container has left in its pipes: all that was in them when it was told to
    /// have ended. Somebody else may go on writing, and is not waited for.
    async fn drain(&mut self) {
        for is_stderr in [false, true] {
            let mut left = self.stream(is_stderr).waiting_bytes();
            // And once more, to see whether anybody holds it.
            while self.stream(is_stderr).is_open() {
                match self.take(is_stderr, Inlet::read_now).await {
                    Found::Bytes(read) if left > 0 => left = left.saturating_sub(read),
                    Found::Bytes(_) | Found::Nothing | Found::End => break,
                }
            }
        }
    }

    /// Listens for a moment to those who still hold the outputs, and ends what was begun.
    async fn linger(&mut self) {
        let until = Instant::now() + LINGER;
        while self.is_open() {
            let Streams { out, err, .. } = &self;
            let is_stderr = tokio::select! {
                biased;
                () = tokio::time::sleep_until(until) => break,
                ready = out.ready() => ready.map(|()| false),
                ready = err.ready() => ready.map(|()| true),
            };
            let Ok(is_stderr) = is_stderr else { break };
            self.take(is_stderr, Inlet::read_ready).await;
            tokio::task::consume_budget().await;
        }
        for is_stderr in [false, true] {
            if self.stream(is_stderr).is_open() {
                self.take(is_stderr, Inlet::read_now).await;
            }
        }
        let cut: usize = [&self.out, &self.err].map(Stream::waiting_bytes).into_iter().sum();
        if self.is_open()
            && let Some(writer) = &self.writer
        {
            let folder = writer.folder().display();
            tracing::warn!(%folder, unread_bytes = cut, "a container has ended, but not all who \
                write to its outputs: they are not read any more");
        }
        let mut lines = Vec::new();
        for stream in [&mut self.out, &mut self.err] {
            stream.cutter.end(self.clock.now(), &mut lines);
        }
        self.write(lines).await;
    }

    /// Takes what one read gives.
    async fn take(&mut self, is_stderr: bool, read: fn(&Inlet, &mut [u8]) -> Found) -> Found {
        let now = self.clock.now();
        let stream = if is_stderr { &mut self.err } else { &mut self.out };
        let Some(inlet) = &stream.inlet else { return Found::End };
        let mut lines = Vec::new();
        let (found, heard) = {
            let mut buffer = [0; READ_BYTES];
            let found = read(inlet, &mut buffer);
            let mut heard = None;
            match found {
                Found::Bytes(bytes) => {
                    stream.cutter.take(&buffer[..bytes], now, &mut lines);
                    let is_wanted = self.listeners.want(is_stderr);
                    heard = is_wanted.then(|| piece(is_stderr, &buffer[..bytes]));
                }
                Found::Nothing => {}
                Found::End => {
                    stream.inlet = None;
                    stream.cutter.end(now, &mut lines);
                }
            }
            (found, heard)
        };
        self.write(lines).await;
        if let Some(piece) = heard {
            self.listeners.give(&piece, &self.ended).await;
        }
        found
    }

    /// A disk may take its time: that is waited for where waiting holds up nobody else.
    async fn write(&mut self, lines: Vec<u8>) {
        if lines.is_empty() {
            return;
        }
        let mut writer = self.writer.take().expect("one write is over before the next");
        writer.room().await;
        let writing = tokio::task::spawn_blocking(move || {
            writer.write(&lines);
            writer
        });
        self.writer = Some(writing.await.expect("writing does not panic"));
    }

    fn is_open(&self) -> bool {
        self.out.is_open() || self.err.is_open()
    }

    fn stream(&self, is_stderr: bool) -> &Stream {
        if is_stderr { &self.err } else { &self.out }
    }
}

impl Stream {
    fn is_open(&self) -> bool {
        self.inlet.is_some()
    }

    async fn ready(&self) -> io::Result<()> {
        match &self.inlet {
            Some(inlet) => inlet.ready().await,
            None => std::future::pending().await,
        }
    }

    /// How much is to be read.
    fn waiting_bytes(&self) -> usize {
        self.inlet.as_ref().map_or(0, Inlet::waiting_bytes)
    }
}
