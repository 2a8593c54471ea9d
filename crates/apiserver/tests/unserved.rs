//! Calls for what is not served here: each is answered at once, with 404 or 405 and a `Status`.

#[path = "kit/mod.rs"]
mod kit;

use bytes::Bytes;
use http::{Method, Request};
use kit::Server;
use serde_json::{Value, json};
use stint_store::{Options, Store};

const POD: &str = "/api/v1/namespaces/default/pods/a";

#[tokio::test]
async fn what_is_not_served_is_refused_with_a_status() {
    let server = Server::on(Store::in_memory(Options::default()));
    server.make_namespace("default").await;
    let pod = json!({
        "metadata": {"name": "a"},
        "spec": {"serviceAccountName": "default", "containers": [{"name": "c", "image": "i"}]},
    });
    let request = Request::post("/api/v1/namespaces/default/pods");
    let request = request.header("content-type", "application/json");
    let made = server.send(request.body(Bytes::from(pod.to_string())).expect("a request")).await;
    assert_eq!(made.code, 201);
    let of_pod = |part: &str| format!("{POD}/{part}");
    let rows = [
        ("GET", of_pod("portforward?ports=80"), 404),
        ("POST", of_pod("portforward?ports=80"), 404),
        ("GET", of_pod("proxy"), 404),
        ("POST", of_pod("proxy/some/where"), 404),
        ("GET", of_pod("ephemeralcontainers"), 404),
        ("PATCH", of_pod("ephemeralcontainers"), 404),
        ("PATCH", of_pod("resize"), 404),
        ("GET", of_pod("scale"), 404),
        ("PUT", of_pod("exec?command=true"), 405),
        ("PATCH", of_pod("attach"), 405),
        ("DELETE", of_pod("exec"), 405),
        ("POST", of_pod("log"), 405),
        ("DELETE", of_pod("log"), 405),
        ("GET", of_pod("binding"), 405),
        ("GET", of_pod("eviction"), 405),
        ("DELETE", of_pod("status"), 405),
        ("GET", "/apis/batch/v1/namespaces/default/jobs/a/scale".to_owned(), 404),
        ("GET", "/api/v1/nodes/n/proxy/metrics".to_owned(), 404),
        ("GET", "/api/v1/nodes/n/proxy".to_owned(), 404),
        ("GET", "/api/v1/namespaces/default/services/s/proxy/".to_owned(), 404),
        ("POST", "/api/v1/namespaces/default/serviceaccounts/default/token".to_owned(), 404),
        ("GET", "/apis/apps/v1/namespaces/default/deployments".to_owned(), 404),
        ("POST", "/apis/apps/v1/namespaces/default/deployments".to_owned(), 404),
        ("GET", "/apis/example.com/v1/things".to_owned(), 404),
        ("GET", "/apis/batch/v2".to_owned(), 404),
        ("GET", "/apis/example.com".to_owned(), 404),
        ("GET", "/api/v1/replicationcontrollers".to_owned(), 404),
        ("GET", "/api/v2/pods".to_owned(), 404),
        ("GET", "/apis/metrics.k8s.io/v1beta1/pods".to_owned(), 404),
        ("GET", "/nothing".to_owned(), 404),
        ("TRACE", POD.to_owned(), 405),
        ("POST", POD.to_owned(), 405),
        ("NONSENSE", "/api/v1/namespaces/default/pods".to_owned(), 405),
        ("OPTIONS", "/api/v1/namespaces/default/pods".to_owned(), 405),
    ];
    for (method, path, expected) in rows {
        let method: Method = method.parse().expect("a method");
        let request = Request::builder().method(method.clone()).uri(&path);
        let request = request.header("content-type", "application/merge-patch+json");
        let answer = server.send(request.body(Bytes::from_static(b"{}")).expect("a request")).await;
        let status: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        assert_eq!(answer.code, expected, "{method} {path}: {status}");
        assert_eq!(
            (&status["kind"], &status["code"]),
            (&json!("Status"), &json!(expected)),
            "{path}"
        );
    }
}
