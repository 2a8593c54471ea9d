//! The node itself in the API: what it has, that it is ready, and that it lives.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::Method;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use crate::calls::{CallError, Calls};
use crate::feed::{News, feed};
use crate::options::Options;
use crate::path;

/// How long after its last sign a node counts as lost, in seconds.
const LEASE_SECONDS: u64 = 40;

/// How often the whole status is written although nothing has changed: as a kubelet.
const STATUS_EVERY: Duration = Duration::from_secs(300);

/// The version of Kubernetes whose kubelet this node behaves like.
const KUBELET_VERSION: &str = "v1.36.3";

/// The pause after a failure.
const RETRY: Duration = Duration::from_secs(1);

/// Why a node is not ready that was shut down.
const SHUTDOWN_REASON: &str = "NodeShutdown";

/// Whether the machine has crashed since the node was last seen: it was started again, and the
/// node was not shut down before. What was written then, and not to the API, may be lost.
pub(crate) async fn has_machine_crashed(calls: &Calls, options: &Options) -> bool {
    let known: Option<Node> = loop {
        match calls.get(&path::node(&options.node_name)).await {
            Ok(known) => break known,
            Err(error) => {
                tracing::warn!(node = options.node_name, %error, "cannot be read, trying again");
                tokio::time::sleep(RETRY).await;
            }
        }
    };
    let status = known.and_then(|node| node.status).unwrap_or_default();
    let was_shut_down = status.conditions.iter().flatten().any(|condition| {
        condition.type_ == "Ready" && condition.reason.as_deref() == Some(SHUTDOWN_REASON)
    });
    let (before, now) = (status.node_info.map_or_else(String::new, |it| it.boot_id), boot_id());
    !was_shut_down && !before.is_empty() && !now.is_empty() && before != now
}

/// What tells this start of the machine from every other; empty where nothing does.
fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// Registers the node and gives signs of life, without end. If somebody deletes it, it comes back
/// at once. `last_status` is when its status was said last, `began` since when it is what it is.
pub(crate) async fn keep(
    calls: Calls,
    options: Options,
    runtime: &'static str,
    began: Timestamp,
    mut last_status: Option<Timestamp>,
) {
    let mut own = feed::<Node>(calls.client(), path::only_node(&options.node_name));
    let mut is_listed = true;
    loop {
        let now = options.clock.now();
        let is_due = last_status.is_none_or(|at| {
            Duration::try_from(now.duration_since(at)).is_ok_and(|it| it >= STATUS_EVERY)
        });
        let mut said = Ok(());
        if is_due {
            said = say_status(&calls, &options, runtime, began, true).await;
            if said.is_ok() {
                last_status = Some(now);
            }
        }
        let said = match said {
            Ok(()) => renew(&calls, &options).await,
            Err(error) => Err(error),
        };
        let pause = match said {
            Ok(()) => options.lease_interval,
            Err(error) => {
                tracing::warn!(node = options.node_name, %error, "cannot register, trying again");
                RETRY
            }
        };
        if tokio::time::timeout(pause, deleted(&mut own, &mut is_listed)).await.is_ok() {
            last_status = None;
        }
    }
}

/// Waits until the node is not in the API any more. Whether the list that is being read has named
/// it is kept if nobody waits any more.
async fn deleted(own: &mut BoxStream<'static, News<Node>>, is_listed: &mut bool) {
    while let Some(news) = own.next().await {
        match news {
            News::Began => *is_listed = false,
            News::Seen(_) => *is_listed = true,
            News::Complete if *is_listed => {}
            News::Complete | News::Gone(_) => return,
        }
    }
}

