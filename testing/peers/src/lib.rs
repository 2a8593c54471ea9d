//! Programs of others that are run beside ours: real Kubernetes clusters on loopback, and what
//! processes use.
//!
//! A [`cluster::Cluster`] is etcd, kube-apiserver and kube-controller-manager, with what `deploy/`
//! installs for stint; a [`program::Program`] is `stint controller` on it. `get` beside this crate
//! finds the programs, or builds them.

pub mod authority;
pub mod bootstrap;
pub mod cluster;
pub mod deployed;
mod flags;
mod http;
mod leash;
pub mod process;
pub mod program;
pub mod programs;
pub mod usage;
pub mod version;
