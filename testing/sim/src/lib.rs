//! A simulator that tries to break the ledger.
//!
//! ```text
//!   seed ─▶ Scenario ─▶ World ◀── Choice ◀── random run, shrinker, exhaustive search
//!                         │
//!        API model, controllers with real ledgers, nodes, users, time
//!                         │
//!                         └─▶ invariants after every step, reference at rest
//! ```
//!
//! All that is uncertain is a [`choice::Choice`], so a world can be replayed, shrunk and
//! searched. Nothing here is part of what runs in production.

pub mod api;
pub mod calm;
pub mod choice;
pub mod controller;
pub mod delivery;
pub mod exhaustive;
pub mod fate;
pub mod fingerprint;
pub mod history;
pub mod invariant;
pub mod lifecycle;
pub mod menu;
pub mod node;
pub mod random;
pub mod reference;
pub mod request;
pub mod run;
pub mod scenario;
pub mod shrink;
pub mod user;
pub mod world;
