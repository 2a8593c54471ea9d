//! The node in the cluster: whoever runs Pods, and where their logs come from.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use stint_apiserver::log::{LogOptions, LogSource, LogStream, LogText};
use stint_node::{Logs, Node, Runtime};

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
    /// Starts a node, whose logs are read by `logs` from now on.
    pub(crate) fn start(
        options: NodeOptions,
        client: kube::Client,
        clock: stint_apiserver::Clock,
        logs: &NodeLogs,
    ) -> Self {
        let NodeOptions { runtime, options, grace } = options;
        let clock = stint_node::Clock::new(move || clock.now());
        let node = Node::start(client, runtime, stint_node::Options { clock, ..options });
        let is_first = logs.logs.set(node.logs()).is_ok();
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
