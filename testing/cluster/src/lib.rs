//! Real Kubernetes clusters on loopback, and the suites that run on them.
//!
//! A [`cluster::Cluster`] is etcd, kube-apiserver and kube-controller-manager; a
//! [`theatre::Theatre`] is one with a Job controller and Pods that are driven, where the plays of
//! stint-kit are given; a [`suite::Suite`] is what is run on them.

pub mod attempt;
pub mod audit;
pub mod authority;
pub mod bootstrap;
pub mod cluster;
pub mod coexistence;
pub mod elsewhere;
pub mod excuse;
mod flags;
mod http;
pub mod known;
mod leash;
pub mod picture;
pub mod plays;
pub mod process;
pub mod programs;
pub mod report;
pub mod stint;
pub mod suite;
pub mod theatre;
pub mod unwatched;
