//! What a Kubernetes Job is, and a Pod: their types on the wire, their defaults, what is
//! wrong with them, and how a set of a Job's indexes is written. And the same, in short, of
//! the kinds that their surroundings are made of.
//!
//! This crate speaks of one object's shape. It knows nothing of IO, clocks or
//! other objects.

pub mod advice;
pub mod binding;
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
mod ip_address;
pub mod kinds;
pub mod limits;
pub mod manifest;
pub mod names;
pub mod pod_conditions;
pub mod pod_deletion;
pub mod pod_field;
pub mod pod_qos;
pub mod prepare;
pub mod quantity;
pub mod quota;
pub mod remedy;
mod resource_list;
pub mod semantic_equality;
pub mod validation;
pub mod view;
pub mod warning;
