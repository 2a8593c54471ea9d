//! ConfigMaps as rows.

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{AGE, Column, NAME, duration, text};

/// The columns.
pub static COLUMNS: &[Column] = &[
    NAME,
    Column::new(
        "Data",
        "Data contains the configuration data. Each key must consist of alphanumeric characters, \
         '-', '_' or '.'. Values with non-UTF-8 byte sequences must use the BinaryData field. \
         The keys stored in Data must not overlap with the keys in the BinaryData field, this is \
         enforced during validation process.",
    ),
    AGE,
];

/// The cells of a ConfigMap.
pub fn cells(config_map: &ConfigMap, now: Timestamp) -> Vec<Value> {
    let metadata = &config_map.metadata;
    let data = config_map.data.as_ref().map_or(0, |data| data.len());
    let binary_data = config_map.binary_data.as_ref().map_or(0, |data| data.len());
    vec![
        json!(text(&metadata.name)),
        json!(data + binary_data),
        json!(duration::since(metadata.creation_timestamp.as_ref(), now)),
    ]
}
