//! Several writers of one object at once: nothing of what was acknowledged is lost.

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use stint_store::{Options, Store};
use tokio::task::JoinSet;

use crate::kit::Server;

const PATH: &str = "/api/v1/namespaces/default/configmaps/a";
const WRITERS: usize = 8;
const ROUNDS: usize = 25;

/// A server with one config map.
async fn server() -> Server {
    let server = Server::on(Store::in_memory(Options::default()));
    server.make_namespace("default").await;
    let made = json!({"metadata": {"name": "a"}, "data": {"count": "0"}});
    let (code, _) = send(&server, "POST", "/api/v1/namespaces/default/configmaps", &made).await;
    assert_eq!(code, 201);
    server
}

async fn send(server: &Server, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let media_type =
        if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder().method(method).uri(path).header("content-type", media_type);
    let answer = server.send(request.body(body).expect("a request")).await;
    (answer.code, serde_json::from_slice(&answer.body).expect("JSON"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_increment_is_lost_when_a_conflict_is_tried_again() {
    let server = server().await;
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let server = server.clone();
        writers.spawn(async move {
            let mut conflicts = 0;
            for _ in 0..ROUNDS {
                loop {
                    let (_, mut object) = send(&server, "GET", PATH, &Value::Null).await;
                    let count = object["data"]["count"].as_str().expect("a count");
                    let count: usize = count.parse().expect("a number");
                    object["data"]["count"] = (count + 1).to_string().into();
                    match send(&server, "PUT", PATH, &object).await.0 {
                        200 => break,
                        409 => conflicts += 1,
                        other => panic!("{other}"),
                    }
                }
            }
            conflicts
        });
    }
    let conflicts: usize = writers.join_all().await.into_iter().sum();
    let (_, object) = send(&server, "GET", PATH, &Value::Null).await;
    assert_eq!(object["data"]["count"], (WRITERS * ROUNDS).to_string());
    assert!(conflicts > 0, "the writers never met");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn patches_without_a_version_all_get_through() {
    let server = server().await;
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let server = server.clone();
        writers.spawn(async move {
            for round in 1..=ROUNDS {
                let patch = json!({"data": {format!("w{writer}"): round.to_string()}});
                let (code, answer) = send(&server, "PATCH", PATH, &patch).await;
                assert_eq!(code, 200, "{answer}");
                assert_eq!(answer["data"][format!("w{writer}")], round.to_string());
            }
        });
    }
    writers.join_all().await;
    let (_, object) = send(&server, "GET", PATH, &Value::Null).await;
    for writer in 0..WRITERS {
        assert_eq!(object["data"][format!("w{writer}")], ROUNDS.to_string(), "{object}");
    }
}
