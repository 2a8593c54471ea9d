//! Leases as rows.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{AGE, Column, NAME, duration, text};

/// The columns.
pub static COLUMNS: &[Column] = &[
    NAME,
    Column::new(
        "Holder",
        "holderIdentity contains the identity of the holder of a current lease. If Coordinated \
         Leader Election is used, the holder identity must be equal to the elected \
         LeaseCandidate.metadata.name field.",
    ),
    AGE,
];

/// The cells of a Lease.
pub fn cells(lease: &Lease, now: Timestamp) -> Vec<Value> {
    let metadata = &lease.metadata;
    vec![
        json!(text(&metadata.name)),
        json!(lease.spec.as_ref().map_or("", |spec| text(&spec.holder_identity))),
        json!(duration::since(metadata.creation_timestamp.as_ref(), now)),
    ]
}
