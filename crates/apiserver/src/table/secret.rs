//! Secrets as rows, which show how much is in them and nothing of what it is.

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{AGE, Column, NAME, duration, or, text};

/// The columns.
pub static COLUMNS: &[Column] = &[
    NAME,
    Column::new(
        "Type",
        "Used to facilitate programmatic handling of secret data. More info: \
         https://kubernetes.io/docs/concepts/configuration/secret/#secret-types",
    ),
    Column::new(
        "Data",
        "Data contains the secret data. Each key must consist of alphanumeric characters, '-', \
         '_' or '.'. The serialized form of the secret data is a base64 encoded string, \
         representing the arbitrary (possibly non-string) data value here. Described in \
         https://tools.ietf.org/html/rfc4648#section-4",
    ),
    AGE,
];

/// The cells of a Secret.
pub fn cells(secret: &Secret, now: Timestamp) -> Vec<Value> {
    let metadata = &secret.metadata;
    vec![
        json!(text(&metadata.name)),
        json!(or(text(&secret.type_), "Opaque")),
        json!(secret.data.as_ref().map_or(0, |data| data.len())),
        json!(duration::since(metadata.creation_timestamp.as_ref(), now)),
    ]
}
