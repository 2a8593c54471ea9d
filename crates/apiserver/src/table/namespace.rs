//! Namespaces as rows.

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{AGE, Column, NAME, duration, or, text};

/// The columns.
pub static COLUMNS: &[Column] = &[NAME, Column::new("Status", "The status of the namespace"), AGE];

/// The cells of a Namespace.
pub fn cells(namespace: &Namespace, now: Timestamp) -> Vec<Value> {
    let metadata = &namespace.metadata;
    let phase = namespace.status.as_ref().map_or("", |status| text(&status.phase));
    vec![
        json!(text(&metadata.name)),
        json!(or(phase, "Active")),
        json!(duration::since(metadata.creation_timestamp.as_ref(), now)),
    ]
}
