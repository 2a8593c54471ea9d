//! What a Kubernetes Job is: its types on the wire, its defaults, what is wrong
//! with it, and how a set of its indexes is written.
//!
//! This crate speaks of one object's shape. It knows nothing of IO, clocks or
//! other objects.

pub mod advice;
pub mod closed_set;
pub mod condition;
pub mod decode;
pub mod defaults;
pub mod diagnostic;
pub mod feature_gates;
pub mod field_error;
pub mod field_path;
pub mod identifier;
pub mod index_set;
pub mod manifest;
pub mod names;
pub mod prepare;
pub mod quantity;
pub mod remedy;
mod semantic_equality;
pub mod validation;
pub mod view;
