//! Requests with protobuf bodies through the whole server.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use stint_api::feature_gates::FeatureGates;
use stint_apiserver::access::{Authenticator, Identity};
use stint_apiserver::log::{LogOptions, LogSource, LogText};
use stint_apiserver::protobuf::{MEDIA_TYPE, envelope};
use stint_apiserver::{ApiServer, Clock, Config, Limits, LocalServer};
use stint_store::Store;
use tower_service::Service;

use crate::rows;

const PODS: &str = "/api/v1/namespaces/default/pods";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

#[tokio::test]
async fn objects_are_created_as_their_json_would_be() {
    let server = server().await;
    let rows = [
        ("sent: ConfigMap", "/api/v1/namespaces/default/configmaps"),
        ("sent: Namespace", "/api/v1/namespaces"),
        ("sent: Secret", "/api/v1/namespaces/default/secrets"),
        ("sent: Pod", PODS),
        ("sent: Job", "/apis/batch/v1/namespaces/default/jobs"),
        ("sent: Lease", LEASES),
    ];
    for (name, path) in rows {
        let row = rows::named(name);
        // Names of Pods and uids aside, a dry run of the JSON says what is to come of it.
        let mut same = row.json.clone();
        same["metadata"]["name"] = json!("other");
        let (code, mut expected) =
            json(&server, Method::POST, &format!("{path}?dryRun=All"), &same).await;
        assert_eq!(code, 201, "{name}: {expected}");
        let (code, mut made) = protobuf(&server, Method::POST, path, name).await;
        assert_eq!(code, 201, "{name}: {made}");
        let uid = made["metadata"]["uid"].as_str().expect("a uid").to_owned();
        for object in [&mut expected, &mut made] {
            let uid_here = object["metadata"]["uid"].as_str().expect("a uid").to_owned();
            let text = object
                .to_string()
                .replace(&uid_here, &uid)
                .replace("\"other\"", &same_name(&row.json));
            *object = serde_json::from_str(&text).expect("JSON");
            object["metadata"].as_object_mut().expect("metadata").remove("resourceVersion");
        }
        assert_eq!(made, expected, "{name}");
    }
}

#[tokio::test]
async fn a_lease_is_updated() {
    let server = server().await;
    let (code, made) =
        json(&server, Method::POST, LEASES, &json!({"metadata": {"name": "leader"}})).await;
    assert_eq!(code, 201, "{made}");
    let path = format!("{LEASES}/leader");
    let (code, status) = protobuf(&server, Method::PUT, &path, "sent: Lease").await;
    assert_eq!(code, 422, "without a version: {status}");

    // Metadata that comes twice is merged, so the version can be said at the end.
    let body = rows::named("sent: Lease").body();
    let raw = envelope::open(&body).expect("an envelope").raw;
    let version = made["metadata"]["resourceVersion"].as_str().expect("a version").as_bytes();
    let raw = [raw, &field(1, &field(6, version))].concat();
    let body = [b"k8s\0", &field(2, &raw)[..]].concat();
    let (code, lease) = send(&server, Method::PUT, &path, MEDIA_TYPE, body).await;
    assert_eq!(code, 200, "{lease}");
    assert_eq!(
        lease["spec"],
        json!({
            "holderIdentity": "one", "leaseDurationSeconds": 15, "leaseTransitions": 0,
            "renewTime": "2025-06-15T15:06:40.123456Z",
        })
    );
}

#[tokio::test]
async fn options_of_a_delete_are_obeyed() {
    let server = server().await;
    let path = "/api/v1/namespaces/default/configmaps";
    protobuf(&server, Method::POST, path, "sent: ConfigMap").await;
    let path = format!("{path}/settings");
    let (code, status) =
        protobuf(&server, Method::DELETE, &path, "sent: DeleteOptions with a uid").await;
    assert_eq!(code, 409, "{status}");
    let (code, status) = protobuf(&server, Method::DELETE, &path, "sent: DeleteOptions").await;
    assert_eq!(code, 200, "{status}");
    let (code, status) = protobuf(&server, Method::DELETE, &path, "sent: ConfigMap").await;
    assert_eq!(code, 400, "{status}");
    assert_eq!(status["message"], "decoded object cannot be converted to DeleteOptions");
}

#[tokio::test]
async fn a_pod_is_bound_and_evicted() {
    let server = server().await;
    let (code, made) = protobuf(&server, Method::POST, PODS, "sent: Pod").await;
    assert_eq!(code, 201, "{made}");
    let pod = format!("{PODS}/web");
    let (code, status) =
        protobuf(&server, Method::POST, &format!("{pod}/binding"), "sent: Binding").await;
    assert_eq!(code, 201, "{status}");
    let (_, bound) = json(&server, Method::GET, &pod, &Value::Null).await;
    assert_eq!(bound["spec"]["nodeName"], "here");
    let (code, status) =
        protobuf(&server, Method::POST, &format!("{pod}/eviction"), "sent: Eviction").await;
    assert_eq!(code, 201, "{status}");
    // With no grace it is gone at once.
    assert_eq!(json(&server, Method::GET, &pod, &Value::Null).await.0, 404);
}

