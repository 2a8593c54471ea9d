//! What runs containers. The agent decides what is to run, when, and what to say of it; a
//! runtime knows how. Nothing here knows the API: a runtime is given paths, arguments and
//! numbers.

use std::fmt::Debug;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;

use crate::descriptors::explained;

/// Something that runs containers.
pub trait Runtime: Debug + Send + Sync + 'static {
    /// Makes what the containers of a Pod share.
    fn make_sandbox(
        &self,
        spec: SandboxSpec,
    ) -> BoxFuture<'_, Result<Box<dyn Sandbox>, RuntimeError>>;

    /// Ends everything that an earlier process has left running for this node, and says of which
    /// Pods (their uids) something was found.
    fn end_leftovers(&self) -> BoxFuture<'_, Result<Vec<String>, RuntimeError>>;

    /// Whether the images of containers are used. Where they are not, the node says so once.
    fn uses_images(&self) -> bool;

    /// Why containers cannot have mounts, a hosts file among them, or a host name; none where they can. Where they cannot, a Pod that needs none still runs.
    fn no_mounts(&self) -> Option<String> {
        None
    }

    /// What a container's status gives as its id, before "://".
    fn name(&self) -> &'static str;
}

/// What the containers of a Pod share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxSpec {
    /// The Pod's uid.
    pub uid: String,
    /// What the machine is called inside, if it is not the machine's own name.
    pub hostname: Option<String>,
    /// The file that stands at /etc/hosts inside. The agent keeps it; its inode stays.
    pub hosts_file: Option<PathBuf>,
    /// The Pod's own address.
    pub address: Ipv4Addr,
    /// Whether containers see each other's processes.
    pub shares_processes: bool,
    /// What all containers together may use.
    pub limits: Limits,
}

/// What can be held against whoever runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Thousandths of a core.
    pub cpu_millis: Option<u64>,
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
}

/// The containers of a Pod, and what they share. Dropping it ends everything inside at once.
pub trait Sandbox: Debug + Send + Sync {
    /// Starts a container. After an error nothing of its program has run, and it may be tried
    /// again: where that is not known it has been started, and has ended.
    fn start(
        &self,
        spec: ContainerSpec,
        stdio: Stdio,
    ) -> BoxFuture<'_, Result<Box<dyn Container>, RuntimeError>>;

    /// Ends everything inside at once, whatever it is, and waits until it is gone.
    fn close(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// One run of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerSpec {
    /// Its name in the Pod.
    pub name: String,
    /// How often it was started before.
    pub restarts: u32,
    /// The program and its arguments; never empty. A program without a slash is looked for in
    /// the PATH of `env`, or the usual one.
    pub command: Vec<String>,
    /// All of its environment.
    pub env: Vec<(String, String)>,
    /// Where it starts; the runtime's own choice if none is given.
    pub working_dir: Option<PathBuf>,
    /// What is mounted where, in this order.
    pub mounts: Vec<Mount>,
    /// Who it runs as: another user only where that is permitted.
    pub user: Option<u32>,
    /// Its primary group.
    pub group: Option<u32>,
    /// Its other groups.
    pub groups: Vec<u32>,
    /// What it may use.
    pub limits: Limits,
}

/// Something of this machine that a container sees elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// A file or a folder on this machine; it exists.
    pub source: PathBuf,
    /// Where it is to stand; nothing need be there.
    pub target: PathBuf,
    /// Whether nothing can be written there.
    pub read_only: bool,
}

impl Mount {
    /// How many parts its target has. Mounted in the order of that, as container runtimes do it, nothing is
    /// covered by what it is mounted within.
    pub(crate) fn depth(&self) -> usize {
        self.target.components().count()
    }
}

/// What a process reads, and where its output goes.
#[derive(Debug)]
pub struct Stdio {
    /// Its standard input; empty if there is none.
    pub stdin: Option<OwnedFd>,
    /// Its standard output.
    pub stdout: OwnedFd,
    /// Its standard error.
    pub stderr: OwnedFd,
    /// Whether all three are one terminal, which is to be that of its session.
    pub is_terminal: bool,
}

/// A container that was started.
pub trait Container: Debug + Send + Sync {
    /// When it was started.
    fn started_at(&self) -> Timestamp;

    /// Waits until its first process has ended. May be asked again, and by several.
    fn wait(&self) -> BoxFuture<'_, Exit>;

    /// Sends a signal to all of its processes. One that has ended takes no harm.
    fn signal(&self, signal: Signal);

    /// Runs another program beside it, with its environment, mounts and limits, and ends it
    /// when the time is up. Of what it writes, the first `keep` bytes are kept.
    fn exec(
        &self,
        command: Vec<String>,
        limit: Option<Duration>,
        keep: usize,
    ) -> BoxFuture<'_, Result<ExecOutcome, RuntimeError>>;

    /// Starts another program beside it, with its environment, mounts, user and limits.
    fn start_beside(
        &self,
        _command: Vec<String>,
        _stdio: Stdio,
    ) -> BoxFuture<'_, Result<Box<dyn Beside>, RuntimeError>> {
        let why = "this runtime runs nothing beside a container".to_owned();
        Box::pin(std::future::ready(Err(RuntimeError::Unsupported(why))))
    }

    /// Who it runs as, if that is another user than the node's own.
    fn user(&self) -> Option<u32> {
        None
    }
}

/// A program that was started beside a container. Dropping it ends it, and all that it has started.
pub trait Beside: Debug + Send + Sync {
    /// Waits until nothing of it is left.
    fn wait(&self) -> BoxFuture<'_, Ending>;
}

/// How a container ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// By which way.
    pub ending: Ending,
    /// When.
    pub at: Timestamp,
    /// Whether the kernel ended one of its processes because it used too much memory; `false`
    /// where that cannot be known.
    pub out_of_memory: bool,
}

/// The ways for a process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It exited with this code.
    Code(i32),
    /// It was ended by this signal.
    Signal(i32),
    /// What ran it is gone, and so is the process: that is nothing that it did.
    Lost,
}

impl Ending {
    /// The exit code that Kubernetes gives for it: 128 and the signal's number for a signal. What
    /// was lost was killed.
    pub fn code(self) -> i32 {
        match self {
            Ending::Code(code) => code,
            Ending::Signal(signal) => 128 + signal,
            Ending::Lost => 137,
        }
    }
}

/// The signals that a node sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Please end.
    Terminate,
    /// End.
    Kill,
    /// Another one, which a container asked to be stopped by.
    Other(i32),
}

/// What came of a program that ran beside a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecOutcome {
    /// How it ended; `None` if its time was up.
    pub ending: Option<Ending>,
    /// What it wrote on both outputs, as far as it is kept.
    pub output: Vec<u8>,
}

/// Why a runtime does not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The container cannot be started as it is described: a program that does not exist, a
    /// folder that is none. Trying again changes nothing unless somebody changes the machine.
    #[error("{message}")]
    CannotRun {
        /// What Kubernetes calls it, such as `StartError`.
        reason: &'static str,
        /// The code that the container's status gives, such as 128.
        exit_code: i32,
        /// What a person should read.
        message: String,
    },
    /// What is asked for is not possible here, on this machine or for this user.
    #[error("{0}")]
    Unsupported(String),
    /// The machine refused: no processes, no memory, no room. Later it may not.
    #[error("{what}: {}", explained(source))]
    Machine {
        /// What was tried.
        what: String,
        /// What the machine said.
        source: std::io::Error,
    },
}
