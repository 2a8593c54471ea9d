//! Sandboxes and containers as the node sees them.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use tokio::net::unix::pipe;
use tokio::sync::watch;

use super::leftovers::{POD_MARK, pod_mark};
use super::link::{HelperEnded, Link, Progress, machine};
use super::server::Shared;
use super::wire::{Launch, Request};
use crate::namespace_needs::REMEDY;
use crate::runtime::{
    Beside, Container, ContainerSpec, Ending, ExecOutcome, Exit, Mount, RuntimeError, Sandbox,
    SandboxSpec, Signal, Stdio,
};

/// How often a container is started anew because the helper died under it. A helper that dies
/// every time does so because of what it is asked to do.
const ATTEMPTS: u32 = 3;

/// A sandbox.
#[derive(Debug)]
pub(super) struct ProcessSandbox {
    shared: Arc<Shared>,
    spec: SandboxSpec,
    opened: Mutex<Opened>,
}

/// Where a sandbox is.
#[derive(Clone, Debug)]
struct Opened {
    link: Arc<Link>,
    number: u64,
}

impl ProcessSandbox {
    pub(super) async fn open(
        shared: Arc<Shared>,
        spec: SandboxSpec,
    ) -> Result<ProcessSandbox, RuntimeError> {
        let link = shared.link().await?;
        if spec.hosts_file.is_some() && !link.can_mount() {
            return Err(RuntimeError::Unsupported(format!(
                "/etc/hosts: {}; {REMEDY}",
                no_mounts(&link)
            )));
        }
        let opened = Mutex::new(open_on(link, &spec));
        Ok(ProcessSandbox { shared, spec, opened })
    }

    fn opened(&self) -> Opened {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where the sandbox is: in a new helper, if that which it was in has died.
    async fn open_now(&self) -> Result<Opened, RuntimeError> {
        if self.opened().link.is_over() {
            let link = self.shared.link().await?;
            let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            if opened.link.is_over() {
                *opened = open_on(link, &self.spec);
            }
        }
        Ok(self.opened())
    }

    async fn start_container(
        &self,
        spec: ContainerSpec,
        stdio: Stdio,
    ) -> Result<ProcessContainer, RuntimeError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let Opened { link, number } = self.open_now().await?;
            if !link.can_mount() && !spec.mounts.is_empty() {
                let targets = spec.mounts.iter().map(|mount| mount.target.display().to_string());
                let targets: Vec<String> = targets.collect();
                let why = no_mounts(&link);
                let why = format!("{}: {why}; {REMEDY}", targets.join(", "));
                return Err(RuntimeError::Unsupported(why));
            }
            let launch = self.launch(&spec, &stdio, &link);
            let run = link.new_number();
            let request = Request::Start {
                sandbox: number,
                run,
                launch: launch.clone(),
                mounts: self.mounts(&spec),
            };
            // The originals are kept for another attempt.
            let fds = [&stdio.stdout, &stdio.stderr]
                .into_iter()
                .chain(&stdio.stdin)
                .map(OwnedFd::try_clone)
                .collect::<io::Result<Vec<_>>>()
                .map_err(machine("duplicating the input and the outputs of a container"))?;
            let started = match link.send_run(run, &request, fds) {
                Ok(started) => started.map_err(machine("asking for a container"))?,
                Err(HelperEnded) if attempt < ATTEMPTS => continue,
                Err(HelperEnded) => return Err(helper_keeps_dying()),
            };
            let mut running = Running { link, run, progress: started, armed: true };
            let progress = running.decided().await;
            if let Some(failure) = progress.failure {
                return Err(failure.into());
            }
            // Its keeper, or the helper, was killed before it said anything. Nobody knows whether
            // the program has begun, and it may not begin twice: it counts as begun, and ended.
            let ended = progress.exit.map(|exit| exit.at);
            let started_at = progress.started_at.or(ended).expect("it is decided");
            running.armed = false;
            return Ok(ProcessContainer { running, started_at, launch });
        }
    }

    fn launch(&self, spec: &ContainerSpec, stdio: &Stdio, link: &Link) -> Launch {
        let mark = pod_mark(&self.shared.node, &link.id, &self.spec.uid);
        let mut env = spec.env.clone();
        env.push((POD_MARK.to_owned(), mark));
        if stdio.is_terminal {
            name_terminal(&mut env);
        }
        Launch {
            command: spec.command.clone(),
            env,
            working_dir: spec.working_dir.clone(),
            user: spec.user,
            group: spec.group,
            groups: spec.groups.clone(),
            limits: spec.limits,
            has_stdin: stdio.stdin.is_some(),
            is_terminal: stdio.is_terminal,
        }
    }

    /// The hosts file is the first of its depth, so that a container can still have one of its own, and what is
    /// mounted at a folder above does not cover it.
    fn mounts(&self, spec: &ContainerSpec) -> Vec<Mount> {
        let hosts = self.spec.hosts_file.iter().map(|source| Mount {
            source: source.clone(),
            target: "/etc/hosts".into(),
            read_only: false,
        });
        let mut mounts: Vec<Mount> = hosts.chain(spec.mounts.iter().cloned()).collect();
        mounts.sort_by_key(Mount::depth);
        mounts
    }
}

