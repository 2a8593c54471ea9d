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
    /// Which of several terms it is; `None`: whichever there is.
    number: Option<u64>,
}

#[derive(Debug)]
struct Limited {
    ticks: Ticks,
    span: watch::Sender<Span>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Span {
    /// How many terms have begun.
    number: u64,
    /// When the last one ends, if it has not been ended.
    until: Option<Duration>,
}

impl Term {
    /// One that has begun, and never ends.
    pub(crate) fn for_ever() -> Self {
        Term { limited: None, number: None }
    }

    /// One that has yet to begin.
    pub(crate) fn later(ticks: Ticks) -> Self {
        let (span, _) = watch::channel(Span::default());
        Term { limited: Some(Arc::new(Limited { ticks, span })), number: None }
    }

    /// Whether anything may be written now.
    pub(crate) fn is_on(&self) -> bool {
        let Some(limited) = &self.limited else { return true };
        let Span { number, until } = *limited.span.borrow();
        let is_this = self.number.is_none_or(|this| this == number);
        is_this && until.is_some_and(|until| limited.ticks.now() < until)
    }

    /// How long it lasts yet.
    pub(crate) fn left(&self) -> Duration {
        let Some(limited) = &self.limited else { return Duration::MAX };
        let until = limited.span.borrow().until.unwrap_or_default();
        until.saturating_sub(limited.ticks.now())
    }

    /// Lets it go on until then, or another one begin if it is over.
    pub(crate) fn last_until(&self, end: Duration) {
        let Some(limited) = &self.limited else { return };
        let now = limited.ticks.now();
        limited.span.send_modify(|span| {
            if span.until.is_none_or(|until| until <= now) {
                span.number += 1;
            }
            span.until = Some(end);
        });
    }

    /// Ends it.
    pub(crate) fn end(&self) {
        if let Some(limited) = &self.limited {
            limited.span.send_modify(|span| span.until = None);
        }
    }

    /// Resolves when one has begun, to that one and no later: whoever acts in a term that is over has
    /// lost what it knew, also if the next one is its own again and it was not there to see it.
    pub(crate) async fn begins(&self) -> Term {
        let Some(limited) = &self.limited else { return self.clone() };
        let mut span = limited.span.subscribe();
        loop {
            let number = Some(span.borrow_and_update().number);
            let term = Term { limited: self.limited.clone(), number };
            if term.is_on() {
                return term;
            }
            span.changed().await.expect("we hold the sender");
        }
    }

    /// Resolves when it has ended, by word or by the clock.
    pub(crate) async fn ends(&self) {
        let Some(limited) = &self.limited else { return std::future::pending().await };
        let mut span = limited.span.subscribe();
        while self.is_on() {
            tokio::select! {
                changed = span.changed() => changed.expect("we hold the sender"),
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

    #[tokio::test(start_paused = true)]
    async fn a_term_that_was_won_again_is_another_one() {
        let terms = Term::later(ticks());
        terms.last_until(Duration::from_secs(5));
        let first = terms.begins().await;
        terms.last_until(Duration::from_secs(9));
        assert!(first.is_on(), "it was made longer");
        // Nobody has looked meanwhile.
        advance(Duration::from_secs(10)).await;
        terms.last_until(Duration::from_secs(20));
        assert!(!first.is_on() && terms.is_on());
        first.ends().await;
        let second = terms.begins().await;
        terms.end();
        terms.last_until(Duration::from_secs(30));
        assert!(!second.is_on() && terms.begins().await.is_on());
    }

    #[tokio::test]
    async fn without_an_election_a_term_is_for_ever() {
        let term = Term::for_ever();
        term.begins().await;
        term.end();
        assert!(term.is_on());
    }
}
