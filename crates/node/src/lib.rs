//! The node: runs the Pods that are bound to this machine and reports how they fare.
//!
//! It must not know what Jobs are: a Pod is a Pod.

mod address;
mod ask;
mod backoff;
mod begun;
mod calls;
mod clock;
mod console;
mod consoles;
mod container_spec;
mod descriptors;
mod env;
mod env_file;
mod events;
mod expand;
mod feed;
mod field;
mod gate;
mod hosts;
mod hosts_files;
mod inlet;
mod life;
mod logs;
#[cfg(target_os = "linux")]
mod machine;
mod namespace_needs;
mod node;
mod options;
mod path;
mod process;
mod registration;
mod removal;
mod restart_policy;
mod runtime;
mod security;
mod services;
mod session;
mod sources;
mod spares;
mod status;
mod terminal;
mod termination;
mod unrunnable;
mod volumes;
mod worker;

pub use address::AddressRange;
pub use backoff::BackoffOptions;
pub use clock::Clock;
pub use consoles::{Consoles, Visited};
pub use descriptors::raise_descriptor_limit;
pub use gate::{Gate, GateKey};
pub use logs::{LogOptions, LogReaders, LogRotation, LogStream, LogText, Logs};
pub use node::Node;
pub use options::Options;
pub use process::{
    HELPER_ARGUMENT, HelperCommand, Isolation, Options as ProcessOptions, ProcessRuntime,
    process_helper,
};
pub use removal::remove_folder;
pub use runtime::{
    Beside, Container, ContainerSpec, Ending, ExecOutcome, Exit, Limits, Mount, Runtime,
    RuntimeError, Sandbox, SandboxSpec, Signal, Stdio,
};
pub use session::{Piece, Session, Wanted};
pub use terminal::Terminal;
pub use unrunnable::{Unrunnable, unrunnable};
