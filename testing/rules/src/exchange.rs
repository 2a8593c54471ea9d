//! A row as requests.

use serde_json::{Value, json};

/// Where Jobs are, on every API server.
pub const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
/// Where Pods are, on every API server.
pub const PODS: &str = "/api/v1/namespaces/default/pods";

/// What a row sends: requests that must pass, then the one that gets the row's errors.
/// `before` is the stored object that the last one meets.
#[derive(Debug)]
pub struct Exchange {
    /// The requests that must pass.
    pub setup: Vec<Value>,
    /// What is stored then.
    pub before: Option<Value>,
    /// The request in question.
    pub request: Value,
}

impl Exchange {
    /// A request that needs nothing in the store.
    pub fn only(request: Value) -> Self {
        Self { setup: Vec::new(), before: None, request }
    }
}

/// The request that creates an object in a collection.
pub fn create(collection: &str, object: &Value) -> Value {
    json!({"method": "POST", "path": collection, "body": object})
}

/// The request that updates an object.
pub fn update(collection: &str, object: &Value) -> Value {
    json!({"method": "PUT", "path": path(collection, object), "body": body(object)})
}

/// The request that updates an object's status.
pub fn update_status(collection: &str, object: &Value) -> Value {
    let path = format!("{}/status", path(collection, object));
    json!({"method": "PUT", "path": path, "body": body(object)})
}

/// The request that binds a Pod.
pub fn bind(collection: &str, pod: &Value, binding: &Value) -> Value {
    let path = format!("{}/binding", path(collection, pod));
    json!({"method": "POST", "path": path, "body": binding})
}

/// The request that deletes an object.
pub fn delete(collection: &str, object: &Value, options: &Value) -> Value {
    json!({"method": "DELETE", "path": path(collection, object), "body": options})
}

/// An object without its resourceVersion, which no script can know beforehand; Jobs and
/// Pods may be updated without.
pub fn body(object: &Value) -> Value {
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
