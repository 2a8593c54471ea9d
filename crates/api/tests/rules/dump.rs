//! The rows as requests, one JSON line a row, for any script to replay against a real API
//! server: `STINT_RULES_DUMP=<file>`. CONTRIBUTING.md has the format of the lines.

use std::fs::File;
use std::io::Write;
use std::sync::{LazyLock, Mutex};

use serde_json::{Value, json};

/// Where Jobs are, on every API server.
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

/// What a row sends: requests that must pass, then the one that gets the row's errors.
/// `before` is the stored Job that the last one meets.
pub(crate) struct Exchange {
    pub(crate) setup: Vec<Value>,
    pub(crate) before: Option<Value>,
    pub(crate) request: Value,
}

impl Exchange {
    /// A request that needs nothing in the store.
    pub(crate) fn only(request: Value) -> Self {
        Self { setup: Vec::new(), before: None, request }
    }
}

/// Writes a row's line, if there is a file to write it to.
pub(crate) fn write(file: &str, row: &Value, exchange: &Exchange) {
    static DUMP: LazyLock<Option<Mutex<File>>> = LazyLock::new(|| {
        let path = std::env::var_os("STINT_RULES_DUMP")?;
        Some(Mutex::new(File::create(path).expect("the dump file can be made")))
    });
    let Some(dump) = &*DUMP else {
        return;
    };
    let mut line = json!({
        "file": format!("rules/{file}"),
        "setup": exchange.setup,
        "request": exchange.request,
    });
    if let Some(before) = &exchange.before {
        line["before"] = before.clone();
    }
    for key in ["name", "gates", "createGates", "errors", "stored", "differs", "unreachable"] {
        if let Some(value) = row.get(key) {
            line[key] = value.clone();
        }
    }
    // The tests write from threads of their own, so a line goes out as one.
    let mut dump = dump.lock().expect("no test panics while it writes a line");
    dump.write_all(format!("{line}\n").as_bytes()).expect("the dump file can be written");
}

/// The request that creates a Job.
pub(crate) fn create(job: &Value) -> Value {
    json!({"method": "POST", "path": JOBS, "body": job})
}

/// The request that updates a Job.
pub(crate) fn update(job: &Value) -> Value {
    json!({"method": "PUT", "path": path(job), "body": body(job)})
}

/// The request that updates a Job's status.
pub(crate) fn update_status(job: &Value) -> Value {
    json!({"method": "PUT", "path": format!("{}/status", path(job)), "body": body(job)})
}

/// A Job without its resourceVersion, which no script can know beforehand; Jobs may be
/// updated without.
pub(crate) fn body(job: &Value) -> Value {
    let mut body = job.clone();
    if let Some(metadata) = body["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
    body
}

fn path(job: &Value) -> String {
    let name = job["metadata"]["name"].as_str().expect("a stored Job has a name");
    format!("{JOBS}/{name}")
}
