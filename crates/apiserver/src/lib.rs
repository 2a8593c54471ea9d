//! The Kubernetes wire: what an API server does with a request before and after an
//! object is stored.
//!
//! ```text
//!   request ─▶ access ─▶ request ─▶ decode ─▶ verb ─▶ kinds (prepare, validate) ─▶ store
//!                                               └────▶ answer ◀── table
//! ```
//!
//! [`ApiServer`] is a tower service: a socket ([`wire`]), a client in the same process
//! ([`ApiServer::local`]) and a test use the same code.
//!
//! This crate must not know the Job controller, or processes.

pub mod access;
mod answer;
mod api;
mod audit;
mod chance;
mod clock;
pub mod console;
pub mod decode;
mod discovery;
pub mod fields;
mod health;
pub mod kind;
pub mod kinds;
pub mod log;
mod metrics;
mod object;
mod openapi;
pub mod patch;
pub mod protobuf;
pub mod request;
mod review;
pub mod schema;
pub mod selector;
mod server;
pub mod status;
mod stream;
mod subresource;
pub mod table;
mod verb;
pub mod wire;

pub use answer::{Body, TakenBack};
pub use api::Config;
pub use audit::{AuditFile, AuditFileError};
pub use clock::Clock;
pub use object::{KubernetesType, Object};
pub use server::{ApiServer, Limits, LocalServer};
