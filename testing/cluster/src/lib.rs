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
pub mod dashboard;
pub mod deployed;
mod dice;
pub mod elsewhere;
pub mod excuse;
pub mod faults;
mod flags;
pub mod foreign;
pub mod gates;
mod http;
pub mod installed;
mod leash;
pub mod manifests;
pub mod moving;
pub mod openapi;
pub mod ordeal;
pub mod picture;
pub mod plays;
pub mod process;
pub mod program;
pub mod programs;
pub mod proxy;
pub mod random;
pub mod relay;
pub mod report;
pub mod requests;
pub mod rights;
pub mod rules;
pub mod stint;
pub mod suite;
pub mod theatre;
pub mod unwatched;
pub mod version;

pub use stint_peers::usage;
