//! Asks a container how it is, or tells it something: probes and hooks by program, HTTP, TCP and
//! gRPC.

mod grpc;
mod http;
mod tls;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{
    Container as ContainerOfSpec, GRPCAction, HTTPGetAction, LifecycleHandler, Probe,
    TCPSocketAction,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::net::TcpStream;

use crate::runtime::{Container, Ending, ExecOutcome};

/// How much of what a probe says is kept for people: as a kubelet.
const KEEP_BYTES: usize = 1024;

/// What came of asking.
pub(crate) type Answer = Result<(), String>;

/// Whom to ask.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) spec: ContainerOfSpec,
    pub(crate) container: Arc<dyn Container>,
    pub(crate) address: Ipv4Addr,
}

impl Asked {
    /// Asks a probe's question.
    pub(crate) async fn probe(&self, probe: &Probe) -> Answer {
        let seconds = probe.timeout_seconds.unwrap_or(1).max(1);
        let limit = Duration::from_secs(seconds.unsigned_abs().into());
        if let Some(exec) = &probe.exec {
            self.exec(exec.command.clone().unwrap_or_default(), Some(limit)).await
        } else if let Some(get) = &probe.http_get {
            within(limit, self.http_get(get)).await
        } else if let Some(socket) = &probe.tcp_socket {
            within(limit, self.tcp(socket)).await
        } else if let Some(action) = &probe.grpc {
            within(limit, self.grpc(action)).await
        } else {
            Err("it says neither exec nor httpGet, tcpSocket or grpc".to_owned())
        }
    }

    /// Runs a hook, for so long at most.
    pub(crate) async fn hook(&self, hook: &LifecycleHandler, limit: Option<Duration>) -> Answer {
        if let Some(exec) = &hook.exec {
            self.exec(exec.command.clone().unwrap_or_default(), limit).await
        } else if let Some(sleep) = &hook.sleep {
            let seconds = u64::try_from(sleep.seconds).unwrap_or(0);
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(())
        } else if let Some(get) = &hook.http_get {
            match limit {
                Some(limit) => within(limit, self.http_get(get)).await,
                None => self.http_get(get).await,
            }
        } else {
            Err("this kind of hook (tcpSocket) is not supported; use exec, httpGet or sleep"
                .to_owned())
        }
    }

    async fn exec(&self, command: Vec<String>, limit: Option<Duration>) -> Answer {
        if command.is_empty() {
            return Err("it has no command".to_owned());
        }
        let program = command.join(" ");
        let asked = self.container.exec(command, limit, KEEP_BYTES).await;
        let ExecOutcome { ending, output } = asked.map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output).trim_end().to_owned();
        match ending {
            Some(Ending::Code(0)) => Ok(()),
            Some(_) if !said.is_empty() => Err(said),
            Some(ending) => Err(format!("command {program:?} ended with {}", ending.code())),
            None => Err(format!("command {program:?} timed out")),
        }
    }

    async fn tcp(&self, socket: &TCPSocketAction) -> Answer {
        let port = self.port(&socket.port)?;
        let host = self.host(socket.host.as_deref());
        let reached = TcpStream::connect((host.as_str(), port)).await;
        reached.map(drop).map_err(|error| format!("dial tcp {host}:{port}: {error}"))
    }

    async fn http_get(&self, get: &HTTPGetAction) -> Answer {
        let port = self.port(&get.port)?;
        let host = self.host(get.host.as_deref());
        let path = target(get.path.as_deref().unwrap_or(""));
        let scheme = if get.scheme.as_deref() == Some("HTTPS") { "https" } else { "http" };
        let code = http::request(&host, port, &path, get).await;
        match code.map_err(|error| format!("Get \"{scheme}://{host}:{port}{path}\": {error}"))? {
            200..400 => Ok(()),
            code => Err(format!("HTTP probe failed with statuscode: {code}")),
        }
    }

    async fn grpc(&self, action: &GRPCAction) -> Answer {
        let port = self.port(&IntOrString::Int(action.port))?;
        grpc::check(&self.host(None), port, action.service.as_deref().unwrap_or("")).await
    }

    fn host(&self, given: Option<&str>) -> String {
        let given = given.filter(|host| !host.is_empty());
        given.map_or_else(|| IpAddr::from(self.address).to_string(), str::to_owned)
    }

    fn port(&self, port: &IntOrString) -> Result<u16, String> {
        let number = match port {
            IntOrString::Int(number) => *number,
            IntOrString::String(name) => {
                let ports = self.spec.ports.iter().flatten();
                let mut named = ports.filter(|port| port.name.as_deref() == Some(name.as_str()));
                match named.next() {
                    Some(port) => port.container_port,
                    None => name.parse().map_err(|_| format!("no port is called {name:?}"))?,
                }
            }
        };
        u16::try_from(number).map_err(|_| format!("{number} is no port"))
    }
}

/// What is asked for by the path of a manifest, as a kubelet does it: from the root on, and without
/// a fragment.
fn target(path: &str) -> String {
    let path = path.split('#').next().unwrap_or_default();
    let root = if path.starts_with('/') { "" } else { "/" };
    format!("{root}{path}")
}

async fn within(limit: Duration, asked: impl Future<Output = Answer>) -> Answer {
    match tokio::time::timeout(limit, asked).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("no answer within {}s", limit.as_secs())),
    }
}

#[cfg(test)]
mod tests;
