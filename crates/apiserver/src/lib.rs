//! The Kubernetes wire: what an API server does with a request before and after an
//! object is stored.
//!
//! This crate knows objects as JSON and the rules of the wire. It must not know the Job
//! controller, or processes.

pub mod patch;
