//! Real Kubernetes clusters on loopback, and the suites that run on them.
//!
//! A [`cluster::Cluster`] is etcd, kube-apiserver and kube-controller-manager; a
//! [`theatre::Theatre`] is one with a Job controller and Pods that are driven, where the plays of
//! stint-kit are given; a [`suite::Suite`] is what is run on them.

pub mod attempt;
pub mod audit;
pub mod coexistence;
pub mod dashboard;
mod dice;
pub mod elsewhere;
pub mod excuse;
pub mod faults;
pub mod foreign;
pub mod gates;
pub mod installed;
pub mod manifests;
pub mod moving;
pub mod namespaces;
pub mod openapi;
pub mod ordeal;
pub mod picture;
pub mod plays;
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
pub mod values;

pub use stint_peers::{
    authority, bootstrap, cluster, deployed, process, program, programs, usage, version,
};
