//! Somebody's visit to a container: a program beside it, or what it says itself. What is not read
//! waits in a pipe, and whoever writes waits for it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::{Stream, stream};
use tokio::io::AsyncWrite;
use tokio::net::unix::pipe::Sender;

use crate::inlet::{Found, Inlet};
use crate::runtime::{Beside, Container, Ending, RuntimeError, Stdio};
use crate::terminal::Terminal;

/// What one read takes, and so a piece.
const READ_BYTES: usize = 16 << 10;

/// How much is still read after the end. A pipe holds 64 KiB unless somebody has enlarged it, to this at
/// most without being root; who goes on writing, because he has left the session, is not waited for.
const TAIL_BYTES: usize = 1 << 20;

/// What a visitor wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// To write to its input.
    pub stdin: bool,
    /// To read its output.
    pub stdout: bool,
    /// To read its errors.
    pub stderr: bool,
    /// To have a terminal.
    pub terminal: bool,
}

/// A visit. It ends when the output is dropped.
pub struct Session {
    /// Where to write to; dropping it is the end of the input. `None` if nobody would read.
    pub stdin: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    /// What is written, and at last how it has ended.
    pub output: Pin<Box<dyn Stream<Item = Piece> + Send>>,
    /// The terminal, if there is one.
    pub terminal: Option<Terminal>,
}

/// Something that a visitor sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Of the standard output.
    Stdout(Bytes),
    /// Of the standard error.
    Stderr(Bytes),
    /// The end of a program, or of the visit to a container.
    Ended(Ending),
}

/// Runs a program beside a container.
pub(crate) async fn exec(
    container: &dyn Container,
    command: Vec<String>,
    wanted: Wanted,
) -> Result<Session, RuntimeError> {
    let machine = |source| RuntimeError::Machine { what: "making pipes".to_owned(), source };
    let (stdio, near) = match wanted.terminal {
        true => at_terminal(wanted, container.user()),
        false => by_pipes(wanted),
    }
    .map_err(machine)?;
    let beside = container.start_beside(command, stdio).await?;
    let Near { stdin, out, err, terminal } = near;
    let program = Program { beside, out, err, ended: None, tail: TAIL_BYTES };
    Ok(Session { stdin, output: Box::pin(stream::unfold(Some(program), Program::next)), terminal })
}

/// The ends that stay here.
struct Near {
    stdin: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    out: Option<Inlet>,
    err: Option<Inlet>,
    terminal: Option<Terminal>,
}

fn by_pipes(wanted: Wanted) -> io::Result<(Stdio, Near)> {
    let (stdin, typed) = match wanted.stdin {
        true => input_pipe().map(|(read, write)| (Some(read), Some(write)))?,
        false => (None, None),
    };
    let (stdout, out) = output(wanted.stdout)?;
    let (stderr, err) = output(wanted.stderr)?;
    let typed = typed.map(Sender::from_owned_fd).transpose()?;
    let stdin_near = typed.map(|typed| Box::pin(typed) as Pin<Box<dyn AsyncWrite + Send>>);
    let stdio = Stdio { stdin, stdout, stderr, is_terminal: false };
    Ok((stdio, Near { stdin: stdin_near, out, err, terminal: None }))
}

fn at_terminal(wanted: Wanted, user: Option<u32>) -> io::Result<(Stdio, Near)> {
    let (terminal, far) = Terminal::open(user)?;
    let stdio = Stdio {
        stdin: Some(far.try_clone()?),
        stdout: far.try_clone()?,
        stderr: far,
        is_terminal: true,
    };
    let typed = || Box::pin(terminal.clone()) as Pin<Box<dyn AsyncWrite + Send>>;
    let near = Near {
        stdin: wanted.stdin.then(typed),
        // What nobody wants to see is read all the same, or the program would wait for ever.
        out: Some(Inlet::Terminal(terminal.clone())),
        err: None,
        terminal: Some(terminal),
    };
    Ok((stdio, near))
}

/// A pipe whose end that is written to waits for nobody.
pub(crate) fn input_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = io::pipe()?;
    rustix::io::ioctl_fionbio(&write, true)?;
    Ok((read.into(), write.into()))
}

/// Where output goes that is wanted, or that is not.
fn output(is_wanted: bool) -> io::Result<(OwnedFd, Option<Inlet>)> {
    if !is_wanted {
        return Ok((File::options().write(true).open("/dev/null")?.into(), None));
    }
    Inlet::pipe().map(|(write, inlet)| (write, Some(inlet)))
}

/// A program that runs.
struct Program {
    beside: Box<dyn Beside>,
    out: Option<Inlet>,
    err: Option<Inlet>,
    ended: Option<Ending>,
    /// How much may still be read after its end.
    tail: usize,
}

impl Program {
    async fn next(this: Option<Self>) -> Option<(Piece, Option<Self>)> {
        let mut this = this?;
        let ending = loop {
            match this.ended {
                None => {
                    if let Some(piece) = this.wait().await {
                        return Some((piece, Some(this)));
                    }
                }
                Some(ending) => match this.rest() {
                    Some(piece) => return Some((piece, Some(this))),
                    None => break ending,
                },
            }
        };
        Some((Piece::Ended(ending), None))
    }

    /// Waits for output, or for the end.
    async fn wait(&mut self) -> Option<Piece> {
        let is_stderr = tokio::select! {
            ready = is_ready(&self.out) => ready.map(|()| false),
            ready = is_ready(&self.err) => ready.map(|()| true),
            ending = self.beside.wait() => {
                self.ended = Some(ending);
                return None;
            }
        };
        match is_stderr {
            Ok(is_stderr) => self.take(is_stderr, Inlet::read_ready),
            // Without events there is nothing to be read before the end.
            Err(_) => {
                self.ended = Some(self.beside.wait().await);
                None
            }
        }
    }

    /// What it has left in its pipes.
    fn rest(&mut self) -> Option<Piece> {
        for is_stderr in [false, true] {
            let piece = match self.tail {
                0 => None,
                _ => self.take(is_stderr, Inlet::read_now),
            };
            if let Some(Piece::Stdout(bytes) | Piece::Stderr(bytes)) = &piece {
                self.tail = self.tail.saturating_sub(bytes.len());
                return piece;
            }
        }
        None
    }

    fn take(&mut self, is_stderr: bool, read: fn(&Inlet, &mut [u8]) -> Found) -> Option<Piece> {
        let from = if is_stderr { &mut self.err } else { &mut self.out };
        let mut buffer = [0; READ_BYTES];
        match read(from.as_ref()?, &mut buffer) {
            Found::Bytes(count) => Some(piece(is_stderr, &buffer[..count])),
            Found::Nothing => None,
            Found::End => {
                *from = None;
                None
            }
        }
    }
}

/// A piece of one of both outputs.
pub(crate) fn piece(is_stderr: bool, bytes: &[u8]) -> Piece {
    let bytes = Bytes::copy_from_slice(bytes);
    if is_stderr { Piece::Stderr(bytes) } else { Piece::Stdout(bytes) }
}

async fn is_ready(inlet: &Option<Inlet>) -> io::Result<()> {
    match inlet {
        Some(inlet) => inlet.ready().await,
        None => std::future::pending().await,
    }
}
