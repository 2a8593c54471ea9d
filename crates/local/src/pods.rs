//! The node in the cluster: whoever runs Pods, where their logs come from, and who visits them.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use stint_apiserver::console::{Console, ConsoleSource, Errand, Piece, Session, Size, Wanted};
use stint_apiserver::log::{LogOptions, LogSource, LogStream, LogText};
use stint_node::{Consoles, Ending, Logs, Node, Runtime, Visited};

/// The one node of a cluster.
#[derive(Debug)]
pub struct NodeOptions {
    /// What runs containers.
    pub runtime: Arc<dyn Runtime>,
    /// The node; its clock and gate are the cluster's.
    pub options: stint_node::Options,
    /// How long Pods may take to end when the cluster stops; their own grace if that is shorter.
    pub grace: Duration,
}

/// The node while it runs.
pub(crate) struct Running {
    node: Node,
    grace: Duration,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("grace", &self.grace).finish_non_exhaustive()
    }
}

impl Running {
    /// Starts a node, whose logs are read by `logs` from now on, and whose containers are visited by
    /// `consoles`.
    pub(crate) fn start(
        options: NodeOptions,
        client: kube::Client,
        clock: stint_apiserver::Clock,
        logs: &NodeLogs,
        consoles: &NodeConsoles,
    ) -> Self {
        let NodeOptions { runtime, options, grace } = options;
        let clock = stint_node::Clock::new(move || clock.now());
        let node = Node::start(client, runtime, stint_node::Options { clock, ..options });
        let is_first =
            logs.logs.set(node.logs()).is_ok() && consoles.consoles.set(node.consoles()).is_ok();
        debug_assert!(is_first, "a cluster has one node");
        Running { node, grace }
    }

    /// Ends its Pods with grace, and says what has become of them.
    pub(crate) async fn stop(self) {
        self.node.shutdown(self.grace).await;
    }
}

/// The logs of the node, once there is one.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeLogs {
    logs: Arc<OnceLock<Logs>>,
}

impl NodeLogs {
    /// Those of a node that does not run.
    pub(crate) fn of(logs: Logs) -> Self {
        NodeLogs { logs: Arc::new(OnceLock::from(logs)) }
    }
}

impl LogSource for NodeLogs {
    fn open(&self, pod: &Pod, options: &LogOptions) -> Result<LogText, String> {
        match self.logs.get() {
            Some(logs) => logs.open(pod, &translate(options)),
            None => {
                let container = &options.container;
                Err(format!("container \"{container}\" has no log: no node runs Pods here yet"))
            }
        }
    }
}

fn translate(options: &LogOptions) -> stint_node::LogOptions {
    let LogOptions { container, follow, previous, since, timestamps, .. } = options.clone();
    stint_node::LogOptions {
        container,
        follow,
        previous,
        run: options.run.map(|run| u32::try_from(run).unwrap_or(u32::MAX)),
        since,
        timestamps,
        tail_lines: options.tail_lines,
        limit_bytes: options.limit_bytes,
        stream: match options.stream {
            LogStream::All => stint_node::LogStream::All,
            LogStream::Stdout => stint_node::LogStream::Stdout,
            LogStream::Stderr => stint_node::LogStream::Stderr,
        },
    }
}

/// The containers of the node, once there is one.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeConsoles {
    consoles: Arc<OnceLock<Consoles>>,
}

impl ConsoleSource for NodeConsoles {
    fn find(&self, pod: &Pod, container: &str) -> Option<Box<dyn Console>> {
        let visited = self.consoles.get()?.find(pod, container)?;
        Some(Box::new(NodeConsole { visited }))
    }
}

/// A container of the node.
struct NodeConsole {
    visited: Visited,
}

impl Console for NodeConsole {
    fn visit(
        self: Box<Self>,
        errand: Errand,
        wanted: Wanted,
    ) -> BoxFuture<'static, Result<Session, String>> {
        let Wanted { stdin, stdout, stderr, tty } = wanted;
        let wanted = stint_node::Wanted { stdin, stdout, stderr, terminal: tty };
        Box::pin(async move {
            let begun = match errand {
                Errand::Exec { command } => self.visited.exec(command, wanted).await,
                Errand::Attach => self.visited.attach(wanted),
            };
            begun.map(session).map_err(|error| error.to_string())
        })
    }
}

fn session(begun: stint_node::Session) -> Session {
    let stint_node::Session { stdin, output, terminal } = begun;
    let resize = terminal.map(|terminal| {
        let resize = move |size: Size| terminal.resize(size.columns, size.rows);
        Box::new(resize) as Box<dyn Fn(Size) + Send + Sync>
    });
    let output = output.map(|piece| match piece {
        stint_node::Piece::Stdout(bytes) => Piece::Stdout(bytes),
        stint_node::Piece::Stderr(bytes) => Piece::Stderr(bytes),
        stint_node::Piece::Ended(ending @ (Ending::Code(_) | Ending::Signal(_))) => {
            Piece::Exited(ending.code())
        }
        stint_node::Piece::Ended(Ending::Lost) => {
            Piece::Lost("what ran it has ended, and so has the command".to_owned())
        }
    });
    Session { stdin, output: Box::pin(output), resize }
}
