//! Measures stint, and others on the same work.
//!
//! ```text
//!   a benchmark ─▶ works, each with who does it ─▶ contest ─▶ rows ─▶ report ─▶ table, JSON, plots
//!                                                     │
//!                        warm-up, rounds in turn ─────┘
//! ```
//!
//! Each claim about speed has one file here. What is measured runs in a process of its own, so that its
//! memory and its processor time are its own. This crate decides nothing about how Jobs are run, and
//! nobody but the command line may know it.

mod arena;
mod beside;
mod cluster;
mod contest;
mod counts;
mod error;
mod fairness;
mod floor;
mod kubelet;
mod latency;
mod ledger;
mod load;
mod local;
mod machine;
mod metric;
mod observer;
mod plot;
mod process;
mod report;
mod spawned;
mod spread;
mod startup;
mod table;
mod worker;

pub use arena::Runner;
pub use beside::BesidePlan;
pub use cluster::{ClusterPlan, Crowd, cluster};
pub use contest::Rounds;
pub use error::BenchError;
pub use fairness::fairness;
pub use latency::latency;
pub use ledger::{LedgerPlan, ledger};
pub use load::Load;
pub use local::{LocalPlan, local};
pub use process::{ProcessPlan, process};
pub use report::{Report, Subject};
pub use startup::{StartupPlan, startup};
pub use worker::{Task, work};
