//! Carries what a container writes from its pipes to its log. It holds a line of each stream and
//! what one read gives, whatever the container writes: a container that writes faster than the
//! disk waits.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use tokio::net::unix::pipe::Receiver;
use tokio::task::JoinHandle;

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
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    // Only this end: the container's own is an ordinary one.
    rustix::io::ioctl_fionbio(&read, true)?;
    Ok((write, read))
}

/// The pump of a run.
#[derive(Debug)]
pub(crate) struct Pump {
    task: JoinHandle<()>,
}

impl Pump {
    pub(crate) fn start(inlets: Inlets, writer: Writer, clock: Clock) -> io::Result<Self> {
        let out = Receiver::from_owned_fd(inlets.out)?;
        let err = Receiver::from_owned_fd(inlets.err)?;
        Ok(Pump { task: tokio::spawn(run(out, err, writer, clock)) })
    }

    /// The container has ended: waits until all that it wrote is in the log. What others still
    /// hold open is not waited for.
    pub(crate) async fn finish(mut self) {
        if tokio::time::timeout(LINGER, &mut self.task).await.is_err() {
            self.task.abort();
            let _ = self.task.await;
        }
    }
}

async fn run(out: Receiver, err: Receiver, mut writer: Writer, clock: Clock) {
    let (mut out_cutter, mut err_cutter) = (Cutter::new(false), Cutter::new(true));
    let (mut is_out_open, mut is_err_open) = (true, true);
    while is_out_open || is_err_open {
        tokio::select! {
            ready = out.readable(), if is_out_open => {
                is_out_open = ready.is_ok() && take(&out, &mut out_cutter, &mut writer, &clock);
            }
            ready = err.readable(), if is_err_open => {
                is_err_open = ready.is_ok() && take(&err, &mut err_cutter, &mut writer, &clock);
            }
        }
        // A container that never stops writing leaves the others their turn.
        tokio::task::consume_budget().await;
    }
}

/// Takes what is there; whether more may come.
fn take(receiver: &Receiver, cutter: &mut Cutter, writer: &mut Writer, clock: &Clock) -> bool {
    let mut buffer = [0; READ_BYTES];
    let read = match receiver.try_read(&mut buffer) {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
        Err(_) => 0,
    };
    let mut lines = Vec::new();
    match read {
        0 => cutter.end(clock.now(), &mut lines),
        read => cutter.take(&buffer[..read], clock.now(), &mut lines),
    }
    writer.write(&lines);
    read > 0
}
