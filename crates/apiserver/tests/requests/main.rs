//! Rows of requests, on this server: what it answers must be what kube-apiserver answered, but for
//! what is said to differ. `testing/requests` has what a row is, and reads and compares them; the
//! suite `requests` of `testing/cluster` sends them to kube-apiserver.
//!
//! With `STINT_REQUESTS_DUMP=FOLDER` the answers of this server are written there.

#[path = "../kit/mod.rs"]
mod kit;

use std::fs;
use std::path::PathBuf;

use kit::NOW;
use serde_json::json;
use stint_requests::row::{Answer, FILES, Outcome, Row, Server};
use stint_store::{Options, Store};

#[test]
fn every_row_holds() {
    let mut wrong = Vec::new();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    for file in FILES {
        let name = file.0;
        let mut answers = Vec::new();
        for (index, row) in Row::read_all(file).iter().enumerate() {
            let namespace = format!("row-{name}-{index}x");
            let outcome = runtime.block_on(run(row, &namespace));
            answers.push(outcome.answers);
            let found = outcome.differences.into_iter();
            wrong.extend(found.map(|what| format!("{name}: {}\n{what}", row.name)));
        }
        if let Some(folder) = std::env::var_os("STINT_REQUESTS_DUMP") {
            let path = PathBuf::from(folder).join(format!("{name}.json"));
            fs::write(path, json!(answers).to_string()).expect("a folder for the answers");
        }
    }
    assert!(wrong.is_empty(), "{} requests differ:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

/// Runs a row on a server of its own.
async fn run(row: &Row, namespace: &str) -> Outcome {
    let server = kit::Server::on(Store::in_memory(Options::default()));
    let there = ["default", "kube-system"].into_iter();
    for name in there.chain(row.needs_namespace.then_some(namespace)) {
        server.make_namespace(name).await;
    }
    let asked_at = NOW.parse().expect("a time");
    let send = async |request| {
        let kit::Answer { code, headers, body } = server.watch(request).await;
        Answer { code, headers, body, asked_at }
    };
    row.run(Server::Embedded, namespace, send).await
}

#[test]
fn the_page_says_what_differs() {
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/parity.md");
    let page = fs::read_to_string(page).expect("docs/parity.md");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let page = words(&page);
    let mut requests = 0;
    for file in FILES {
        for row in Row::read_all(file) {
            requests += row.steps.len();
            for reasons in row.steps.iter().filter_map(|step| step.differs.as_deref()) {
                for reason in reasons.split("; ") {
                    assert!(page.contains(&words(reason)), "docs/parity.md does not say: {reason}");
                }
            }
        }
    }
    assert!(page.contains(&format!("{requests} requests")), "there are {requests} requests");
}
