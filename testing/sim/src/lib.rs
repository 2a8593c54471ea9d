//! A simulator that tries to break the ledger: from one seed a Job, Pods with fates,
//! users, and an API that loses answers, refuses, and lags; the invariants are checked
//! after every op.

pub mod random;
pub mod scenario;
pub mod world;
