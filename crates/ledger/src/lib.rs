//! The Job state machine and its policies: counting, indexes, backoff, failure, success,
//! replacement.
//!
//! This crate decides what to write next and never writes. It knows nothing of tokio,
//! kube, HTTP or where the time comes from: `now` is a parameter.

pub mod backoff;
mod context;
pub mod end_state;
pub mod event;
mod freshness;
mod graves;
pub mod ledger;
pub mod metric;
pub mod op;
mod pace;
pub mod pod_facts;
pub mod pod_failure_policy;
pub mod pod_name;
mod pods;
pub mod removal;
pub mod success_policy;
