//! The server's end of a helper: starts it, sends it requests, and keeps what became of each run
//! for whoever waits. When the helper dies, so does everything that it ran, and whoever waits for
//! one of those is told that it was lost.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{mpsc, oneshot, watch};

use super::channel::{self, Packet, Receiver};
use super::leftovers::{self, HELPER_MARK, Whose, helper_mark};
use super::wire::{Begin, Failure, FailureKind, Ready, Report, Request, Wire};
use super::{Isolation, Options, sys};
use crate::descriptors;
use crate::runtime::{Ending, Exit, RuntimeError};

/// A helper that was started.
#[derive(Debug)]
pub(super) struct Link {
    /// What tells it from every other helper.
    pub(super) id: String,
    pub(super) ready: Ready,
    last: AtomicU64,
    known: Arc<Mutex<Known>>,
    /// Ends when the helper's process has.
    over: watch::Receiver<bool>,
}

/// Who waits for what. Nothing is kept of what is gone.
#[derive(Debug)]
struct Known {
    /// `None` once nothing more is to be asked.
    outgoing: Option<mpsc::UnboundedSender<Packet>>,
    runs: HashMap<u64, watch::Sender<Progress>>,
    closing: HashMap<u64, oneshot::Sender<()>>,
    over: bool,
}

/// How far a run is.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    pub(super) started_at: Option<Timestamp>,
    pub(super) failure: Option<Failure>,
    exited: Option<(Ending, Timestamp)>,
    pub(super) exit: Option<Exit>,
}

impl Progress {
    /// Whether it is known if it runs.
    pub(super) fn is_decided(&self) -> bool {
        self.started_at.is_some() || self.failure.is_some() || self.exit.is_some()
    }
}

/// The helper has ended, and with it everything that it ran.
#[derive(Clone, Copy, Debug)]
pub(super) struct HelperEnded;

impl Link {
    /// Starts a helper and waits until it is ready.
    pub(super) async fn start(options: &Options, node: &str) -> Result<Link, RuntimeError> {
        let id = new_id();
        let (here, there) = channel::pair().map_err(machine("making a socket"))?;
        let mut child = Command::new(&options.helper.program)
            .args(&options.helper.args)
            .env_clear()
            .env(HELPER_MARK, helper_mark(node, &id))
            .current_dir("/")
            .stdin(Stdio::from(there))
            .stdout(Stdio::null())
            // What a terminal sends to the server's group is not for the helper.
            .process_group(0)
            .spawn()
            .map_err(machine(format!(
                "starting the process helper {}",
                options.helper.program.display()
            )))?;
        let (ended, over) = watch::channel(false);
        std::thread::Builder::new()
            .name("process-helper".into())
            .spawn(move || {
                let _ = child.wait();
                ended.send_replace(true);
            })
            .map_err(machine("starting a thread"))?;
        rustix::io::ioctl_fionbio(&here, true)
            .map_err(|error| machine("setting up a socket")(error.into()))?;
        let socket = sys::watch(here).map_err(machine("watching a socket"))?;
        let descriptors = descriptors::of_containers();
        let begin = Begin {
            folder: options.folder.clone(),
            node: node.to_owned(),
            isolation: options.isolation,
            descriptors: (descriptors.current, descriptors.maximum),
        };
        let mut receiver = Receiver::new();
        let greet = async {
            let begin = Packet::new(&Request::Begin(begin).to_bytes(), Vec::new())?;
            send(&socket, &begin).await?;
            receive(&socket, &mut receiver).await
        };
        let ready = match greet.await {
            Ok(Some(Report::Ready(ready))) => ready,
            Ok(Some(Report::Refused { failure })) => return Err(failure.into()),
            Ok(Some(_) | None) | Err(_) => {
                let program = options.helper.program.display();
                let error = io::Error::new(io::ErrorKind::UnexpectedEof, "it ended at once");
                return Err(machine(format!("starting the process helper {program}"))(error));
            }
        };
        let (outgoing, packets) = mpsc::unbounded_channel();
        let known = Arc::new(Mutex::new(Known {
            outgoing: Some(outgoing),
            runs: HashMap::new(),
            closing: HashMap::new(),
            over: false,
        }));
        let whose = Whose { node: node.to_owned(), helper: leftovers::Helper::Only(id.clone()) };
        tokio::spawn(converse(socket, receiver, packets, known.clone(), whose));
        Ok(Link { id, ready, last: AtomicU64::new(0), known, over })
    }

