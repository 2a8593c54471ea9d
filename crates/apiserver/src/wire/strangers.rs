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

/// Whoever came this long ago is about to say who they are, or has asked how the server is and waits
/// for the answer.
const ARRIVAL_TIME: Duration = Duration::from_secs(1);

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
    came: Instant,
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
            came: Instant::now(),
            acquaintance: acquaintance.clone(),
            activity: activity.clone(),
            leave: leave.clone(),
            dismiss: dismiss.clone(),
        };
        inner.here.insert(number, guest);
        Visit { strangers: self.clone(), number, acquaintance, activity, dismiss, leave }
    }

    /// Sends the one away who has been a stranger for longest, or else lets the one go who has had
    /// nothing under way for longest; `false` if there is none. A stranger who has just come goes only if
    /// there is nobody else: else one newcomer would push the other out.
    pub(super) fn send_one_away(&self) -> bool {
        let mut inner = self.lock();
        let now = Instant::now();
        let stranger = inner.here.iter().find(|(_, guest)| !guest.acquaintance.is_made());
        let stranger = stranger.map(|(number, guest)| (*number, guest.came + ARRIVAL_TIME > now));
        let idle = inner.here.iter().filter(|(_, guest)| guest.acquaintance.is_made());
        let idle = idle.filter_map(|(number, guest)| {
            let since = guest.activity.idle_since()?;
            (since + IDLE_TIME <= now).then_some((since, *number))
        });
        let idle = idle.min().map(|(_, number)| number);
        match (stranger, idle) {
            (Some((_, true)) | None, Some(number)) => inner.part_with(number).dismiss.notify_one(),
            (Some((number, _)), _) => inner.part_with(number).leave.notify_one(),
            (None, None) => return false,
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here panics between two changes that belong together.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn part_with(&mut self, number: u64) -> Guest {
        self.here.remove(&number).expect("it was just there")
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

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Duration = Duration::from_millis(10);

    fn is_told(notify: &Notify) -> bool {
        std::pin::pin!(notify.notified()).enable()
    }

    fn known(strangers: &Strangers) -> Visit {
        let visit = strangers.arrive();
        visit.acquaintance.make();
        visit
    }

    #[tokio::test(start_paused = true)]
    async fn a_stranger_who_has_just_come_stays_if_somebody_else_has_nothing_under_way() {
        let strangers = Strangers::default();
        let (idle, busy) = (known(&strangers), known(&strangers));
        let _request = busy.activity.begin();
        tokio::time::advance(IDLE_TIME).await;
        let newcomer = strangers.arrive();
        assert!(strangers.send_one_away());
        assert!(is_told(&idle.dismiss) && !is_told(&newcomer.leave));
        // Nobody else is left but those who have something under way.
        assert!(strangers.send_one_away());
        assert!(is_told(&newcomer.leave));
        assert!(!strangers.send_one_away() && !is_told(&busy.dismiss));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stranger_goes_before_those_who_are_known_and_the_oldest_first() {
        let strangers = Strangers::default();
        let idle = known(&strangers);
        let first = strangers.arrive();
        tokio::time::advance(MOMENT).await;
        let second = strangers.arrive();
        tokio::time::advance(ARRIVAL_TIME - MOMENT).await;
        assert!(strangers.send_one_away());
        assert!(is_told(&first.leave) && !is_told(&second.leave) && !is_told(&idle.dismiss));
    }
}
