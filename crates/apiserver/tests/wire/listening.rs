//! Where is listened, and what is said when that is not possible.

use crate::client::{Client, Offers};
use crate::server::{LONG, Server, any_port, certificates};
use stint_apiserver::access::Role;
use stint_apiserver::wire::{Limits, ListenError, ListenOptions, Listener};

#[tokio::test]
async fn an_address_that_others_reach_needs_their_admission() {
    let certificates = certificates();
    for text in ["0.0.0.0:0", "[::]:0", "192.0.2.1:6443", "[::ffff:192.0.2.1]:6443"] {
        let options = ListenOptions::new(text.parse().expect("an address"));
        let Err(error) = Listener::bind(options, &certificates).await else {
            panic!("{text} was listened on");
        };
        assert!(matches!(error, ListenError::Remote { .. }), "{error}");
        assert!(error.to_string().contains("--allow-remote"), "{error}");
    }
    let address = "0.0.0.0:0".parse().expect("an address");
    let options = ListenOptions { allow_remote: true, ..ListenOptions::new(address) };
    let listener = Listener::bind(options, &certificates).await.expect("admitted");
    assert_ne!(listener.address().port(), 0);
}

#[tokio::test]
async fn a_taken_port_is_named_with_what_to_do() {
    let certificates = certificates();
    let first = Listener::bind(ListenOptions::new(any_port()), &certificates).await.expect("free");
    let options = ListenOptions::new(first.address());
    let Err(error) = Listener::bind(options, &certificates).await else {
        panic!("two listen on {}", first.address());
    };
    assert!(matches!(error, ListenError::InUse { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains(&first.address().to_string()) && text.contains("--listen"), "{text}");
}

#[tokio::test]
async fn an_address_of_another_machine_is_named() {
    let address = "192.0.2.1:6443".parse().expect("an address");
    let options = ListenOptions { allow_remote: true, ..ListenOptions::new(address) };
    let Err(error) = Listener::bind(options, &certificates()).await else {
        panic!("this machine has an address that is for documentation");
    };
    assert!(matches!(error, ListenError::Bind { .. }), "{error}");
    assert!(error.to_string().contains("192.0.2.1:6443"), "{error}");
}

#[tokio::test]
async fn whoever_comes_beyond_the_limit_waits_until_there_is_room() {
    let limits = Limits { connections: 1, handshake_time: LONG, ..Limits::default() };
    let server = Server::start_with(limits, LONG).await;
    // Somebody who is known does not make room for others.
    let client = Client::new(&server.certificates, Offers::Http1)
        .showing(server.certificates.client(Role::View));
    let mut first = client.keep(server.address).await.expect("there is room");
    assert_eq!(first.get("/api").await.expect("an answer").text, "view");
    let (certificates, address) = (server.certificates.clone(), server.address);
    let second = tokio::spawn(async move {
        Client::new(&certificates, Offers::Http1).get(address, "/livez").await
    });
    // Far more round trips than the second would need to be answered, were it let in.
    for _ in 0..50 {
        first.get("/livez").await.expect("an answer");
    }
    assert!(!second.is_finished(), "answered beyond the limit");
    drop(first);
    assert_eq!(second.await.expect("no panic").expect("there is room").text, "well");
}
