//! Bodies in Kubernetes' protobuf, which client-go and kubectl send by default: from their
//! bytes to the JSON that Kubernetes writes of the same object.
//!
//! ```text
//!   k8s\0 Unknown{apiVersion, kind, raw} ─envelope─▶ raw ─decode, by schema─▶ JSON
//!                                                     └── wire: tags, varints, lengths
//! ```
//!
//! This room knows no kind's Rust type and no HTTP. Answers are never protobuf.

pub mod decode;
pub mod envelope;
mod wire;

/// The media type of these bodies.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