/// Says what the node has and whether it is ready. It is created if it does not exist.
pub(crate) async fn say_status(
    calls: &Calls,
    options: &Options,
    runtime: &str,
    since: Timestamp,
    is_ready: bool,
) -> Result<(), CallError> {
    let status = node_status(options, runtime, since, is_ready);
    let path = format!("{}/status", path::node(&options.node_name));
    let patch = json!({"status": status});
    match calls.send(Method::PATCH, &path, path::STRATEGIC, &patch).await {
        Err(CallError::NotFound) => {}
        answer => return answer.map(drop),
    }
    let node = node(options, status);
    match calls.send(Method::POST, path::NODES, path::JSON, &node).await {
        // A creation that was cut off by a shutdown was done all the same.
        Err(CallError::Exists) => {
            calls.send(Method::PATCH, &path, path::STRATEGIC, &patch).await.map(drop)
        }
        answer => answer.map(drop),
    }
}

impl Options {
    /// The node as it will be in the API, but for what runs its containers: for whoever wants to
    /// know before it starts what it has.
    pub fn to_node(&self) -> Node {
        let status = node_status(self, "", self.clock.now(), true);
        serde_json::from_value(node(self, status)).expect("it is a Node")
    }
}

async fn renew(calls: &Calls, options: &Options) -> Result<(), CallError> {
    let now = format!("{:.6}", options.clock.now());
    let patch = json!({"spec": {"renewTime": now}});
    let path = path::lease(&options.node_name);
    match calls.send(Method::PATCH, &path, path::MERGE, &patch).await {
        Err(CallError::NotFound) => {}
        answer => return answer.map(drop),
    }
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": options.node_name, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": options.node_name, "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": now},
    });
    calls.send(Method::POST, path::LEASES, path::JSON, &lease).await.map(drop)
}

/// The node as it is created.
fn node(options: &Options, status: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": options.node_name, "labels": {
            "kubernetes.io/hostname": options.node_name,
            "kubernetes.io/os": "linux", "kubernetes.io/arch": architecture(),
        }},
        "status": status,
    })
}

fn node_status(options: &Options, runtime: &str, since: Timestamp, is_ready: bool) -> Value {
    let seconds = |time: Timestamp| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let (now, since) = (seconds(options.clock.now()), seconds(since));
    let condition = |kind: &str, holds: bool, reason: &str, message: &str, since: &str| {
        json!({"type": kind, "status": if holds { "True" } else { "False" }, "reason": reason,
            "message": message, "lastHeartbeatTime": now, "lastTransitionTime": since})
    };
    let amounts = json!({
        "cpu": format!("{}m", options.cpu_millis),
        "memory": options.memory_bytes.to_string(),
        "pods": options.max_pods.to_string(),
    });
    let ready = match is_ready {
        true => condition("Ready", true, "KubeletReady", "stint runs Pods", &since),
        false => condition("Ready", false, SHUTDOWN_REASON, "stint has been stopped", &now),
    };
    let enough = |kind: &str, what: &str| {
        let reason = format!("KubeletHas{what}");
        condition(kind, false, &reason, "this is not watched by the node", &since)
    };
    let uname = rustix::system::uname();
    json!({
        "capacity": amounts, "allocatable": amounts,
        "conditions": [
            ready,
            enough("MemoryPressure", "SufficientMemory"),
            enough("DiskPressure", "NoDiskPressure"),
            enough("PIDPressure", "SufficientPID"),
        ],
        "addresses": [
            {"type": "InternalIP", "address": options.host_address.to_string()},
            {"type": "Hostname", "address": options.node_name},
        ],
        "nodeInfo": {
            "machineID": "", "systemUUID": "", "bootID": boot_id(),
            "kernelVersion": uname.release().to_string_lossy(),
            "osImage": uname.sysname().to_string_lossy(),
            "containerRuntimeVersion": format!("{runtime}://{}", env!("CARGO_PKG_VERSION")),
            "kubeletVersion": KUBELET_VERSION, "kubeProxyVersion": "",
            "operatingSystem": "linux", "architecture": architecture(),
        },
    })
}

/// The machine's kind, as Kubernetes names it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
