//! Carries what a container writes from its pipes to its log. It holds a line of each stream and
//! what one read gives, whatever the container writes: a container that writes faster than the
//! disk waits, and so does one that is far ahead of those who read its log.
//!
//! # Guarantees
//!
//! - What a container has written before its end is in its log when `finish` returns, however
//!   late it is read and whoever else holds its outputs.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::line::Cutter;
use super::writer::Writer;
use crate::clock::Clock;
use crate::runtime::Output;

/// What one read takes. Empty lines grow to 45 times their size in the log: 720 KiB at most.
const READ_BYTES: usize = 16 << 10;

/// How long output may come after its container has ended, from what it has left behind.
const LINGER: Duration = Duration::from_millis(250);

/// The ends of a container's pipes: those it writes to, and those that are read here.
pub(crate) fn pipes() -> io::Result<(Output, Inlets)> {
    let (stdout, out) = pipe()?;
    let (stderr, err) = pipe()?;
    Ok((Output { stdout, stderr }, Inlets { out, err }))
}

/// The ends that are read.
#[derive(Debug)]
pub(crate) struct Inlets {
    out: OwnedFd,
    err: OwnedFd,
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = io::pipe()?;
    // Only this end: the container's own is an ordinary one.
    rustix::io::ioctl_fionbio(&read, true)?;
    Ok((write.into(), read.into()))
}

/// The pump of a run.
#[derive(Debug)]
pub(crate) struct Pump {
    task: JoinHandle<()>,
    ended: oneshot::Sender<()>,
}

impl Pump {
    pub(crate) fn start(inlets: Inlets, writer: Writer, clock: Clock) -> io::Result<Self> {
        let streams = Streams {
            out: Stream::new(inlets.out, false)?,
            err: Stream::new(inlets.err, true)?,
            writer: Some(writer),
            clock,
        };
        let (ended, end) = oneshot::channel();
        Ok(Pump { task: tokio::spawn(streams.run(end)), ended })
    }

    /// The container has ended: waits until all that it wrote is in the log. Others who still hold
    /// its outputs are listened to for a moment more.
    pub(crate) async fn finish(self) {
        let _ = self.ended.send(());
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
}

/// One output of a container.
struct Stream {
    receiver: Receiver,
    cutter: Cutter,
    is_open: bool,
}

/// What a read has found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Bytes(usize),
    /// Nothing yet.
    Nothing,
    End,
}

impl Streams {
    async fn run(mut self, mut ended: oneshot::Receiver<()>) {
        let mut is_awaited = true;
        while self.is_open() {
            let Streams { out, err, .. } = &self;
            let is_stderr = tokio::select! {
                ready = out.receiver.readable(), if out.is_open => ready.map(|()| false),
                ready = err.receiver.readable(), if err.is_open => ready.map(|()| true),
                told = &mut ended, if is_awaited => match told {
                    Ok(()) => break,
                    // Nobody will say when the container ends; its outputs do.
                    Err(_) => {
                        is_awaited = false;
                        continue;
                    }
                },
            };
            // Without events there is nothing to wait for: what is there is read below.
            let Ok(is_stderr) = is_stderr else { break };
            self.take(is_stderr, Stream::read_ready).await;
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
            while self.stream(is_stderr).is_open {
                match self.take(is_stderr, Stream::read_now).await {
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
                ready = out.receiver.readable(), if out.is_open => ready.map(|()| false),
                ready = err.receiver.readable(), if err.is_open => ready.map(|()| true),
            };
            let Ok(is_stderr) = is_stderr else { break };
            self.take(is_stderr, Stream::read_ready).await;
            tokio::task::consume_budget().await;
        }
        for is_stderr in [false, true] {
            if self.stream(is_stderr).is_open {
                self.take(is_stderr, Stream::read_now).await;
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
    async fn take(&mut self, is_stderr: bool, read: fn(&Stream, &mut [u8]) -> Found) -> Found {
        let now = self.clock.now();
        let stream = if is_stderr { &mut self.err } else { &mut self.out };
        let mut lines = Vec::new();
        let found = {
            let mut buffer = [0; READ_BYTES];
            let found = read(stream, &mut buffer);
            match found {
                Found::Bytes(bytes) => stream.cutter.take(&buffer[..bytes], now, &mut lines),
                Found::Nothing => {}
                Found::End => {
                    stream.is_open = false;
                    stream.cutter.end(now, &mut lines);
                }
            }
            found
        };
        self.write(lines).await;
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
        self.out.is_open || self.err.is_open
    }

    fn stream(&self, is_stderr: bool) -> &Stream {
        if is_stderr { &self.err } else { &self.out }
    }
}

impl Stream {
    fn new(inlet: OwnedFd, is_stderr: bool) -> io::Result<Self> {
        let receiver = Receiver::from_owned_fd(inlet)?;
        Ok(Stream { receiver, cutter: Cutter::new(is_stderr), is_open: true })
    }

    /// Reads after an event said that something is there.
    fn read_ready(&self, buffer: &mut [u8]) -> Found {
        match self.receiver.try_read(buffer) {
            Ok(0) => Found::End,
            Ok(read) => Found::Bytes(read),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Found::Nothing,
            Err(_) => Found::End,
        }
    }

    /// Reads whatever is there, also if the event that says so has not come yet.
    fn read_now(&self, buffer: &mut [u8]) -> Found {
        loop {
            return match rustix::io::read(&self.receiver, &mut *buffer) {
                Ok(0) => Found::End,
                Ok(read) => Found::Bytes(read),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => Found::Nothing,
                Err(_) => Found::End,
            };
        }
    }

    /// How much is in the pipe.
    fn waiting_bytes(&self) -> usize {
        let waiting = rustix::io::ioctl_fionread(&self.receiver).unwrap_or(0);
        if self.is_open { usize::try_from(waiting).unwrap_or(usize::MAX) } else { 0 }
    }
}
