//! Visits to containers that are refused, and in which order: what is wrong with the visit comes before how
//! the client wants to have it, as whoever is refused one way tries another.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::Request;
use http_body_util::{BodyExt, Full};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use stint_api::feature_gates::FeatureGates;
use stint_apiserver::access::{Authenticator, Identity, Role};
use stint_apiserver::console::{Console, ConsoleSource, Errand, Session, Wanted};
use stint_apiserver::log::NoLogs;
use stint_apiserver::{ApiServer, Clock, Config, Limits};
use stint_store::{Options, Store};
use tower_service::Service;

const POD: &str = "/api/v1/namespaces/default/pods/a";

/// Whose container `c` runs, and nobody gets to it.
#[derive(Debug)]
struct OneRuns;

struct Closed;

impl ConsoleSource for OneRuns {
    fn find(&self, _: &Pod, container: &str) -> Option<Box<dyn Console>> {
        (container == "c").then(|| Box::new(Closed) as Box<dyn Console>)
    }
}

impl Console for Closed {
    fn visit(self: Box<Self>, _: Errand, _: Wanted) -> BoxFuture<'static, Result<Session, String>> {
        unreachable!("nobody gets here")
    }
}

/// A server with a Pod on a node.
async fn server(visits: usize) -> ApiServer {
    let (gates, clock, logs) = (FeatureGates::default(), Clock::system(), Arc::new(NoLogs));
    let config = Config { gates, clock, logs, tracks_owners: true };
    let nobody = Authenticator::new(Vec::<(String, Identity)>::new());
    let store = Store::in_memory(Options::default());
    let server = ApiServer::new(store, nobody, config, Limits { visits, ..Limits::default() });
    server.visit(Arc::new(OneRuns));
    let container = |name: &str| json!({"name": name, "image": "i"});
    for (path, object) in [
        ("/api/v1/namespaces", json!({"metadata": {"name": "default"}})),
        (
            "/api/v1/namespaces/default/pods",
            json!({
                "metadata": {"name": "a"},
                "spec": {
                    "serviceAccountName": "default", "nodeName": "n",
                    "containers": [container("c"), container("over")],
                },
            }),
        ),
    ] {
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.body(Bytes::from(object.to_string())).expect("a request");
        assert_eq!(ask(&server, Identity::admin(), request).await.0, 201);
    }
    server
}

async fn ask(server: &ApiServer, who: Identity, request: Request<Bytes>) -> (u16, Value) {
    let Ok(answer) = server.local(who).call(request.map(Full::new)).await;
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.expect("all of it").to_bytes();
    (parts.status.as_u16(), serde_json::from_slice(&body).expect("JSON"))
}

async fn refused(server: &ApiServer, who: Identity, visit: &str, upgrade: &str) -> (u16, String) {
    let mut request = Request::get(format!("{POD}/{visit}"));
    if !upgrade.is_empty() {
        request = request.header("connection", "Upgrade").header("upgrade", upgrade);
        request = request.header("sec-websocket-version", "13");
        request = request.header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    }
    let (code, status) = ask(server, who, request.body(Bytes::new()).expect("a request")).await;
    assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(code)), "{visit}");
    (code, status["message"].as_str().expect("a message").to_owned())
}

#[tokio::test]
async fn what_is_wrong_is_said_in_the_words_of_a_kubelet() {
    let server = server(1).await;
    let gone = "unable to upgrade connection: container not found (\"over\")";
    for (visit, upgrade, expected) in [
        ("exec?container=c", "SPDY/3.1", "you must specify at least 1 of stdin, stdout, stderr"),
        ("exec?container=c&stdout=1", "websocket", "you must specify a command"),
        ("exec?container=over&stdout=1&command=true", "SPDY/3.1", gone),
        ("attach?container=over&stdin=true", "websocket", gone),
        ("attach?container=c&stdout=1", "", "Upgrade request required"),
        ("attach?container=c&stdout=1", "SPDY/3.1", "only WebSockets are served here"),
        ("attach?container=c&stdout=1", "websocket", "over HTTP/1.1"),
    ] {
        let (code, said) = refused(&server, Identity::admin(), visit, upgrade).await;
        assert!(code == 400 && said.contains(expected), "{visit}: {code} {said}");
    }
}

#[tokio::test]
async fn only_who_may_create_may_visit() {
    let server = server(1).await;
    for role in [Role::View, Role::Controller] {
        let who = Identity::new("somebody", role);
        let (code, said) = refused(&server, who, "exec?stdout=1&command=true", "websocket").await;
        assert_eq!(code, 403, "{said}");
    }
}

#[tokio::test]
async fn there_are_so_many_at_once() {
    let server = server(0).await;
    for upgrade in ["websocket", "SPDY/3.1"] {
        let visit = "exec?container=c&stdout=1&command=true";
        let (code, said) = refused(&server, Identity::admin(), visit, upgrade).await;
        assert!(code == 429 && said.contains("of the 0 visits to containers"), "{said}");
    }
}
