//! The rows as requests, one JSON line a row, for any script to replay against a real API
//! server: `STINT_RULES_DUMP=<file>`. CONTRIBUTING.md has the format of the lines.

use std::fs::File;
use std::io::Write;
use std::sync::{LazyLock, Mutex};

use serde_json::{Value, json};

/// Where Jobs are, on every API server.
pub(crate) const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
/// Where Pods are, on every API server.
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";

/// What a row sends: requests that must pass, then the one that gets the row's errors.
/// `before` is the stored object that the last one meets.
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
    for key in
        ["name", "gates", "createGates", "errors", "reason", "stored", "differs", "unreachable"]
    {
        if let Some(value) = row.get(key) {
            line[key] = value.clone();
        }
    }
    // The tests write from threads of their own, so a line goes out as one.
    let mut dump = dump.lock().expect("no test panics while it writes a line");
    dump.write_all(format!("{line}\n").as_bytes()).expect("the dump file can be written");
}

/// The request that creates an object in a collection.
pub(crate) fn create(collection: &str, object: &Value) -> Value {
    json!({"method": "POST", "path": collection, "body": object})
}

/// The request that updates an object.
pub(crate) fn update(collection: &str, object: &Value) -> Value {
    json!({"method": "PUT", "path": path(collection, object), "body": body(object)})
}

/// The request that updates an object's status.
pub(crate) fn update_status(collection: &str, object: &Value) -> Value {
    let path = format!("{}/status", path(collection, object));
    json!({"method": "PUT", "path": path, "body": body(object)})
}

/// The request that binds a Pod.
pub(crate) fn bind(collection: &str, pod: &Value, binding: &Value) -> Value {
    let path = format!("{}/binding", path(collection, pod));
    json!({"method": "POST", "path": path, "body": binding})
}

/// The request that deletes an object.
pub(crate) fn delete(collection: &str, object: &Value, options: &Value) -> Value {
    json!({"method": "DELETE", "path": path(collection, object), "body": options})
}

/// An object without its resourceVersion, which no script can know beforehand; Jobs and
/// Pods may be updated without.
pub(crate) fn body(object: &Value) -> Value {
    let mut body = object.clone();
    if let Some(metadata) = body["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
    body
}

fn path(collection: &str, object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().expect("a stored object has a name");
    format!("{collection}/{name}")
}
