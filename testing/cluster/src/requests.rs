//! The rows of requests (`testing/requests`) on a real kube-apiserver: what it answers must be what
//! the rows say it has answered, so that whoever compares the embedded server with the rows compares it with
//! Kubernetes.
//!
//! With `STINT_REQUESTS_DUMP=FOLDER` its answers are written there, for new rows.

use std::fs;
use std::path::PathBuf;

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use http::Request;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use stint_requests::row::{Answer, FILES, Row, Server};

use crate::attempt::attempt;
use crate::cluster::{Cluster, ClusterError};
use crate::report::Report;
use crate::suite::Suite;

/// Addresses of Services are in the range that placeholders know.
const ADDRESSES: &str = "--service-cluster-ip-range=10.96.0.0/16";

/// How many rows of a file run at once. Many of them wait, for a watch that ends after a second or
/// for a version that does not come.
const AT_ONCE: usize = 4;

/// The names of the scenarios.
pub fn names() -> Vec<String> {
    FILES.iter().map(|(file, _)| name(file)).collect()
}

fn name(file: &str) -> String {
    format!("requests/{file}")
}

/// Runs what was asked for.
pub async fn run(suite: &Suite, report: &mut Report) -> Result<(), ClusterError> {
    let files: Vec<(&str, usize)> =
        FILES.into_iter().filter(|(file, _)| suite.wants(&name(file))).collect();
    if files.is_empty() {
        return Ok(());
    }
    let mut options = suite.options.clone();
    options.apiserver_flags.push(ADDRESSES.to_owned());
    let cluster = Cluster::start(options).await?;
    if !cluster.version().is_that_of_rows() {
        println!("        requests: the answers of another version are not known");
        return Ok(());
    }
    let client = cluster.admin().await?;
    let results = join_all(files.into_iter().map(async |file| {
        let rows = Row::read_all(file);
        let count: usize = rows.iter().map(|row| row.steps.len()).sum();
        let name = format!("{}, {count} requests", name(file.0));
        (name, attempt(compare(&client, file.0, &rows)).await)
    }));
    let before = report.failed();
    for (name, (took, result)) in results.await {
        report.tell(&name, took, result);
    }
    suite.close_cluster(cluster, report.failed() > before);
    Ok(())
}

/// Runs the rows of a file; all must hold.
async fn compare(client: &Client, file: &str, rows: &[Row]) {
    let outcomes = stream::iter(rows.iter().enumerate()).map(async |(index, row)| {
        let namespace = format!("row-{file}-{index}x");
        if row.needs_namespace {
            make_namespace(client, &namespace).await;
        }
        let send = async |request: Request<Bytes>| {
            if request.uri().query().is_some_and(asks_for_any_version) {
                catch_up(client, request.uri().path()).await;
            }
            send(client, request).await
        };
        (row, row.run(Server::Kubernetes, &namespace, send).await)
    });
    let outcomes: Vec<_> = outcomes.buffered(AT_ONCE).collect().await;
    let (mut answers, mut wrong) = (Vec::new(), Vec::new());
    for (row, outcome) in outcomes {
        answers.push(outcome.answers);
        let found = outcome.differences.into_iter();
        wrong.extend(found.map(|what| format!("{}\n{what}", row.name)));
    }
    if let Some(folder) = std::env::var_os("STINT_REQUESTS_DUMP") {
        let path = PathBuf::from(folder).join(format!("{file}.json"));
        fs::write(path, json!(answers).to_string()).expect("a folder for the answers");
    }
    assert!(wrong.is_empty(), "{} requests differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Makes a namespace with the service account that Pods have, which no controller makes here. It
/// gives them no token, as their answers do not show the volume.
async fn make_namespace(client: &Client, name: &str) {
    let accounts = format!("/api/v1/namespaces/{name}/serviceaccounts");
    let account = json!({"metadata": {"name": "default"}, "automountServiceAccountToken": false});
    create(client, "/api/v1/namespaces", &json!({"metadata": {"name": name}})).await;
    create(client, &accounts, &account).await;
}

async fn create(client: &Client, path: &str, object: &Value) {
    let request = Request::post(path).header(CONTENT_TYPE, "application/json");
    let request = request.body(object.to_string().into()).expect("a request");
    let answer = send(client, request).await;
    assert_eq!(answer.code, 201, "{path}: {:?}", answer.body);
}

fn asks_for_any_version(query: &str) -> bool {
    query.split('&').any(|part| part == "resourceVersion=0")
}

/// Who asks for any version is answered from a cache, which may be behind what was written a moment
/// ago. A list that is not older than the newest one is answered once the cache has that.
async fn catch_up(client: &Client, path: &str) {
    // Of /api/v1/namespaces/a/configmaps/b the last is left out, if it is there.
    let collection: String = path.split_inclusive('/').take(6).collect();
    let collection = collection.trim_end_matches('/');
    let get = async |path: &str| {
        let answer = send(client, Request::get(path).body(Bytes::new()).expect("a request")).await;
        assert_eq!(answer.code, 200, "{path}: {:?}", answer.body);
        serde_json::from_slice::<Value>(&answer.body).expect("a list")
    };
    let newest = get(collection).await;
    let version = newest["metadata"]["resourceVersion"].as_str().expect("a version");
    let at_least = format!("resourceVersion={version}&resourceVersionMatch=NotOlderThan");
    get(&format!("{collection}?{at_least}")).await;
}

/// Sends a request and reads the answer to its end.
async fn send(client: &Client, request: Request<Bytes>) -> Answer {
    let asked_at = Timestamp::now();
    let what = format!("{} {}", request.method(), request.uri());
    let answer = client.send(request.map(Body::from)).await;
    let answer = answer.unwrap_or_else(|error| panic!("{what}: {error}"));
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.unwrap_or_else(|error| panic!("{what}: {error}"));
    Answer { code: parts.status.as_u16(), headers: parts.headers, body: body.to_bytes(), asked_at }
}
