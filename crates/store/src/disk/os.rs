//! What the disk asks of the operating system beside files: to sync, and what time it is. Tests
//! count it, hold it up and let it fail. It knows nothing of commits.

use fjall::{Database, PersistMode};
use std::fmt::Debug;
use std::time::Instant;

/// The operating system, or what a test puts in its place.
pub(crate) trait Os: Debug + Send + Sync {
    /// Makes durable what was written to fjall's journal.
    fn sync(&self, database: &Database, mode: PersistMode) -> fjall::Result<()>;

    /// What time it is.
    fn now(&self) -> Instant;
}

/// The operating system.
#[derive(Debug)]
pub(crate) struct RealOs;

impl Os for RealOs {
    fn sync(&self, database: &Database, mode: PersistMode) -> fjall::Result<()> {
        database.persist(mode)
    }

    fn now(&self) -> Instant {
        Instant::now()
    }
}
