//! Clients that are slow, silent, dead, too loud, or no clients at all.

use crate::client::{Answer, Client, Offers};
use crate::server::{LONG, PATIENCE, Server};
use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http2;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::time::Duration;
use stint_apiserver::access::Role;
use stint_apiserver::wire::Limits;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const SHORT: Duration = Duration::from_millis(50);

/// Every time is long, so that a test can shorten the one that it is about.
fn patient() -> Limits {
    Limits {
        handshake_time: LONG,
        first_request_time: LONG,
        next_request_time: LONG,
        ping_interval: LONG,
        ping_time: LONG,
        ..Limits::default()
    }
}

/// Waits until the other side closes, and gives what it said before.
async fn rest(stream: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let mut said = Vec::new();
    // Whether it closes by the book or by resetting, it is closed.
    let _ = timeout(PATIENCE, stream.read_to_end(&mut said)).await.expect("it is closed in time");
    said
}

/// A client who says who it is.
fn known(server: &Server, offers: Offers) -> Client<'_> {
    Client::new(&server.certificates, offers).showing(server.certificates.client(Role::View))
}

/// The server is as it was.
async fn is_well(server: &Server) {
    let client = Client::new(&server.certificates, Offers::Both);
    let answer = client.get(server.address, "/livez").await.expect("an answer");
    assert_eq!(answer.text, "well");
}

#[tokio::test]
async fn whoever_does_not_shake_hands_is_dropped() {
    let server = Server::start_with(Limits { handshake_time: SHORT, ..patient() }, LONG).await;
    let mut stream = TcpStream::connect(server.address).await.expect("a connection");
    assert!(rest(&mut stream).await.is_empty());
}

#[tokio::test]
async fn whoever_is_silent_after_the_handshake_is_dropped() {
    let server = Server::start_with(Limits { first_request_time: SHORT, ..patient() }, LONG).await;
    for offers in [Offers::Http1, Offers::Http2] {
        let client = Client::new(&server.certificates, offers);
        rest(&mut client.connect(server.address).await.expect("a connection")).await;
    }
}

#[tokio::test]
async fn whoever_sends_a_head_slowly_is_dropped() {
    let server = Server::start_with(Limits { first_request_time: SHORT, ..patient() }, LONG).await;
    let client = Client::new(&server.certificates, Offers::Http1);
    let mut stream = client.connect(server.address).await.expect("a connection");
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\nx: ").await.expect("written");
    assert!(!rest(&mut stream).await.starts_with(b"HTTP/1.1 200"));
}

#[tokio::test]
async fn whoever_sends_a_further_head_slowly_is_dropped() {
    let server = Server::start_with(Limits { next_request_time: SHORT, ..patient() }, LONG).await;
    let client = Client::new(&server.certificates, Offers::Http1);
    let mut stream = client.connect(server.address).await.expect("a connection");
    let whole = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\nGET /livez HTTP/1.1\r\nx: ";
    stream.write_all(whole).await.expect("written");
    let said = rest(&mut stream).await;
    assert!(said.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&said));
}

#[tokio::test]
async fn a_request_may_take_longer_than_its_head() {
    let limits = Limits { first_request_time: SHORT, next_request_time: SHORT, ..patient() };
    let server = Server::start_with(limits, LONG).await;
    for offers in [Offers::Http1, Offers::Http2] {
        let client = known(&server, offers);
        let mut asking = Box::pin(client.get(server.address, "/held"));
        tokio::select! {
            answer = &mut asking => panic!("it is held: {answer:?}"),
            () = server.arrived.notified() => {}
        }
        let longer = timeout(4 * SHORT, &mut asking).await;
        assert!(longer.is_err(), "it is still held: {longer:?}");
        server.release.notify_one();
        asking.await.expect("an answer");
    }
}

#[tokio::test]
async fn whoever_does_not_say_who_they_are_does_not_stay() {
    let server = Server::start_with(Limits { first_request_time: SHORT, ..patient() }, LONG).await;
    let client = Client::new(&server.certificates, Offers::Http1);
    let mut idle = client.connect(server.address).await.expect("a connection");
    idle.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("written");
    assert!(rest(&mut idle).await.starts_with(b"HTTP/1.1 200"));
    for offers in [Offers::Http1, Offers::Http2] {
        let client = Client::new(&server.certificates, offers);
        let asking = timeout(PATIENCE, client.get(server.address, "/held")).await;
        asking.expect("in time").expect_err("it is held for too long");
    }
}

#[tokio::test]
async fn strangers_keep_nobody_out() {
    const ROOM: usize = 4;
    let server = Server::start_with(Limits { connections: ROOM, ..patient() }, LONG).await;
    let mut friend = known(&server, Offers::Http1).keep(server.address).await.expect("kept");
    assert_eq!(friend.get("/api").await.expect("an answer").text, "view");
    let unshaken = TcpStream::connect(server.address).await.expect("a connection");
    let stranger = Client::new(&server.certificates, Offers::Http1);
    let mut strangers = Vec::new();
    for _ in 0..ROOM {
        let connected = timeout(PATIENCE, stranger.keep(server.address)).await.expect("in time");
        let mut kept = connected.expect("a connection");
        assert_eq!(kept.get("/livez").await.expect("an answer").text, "well");
        strangers.push(kept);
    }
    let asking = known(&server, Offers::Both);
    let answer = timeout(PATIENCE, asking.get(server.address, "/api")).await.expect("in time");
    assert_eq!(answer.expect("an answer").text, "view");
    assert_eq!(friend.get("/api").await.expect("an answer").text, "view", "it may stay");
    strangers[0].get("/livez").await.expect_err("it has made room");
    drop(unshaken);
}