/// Says which terminal there is, as container runtimes do, if the container's own environment does not.
fn name_terminal(env: &mut Vec<(String, String)>) {
    if env.iter().all(|(name, _)| name != "TERM") {
        env.push(("TERM".to_owned(), "xterm".to_owned()));
    }
}

fn open_on(link: Arc<Link>, spec: &SandboxSpec) -> Opened {
    let number = link.new_number();
    link.send(&Request::Open {
        sandbox: number,
        hostname: spec.hostname.clone(),
        shares_processes: spec.shares_processes,
        limits: spec.limits,
    });
    Opened { link, number }
}

/// Why nothing can be mounted.
pub(super) fn no_mounts(link: &Link) -> String {
    // What was found out about limits has nothing to do with it.
    let found = link.ready.notes.iter().filter(|note| note.contains("namespace"));
    let found: Vec<&str> = found.map(String::as_str).collect();
    format!(
        "mounts and host names are not possible for this user on this machine ({})",
        if found.is_empty() { "none were asked for".to_owned() } else { found.join("; ") }
    )
}

fn helper_keeps_dying() -> RuntimeError {
    let error = io::Error::new(io::ErrorKind::BrokenPipe, "the process helper keeps dying");
    machine("starting a container")(error)
}

fn helper_ended() -> RuntimeError {
    let error = io::Error::new(io::ErrorKind::BrokenPipe, "the process helper has ended");
    machine("running a program beside a container")(error)
}

impl Sandbox for ProcessSandbox {
    fn start(
        &self,
        spec: ContainerSpec,
        stdio: Stdio,
    ) -> BoxFuture<'_, Result<Box<dyn Container>, RuntimeError>> {
        Box::pin(async move {
            let container = self.start_container(spec, stdio).await?;
            Ok(Box::new(container) as Box<dyn Container>)
        })
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, ()> {
        let Opened { link, number } = self.opened();
        let closed = link.close(number);
        // What it would send at its end is answered at once, and nobody listens.
        drop(self);
        // An error means that the helper is gone, and everything with it.
        Box::pin(async move { drop(closed.await) })
    }
}

impl Drop for ProcessSandbox {
    fn drop(&mut self) {
        let Opened { link, number } = self.opened();
        link.send(&Request::Close { sandbox: number });
    }
}

/// A run that is ended if nobody waits for it any more before it is known to run.
#[derive(Debug)]
struct Running {
    link: Arc<Link>,
    run: u64,
    progress: watch::Receiver<Progress>,
    armed: bool,
}

impl Running {
    async fn decided(&self) -> Progress {
        follow(&self.progress, Progress::is_decided).await
    }

    async fn ended(&self) -> Exit {
        follow(&self.progress, |progress| progress.exit.is_some())
            .await
            .exit
            .expect("it was waited for")
    }

    fn signal(&self, signal: i32) {
        self.link.send(&Request::Signal { run: self.run, signal });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.armed {
            self.signal(libc::SIGKILL);
        }
    }
}

/// Waits for something to be true of a run. A run comes to its end whatever happens: the sender
/// is dropped only after it has said so.
async fn follow(
    progress: &watch::Receiver<Progress>,
    until: impl FnMut(&Progress) -> bool,
) -> Progress {
    let mut progress = progress.clone();
    if let Ok(reached) = progress.wait_for(until).await {
        return reached.clone();
    }
    // Only when the executor itself is torn down.
    std::future::pending().await
}

/// A container.
#[derive(Debug)]
struct ProcessContainer {
    running: Running,
    started_at: Timestamp,
    launch: Launch,
}

impl Container for ProcessContainer {
    fn started_at(&self) -> Timestamp {
        self.started_at
    }

    fn wait(&self) -> BoxFuture<'_, Exit> {
        Box::pin(self.running.ended())
    }

    fn signal(&self, signal: Signal) {
        self.running.signal(match signal {
            Signal::Terminate => libc::SIGTERM,
            Signal::Kill => libc::SIGKILL,
            Signal::Other(number) => number,
        });
    }

    fn exec(
        &self,
        command: Vec<String>,
        limit: Option<Duration>,
        keep: usize,
    ) -> BoxFuture<'_, Result<ExecOutcome, RuntimeError>> {
        Box::pin(self.run_beside(command, limit, keep))
    }

    fn start_beside(
        &self,
        command: Vec<String>,
        stdio: Stdio,
    ) -> BoxFuture<'_, Result<Box<dyn Beside>, RuntimeError>> {
        Box::pin(async move {
            let running = self.ask_beside(command, stdio)?;
            match running.decided().await.failure {
                Some(failure) => Err(failure.into()),
                None => Ok(Box::new(ProcessBeside { running }) as Box<dyn Beside>),
            }
        })
    }

    fn user(&self) -> Option<u32> {
        self.launch.user
    }
}

