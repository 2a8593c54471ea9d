//! Those at the other end of connections who have not said who they are: they are served, but
//! they keep nobody out. It must not know what is said over connections.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::access::Acquaintance;

/// The connections by their order of arrival. Clones are the same ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Strangers {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    arrivals: u64,
    here: BTreeMap<u64, (Acquaintance, Arc<Notify>)>,
}

impl Strangers {
    /// Takes note of somebody who arrives, for as long as the answer is kept.
    pub(super) fn arrive(&self) -> Visit {
        let mut inner = self.lock();
        let number = inner.arrivals;
        inner.arrivals += 1;
        let (acquaintance, leave) = (Acquaintance::default(), Arc::new(Notify::new()));
        inner.here.insert(number, (acquaintance.clone(), leave.clone()));
        Visit { strangers: self.clone(), number, acquaintance, leave }
    }

    /// Sends the one away who has been a stranger for longest; `false` if there is none.
    pub(super) fn send_one_away(&self) -> bool {
        let mut inner = self.lock();
        let oldest = inner.here.iter().find(|(_, (acquaintance, _))| !acquaintance.is_made());
        let oldest = oldest.map(|(number, _)| *number);
        let found = oldest.and_then(|number| inner.here.remove(&number));
        if let Some((_, leave)) = &found {
            leave.notify_one();
        }
        found.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here panics between two changes that belong together.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody's being here.
#[derive(Debug)]
pub(super) struct Visit {
    strangers: Strangers,
    number: u64,
    pub(super) acquaintance: Acquaintance,
    leave: Arc<Notify>,
}

impl Visit {
    /// Resolves when it is time to go for somebody who is a stranger still.
    pub(super) async fn sent_away(&self) {
        self.leave.notified().await;
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.strangers.lock().here.remove(&self.number);
    }
}