    /// A number that was not used before, of a sandbox or a run.
    pub(super) fn new_number(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether nothing more can be asked of it.
    pub(super) fn is_over(&self) -> bool {
        let known = lock(&self.known);
        known.over || known.outgoing.is_none()
    }

    pub(super) fn can_mount(&self) -> bool {
        self.ready.isolation != Isolation::None
    }

    /// Sends a request without descriptors or long contents.
    pub(super) fn send(&self, request: &Request) {
        lock(&self.known).send(request);
    }

    /// Sends a request that starts a run, and follows it.
    pub(super) fn send_run(
        &self,
        run: u64,
        request: &Request,
        fds: Vec<OwnedFd>,
    ) -> Result<io::Result<watch::Receiver<Progress>>, HelperEnded> {
        let packet = match Packet::new(&request.to_bytes(), fds) {
            Ok(packet) => packet,
            Err(error) => return Ok(Err(error)),
        };
        let (sender, receiver) = watch::channel(Progress::default());
        let mut known = lock(&self.known);
        let Some(outgoing) = known.outgoing.as_ref().filter(|_| !known.over) else {
            return Err(HelperEnded);
        };
        let _ = outgoing.send(packet);
        known.runs.insert(run, sender);
        Ok(Ok(receiver))
    }

    /// Closes a sandbox. What comes back ends when nothing of it is left.
    pub(super) fn close(&self, sandbox: u64) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut known = lock(&self.known);
        if !known.over {
            known.closing.insert(sandbox, sender);
            known.send(&Request::Close { sandbox });
        }
        receiver
    }

    /// Has the helper end everything, and itself.
    pub(super) fn stop(&self) {
        lock(&self.known).outgoing = None;
    }

    /// Waits until the helper's process has ended.
    pub(super) fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut over = self.over.clone();
        async move { drop(over.wait_for(|over| *over).await) }
    }
}

/// Carries requests out and reports in, until the link is dropped or the helper is gone.
async fn converse(
    socket: AsyncFd<OwnedFd>,
    mut receiver: Receiver,
    mut packets: mpsc::UnboundedReceiver<Packet>,
    known: Arc<Mutex<Known>>,
    whose: Whose,
) {
    let outwards = async {
        while let Some(packet) = packets.recv().await {
            if send(&socket, &packet).await.is_err() {
                return;
            }
        }
        // The helper ends everything now; what it reports until then still counts.
        let _ = rustix::net::shutdown(socket.get_ref(), rustix::net::Shutdown::Write);
    };
    let inwards = async {
        while let Ok(Some(report)) = receive(&socket, &mut receiver).await {
            lock(&known).note(report);
        }
    };
    tokio::pin!(inwards);
    tokio::select! {
        () = &mut inwards => {}
        () = outwards => inwards.await,
    }
    // All keepers hold the socket, too: when it is closed they are gone, and with them everything
    // that has a pid namespace. Of the rest somebody may be left.
    let ended = tokio::task::spawn_blocking(move || leftovers::end(&whose)).await;
    if let Ok(Err(error)) = ended {
        tracing::warn!(%error, "processes of a helper that has ended may be left");
    }
    lock(&known).give_up();
}

async fn send(socket: &AsyncFd<OwnedFd>, packet: &Packet) -> io::Result<()> {
    socket.async_io(Interest::WRITABLE, |socket| packet.send(socket.as_fd())).await
}