/// A program beside a container. What is left of it when it is dropped is ended.
#[derive(Debug)]
struct ProcessBeside {
    running: Running,
}

impl Beside for ProcessBeside {
    fn wait(&self) -> BoxFuture<'_, Ending> {
        Box::pin(async { self.running.ended().await.ending })
    }
}

impl ProcessContainer {
    async fn run_beside(
        &self,
        command: Vec<String>,
        limit: Option<Duration>,
        keep: usize,
    ) -> Result<ExecOutcome, RuntimeError> {
        let (read, write) = io::pipe().map_err(machine("making a pipe"))?;
        let stdout = write.try_clone().map_err(machine("making a pipe"))?;
        let mut kept = Kept::new(read.into(), keep).map_err(machine("watching a pipe"))?;
        let (stdout, stderr) = (stdout.into(), write.into());
        let stdio = Stdio { stdin: None, stdout, stderr, is_terminal: false };
        let mut running = self.ask_beside(command, stdio)?;
        let limit = limit.unwrap_or(Duration::MAX);
        let ending = match tokio::time::timeout(limit, kept.until(running.ended())).await {
            Ok(exit) => Some(exit.ending),
            Err(_) => {
                running.signal(libc::SIGKILL);
                kept.until(running.ended()).await;
                None
            }
        };
        running.armed = false;
        match running.decided().await.failure {
            Some(failure) => Err(failure.into()),
            None if ending == Some(Ending::Lost) => Err(helper_ended()),
            None => Ok(ExecOutcome { ending, output: kept.rest() }),
        }
    }
}

impl ProcessContainer {
    /// Asks for a program beside the container.
    fn ask_beside(&self, command: Vec<String>, stdio: Stdio) -> Result<Running, RuntimeError> {
        let link = self.running.link.clone();
        let run = link.new_number();
        let Stdio { stdin, stdout, stderr, is_terminal } = stdio;
        let has_stdin = stdin.is_some();
        let mut launch = Launch { command, has_stdin, is_terminal, ..self.launch.clone() };
        if is_terminal {
            name_terminal(&mut launch.env);
        }
        let request = Request::Exec { container: self.running.run, run, launch };
        let fds = [stdout, stderr].into_iter().chain(stdin).collect();
        let progress = match link.send_run(run, &request, fds) {
            Ok(started) => started.map_err(machine("asking for a process"))?,
            Err(HelperEnded) => return Err(helper_ended()),
        };
        Ok(Running { link, run, progress, armed: true })
    }
}

/// The first bytes of what comes out of a pipe.
struct Kept {
    pipe: pipe::Receiver,
    bytes: Vec<u8>,
    most: usize,
    over: bool,
}

impl Kept {
    fn new(pipe: OwnedFd, most: usize) -> io::Result<Self> {
        let pipe = pipe::Receiver::from_owned_fd(pipe)?;
        Ok(Kept { pipe, bytes: Vec::new(), most, over: false })
    }

    /// Reads while something else is waited for.
    async fn until<T>(&mut self, other: impl Future<Output = T>) -> T {
        tokio::pin!(other);
        loop {
            tokio::select! {
                biased;
                done = &mut other => return done,
                _ = self.pipe.readable(), if !self.over => self.read(),
            }
        }
    }

    /// Takes what is in the pipe now.
    fn read(&mut self) {
        let mut buffer = [0; 4096];
        loop {
            match self.pipe.try_read(&mut buffer) {
                Ok(count) if count > 0 => {
                    let room = self.most - self.bytes.len();
                    self.bytes.extend_from_slice(&buffer[..count.min(room)]);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(_) | Err(_) => {
                    self.over = true;
                    return;
                }
            }
        }
    }

    /// All of it, with what is in the pipe now. Whoever still holds its other end is not waited
    /// for: nobody but who has left the container's processes behind can.
    fn rest(mut self) -> Vec<u8> {
        // What tokio knows of the pipe may be older than the end of the process.
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = rustix::io::read(&self.pipe, &mut buffer) {
            let room = self.most - self.bytes.len();
            if room == 0 {
                break;
            }
            self.bytes.extend_from_slice(&buffer[..count.min(room)]);
        }
        self.bytes
    }
}
