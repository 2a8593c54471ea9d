//! How long something has lasted, by a clock that is never set and that goes on while the
//! machine sleeps: a lease runs out whether or not its holder is awake.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The clock that counts sleep: on Linux not the usual one.
#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

/// A clock that only goes forward. What it says means nothing by itself; differences do.
#[derive(Clone)]
pub struct Ticks(Arc<dyn Fn() -> Duration + Send + Sync>);

impl Ticks {
    /// A clock that asks `now`.
    pub fn new(now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Ticks(Arc::new(now))
    }

    /// The time since this machine was started, its sleep included.
    pub fn system() -> Self {
        Ticks::new(|| {
            let time = clock_gettime(CLOCK);
            Duration::try_from(time).expect("it is after the start of the machine")
        })
    }

    /// How late it is.
    pub fn now(&self) -> Duration {
        (self.0)()
    }
}

impl fmt::Debug for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticks")
    }
}
