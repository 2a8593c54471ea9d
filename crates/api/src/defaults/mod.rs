//! What the API server fills in where an object says nothing.
//!
//! Defaults run before validation and change only what is absent; running them
//! twice changes nothing more.

pub mod job;
pub mod pod;
mod pod_spec;
pub mod pod_template;
