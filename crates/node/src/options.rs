//! What of a node can be chosen.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use crate::address::AddressRange;
use crate::backoff::BackoffOptions;
use crate::clock::Clock;
use crate::gate::Gate;
use crate::logs::{LogReaders, LogRotation};
#[cfg(target_os = "linux")]
use crate::machine::memory_bytes;

/// Where programs are looked for if this process does not know.
const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What a node is made of.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the node is called in the API.
    pub node_name: String,
    /// The folder of volumes, hosts files and logs; the node's alone.
    pub data: PathBuf,
    /// What time it is.
    pub clock: Clock,
    /// The environment that every container begins with. `HOSTNAME` is added to it.
    pub env: Vec<(String, String)>,
    /// Where the addresses of Pods are taken from.
    pub addresses: AddressRange,
    /// The node's own address.
    pub host_address: Ipv4Addr,
    /// How containers that end again and again are started again.
    pub backoff: BackoffOptions,
    /// How much output is kept.
    pub logs: LogRotation,
    /// Of which Pods somebody reads every log from its beginning, so that nothing of it goes before
    /// that.
    pub log_readers: LogReaders,
    /// Of how many Pods that were removed before they had ended, and have not succeeded, the logs
    /// stay until the next start, for whoever wants to know then what went wrong: the latest. The
    /// logs of all others go with them.
    pub stopped_logs: usize,
    /// How long a status that is not the last one waits for what comes next, so that a short Pod
    /// costs one write.
    pub status_delay: Duration,
    /// How often it is looked whether what the volumes of a Pod are made from has changed.
    pub volume_interval: Duration,
    /// How many containers are being started at once.
    pub starts_at_once: usize,
    /// How many Pods the node says it takes.
    pub max_pods: u32,
    /// Thousandths of a core that the node says it has.
    pub cpu_millis: u64,
    /// Bytes of memory that the node says it has. Only on Linux this is found out.
    pub memory_bytes: u64,
    /// Before it is open the node says that it is there and no more: nothing is begun, and nothing
    /// is said of what an earlier process has left.
    pub gate: Gate,
    /// How often the node gives a sign of life.
    pub lease_interval: Duration,
}

impl Options {
    /// A node of this machine's size, or that of the control group around this process, called so, with this folder.
    pub fn new(node_name: impl Into<String>, data: impl Into<PathBuf>) -> Self {
        let variable = |name: &str, usual: &str| {
            let value = std::env::var(name).ok().filter(|value| !value.is_empty());
            (name.to_owned(), value.unwrap_or_else(|| usual.to_owned()))
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Options {
            node_name: node_name.into(),
            data: data.into(),
            clock: Clock::system(),
            env: vec![variable("PATH", USUAL_PATH), variable("HOME", "/")],
            addresses: AddressRange::default(),
            host_address: Ipv4Addr::LOCALHOST,
            backoff: BackoffOptions::default(),
            logs: LogRotation::default(),
            log_readers: LogReaders::default(),
            stopped_logs: 0,
            status_delay: Duration::from_millis(30),
            // A kubelet takes a minute or more. A thousand Pods make 33 looks a second of this.
            volume_interval: Duration::from_secs(30),
            // More than this only makes each of them slower.
            starts_at_once: cores * 8,
            max_pods: 1000,
            cpu_millis: cores as u64 * 1000,
            memory_bytes: memory_bytes(),
            gate: Gate::default(),
            lease_interval: Duration::from_secs(10),
        }
    }
}

/// Whoever has a runtime for another system knows what it can use.
#[cfg(not(target_os = "linux"))]
fn memory_bytes() -> u64 {
    0
}
