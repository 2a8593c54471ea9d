//! `/healthz`, `/readyz` and `/metrics`, on an address of their own: for the kubelet and for
//! Prometheus. Nothing can be changed there, and nothing secret is told.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::sockopt::set_ipv6_v6only;
use stint_controller::{Health, Metrics};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::AbortHandle;

use crate::controller_args::Listen;

/// How many may be connected: a kubelet and a few Prometheus servers, and room for people. One more
/// takes the place of the one that was silent longest, so that no number of idle connections keeps
/// a probe out.
const MOST_CONNECTIONS: usize = 64;

/// How many may wait to be let in: as many as may be connected.
const BACKLOG: u32 = MOST_CONNECTIONS as u32;

/// How long a request may take to arrive, and how long a connection may be idle.
const READ_TIME: Duration = Duration::from_secs(30);

/// How long to wait after a connection could not be accepted: descriptors may have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The text form that the counters are written in.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Listens where it was asked for. At all addresses means IPv6 and IPv4 by one socket, as a Pod may
/// have addresses of either kind or of both; and IPv4 alone where the machine has no other.
pub(super) async fn listen(place: Listen) -> io::Result<Option<TcpListener>> {
    match place {
        Listen::Off => Ok(None),
        Listen::At(address) => TcpListener::bind(address).await.map(Some),
        Listen::Anywhere(port) => either(bind_both(port), || bind_v4(port)).map(Some),
    }
}

/// The first, or the second if there is no IPv6. A port that is taken is taken.
fn either<T>(first: io::Result<T>, second: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    match first {
        Err(error)
            if !matches!(error.kind(), ErrorKind::AddrInUse | ErrorKind::PermissionDenied) =>
        {
            second()
        }
        settled => settled,
    }
}

fn bind_both(port: u16) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v6()?;
    // Whatever the machine's default is.
    set_ipv6_v6only(&socket, false)?;
    started(&socket, (Ipv6Addr::UNSPECIFIED, port).into())?;
    socket.listen(BACKLOG)
}

fn bind_v4(port: u16) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    started(&socket, (Ipv4Addr::UNSPECIFIED, port).into())?;
    socket.listen(BACKLOG)
}

fn started(socket: &TcpSocket, address: SocketAddr) -> io::Result<()> {
    // So that a restart need not wait for connections of the one before.
    socket.set_reuseaddr(true)?;
    socket.bind(address)
}

/// Answers for ever.
pub(super) async fn serve(listener: TcpListener, health: Health, metrics: Metrics) {
    serve_within(listener, health, metrics, MOST_CONNECTIONS, READ_TIME).await;
}

async fn serve_within(
    listener: TcpListener,
    health: Health,
    metrics: Metrics,
    most_connections: usize,
    read_time: Duration,
) {
    let guests = Arc::new(Mutex::new(Guests::default()));
    let mut id = 0;
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        id += 1;
        let (health, metrics, heard) = (health.clone(), metrics.clone(), Arc::clone(&guests));
        let respond = move |request: Request<Incoming>| {
            locked(&heard).hear(id);
            let answer = answer(request.method(), request.uri().path(), &health, &metrics);
            std::future::ready(Ok::<_, Infallible>(answer))
        };
        let task = tokio::spawn(converse(stream, read_time, respond));
        locked(&guests).admit(id, task.abort_handle(), most_connections);
    }
}

async fn converse<R>(stream: TcpStream, read_time: Duration, respond: R)
where
    R: Fn(Request<Incoming>) -> std::future::Ready<Result<Response<Full<Bytes>>, Infallible>>,
{
    // Whoever hangs up knows why.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(read_time)
        .serve_connection(TokioIo::new(stream), service_fn(respond))
        .await;
}

/// Who is connected, the one that was silent longest in front.
#[derive(Debug, Default)]
struct Guests(Vec<(u64, AbortHandle)>);

impl Guests {
    fn hear(&mut self, id: u64) {
        if let Some(place) = self.0.iter().position(|guest| guest.0 == id) {
            let guest = self.0.remove(place);
            self.0.push(guest);
        }
    }

    fn admit(&mut self, id: u64, guest: AbortHandle, most: usize) {
        self.0.retain(|(_, guest)| !guest.is_finished());
        if self.0.len() >= most {
            self.0.remove(0).1.abort();
        }
        self.0.push((id, guest));
    }
}

