//! The embedded cluster: a store, an API server on it, and what keeps the objects in order.
//!
//! ```text
//!                     kube::Client
//!   store ◀─ ApiServer ◀─┬─ bootstrap        the namespaces that every cluster has
//!                        ├─ namespaces       what every namespace has, and how it is emptied
//!                        ├─ collector        what becomes of objects when their owners go (graph)
//!                        ├─ binder           which Pod goes to which node (plan)
//!                        ├─ endpoints        which Pods are behind a Service
//!                        ├─ quotas           how much is used of what a namespace may have
//!                        ├─ ttl              Jobs whose time to live is over
//!                        ├─ pod_collector    Pods that nobody else would remove
//!                        ├─ event_collector  Events that are old, or too many
//!                        ├─ pods             the node, which runs Pods (crates/node)
//!                        └─ the Job controller (crates/controller)
//! ```
//!
//! `disk` says when the store cannot be written. Every other part speaks to the API through a client, as it would to any other API server, and to
//! nothing else: what it knows after a restart is what the API tells it.
//!
//! This crate must not know the rules of Jobs.

mod archive;
mod binder;
mod bootstrap;
mod cluster;
mod collector;
mod deadlines;
mod disk;
mod endpoints;
mod event_collector;
mod feed;
mod front;
mod graph;
mod namespaces;
mod pace;
mod pod_collector;
mod pods;
mod queue;
mod quotas;
mod refusal;
mod resource;
mod sight;
mod tasks;
mod ttl;

pub use archive::Archive;
pub use binder::{Unmet, unmet};
pub use bootstrap::BootstrapError;
pub use cluster::{Cluster, Kept, Options, Resting, StartError, Storage};
pub use front::{Front, FrontError, FrontOptions};
pub use pods::NodeOptions;
/// Whose client it is.
pub use stint_apiserver::access::Identity;
pub use stint_apiserver::{AuditFile, AuditFileError};
/// What holds a cluster back until somebody lets it begin.
pub use stint_node::{Gate, GateKey};
pub use tasks::TaskFailure;
