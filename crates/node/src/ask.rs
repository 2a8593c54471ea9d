//! Asks a container how it is, or tells it something: probes and hooks by program, HTTP and TCP.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{
    Container as ContainerOfSpec, HTTPGetAction, LifecycleHandler, Probe, TCPSocketAction,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::runtime::{Container, Ending, ExecOutcome};

/// How much of what a probe says is kept for people: as a kubelet.
const KEEP_BYTES: usize = 1024;

/// How much of an answer's head is read: the first line is all that counts.
const HEAD_BYTES: usize = 512;

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
        } else {
            Err("this kind of probe is not supported on this node; use exec, httpGet or \
                 tcpSocket"
                .to_owned())
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
            Err("this kind of hook is not supported on this node; use exec, httpGet or sleep"
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
        if get.scheme.as_deref() == Some("HTTPS") {
            return Err("HTTPS is not supported for probes and hooks on this node; use HTTP or \
                        exec"
                .to_owned());
        }
        let port = self.port(&get.port)?;
        let host = self.host(get.host.as_deref());
        let path = get.path.as_deref().filter(|path| path.starts_with('/')).unwrap_or("/");
        let code = request(&host, port, path, get).await;
        match code.map_err(|error| format!("Get \"http://{host}:{port}{path}\": {error}"))? {
            200..400 => Ok(()),
            code => Err(format!("HTTP probe failed with statuscode: {code}")),
        }
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

async fn within(limit: Duration, asked: impl Future<Output = Answer>) -> Answer {
    match tokio::time::timeout(limit, asked).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("no answer within {}s", limit.as_secs())),
    }
}

/// Sends a request and gives the code of the answer.
async fn request(host: &str, port: u16, path: &str, get: &HTTPGetAction) -> std::io::Result<u16> {
    let mut stream = TcpStream::connect((host, port)).await?;
    let is_plain = |text: &str| !text.contains(['\r', '\n']);
    let headers = get.http_headers.as_deref().unwrap_or_default();
    let own_host = headers.iter().find(|it| it.name.eq_ignore_ascii_case("host"));
    let host = own_host.map_or_else(|| format!("{host}:{port}"), |it| it.value.clone());
    let mut text =
        format!("GET {} HTTP/1.1\r\nHost: {host}\r\n", path.replace(['\r', '\n', ' '], "%20"));
    for header in headers.iter().filter(|it| !it.name.eq_ignore_ascii_case("host")) {
        if is_plain(&header.name) && is_plain(&header.value) {
            text.push_str(&format!("{}: {}\r\n", header.name, header.value));
        }
    }
    if !headers.iter().any(|it| it.name.eq_ignore_ascii_case("user-agent")) {
        text.push_str("User-Agent: kube-probe/1.36\r\n");
    }
    text.push_str("Connection: close\r\n\r\n");
    stream.write_all(text.as_bytes()).await?;
    let mut head = Vec::new();
    let mut buffer = [0; HEAD_BYTES];
    while !head.contains(&b'\n') && head.len() < HEAD_BYTES {
        match stream.read(&mut buffer).await? {
            0 => break,
            read => head.extend_from_slice(&buffer[..read]),
        }
    }
    let line = String::from_utf8_lossy(&head);
    let code = line.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
    code.ok_or_else(|| std::io::Error::other("the answer is not HTTP"))
}

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;
    use serde_json::json;
    use tokio::net::TcpListener;

    use super::*;
    use crate::runtime::{Exit, RuntimeError, Signal};

    /// A container that is asked over the network only.
    #[derive(Debug)]
    struct Mute;

    impl Container for Mute {
        fn started_at(&self) -> jiff::Timestamp {
            jiff::Timestamp::UNIX_EPOCH
        }

        fn wait(&self) -> BoxFuture<'_, Exit> {
            unreachable!("nobody waits")
        }

        fn signal(&self, _: Signal) {}

        fn exec(
            &self,
            _: Vec<String>,
            _: Option<Duration>,
            _: usize,
        ) -> BoxFuture<'_, Result<ExecOutcome, RuntimeError>> {
            unreachable!("nothing is run")
        }
    }

    fn asked(port: u16) -> Asked {
        let spec = json!({"name": "c", "ports": [{"name": "web", "containerPort": port}]});
        Asked {
            spec: serde_json::from_value(spec).expect("a container"),
            container: Arc::new(Mute),
            address: Ipv4Addr::LOCALHOST,
        }
    }

    fn probe(probe: serde_json::Value) -> Probe {
        serde_json::from_value(probe).expect("a probe")
    }

    #[tokio::test]
    async fn an_http_probe_is_answered_by_the_code() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("it has one").port();
        let serving = tokio::spawn(async move {
            let mut heard = Vec::new();
            for code in ["200 OK", "302 Found", "404 Not Found", "nonsense"] {
                let (mut stream, _) = listener.accept().await.expect("somebody asks");
                let mut buffer = [0; 1024];
                let read = stream.read(&mut buffer).await.expect("a request");
                heard.push(String::from_utf8_lossy(&buffer[..read]).into_owned());
                let answer = format!("HTTP/1.1 {code}\r\nContent-Length: 0\r\n\r\n");
                stream.write_all(answer.as_bytes()).await.expect("they listen");
            }
            heard
        });
        let get = probe(json!({"httpGet": {"path": "/healthz?x=1", "port": "web",
            "httpHeaders": [{"name": "Host", "value": "me"}, {"name": "X-A", "value": "b"}]}}));
        let asked = asked(port);
        let mut answers = Vec::new();
        for _ in 0..4 {
            answers.push(asked.probe(&get).await.map_err(|why| why.contains("404")));
        }
        assert_eq!(answers, [Ok(()), Ok(()), Err(true), Err(false)]);
        let heard = serving.await.expect("it served");
        assert!(heard[0].starts_with("GET /healthz?x=1 HTTP/1.1\r\nHost: me\r\nX-A: b\r\n"));
        assert!(heard[0].contains("User-Agent: kube-probe/1.36\r\n"), "{}", heard[0]);
    }

    #[tokio::test]
    async fn a_tcp_probe_is_answered_by_who_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("it has one").port();
        let tcp = probe(json!({"tcpSocket": {"port": port}}));
        assert_eq!(asked(port).probe(&tcp).await, Ok(()));
        drop(listener);
        let why = asked(port).probe(&tcp).await.expect_err("nobody listens");
        assert!(why.contains(&format!("dial tcp 127.0.0.1:{port}")), "{why}");
        let rows = [
            (json!({"grpc": {"port": 1}}), "not supported on this node"),
            (json!({"tcpSocket": {"port": "none"}}), "no port is called \"none\""),
            (json!({"httpGet": {"port": 1, "scheme": "HTTPS"}}), "HTTPS is not supported"),
        ];
        for (unsupported, expected) in rows {
            let why = asked(1).probe(&probe(unsupported)).await.expect_err("it cannot be");
            assert!(why.contains(expected), "{why}");
        }
    }
}
