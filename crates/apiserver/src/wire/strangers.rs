//! Those at the other end of connections who have not said who they are, or have nothing under way:
//! they are served, but they keep nobody out. It must not know what is said over connections.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::activity::Activity;
use crate::access::Acquaintance;

/// Whoever had something under way this long ago is about to ask for more.
const IDLE_TIME: Duration = Duration::from_secs(1);

/// The connections by their order of arrival. Clones are the same ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Strangers {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    arrivals: u64,
    here: BTreeMap<u64, Guest>,
}

#[derive(Debug)]
struct Guest {
    acquaintance: Acquaintance,
    activity: Activity,
    leave: Arc<Notify>,
    dismiss: Arc<Notify>,
}

impl Strangers {
    /// Takes note of somebody who arrives, for as long as the answer is kept.
    pub(super) fn arrive(&self) -> Visit {
        let mut inner = self.lock();
        let number = inner.arrivals;
        inner.arrivals += 1;
        let (acquaintance, activity) = (Acquaintance::default(), Activity::new());
        let (leave, dismiss) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let guest = Guest {
            acquaintance: acquaintance.clone(),
            activity: activity.clone(),
            leave: leave.clone(),
            dismiss: dismiss.clone(),
        };
        inner.here.insert(number, guest);
        Visit { strangers: self.clone(), number, acquaintance, activity, dismiss, leave }
    }

    /// Sends the one away who has been a stranger for longest, or else lets the one go who has had
    /// nothing under way for longest; `false` if there is none.
    pub(super) fn send_one_away(&self) -> bool {
        let mut inner = self.lock();
        let oldest = inner.here.iter().find(|(_, guest)| !guest.acquaintance.is_made());
        if let Some(number) = oldest.map(|(number, _)| *number) {
            let guest = inner.here.remove(&number).expect("it was just there");
            guest.leave.notify_one();
            return true;
        }
        let idle = inner.here.iter().filter_map(|(number, guest)| {
            let since = guest.activity.idle_since()?;
            (since + IDLE_TIME <= Instant::now()).then_some((since, *number))
        });
        let found = idle.min().and_then(|(_, number)| inner.here.remove(&number));
        if let Some(guest) = &found {
            guest.dismiss.notify_one();
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
    pub(super) activity: Activity,
    /// Told when it is time to go for somebody who has nothing under way.
    pub(super) dismiss: Arc<Notify>,
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
