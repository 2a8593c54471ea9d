//! The runtime that needs nothing installed: a container is a process of this machine, started by
//! a helper, with namespaces where the machine permits them. docs/node.md says what that gives
//! and what it takes; [`helper`] has the picture.
//!
//! Linux only: elsewhere nothing can be started, and the error says so.

use std::ffi::OsString;
use std::path::PathBuf;

#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod channel;
#[cfg(target_os = "linux")]
mod deaths;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod helper;
#[cfg(target_os = "linux")]
mod isolation;
#[cfg(target_os = "linux")]
mod keeper;
#[cfg(target_os = "linux")]
mod launch;
#[cfg(target_os = "linux")]
mod leftovers;
#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(target_os = "linux")]
mod server;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
mod templates;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
mod wire;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::ProcessRuntime;
#[cfg(target_os = "linux")]
pub use server::ProcessRuntime;
#[cfg(target_os = "linux")]
pub(crate) use sys::watch;

/// The first argument of a program that is to be the helper: see [`process_helper`].
pub const HELPER_ARGUMENT: &str = "__process-helper";

/// Runs the helper of a [`ProcessRuntime`] in this process, which has one thread and has done
/// nothing yet: what `main` does first of all if its first argument is [`HELPER_ARGUMENT`].
pub fn process_helper() -> ! {
    #[cfg(target_os = "linux")]
    helper::run();
    #[cfg(not(target_os = "linux"))]
    std::process::exit(2);
}

/// How a [`ProcessRuntime`] works.
#[derive(Clone, Debug)]
pub struct Options {
    /// The node's own folder, with the volumes of Pods somewhere below. The runtime keeps nothing
    /// there, but knows by the folder what an earlier process has started.
    pub folder: PathBuf,
    /// How the helper is started.
    pub helper: HelperCommand,
    /// How containers are kept apart; the best that is possible if it is not said.
    pub isolation: Option<Isolation>,
}

impl Options {
    /// The usual ones: this program is the helper, too.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        // Not the path of the program, which an update may have replaced.
        let program = PathBuf::from("/proc/self/exe");
        let helper = HelperCommand { program, args: vec![HELPER_ARGUMENT.into()] };
        Options { folder: folder.into(), helper, isolation: None }
    }
}

/// A program that calls [`process_helper`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelperCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
}

/// How containers are kept apart from each other and from the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// By pid, mount, uts and ipc namespaces, which root may make.
    Root,
    /// By the same within a user namespace, in which the node's user is the only one.
    User,
    /// Not at all: a container is a session of processes among others.
    None,
}
