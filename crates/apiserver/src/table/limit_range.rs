//! LimitRanges as rows. Upstream has no columns for them, and shows what every object has.

use k8s_openapi::api::core::v1::LimitRange;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{AGE, Column, NAME, text};

/// The columns.
pub static COLUMNS: &[Column] = &[NAME, Column { name: "Created At", column_type: "date", ..AGE }];

/// What Go writes for a time that is not there.
const NO_TIME: &str = "0001-01-01T00:00:00Z";

/// The cells of a LimitRange.
pub fn cells(range: &LimitRange, _now: Timestamp) -> Vec<Value> {
    let created = range.metadata.creation_timestamp.as_ref();
    let created = created.map_or_else(|| NO_TIME.to_owned(), |time| time.0.to_string());
    vec![json!(text(&range.metadata.name)), json!(created)]
}
