//! Requests and their answers, as rows of data. `*.yaml` has a file for each verb, read by the
//! house's own decoder. A row is a little script that runs in a namespace of its own:
//!
//! | key | what it is |
//! |---|---|
//! | `send` | the method and path of a request; the query is written without escapes |
//! | `body` | its body: JSON, or a text as it is |
//! | `type`, `accept`, `agent` | its `Content-Type`, `Accept` and `User-Agent` |
//! | `managed` | of a row: that answers say who owns what |
//! | `code`, `headers`, `answer` | what kube-apiserver 1.36.3 answered; `-`: not compared |
//! | `without` | which named items were taken out of that answer: what this server does not have |
//! | `differs`, `ours` | why this server answers otherwise, and how: laid over the rest, null deletes |
//!
//! What differs from run to run stands as a placeholder in answers, and in later requests for
//! what it stood for: [`placeholder`]. Protobuf is taken out of the lists of media types that
//! answers may have: this server reads it and does not write it.
//!
//! With `STINT_REQUESTS_DUMP=FOLDER` the answers of this server are written there.

mod differences;
#[path = "../kit/mod.rs"]
mod kit;
mod placeholder;
mod row;

use std::fs;
use std::path::PathBuf;

use kit::Server;
use row::Row;
use serde_json::json;
use stint_store::{Options, Store};

/// The files, and how many requests each has at least.
const FILES: [(&str, usize); 12] = [
    ("apply", 100),
    ("create", 80),
    ("delete", 140),
    ("get", 30),
    ("kind", 55),
    ("list", 110),
    ("part", 60),
    ("patch", 45),
    ("path", 35),
    ("status", 45),
    ("update", 60),
    ("watch", 62),
];

#[test]
fn every_row_holds() {
    let mut wrong = Vec::new();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    for (file, at_least) in FILES {
        let rows = Row::read_all(file);
        let requests: usize = rows.iter().map(|row| row.steps.len()).sum();
        assert!(requests >= at_least, "{file} has lost requests: {requests}");
        let mut answers = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            let namespace = format!("row-{file}-{index}x");
            let server = Server::on(Store::in_memory(Options::default()));
            let (came, found) = runtime.block_on(row.run(&server, &namespace));
            answers.push(came);
            wrong.extend(found.into_iter().map(|what| format!("{file}: {}\n{what}", row.name)));
        }
        if let Some(folder) = std::env::var_os("STINT_REQUESTS_DUMP") {
            let path = PathBuf::from(folder).join(format!("{file}.json"));
            fs::write(path, json!(answers).to_string()).expect("a folder for the answers");
        }
    }
    assert!(wrong.is_empty(), "{} requests differ:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn the_page_says_what_differs() {
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/parity.md");
    let page = fs::read_to_string(page).expect("docs/parity.md");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let page = words(&page);
    let mut requests = 0;
    for (file, _) in FILES {
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
