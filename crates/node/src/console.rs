//! What those have who attach to a container: its input, and what it writes from then on.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use k8s_openapi::api::core::v1::Container as ContainerOfSpec;
use tokio::net::unix::pipe::Sender;
use tokio::sync::{mpsc, watch};

use crate::inlet::Inlet;
use crate::logs::Inlets;
use crate::runtime::{Ending, Stdio};
use crate::session::{Piece, Session, Wanted, input_pipe};
use crate::terminal::Terminal;

/// How many pieces wait for one who is attached: 64 KiB, as in a pipe. Then the container waits, as in
/// a container runtime.
const WAITING_PIECES: usize = 4;

/// How long one who does not read is waited for when the container has ended.
const LINGER: Duration = Duration::from_millis(250);

/// A container's input and listeners, until it has ended.
#[derive(Clone, Debug)]
pub(crate) struct Console {
    input: Input,
    terminal: Option<Terminal>,
    listeners: Listeners,
}

/// Who writes to a container.
#[derive(Clone, Debug)]
enum Input {
    /// Nobody.
    None,
    /// Whoever is attached; with `stdinOnce` the first of them, at whose end it is closed.
    Pipe { write: Arc<Mutex<Option<OwnedFd>>>, is_once: bool },
    /// Whoever sits at its terminal.
    Terminal,
}

impl Console {
    /// What a container is started with, what is read of it, and its console.
    pub(crate) fn open(
        container: &ContainerOfSpec,
        user: Option<u32>,
    ) -> io::Result<(Stdio, Inlets, Console)> {
        let has_stdin = container.stdin == Some(true);
        let listeners = Listeners::default();
        if container.tty == Some(true) {
            let (terminal, far) = Terminal::open(user)?;
            let (stdin, stdout) = (Some(far.try_clone()?), far.try_clone()?);
            let stdio = Stdio { stdin, stdout, stderr: far, is_terminal: true };
            let inlets = Inlets::new(Inlet::Terminal(terminal.clone()), None, listeners.clone());
            let input = if has_stdin { Input::Terminal } else { Input::None };
            return Ok((stdio, inlets, Console { input, terminal: Some(terminal), listeners }));
        }
        let (stdin, input) = if has_stdin {
            let (read, write) = input_pipe()?;
            let is_once = container.stdin_once == Some(true);
            (Some(read), Input::Pipe { write: Arc::new(Mutex::new(Some(write))), is_once })
        } else {
            (None, Input::None)
        };
        let ((stdout, out), (stderr, err)) = (Inlet::pipe()?, Inlet::pipe()?);
        let stdio = Stdio { stdin, stdout, stderr, is_terminal: false };
        let inlets = Inlets::new(out, Some(err), listeners.clone());
        Ok((stdio, inlets, Console { input, terminal: None, listeners }))
    }

    /// Attaches somebody. The visit ends with the container, of which it tells nothing.
    pub(crate) fn attach(&self, wanted: Wanted) -> io::Result<Session> {
        let output = self.listeners.add(wanted);
        let stdin: Option<std::pin::Pin<Box<dyn tokio::io::AsyncWrite + Send>>> = match &self.input
        {
            _ if !wanted.stdin => None,
            Input::None => None,
            Input::Terminal => self.terminal.clone().map(|it| Box::pin(it) as _),
            Input::Pipe { write, is_once } => {
                let mut write = write.lock().expect("nobody panics with it");
                let taken = match is_once {
                    true => write.take(),
                    false => write.as_ref().map(OwnedFd::try_clone).transpose()?,
                };
                taken.map(Sender::from_owned_fd).transpose()?.map(|it| Box::pin(it) as _)
            }
        };
        Ok(Session { stdin, output: Box::pin(output), terminal: self.terminal.clone() })
    }
}

/// Those who are attached to a container. Clones are handles to the same ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listeners {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    all: Vec<Listener>,
    is_over: bool,
}

#[derive(Clone, Debug)]
struct Listener {
    wanted: Wanted,
    sender: mpsc::Sender<Piece>,
}

impl Listeners {
    fn add(&self, wanted: Wanted) -> impl Stream<Item = Piece> + Send + use<> {
        let (sender, receiver) = mpsc::channel(WAITING_PIECES);
        let mut state = self.lock();
        if !state.is_over {
            state.all.retain(|listener| !listener.sender.is_closed());
            state.all.push(Listener { wanted, sender });
        }
        let pieces = stream::unfold(receiver, async |mut receiver| {
            receiver.recv().await.map(|piece| (piece, receiver))
        });
        pieces.chain(stream::iter([Piece::Ended(Ending::Code(0))]))
    }

    /// Whether anybody listens to one of both outputs.
    pub(crate) fn want(&self, is_stderr: bool) -> bool {
        self.lock().all.iter().any(|listener| listener.wants(is_stderr))
    }

    /// Gives everybody who wants it a piece, and waits until they have room for it: when the container
    /// has ended, for a moment only.
    pub(crate) async fn give(&self, piece: &Piece, ended: &watch::Receiver<bool>) {
        let is_stderr = matches!(piece, Piece::Stderr(_));
        let listeners: Vec<Listener> = {
            let mut state = self.lock();
            state.all.retain(|listener| !listener.sender.is_closed());
            let all = state.all.iter();
            all.filter(|listener| listener.wants(is_stderr)).cloned().collect()
        };
        for listener in listeners {
            let is_late = tokio::select! {
                biased;
                _ = listener.sender.send(piece.clone()) => false,
                () = long_ended(ended.clone()) => true,
            };
            if is_late {
                // He has had his moment, and is not waited for again.
                let is_other = |it: &Listener| !it.sender.same_channel(&listener.sender);
                self.lock().all.retain(is_other);
            }
        }
    }

    /// There is nothing more to be heard.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_over = true;
        state.all.clear();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }
}

impl Listener {
    fn wants(&self, is_stderr: bool) -> bool {
        if is_stderr { self.wanted.stderr } else { self.wanted.stdout }
    }
}

async fn long_ended(mut ended: watch::Receiver<bool>) {
    let is_told = ended.wait_for(|has_ended| *has_ended).await.is_ok();
    if !is_told {
        // Nobody will say when it ends.
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(LINGER).await;
}
