//! Probes of servers that the tests play themselves, on ports that are free.

use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
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

/// Answers one request with a code; what was asked.
async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, code: &str) -> String {
    let mut buffer = [0; 1024];
    let read = stream.read(&mut buffer).await.expect("a request");
    let answer = format!("HTTP/1.1 {code}\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(answer.as_bytes()).await.expect("they listen");
    stream.flush().await.expect("they listen");
    String::from_utf8_lossy(&buffer[..read]).into_owned()
}

#[tokio::test]
async fn an_https_probe_takes_any_certificate() {
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;
    use tokio_rustls::rustls::{ServerConfig, crypto::ring};
    let own = rcgen::generate_simple_self_signed(["somebody.else".to_owned()]).expect("one");
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .expect("ring knows all versions")
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .expect("it fits");
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("it has one").port();
    let serving = tokio::spawn(async move {
        for code in ["200 OK", "500 Internal Server Error"] {
            let (stream, _) = listener.accept().await.expect("somebody asks");
            let stream = acceptor.accept(stream).await.expect("they take it");
            let heard = answer(stream, code).await;
            assert!(heard.starts_with("GET /healthz HTTP/1.1\r\n"), "{heard}");
        }
    });
    let get = probe(json!({"httpGet": {"path": "/healthz", "port": "web", "scheme": "HTTPS"}}));
    assert_eq!(asked(port).probe(&get).await, Ok(()));
    let why = asked(port).probe(&get).await.expect_err("it is unwell");
    assert_eq!(why, "HTTP probe failed with statuscode: 500");
    serving.await.expect("it served");
}

#[tokio::test]
async fn a_path_is_asked_for_from_the_root_on() {
    let rows = [
        ("/healthz", "/healthz"),
        ("healthz", "/healthz"),
        ("healthz?full=1", "/healthz?full=1"),
        ("?full=1", "/?full=1"),
        ("/a b#part", "/a%20b"),
        ("", "/"),
    ];
    for (path, expected) in rows {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("it has one").port();
        let serving = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.expect("somebody asks");
            answer(stream, "200 OK").await
        });
        let get = probe(json!({"httpGet": {"path": path, "port": port}}));
        assert_eq!(asked(port).probe(&get).await, Ok(()), "{path}");
        let heard = serving.await.expect("it served");
        assert!(heard.starts_with(&format!("GET {expected} HTTP/1.1\r\n")), "{path}: {heard}");
        assert!(heard.contains("\r\nAccept: */*\r\n"), "{heard}");
    }
}

/// A server of the gRPC health protocol that knows these services, until it is dropped.
async fn serve_health() -> (u16, tokio::task::JoinSet<()>) {
    use bytes::Bytes;
    use http_body_util::{BodyExt, StreamBody};
    use hyper::body::{Frame, Incoming};
    use hyper_util::rt::{TokioExecutor, TokioIo};
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("it has one").port();
    let health = async |request: ::http::Request<Incoming>| {
        assert_eq!(request.uri().path(), "/grpc.health.v1.Health/Check");
        assert_eq!(request.headers()["content-type"], "application/grpc");
        let asked = request.into_body().collect().await.expect("a message").to_bytes();
        let service = String::from_utf8(asked[5..].iter().skip(2).copied().collect());
        let (message, code): (&[u8], &str) = match service.expect("text").as_str() {
            "" | "good" => (&[8, 1], "0"),
            "bad" => (&[8, 2], "0"),
            "none" => (&[], "0"),
            "other" => (&[], "12"),
            _ => (&[], "5"),
        };
        let mut trailers = ::http::HeaderMap::new();
        trailers.insert("grpc-status", code.parse().expect("a code"));
        trailers.insert("grpc-message", "why%20not".parse().expect("text"));
        let mut answer = vec![0, 0, 0, 0, message.len() as u8];
        answer.extend_from_slice(message);
        let frames = [Frame::data(Bytes::from(answer)), Frame::trailers(trailers)];
        let frames = futures_util::stream::iter(frames.map(Ok::<_, std::convert::Infallible>));
        Ok::<_, std::convert::Infallible>(::http::Response::new(StreamBody::new(frames)))
    };
    let mut serving = tokio::task::JoinSet::new();
    serving.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("somebody asks");
            let service = hyper::service::service_fn(health);
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
        }
    });
    (port, serving)
}

#[tokio::test]
async fn a_grpc_probe_is_answered_by_the_health_protocol() {
    let (port, _serving) = serve_health().await;
    let rows = [
        ("", None),
        ("good", None),
        ("bad", Some("service unhealthy (responded with \"NOT_SERVING\")")),
        ("none", Some("service unhealthy (responded with \"UNKNOWN\")")),
        ("other", Some("does not implement the grpc health protocol")),
        ("another", Some("error: health rpc probe failed: code = 5 desc = why not")),
    ];
    for (service, expected) in rows {
        let grpc = probe(json!({"grpc": {"port": port, "service": service}}));
        match (asked(port).probe(&grpc).await, expected) {
            (Ok(()), None) => {}
            (Err(why), Some(expected)) => assert!(why.contains(expected), "{service}: {why}"),
            (answer, _) => panic!("{service}: {answer:?}"),
        }
    }
    // Who speaks something else is not waited for without end.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("it has one").port();
    let why = asked(port).probe(&probe(json!({"grpc": {"port": port}}))).await;
    assert_eq!(why, Err("no answer within 1s".to_owned()));
}

#[tokio::test]
async fn an_http_probe_is_answered_by_the_code() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("it has one").port();
    let serving = tokio::spawn(async move {
        let mut heard = Vec::new();
        for code in ["200 OK", "302 Found", "404 Not Found", "nonsense"] {
            let (stream, _) = listener.accept().await.expect("somebody asks");
            heard.push(answer(stream, code).await);
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
        (json!({}), "it says neither"),
        (json!({"tcpSocket": {"port": "none"}}), "no port is called \"none\""),
        (json!({"httpGet": {"port": 1, "scheme": "HTTPS"}}), "Get \"https://127.0.0.1:1/\""),
        (json!({"grpc": {"port": 1}}), "failed to connect service at \"127.0.0.1:1\""),
    ];
    for (wrong, expected) in rows {
        let why = asked(1).probe(&probe(wrong)).await.expect_err("it cannot be");
        assert!(why.contains(expected), "{why}");
    }
}
