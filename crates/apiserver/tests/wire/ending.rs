//! How it ends: what is under way may finish, for a time.

use crate::client::{Answer, Client, Failure, Offers};
use crate::server::{LONG, PATIENCE, Server};
use std::net::SocketAddr;
use std::time::Duration;
use stint_apiserver::wire::{Limits, Served};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A request that has arrived and waits for its answer.
async fn held(server: &Server, offers: Offers) -> JoinHandle<Result<Answer, Failure>> {
    let (certificates, address) = (server.certificates.clone(), server.address);
    let asking =
        tokio::spawn(async move { Client::new(&certificates, offers).get(address, "/held").await });
    server.arrived.notified().await;
    asking
}

/// Waits until nobody listens any more: the shutdown has begun.
async fn is_closed(address: SocketAddr) {
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_request_under_way_finishes_and_nobody_new_comes_in() {
    for offers in [Offers::Http1, Offers::Http2] {
        let server = Server::start().await;
        let asking = held(&server, offers).await;
        let (address, release) = (server.address, server.release.clone());
        let mut served = server.stop();
        timeout(PATIENCE, is_closed(address)).await.expect("nobody listens");
        assert!(!served.is_finished(), "it did not wait for the request");
        release.notify_one();
        let answer = asking.await.expect("no panic").expect("an answer");
        assert_eq!(answer.text, "Unauthorized");
        let served = timeout(PATIENCE, &mut served).await.expect("in time").expect("no panic");
        assert_eq!(served, Served { cut: 0 });
    }
}

#[tokio::test]
async fn a_request_that_does_not_finish_is_cut_off() {
    for offers in [Offers::Http1, Offers::Http2] {
        let server = Server::start_with(Limits::default(), Duration::from_millis(50)).await;
        let asking = held(&server, offers).await;
        let under_way = server.under_way.clone();
        let served = timeout(PATIENCE, server.stop()).await.expect("in time").expect("no panic");
        assert_eq!(served, Served { cut: 1 });
        // With HTTP/2 a request is a task of its own. It ends with its connection all the same.
        let ended = timeout(PATIENCE, under_way.acquire()).await.expect("it has ended");
        drop(ended.expect("it is never closed"));
        timeout(PATIENCE, asking).await.expect("in time").expect("no panic").expect_err("cut off");
    }
}

#[tokio::test]
async fn connections_without_a_request_do_not_hold_it_up() {
    let limits = Limits { handshake_time: LONG, first_request_time: LONG, ..Limits::default() };
    let server = Server::start_with(limits, LONG).await;
    let (address, certificates) = (server.address, server.certificates.clone());
    let mut unshaken = TcpStream::connect(address).await.expect("a connection");
    let http1 = Client::new(&certificates, Offers::Http1).connect(address).await.expect("shaken");
    let http2 = Client::new(&certificates, Offers::Http2).connect(address).await.expect("shaken");
    let mut used = Client::new(&certificates, Offers::Http1).keep(address).await.expect("kept");
    assert_eq!(used.get("/livez").await.expect("an answer").text, "well");
    let served = timeout(PATIENCE, server.stop()).await.expect("at once").expect("no panic");
    assert_eq!(served, Served { cut: 0 });
    assert_eq!(unshaken.read(&mut [0]).await.unwrap_or(0), 0, "it is closed");
    drop((http1, http2, used));
}
