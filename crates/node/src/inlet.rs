//! The end of a pipe or of a terminal at which somebody else's output is read.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use tokio::net::unix::pipe::Receiver;

use crate::terminal::Terminal;

/// An end that is read.
#[derive(Debug)]
pub(crate) enum Inlet {
    /// Of a pipe.
    Pipe(Receiver),
    /// Of a terminal.
    Terminal(Terminal),
}

/// What a read has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Bytes(usize),
    /// Nothing yet.
    Nothing,
    End,
}

impl Inlet {
    /// A pipe, and the end that is written to, which is an ordinary one.
    pub(crate) fn pipe() -> io::Result<(OwnedFd, Inlet)> {
        let (read, write) = io::pipe()?;
        rustix::io::ioctl_fionbio(&read, true)?;
        Ok((write.into(), Inlet::Pipe(Receiver::from_owned_fd(read.into())?)))
    }

    /// Waits until there may be something to be read.
    pub(crate) async fn ready(&self) -> io::Result<()> {
        match self {
            Inlet::Pipe(receiver) => receiver.readable().await,
            Inlet::Terminal(terminal) => terminal.readable().await,
        }
    }

    /// Reads after an event said that something is there.
    pub(crate) fn read_ready(&self, buffer: &mut [u8]) -> Found {
        let read = match self {
            Inlet::Pipe(receiver) => receiver.try_read(buffer),
            Inlet::Terminal(terminal) => terminal.try_read(buffer),
        };
        match read {
            Ok(0) => Found::End,
            Ok(read) => Found::Bytes(read),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Found::Nothing,
            // A terminal that nobody holds any more is an error to who reads it.
            Err(_) => Found::End,
        }
    }

    /// Reads whatever is there, also if the event that says so has not come yet.
    pub(crate) fn read_now(&self, buffer: &mut [u8]) -> Found {
        loop {
            return match rustix::io::read(self.as_fd(), &mut *buffer) {
                Ok(0) => Found::End,
                Ok(read) => Found::Bytes(read),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => Found::Nothing,
                Err(_) => Found::End,
            };
        }
    }

    /// How much is to be read; of a terminal nobody knows, and it holds little.
    pub(crate) fn waiting_bytes(&self) -> usize {
        /// More than a terminal holds.
        const TERMINAL_BYTES: usize = 1 << 20;
        match self {
            Inlet::Pipe(receiver) => {
                let waiting = rustix::io::ioctl_fionread(receiver).unwrap_or(0);
                usize::try_from(waiting).unwrap_or(usize::MAX)
            }
            Inlet::Terminal(_) => TERMINAL_BYTES,
        }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Inlet::Pipe(receiver) => receiver.as_fd(),
            Inlet::Terminal(terminal) => terminal.as_fd(),
        }
    }
}
