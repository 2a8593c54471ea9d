//! What time it is, from whoever wires the node: a test may have its own.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

/// A source of the time that is written into the API.
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

    /// Waits until it is that late.
    pub(crate) async fn reach(&self, at: Timestamp) {
        // A clock that is set back, or one that runs slower than tokio's, is waited for.
        while let Ok(left) = Duration::try_from(at.duration_since(self.now())) {
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
