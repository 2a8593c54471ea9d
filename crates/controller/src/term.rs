//! Whether this process may write: for ever, or as long as it leads.
//!
//! A term has an end from the moment it begins, and is made longer as long as the lease can be
//! renewed. Nobody has to notice that it is over: whoever is about to write looks at the clock.
//! So a process that was stopped past its term writes nothing when it goes on, whichever of its
//! tasks runs first.
//!
//! # Assumptions
//!
//! A request that was handed to the socket before the end may still land after it. That is
//! harmless: a Pod's name, its uid and the Job's resourceVersion make it a refusal if anybody
//! else has acted meanwhile.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::ticks::Ticks;

/// The right to write. Clones are the same one.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    /// `None`: for ever.
    limited: Option<Arc<Limited>>,
}

#[derive(Debug)]
struct Limited {
    ticks: Ticks,
    /// When it ends, if it has begun.
    until: watch::Sender<Option<Duration>>,
}

impl Term {
    /// One that has begun, and never ends.
    pub(crate) fn for_ever() -> Self {
        Term { limited: None }
    }

    /// One that has yet to begin.
    pub(crate) fn later(ticks: Ticks) -> Self {
        let (until, _) = watch::channel(None);
        Term { limited: Some(Arc::new(Limited { ticks, until })) }
    }

    /// Whether anything may be written now.
    pub(crate) fn is_on(&self) -> bool {
        let Some(limited) = &self.limited else { return true };
        let until = *limited.until.borrow();
        until.is_some_and(|until| limited.ticks.now() < until)
    }

    /// How long it lasts yet.
    pub(crate) fn left(&self) -> Duration {
        let Some(limited) = &self.limited else { return Duration::MAX };
        let until = limited.until.borrow().unwrap_or_default();
        until.saturating_sub(limited.ticks.now())
    }

    /// Lets it begin, or go on, until then.
    pub(crate) fn last_until(&self, end: Duration) {
        if let Some(limited) = &self.limited {
            limited.until.send_replace(Some(end));
        }
    }

    /// Ends it.
    pub(crate) fn end(&self) {
        if let Some(limited) = &self.limited {
            limited.until.send_replace(None);
        }
    }

    /// Resolves when it has begun.
    pub(crate) async fn begins(&self) {
        let Some(limited) = &self.limited else { return };
        let mut until = limited.until.subscribe();
        while !self.is_on() {
            until.changed().await.expect("we hold the sender");
        }
    }

    /// Resolves when it has ended, by word or by the clock.
    pub(crate) async fn ends(&self) {
        let Some(limited) = &self.limited else { return std::future::pending().await };
        let mut until = limited.until.subscribe();
        while self.is_on() {
            tokio::select! {
                changed = until.changed() => changed.expect("we hold the sender"),
                () = tokio::time::sleep(self.left()) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, advance};

    use super::*;

    fn ticks() -> Ticks {
        let began = Instant::now();
        Ticks::new(move || began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_term_is_over_when_its_time_is_whether_or_not_anybody_says_so() {
        let term = Term::later(ticks());
        assert!(!term.is_on());
        term.last_until(Duration::from_secs(10));
        assert!(term.is_on());
        advance(Duration::from_millis(9_999)).await;
        assert!(term.is_on());
        advance(Duration::from_millis(1)).await;
        assert!(!term.is_on());
        assert_eq!(term.left(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_is_told_of_its_begin_and_of_its_end() {
        let term = Term::later(ticks());
        let other = term.clone();
        let waiting = tokio::spawn(async move {
            other.begins().await;
            let began = Instant::now();
            other.ends().await;
            began.elapsed()
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        term.last_until(Duration::from_secs(5));
        tokio::time::sleep(Duration::from_secs(2)).await;
        term.last_until(Duration::from_secs(9));
        let lasted = waiting.await.expect("it ends");
        assert!((7_990..8_020).contains(&lasted.as_millis()), "{lasted:?}");
        term.last_until(Duration::from_secs(100));
        term.end();
        term.ends().await;
        assert!(!term.is_on());
    }

    #[tokio::test]
    async fn without_an_election_a_term_is_for_ever() {
        let term = Term::for_ever();
        term.begins().await;
        term.end();
        assert!(term.is_on());
    }
}