#[tokio::test]
async fn what_is_not_what_it_should_be_is_refused() {
    let server = server().await;
    let (code, status) = protobuf(&server, Method::POST, LEASES, "sent: Pod").await;
    assert_eq!(code, 400);
    assert_eq!(
        status["message"],
        "the API version in the data (v1) does not match the expected API version \
         (coordination.k8s.io/v1)"
    );
    let (code, status) = protobuf(&server, Method::POST, PODS, "sent: Secret").await;
    assert_eq!(code, 400);
    let message = status["message"].as_str().expect("a message");
    assert!(
        message.starts_with("Secret in version \"v1\" cannot be handled as a Pod"),
        "{message}"
    );
    for (body, says) in [
        (&b"{}"[..], "does not appear to be a protobuf message"),
        (b"", "does not appear to be a protobuf message"),
        (b"k8s\0", "empty body"),
        (
            b"k8s\0\x12\x02\x0a\x05",
            "Pod in version \"v1\" cannot be handled as a Pod: proto: unexpected EOF",
        ),
    ] {
        let (code, status) = send(&server, Method::POST, PODS, MEDIA_TYPE, body.to_vec()).await;
        assert_eq!(code, 400, "{status}");
        let message = status["message"].as_str().expect("a message");
        assert!(message.contains(says), "{message}");
    }
    let body = rows::named("sent: Pod").body();
    let (code, _) = send(&server, Method::PATCH, &format!("{PODS}/web"), MEDIA_TYPE, body).await;
    assert_eq!(code, 415);
    let (code, status) = send(&server, Method::POST, PODS, "application/cbor", vec![0xa0]).await;
    assert_eq!(code, 415);
    assert!(status["message"].as_str().expect("a message").ends_with(MEDIA_TYPE), "{status}");
}

/// A field of bytes, or a message.
pub(crate) fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let tag = u16::from(number) << 3 | 2;
    let mut field = match u8::try_from(tag) {
        Ok(tag) if tag < 0x80 => vec![tag],
        _ => vec![tag as u8 | 0x80, (tag >> 7) as u8],
    };
    let mut length = bytes.len();
    while length > 0x7f {
        field.push(u8::try_from(length & 0x7f).expect("seven bits") | 0x80);
        length >>= 7;
    }
    field.push(u8::try_from(length).expect("seven bits"));
    field.extend(bytes);
    field
}

fn same_name(object: &Value) -> String {
    object["metadata"]["name"].to_string()
}

/// A server with the namespace `default`.
pub(crate) async fn server() -> LocalServer {
    let store = Store::in_memory(stint_store::Options::default());
    let started = Timestamp::from_second(1_750_000_000).expect("a time");
    let config = Config {
        gates: FeatureGates::default(),
        clock: Clock::new(move || started),
        logs: Arc::new(NoLogs),
        tracks_owners: true,
    };
    let authenticator = Authenticator::new(Vec::<(String, Identity)>::new());
    let server = ApiServer::new(store, authenticator, config, Limits::default());
    let server = server.local(Identity::admin());
    let default = json!({"metadata": {"name": "default"}});
    assert_eq!(json(&server, Method::POST, "/api/v1/namespaces", &default).await.0, 201);
    let account = json!({"metadata": {"name": "default"}});
    let path = "/api/v1/namespaces/default/serviceaccounts";
    assert_eq!(json(&server, Method::POST, path, &account).await.0, 201);
    server
}

#[derive(Debug)]
struct NoLogs;

impl LogSource for NoLogs {
    fn open(&self, _: &Pod, _: &LogOptions) -> Result<LogText, String> {
        Err("there are none".to_owned())
    }
}

/// Sends the body of a row.
async fn protobuf(server: &LocalServer, method: Method, path: &str, row: &str) -> (u16, Value) {
    send(server, method, path, MEDIA_TYPE, rows::named(row).body()).await
}

async fn json(server: &LocalServer, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    send(server, method, path, "application/json", body).await
}

async fn send(
    server: &LocalServer,
    method: Method,
    path: &str,
    content_type: &str,
    body: Vec<u8>,
) -> (u16, Value) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(CONTENT_TYPE, content_type)
        .header(ACCEPT, "application/vnd.kubernetes.protobuf,application/json")
        .body(Full::new(Bytes::from(body)))
        .expect("a request");
    let answer = server.clone().call(request).await.expect("it cannot fail");
    assert_eq!(answer.headers()[CONTENT_TYPE], "application/json");
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("all of it");
    (code, serde_json::from_slice(&body.to_bytes()).expect("JSON"))
}
