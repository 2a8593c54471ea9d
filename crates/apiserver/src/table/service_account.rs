//! ServiceAccounts as rows.

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{AGE, Column, NAME, duration, text};

/// The columns.
pub static COLUMNS: &[Column] = &[NAME, AGE];

/// The cells of a ServiceAccount.
pub fn cells(service_account: &ServiceAccount, now: Timestamp) -> Vec<Value> {
    let metadata = &service_account.metadata;
    vec![
        json!(text(&metadata.name)),
        json!(duration::since(metadata.creation_timestamp.as_ref(), now)),
    ]
}