/// Connections of somebody who is known, over HTTP/2, on which nothing is under way any more.
async fn idle(server: &Server, count: usize) -> Vec<http2::SendRequest<Empty<Bytes>>> {
    let mut idle = Vec::new();
    for _ in 0..count {
        let stream = known(server, Offers::Http2).connect(server.address).await;
        let stream = TokioIo::new(stream.expect("a connection"));
        let shaken = http2::handshake(TokioExecutor::new(), stream).await;
        let (mut sender, connection) = shaken.expect("hands are shaken");
        tokio::spawn(connection);
        let request = Request::get("https://localhost/api").body(Empty::new());
        let answer = sender.send_request(request.expect("a request")).await.expect("an answer");
        assert_eq!(Answer::read(answer).await.expect("all of it").text, "view");
        idle.push(sender);
    }
    idle
}

#[tokio::test]
async fn who_is_known_and_idle_keeps_nobody_out() {
    const ROOM: usize = 3;
    let server = Server::start_with(Limits { connections: ROOM, ..patient() }, LONG).await;
    let idle = idle(&server, ROOM).await;
    for _ in 0..2 {
        timeout(PATIENCE, is_well(&server)).await.expect("it makes room");
    }
    assert!(!idle[ROOM - 1].is_closed(), "who was idle for the shortest time may stay");
}

#[tokio::test]
async fn who_is_known_and_idle_over_http2_leaves_in_time() {
    let limits = Limits { next_request_time: SHORT, ..patient() };
    let server = Server::start_with(limits, LONG).await;
    let mut idle = idle(&server, 1).await;
    let closed = async {
        while idle[0].ready().await.is_ok() {
            tokio::time::sleep(SHORT).await;
        }
    };
    timeout(PATIENCE, closed).await.expect("it is let go");
}

#[tokio::test]
async fn a_dead_http2_peer_is_found() {
    let limits = Limits { ping_interval: SHORT, ping_time: SHORT, ..patient() };
    let server = Server::start_with(limits, LONG).await;
    let client = Client::new(&server.certificates, Offers::Http2);
    let mut stream = client.connect(server.address).await.expect("a connection");
    // A preface, empty settings, and GET /, after which this peer answers nothing any more.
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let get = [0, 0, 3, 1, 5, 0, 0, 0, 1, 0x82, 0x84, 0x87];
    let said = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &settings[..], &get].concat();
    stream.write_all(&said).await.expect("written");
    rest(&mut stream).await;
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused() {
    let server = Server::start().await;
    let long = "a".repeat(Limits::default().head_bytes as usize);
    for offers in [Offers::Http1, Offers::Http2] {
        let request = Request::get("https://localhost/livez").header("x-long", &long);
        let request = request.body(Empty::<Bytes>::new()).expect("a request");
        let client = Client::new(&server.certificates, offers);
        // A client may notice the refusal before it has read it.
        if let Ok(answer) = client.ask(server.address, request).await {
            assert_eq!(answer.status, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "{offers:?}");
        }
    }
    is_well(&server).await;
}

#[tokio::test]
async fn too_many_headers_are_refused() {
    let server = Server::start().await;
    let mut request = Request::get("https://localhost/livez");
    for at in 0..200 {
        request = request.header(format!("x-{at}"), "x");
    }
    let request = request.body(Empty::<Bytes>::new()).expect("a request");
    let client = Client::new(&server.certificates, Offers::Http1);
    if let Ok(answer) = client.ask(server.address, request).await {
        assert_eq!(answer.status, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    is_well(&server).await;
}

#[tokio::test]
async fn a_long_head_within_the_limit_is_served() {
    let server = Server::start().await;
    let selector = "a".repeat(40 * 1024);
    for offers in [Offers::Http1, Offers::Http2] {
        let client = Client::new(&server.certificates, offers);
        let path = format!("/livez?labelSelector={selector}");
        let answer = client.get(server.address, &path).await.expect("an answer");
        assert_eq!(answer.status, StatusCode::OK, "{offers:?}");
    }
}

#[tokio::test]
async fn what_is_not_tls_is_closed() {
    let server = Server::start().await;
    for said in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\0\0\0\0", b"SSH-2.0-scan\r\n", &[0xff; 4096]] {
        let mut stream = TcpStream::connect(server.address).await.expect("a connection");
        let _ = stream.write_all(said).await;
        let _ = stream.shutdown().await;
        rest(&mut stream).await;
    }
    is_well(&server).await;
}

#[tokio::test]
async fn a_service_that_panics_ends_one_request_and_nothing_else() {
    let server = Server::start().await;
    for offers in [Offers::Http1, Offers::Http2] {
        let client = Client::new(&server.certificates, offers);
        client.get(server.address, "/panic").await.expect_err("it panicked");
        is_well(&server).await;
    }
}
