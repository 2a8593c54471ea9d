//! The Job controller: watches in, ledgers, writes out.
//!
//! ```text
//!   API ──feed──▶ router ──▶ ledgers ──ops──▶ dispatch ──calls──▶ API
//!                   ▲                            │
//!                   └────────── outcomes ────────┘
//! ```
//!
//! What a Job needs is decided in its ledger and nowhere else. This crate brings it the news,
//! carries its ops out, fairly among Jobs and as fast as the API server bears, and tells it
//! what came of them. It must not know storage or processes.

mod access;
mod answer;
mod calls;
mod clock;
mod config;
mod controller;
mod dispatch;
mod election;
mod events;
mod feed;
mod health;
mod job;
mod labels;
mod limit;
mod metrics;
mod mould;
mod odd;
mod path;
mod pod;
mod refusals;
mod rival;
mod router;
mod selection;
mod term;
mod ticks;
mod words;

pub use access::{Access, MissingRight};
pub use clock::Clock;
pub use config::{Config, MAX_IN_FLIGHT, ManagedByError};
pub use controller::Controller;
pub use election::{ElectionConfig, LeaseTiming, TimingError};
pub use health::{Health, Role};
pub use metrics::{Build, Metrics};
pub use stint_ledger::backoff::{BackoffDelays, FailureStreak};
pub use ticks::Ticks;
