//! Whether the other end of a connection has said who it is. It knows neither connections nor
//! how callers are known.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a caller has ever been known on a connection. Whoever takes requests in puts a clone
/// into the extensions of each, and [`Authenticator`](super::Authenticator) notes who is known.
#[derive(Clone, Debug, Default)]
pub struct Acquaintance {
    is_made: Arc<AtomicBool>,
}

impl Acquaintance {
    /// Notes that a caller is known.
    pub(crate) fn make(&self) {
        self.is_made.store(true, Ordering::Relaxed);
    }

    /// Whether a caller has been known.
    pub fn is_made(&self) -> bool {
        self.is_made.load(Ordering::Relaxed)
    }
}