async fn receive(socket: &AsyncFd<OwnedFd>, receiver: &mut Receiver) -> io::Result<Option<Report>> {
    let received =
        socket.async_io(Interest::READABLE, |socket| receiver.receive(socket.as_fd())).await?;
    received
        .map(|(message, _)| Report::from_bytes(&message))
        .transpose()
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

impl Known {
    /// There is no limit to how many requests wait: each is somebody's who waits for it, or a
    /// signal for a run that is somebody's. If the helper is gone, so is what it was for.
    fn send(&self, request: &Request) {
        let packet = Packet::new(&request.to_bytes(), Vec::new());
        if let (Some(outgoing), Ok(packet)) = (&self.outgoing, packet) {
            let _ = outgoing.send(packet);
        }
    }

    fn note(&mut self, report: Report) {
        match report {
            Report::Ready(_) | Report::Refused { .. } => {}
            Report::Started { run, at } => {
                self.change(run, |progress| progress.started_at = Some(timestamp(at)));
            }
            Report::Failed { run, failure } => {
                self.change(run, |progress| progress.failure = Some(failure));
            }
            Report::Exited { run, status, at } => self.change(run, |progress| {
                progress.exited = Some((ending(status), timestamp(at)));
            }),
            Report::Gone { run, out_of_memory } => {
                if let Some(sender) = self.runs.remove(&run) {
                    // Without a word from its keeper it was ended together with it.
                    gone(&sender, Ending::Signal(libc::SIGKILL), out_of_memory);
                }
            }
            Report::Closed { sandbox } => {
                if let Some(waiting) = self.closing.remove(&sandbox) {
                    let _ = waiting.send(());
                }
            }
        }
    }

    fn change(&self, run: u64, change: impl FnOnce(&mut Progress)) {
        if let Some(sender) = self.runs.get(&run) {
            sender.send_modify(change);
        }
    }

    fn give_up(&mut self) {
        self.over = true;
        self.runs.drain().for_each(|(_, sender)| gone(&sender, Ending::Lost, false));
        self.closing.clear();
    }
}

/// Nothing of a run is left. If nobody said how it ended, it did so.
fn gone(sender: &watch::Sender<Progress>, unsaid: Ending, out_of_memory: bool) {
    sender.send_modify(|progress| {
        let (ending, at) = progress.exited.unwrap_or_else(|| (unsaid, Timestamp::now()));
        progress.exit = Some(Exit { ending, at, out_of_memory });
    });
}

fn ending(status: i32) -> Ending {
    if libc::WIFSIGNALED(status) {
        Ending::Signal(libc::WTERMSIG(status))
    } else {
        Ending::Code(libc::WEXITSTATUS(status))
    }
}

fn timestamp(nanoseconds: i64) -> Timestamp {
    Timestamp::from_nanosecond(nanoseconds.into()).unwrap_or_default()
}

impl From<Failure> for RuntimeError {
    fn from(failure: Failure) -> Self {
        match failure.kind {
            FailureKind::CannotRun => RuntimeError::CannotRun {
                reason: "StartError",
                exit_code: 128,
                message: failure.message,
            },
            FailureKind::Unsupported => RuntimeError::Unsupported(failure.message),
            FailureKind::Machine(number) => RuntimeError::Machine {
                what: failure.message,
                source: io::Error::from_raw_os_error(number),
            },
        }
    }
}

/// What was tried, and what the machine said.
pub(super) fn machine(what: impl Into<String>) -> impl FnOnce(io::Error) -> RuntimeError {
    |source| RuntimeError::Machine { what: what.into(), source }
}

fn new_id() -> String {
    static STARTED: AtomicU64 = AtomicU64::new(0);
    let (process, count) = (std::process::id(), STARTED.fetch_add(1, Ordering::Relaxed));
    format!("{process}-{count}-{}", Timestamp::now().as_nanosecond())
}

fn lock(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}
