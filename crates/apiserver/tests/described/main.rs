//! What the server tells of itself, over its whole way: discovery in one document, descriptions
//! that clients keep, large answers in gzip, and what callers ask about themselves.

#[path = "../kit/mod.rs"]
mod kit;

use std::io::Read;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::Request;
use kit::{Answer, Server};
use serde_json::{Value, json};
use stint_store::{Options, Store};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn server() -> Server {
    Server::on(Store::in_memory(Options::default()))
}

async fn get(server: &Server, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    server.send(request.body(Bytes::new()).expect("a request")).await
}

fn header<'a>(answer: &'a Answer, name: &str) -> &'a str {
    answer.headers.get(name).map_or("", |value| value.to_str().expect("text"))
}

fn json_of(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).expect("JSON")
}

fn unzipped(answer: &Answer) -> Vec<u8> {
    assert_eq!(header(answer, "content-encoding"), "gzip");
    let mut plain = Vec::new();
    GzDecoder::new(&answer.body[..]).read_to_end(&mut plain).expect("gzip");
    plain
}

#[tokio::test]
async fn discovery_comes_in_one_document_to_who_asks_so() {
    let server = server();
    let whole = get(&server, "/apis", &[("accept", AGGREGATED)]).await;
    assert_eq!((whole.code, header(&whole, "content-type")), (200, AGGREGATED));
    assert_eq!(header(&whole, "vary"), "Accept");
    assert_eq!(header(&whole, "cache-control"), "public");
    let document = json_of(&whole);
    let batch = document["items"].as_array().expect("groups").iter();
    let batch: Vec<&Value> = batch.filter(|group| group["metadata"]["name"] == "batch").collect();
    assert_eq!(
        batch[0]["versions"][0]["resources"][0],
        json!({
            "resource": "jobs",
            "responseKind": {"group": "", "version": "", "kind": "Job"},
            "scope": "Namespaced",
            "singularResource": "job",
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update",
                      "watch"],
            "categories": ["all"],
            "subresources": [{
                "subresource": "status",
                "responseKind": {"group": "", "version": "", "kind": "Job"},
                "verbs": ["get", "patch", "update"],
            }],
        })
    );
    let tag = header(&whole, "etag").to_owned();
    let kept = [("accept", AGGREGATED), ("if-none-match", tag.as_str())];
    let again = get(&server, "/apis", &kept).await;
    assert_eq!((again.code, again.body.len(), header(&again, "etag")), (304, 0, tag.as_str()));
    let core = get(&server, "/api", &[("accept", AGGREGATED)]).await;
    assert_eq!(json_of(&core)["items"][0]["metadata"], json!({}));
    // Below, and for who asks for anything else, everything is as it was.
    let group = get(&server, "/apis/batch", &[("accept", AGGREGATED)]).await;
    assert_eq!(group.code, 406);
    let plain = get(&server, "/apis", &[("accept", "application/json")]).await;
    assert_eq!(json_of(&plain)["kind"], "APIGroupList");
    assert_eq!(header(&plain, "etag"), "");
}

#[tokio::test]
async fn descriptions_can_be_kept_under_their_hash() {
    let server = server();
    let index = json_of(&get(&server, "/openapi/v3", &[]).await);
    let place = index["paths"]["apis/batch/v1"]["serverRelativeURL"].as_str().expect("a place");
    let found = get(&server, place, &[]).await;
    assert_eq!((found.code, header(&found, "content-type")), (200, "application/json"));
    assert_eq!(header(&found, "cache-control"), "public, immutable");
    assert_eq!(header(&found, "expires"), "Sat, 01 May 2027 12:00:00 GMT");
    let tag = header(&found, "etag").to_owned();
    assert!(place.ends_with(&format!("?hash={}", tag.trim_matches('"'))));
    assert_eq!(get(&server, place, &[("if-none-match", &tag)]).await.code, 304);
    let old = get(&server, "/openapi/v3/apis/batch/v1?hash=old", &[]).await;
    assert_eq!((old.code, header(&old, "location")), (301, place));
    let bare = get(&server, "/openapi/v3/apis/batch/v1", &[]).await;
    assert_eq!(header(&bare, "cache-control"), "no-cache, private");
    assert_eq!(get(&server, "/openapi/v3/apis/apps/v1", &[]).await.code, 404);
    let text = [("accept", "text/html")];
    assert_eq!(get(&server, "/openapi/v3/apis/batch/v1", &text).await.code, 406);
    assert_eq!(get(&server, "/openapi/v2", &text).await.code, 406);
}

#[tokio::test]
async fn descriptions_come_in_gzip_to_who_takes_it() {
    let server = server();
    for path in ["/openapi/v2", "/openapi/v3/api/v1"] {
        let plain = get(&server, path, &[]).await;
        assert_eq!(header(&plain, "content-encoding"), "");
        let zipped = get(&server, path, &[("accept-encoding", "gzip")]).await;
        assert!(zipped.body.len() * 4 < plain.body.len(), "{path}");
        assert!(unzipped(&zipped) == plain.body, "{path}");
    }
}

#[tokio::test]
async fn a_large_list_comes_in_gzip_to_who_takes_it() {
    let server = server();
    server.make_namespace("default").await;
    let path = "/api/v1/namespaces/default/configmaps";
    for number in 0..10 {
        let data = "many words ".repeat(2_000);
        let body = json!({"metadata": {"name": format!("c{number}")}, "data": {"a": data}});
        let request = Request::post(path).body(body.to_string().into()).expect("a request");
        assert_eq!(server.send(request).await.code, 201);
    }
    let takes = [("accept-encoding", "gzip, deflate")];
    let (plain, zipped) = (get(&server, path, &[]).await, get(&server, path, &takes).await);
    assert_eq!(header(&zipped, "vary"), "Accept-Encoding");
    assert!(zipped.body.len() * 10 < plain.body.len());
    assert!(unzipped(&zipped) == plain.body);
    let small = get(&server, &format!("{path}/c1"), &takes).await;
    assert_eq!(header(&small, "content-encoding"), "");
}

#[tokio::test]
async fn callers_may_ask_about_themselves_and_nothing_is_kept() {
    let server = server();
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let asked = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let send = |method: &str, body: Bytes, kind: &str, accept: &str| {
        let request = Request::builder().method(method).uri(path).header("content-type", kind);
        request.header("accept", accept).body(body).expect("a request")
    };
    let (json_type, any) = ("application/json", "*/*");
    let answer = server.send(send("POST", asked.to_string().into(), json_type, any)).await;
    assert_eq!(answer.code, 201);
    let answer = json_of(&answer);
    assert_eq!(
        (&answer["kind"], &answer["status"]["allowed"]),
        (&json!("SelfSubjectAccessReview"), &json!(true))
    );
    // The same in protobuf: spec.resourceAttributes{verb: get, resource: pods}.
    let mut body =
        b"k8s\0\x0a\x32\x0a\x17authorization.k8s.io/v1\x12\x17SelfSubjectAccessReview".to_vec();
    body.extend_from_slice(b"\x12\x0f\x12\x0d\x0a\x0b\x12\x03get\x2a\x04pods");
    let protobuf = "application/vnd.kubernetes.protobuf";
    let read = server.send(send("POST", body.into(), protobuf, any)).await;
    assert_eq!((read.code, &json_of(&read)["spec"]), (201, &asked["spec"]));
    assert_eq!(server.send(send("GET", Bytes::new(), json_type, any)).await.code, 405);
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let body = Bytes::from(asked.to_string());
    assert_eq!(server.send(send("POST", body, json_type, table)).await.code, 406);
}
