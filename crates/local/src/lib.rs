//! The embedded cluster: a store, an API server on it, and what keeps the objects in order.
//!
//! ```text
//!                     kube::Client
//!   store ◀─ ApiServer ◀─┬─ bootstrap    the namespaces that every cluster has
//!                        ├─ namespaces   what every namespace has, and how it is emptied
//!                        └─ collector    what becomes of objects when their owners go (graph)
//! ```
//!
//! Every part speaks to the API through a client, as it would to any other API server, and to
//! nothing else: what it knows after a restart is what the API tells it.
//!
//! This crate must not know the rules of Jobs.

mod bootstrap;
mod cluster;
mod collector;
mod feed;
mod front;
mod graph;
mod namespaces;
mod pace;
mod queue;
mod refusal;
mod resource;
mod tasks;

pub use bootstrap::BootstrapError;
pub use cluster::{Cluster, Options, StartError, Storage};
pub use front::{Front, FrontError, FrontOptions};
pub use tasks::TaskFailure;
