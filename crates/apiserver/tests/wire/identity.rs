//! Who is known, over both versions of HTTP.

use crate::client::{Client, Offers};
use crate::server::{Server, certificates};
use bytes::Bytes;
use http_body_util::Empty;
use hyper::header::AUTHORIZATION;
use hyper::{Request, StatusCode, Version};
use stint_apiserver::access::{Identity, Role};

const BOTH: [(Offers, Version); 2] =
    [(Offers::Http1, Version::HTTP_11), (Offers::Http2, Version::HTTP_2)];

fn request_with_token(token: &str) -> Request<Empty<Bytes>> {
    Request::get("https://localhost/api")
        .header(AUTHORIZATION, format!("Bearer {token}"))
        .body(Empty::new())
        .expect("a request")
}

#[tokio::test]
async fn a_client_certificate_arrives_as_an_identity() {
    let server = Server::start().await;
    for (offers, version) in BOTH {
        for (role, user) in [(Role::Admin, "admin"), (Role::Edit, "edit"), (Role::View, "view")] {
            let client =
                Client::new(&server.certificates, offers).showing(server.certificates.client(role));
            let answer = client.get(server.address, "/api").await.expect("an answer");
            assert_eq!((answer.status, answer.version), (StatusCode::OK, version));
            assert_eq!(answer.text, user);
        }
    }
}

#[tokio::test]
async fn a_token_arrives_as_an_identity() {
    let server = Server::start().await;
    for (offers, version) in BOTH {
        for role in Role::ALL {
            let client = Client::new(&server.certificates, offers);
            let request = request_with_token(server.tokens.get(role));
            let answer = client.ask(server.address, request).await.expect("an answer");
            assert_eq!((answer.status, answer.version), (StatusCode::OK, version));
            assert_eq!(answer.text, Identity::of(role, "here").user);
        }
        let client = Client::new(&server.certificates, offers);
        let request = request_with_token(&"0".repeat(64));
        let answer = client.ask(server.address, request).await.expect("an answer");
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn a_certificate_goes_before_a_token() {
    let server = Server::start().await;
    let client = Client::new(&server.certificates, Offers::Both)
        .showing(server.certificates.client(Role::View));
    let request = request_with_token(server.tokens.get(Role::Admin));
    let answer = client.ask(server.address, request).await.expect("an answer");
    assert_eq!(answer.text, "view");
}

#[tokio::test]
async fn the_anonymous_learn_how_the_server_is_and_nothing_else() {
    let server = Server::start().await;
    for (offers, _) in BOTH {
        let client = Client::new(&server.certificates, offers);
        for path in ["/livez", "/readyz", "/healthz"] {
            let answer = client.get(server.address, path).await.expect("an answer");
            assert_eq!((answer.status, answer.text.as_str()), (StatusCode::OK, "well"));
        }
        for path in ["/api", "/version", "/metrics", "/livez/x"] {
            let answer = client.get(server.address, path).await.expect("an answer");
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path}");
            assert_eq!(answer.text, "Unauthorized");
        }
    }
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_refused() {
    let server = Server::start().await;
    let other = certificates();
    for (offers, _) in BOTH {
        let client = Client::new(&server.certificates, offers).showing(other.client(Role::Admin));
        client.get(server.address, "/livez").await.expect_err("not ours");
    }
}

#[tokio::test]
async fn the_servers_own_certificate_is_no_clients() {
    let server = Server::start().await;
    let client =
        Client::new(&server.certificates, Offers::Both).showing(Some(server.certificates.server()));
    client.get(server.address, "/livez").await.expect_err("it is for servers");
}

#[tokio::test]
async fn a_client_that_trusts_another_authority_does_not_talk_to_us() {
    let server = Server::start().await;
    let other = certificates();
    let client = Client::new(&other, Offers::Both);
    client.connect(server.address).await.expect_err("another authority");
}

#[tokio::test]
async fn the_server_is_known_by_its_names_and_no_other() {
    let server = Server::start().await;
    let client = Client::new(&server.certificates, Offers::Both);
    for name in ["localhost", "127.0.0.1", "::1", "kubernetes.default.svc"] {
        client.connect_to(server.address, name).await.expect("one of its names");
    }
    client.connect_to(server.address, "example.com").await.expect_err("not its name");
}

#[tokio::test]
async fn http2_is_preferred_and_silence_means_http1() {
    let server = Server::start().await;
    for (offers, version) in [(Offers::Both, Version::HTTP_2), (Offers::Nothing, Version::HTTP_11)]
    {
        let client = Client::new(&server.certificates, offers);
        let answer = client.get(server.address, "/livez").await.expect("an answer");
        assert_eq!(answer.version, version);
    }
}
