//! ResourceQuotas as rows.

use k8s_openapi::api::core::v1::ResourceQuota;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{AGE, Column, NAME, duration, text};

/// The columns.
pub static COLUMNS: &[Column] = &[
    NAME,
    Column::new(
        "Request",
        "Request represents a minimum amount of cpu/memory that a container may consume.",
    ),
    Column::new(
        "Limit",
        "Limits control the maximum amount of cpu/memory that a container may use independent of \
         contention on the node.",
    ),
    AGE,
];

/// The cells of a ResourceQuota: what is used of what there is, limits apart from all else.
pub fn cells(quota: &ResourceQuota, now: Timestamp) -> Vec<Value> {
    let metadata = &quota.metadata;
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    let status = quota.status.clone().unwrap_or_default();
    let used = status.used.unwrap_or_default();
    for (name, hard) in status.hard.iter().flatten() {
        let used = used.get(name).map_or("0", |used| &used.0);
        let column = if name.starts_with("limits.") { &mut limits } else { &mut requests };
        column.push(format!("{name}: {used}/{}", hard.0));
    }
    vec![
        json!(text(&metadata.name)),
        json!(requests.join(", ")),
        json!(limits.join(", ")),
        json!(duration::since(metadata.creation_timestamp.as_ref(), now)),
    ]
}
