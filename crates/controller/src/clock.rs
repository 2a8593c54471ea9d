//! What time it is, from whoever wires the controller: a test may have its own.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

/// A source of the time that is written into the API. How long something takes is measured by
/// tokio's clock instead.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// A clock that asks `now`.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Clock(Arc::new(now))
    }

    /// The time of this machine.
    pub fn system() -> Self {
        Clock::new(Timestamp::now)
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