fn locked(guests: &Mutex<Guests>) -> std::sync::MutexGuard<'_, Guests> {
    guests.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(
    method: &Method,
    path: &str,
    health: &Health,
    metrics: &Metrics,
) -> Response<Full<Bytes>> {
    let (code, kind, text) = match (method, path) {
        (&Method::GET | &Method::HEAD, "/healthz" | "/livez") => match health.alive() {
            Ok(()) => (StatusCode::OK, PLAIN, "ok".to_owned()),
            Err(why) => (StatusCode::SERVICE_UNAVAILABLE, PLAIN, why),
        },
        (&Method::GET | &Method::HEAD, "/readyz") => match health.ready() {
            Ok(text) => (StatusCode::OK, PLAIN, text),
            Err(why) => (StatusCode::SERVICE_UNAVAILABLE, PLAIN, why),
        },
        (&Method::GET | &Method::HEAD, "/metrics") => {
            (StatusCode::OK, OPEN_METRICS, metrics.text())
        }
        (&Method::GET | &Method::HEAD, _) => {
            let text = "there is /healthz, /readyz and /metrics".to_owned();
            (StatusCode::NOT_FOUND, PLAIN, text)
        }
        _ => (StatusCode::METHOD_NOT_ALLOWED, PLAIN, "only GET and HEAD".to_owned()),
    };
    let text = if kind == PLAIN { text + "\n" } else { text };
    let answer = Response::builder().status(code).header(CONTENT_TYPE, kind);
    answer.body(Full::new(text.into())).expect("its headers are constants")
}

#[cfg(test)]
mod tests {
    use stint_controller::Ticks;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Until the headers of an answer have come, or the other side hangs up.
    async fn answered(stream: &mut TcpStream) -> String {
        let mut text = Vec::new();
        while !text.ends_with(b"ok\n") {
            match stream.read_u8().await {
                Ok(byte) => text.push(byte),
                Err(_) => break,
            }
        }
        String::from_utf8(text).expect("it is text")
    }

    #[tokio::test]
    async fn idle_connections_keep_no_probe_out_and_the_one_silent_longest_makes_room() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("it can listen");
        let address = listener.local_addr().expect("an address");
        let (health, metrics) = (Health::new(Ticks::system()), Metrics::new());
        let hour = Duration::from_secs(3600);
        let serving = tokio::spawn(serve_within(listener, health, metrics, 3, hour));
        let ask = async |stream: &mut TcpStream| {
            stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n").await.expect("sent");
            answered(stream).await
        };
        let mut first = TcpStream::connect(address).await.expect("it is answered");
        let mut silent = TcpStream::connect(address).await.expect("it is answered");
        let _third = TcpStream::connect(address).await.expect("it is answered");
        assert!(ask(&mut first).await.starts_with("HTTP/1.1 200"), "it is heard of");
        let mut probe = TcpStream::connect(address).await.expect("it is answered");
        assert!(ask(&mut probe).await.starts_with("HTTP/1.1 200"));
        assert_eq!(silent.read(&mut [0]).await.expect("an end"), 0, "it was silent longest");
        assert!(ask(&mut first).await.starts_with("HTTP/1.1 200"), "it is still there");
        serving.abort();
    }

    #[tokio::test]
    async fn at_all_addresses_both_kinds_are_answered() {
        let listener = listen(Listen::Anywhere(0)).await.expect("it can listen");
        let port = listener.as_ref().expect("it listens").local_addr().expect("an address").port();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.expect("IPv4 is answered");
        // Only where there is IPv6 at all.
        if std::net::TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
            TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.expect("IPv6 is answered");
        }
        let taken = listen(Listen::Anywhere(port)).await.expect_err("it is taken");
        assert_eq!(taken.kind(), ErrorKind::AddrInUse);
        assert!(listen(Listen::Off).await.expect("nothing can fail").is_none());
    }

    #[tokio::test]
    async fn without_ipv6_ipv4_will_do() {
        let no_ipv6 = || Err(io::Error::from(rustix::io::Errno::AFNOSUPPORT));
        let listener = either(no_ipv6(), || bind_v4(0)).expect("it can listen");
        let address = listener.local_addr().expect("an address");
        assert!(address.is_ipv4());
        TcpStream::connect((Ipv4Addr::LOCALHOST, address.port())).await.expect("it is answered");
        let taken = Err(io::Error::from(rustix::io::Errno::ADDRINUSE));
        assert!(either(taken, || bind_v4(0)).is_err());
    }

    #[test]
    fn each_path_answers_what_it_is_asked() {
        let (health, metrics) = (Health::new(Ticks::system()), Metrics::new());
        let code =
            |method: Method, path: &str| answer(&method, path, &health, &metrics).status().as_u16();
        let rows = [
            (Method::GET, "/healthz", 200),
            (Method::GET, "/readyz", 503),
            (Method::GET, "/metrics", 200),
            (Method::GET, "/", 404),
            (Method::POST, "/metrics", 405),
        ];
        for (method, path, expected) in rows {
            assert_eq!(code(method, path), expected, "{path}");
        }
    }
}
