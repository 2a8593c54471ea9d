//! Many who change one object at once.

use std::sync::Arc;

use futures_util::future::join_all;
use http::Request;
use http_body_util::Full;
use stint_api::feature_gates::FeatureGates;
use stint_apiserver::access::{Authenticator, Identity};
use stint_apiserver::log::NoLogs;
use stint_apiserver::{ApiServer, Clock, Config, Limits};
use stint_store::{Options, Store};
use tower_service::Service;

async fn ask(server: &ApiServer, method: &str, path: &str, kind: &str, body: String) -> u16 {
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    let request = request.body(Full::new(bytes::Bytes::from(body))).expect("a request");
    let answer = server.local(Identity::admin()).call(request).await.expect("an answer");
    answer.status().as_u16()
}

#[tokio::test]
async fn patches_that_name_no_version_all_get_through() {
    let clock = Clock::system();
    let (gates, logs) = (FeatureGates::default(), Arc::new(NoLogs));
    let config = Config { gates, clock, logs, tracks_owners: true };
    let store = Store::in_memory(Options::default());
    let nobody = Authenticator::new::<&str>([]);
    let server = ApiServer::new(store, nobody, config, Limits::default());
    let json = "application/json";
    let namespace = r#"{"metadata":{"name":"ns"}}"#.to_owned();
    assert_eq!(ask(&server, "POST", "/api/v1/namespaces", json, namespace).await, 201);
    let maps = "/api/v1/namespaces/ns/configmaps";
    let map = r#"{"metadata":{"name":"m"}}"#.to_owned();
    assert_eq!(ask(&server, "POST", maps, json, map).await, 201);
    let path = format!("{maps}/m");
    let patches = (0..50).map(|number| {
        let patch = format!(r#"{{"data":{{"k{number}":"v"}}}}"#);
        ask(&server, "PATCH", &path, "application/merge-patch+json", patch)
    });
    assert_eq!(join_all(patches).await, [200; 50]);
    let old = r#"{"metadata":{"resourceVersion":"2"},"data":{"x":"y"}}"#.to_owned();
    assert_eq!(ask(&server, "PATCH", &path, "application/merge-patch+json", old).await, 409);
}
