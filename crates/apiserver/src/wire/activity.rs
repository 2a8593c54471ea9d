//! Whether anything is under way on a connection, and since when nothing is. It must not know what.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

/// What is under way on one connection. Clones are handles to the same one.
#[derive(Clone, Debug)]
pub(super) struct Activity {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    under_way: usize,
    /// When something last began or ended.
    since: Instant,
}

impl Activity {
    /// Of a connection that has just come.
    pub(super) fn new() -> Self {
        Activity { state: Arc::new(Mutex::new(State { under_way: 0, since: Instant::now() })) }
    }

    /// Something begins, and goes on until the last clone of the answer is dropped.
    pub(super) fn begin(&self) -> UnderWay {
        let mut state = self.state();
        state.under_way += 1;
        state.since = Instant::now();
        drop(state);
        UnderWay { _ends: Arc::new(Ends(self.clone())) }
    }

    /// Since when nothing has been under way; none if something is.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        (state.under_way == 0).then_some(state.since)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Two numbers cannot be left half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request under way, from its head to the last byte of its answer. It is among the extensions of
/// the request, and whoever answers keeps it for as long as the answer is being read.
#[derive(Clone, Debug)]
pub struct UnderWay {
    _ends: Arc<Ends>,
}

#[derive(Debug)]
struct Ends(Activity);

impl Drop for Ends {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.under_way -= 1;
        state.since = Instant::now();
    }
}
