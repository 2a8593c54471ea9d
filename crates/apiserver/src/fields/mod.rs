//! Who owns which fields of an object, and server-side apply, as kube-apiserver 1.36 has them:
//! docs/patches.md.
//!
//! ```text
//!   text ──tree──▶ places ──compare, by schema──▶ changes ──managed──▶ managedFields
//!                                                    ▲
//!   live, applied ──apply: merge, prune──────────────┘
//! ```
//!
//! Everything here is a function of its arguments. It must not know HTTP, the store, or what
//! makes an object valid.

pub mod apply;
pub mod check;
pub mod compare;
pub mod element;
pub mod managed;
pub mod merge;
pub mod owned;
pub mod set;
mod shape;
pub mod tree;

pub use element::Element;
pub use set::FieldSet;
