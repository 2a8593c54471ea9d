//! How soon to ask again after the API has refused.

use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// How many refusals in a row lengthen the pause.
const MAX_DOUBLINGS: u32 = 8;
/// The pause after the first refusal; doubled up to 25.6 s, which is about as long as a
/// quota or a terminating namespace takes to change.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_millis(100);

/// The pause of one kind of request.
///
/// A refusal has no time of its own, so the pause begins when the ledger is next asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    refusals: u32,
    is_due: bool,
    until: Option<Timestamp>,
}

impl Pace {
    /// The API has refused, or has not answered.
    pub(crate) fn refused(&mut self) {
        // Many requests refused together are one refusal: they were sent without knowing.
        if !self.is_due && self.until.is_none() {
            self.refusals = self.refusals.saturating_add(1);
        }
        self.is_due = true;
    }

    /// The API has done what was asked.
    pub(crate) fn granted(&mut self) {
        self.refusals = 0;
    }

    /// Begins a pause that is due, and ends one that is over.
    pub(crate) fn tick(&mut self, now: Timestamp) {
        if std::mem::take(&mut self.is_due) {
            let doublings = self.refusals.saturating_sub(1).min(MAX_DOUBLINGS);
            let pause = FIRST_PAUSE.saturating_mul(1 << doublings);
            self.until = Some(now.checked_add(pause).unwrap_or(Timestamp::MAX));
            return;
        }
        let longest = FIRST_PAUSE.saturating_mul(1 << MAX_DOUBLINGS);
        let latest = now.checked_add(longest).unwrap_or(Timestamp::MAX);
        // A clock that was set back must not make a pause of hours.
        self.until = self.until.filter(|&until| until > now).map(|until| until.min(latest));
    }

    /// Until when nothing is asked for.
    pub(crate) fn until(&self) -> Option<Timestamp> {
        self.until
    }

    /// Whether nothing is asked for now.
    pub(crate) fn is_paused(&self) -> bool {
        self.is_due || self.until.is_some()
    }
}

/// The time between two requests of a kind, where one can wait for the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interval {
    last: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl Interval {
    /// A request was made. Without a length nothing is remembered.
    pub(crate) fn made(&mut self, now: Timestamp, length: SignedDuration) {
        self.last = Some(now).filter(|_| !length.is_zero());
        self.until = None;
    }

    /// Whether the next request can wait, and if so remembers until when.
    pub(crate) fn holds(&mut self, now: Timestamp, length: SignedDuration) -> bool {
        let end = |last: Timestamp| last.checked_add(length).unwrap_or(Timestamp::MAX);
        // A clock that was set back must not make a long interval.
        self.until = self.last.filter(|&last| last <= now).map(end).filter(|&until| now < until);
        self.until.is_some()
    }

    /// Until when a request waits.
    pub(crate) fn until(&self) -> Option<Timestamp> {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).expect("a time")
    }

    #[test]
    fn the_pause_doubles_with_every_refusal_in_a_row() {
        let mut pace = Pace::default();
        let mut now = at(0);
        let mut pauses = Vec::new();
        for _ in 0..10 {
            pace.refused();
            pace.tick(now);
            let until = pace.until().expect("a pause has begun");
            pauses.push(until.duration_since(now).as_millis());
            pace.tick(until);
            assert!(!pace.is_paused());
            now = until;
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 25_600]);
        pace.granted();
        pace.refused();
        pace.tick(now);
        assert_eq!(pace.until().expect("a pause").duration_since(now).as_millis(), 100);
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_lengthen_a_pause() {
        let mut pace = Pace::default();
        pace.refused();
        pace.tick(at(3_600_000));
        pace.tick(at(0));
        assert_eq!(pace.until(), Some(at(25_600)));
    }

    #[test]
    fn requests_that_are_refused_together_are_one_refusal() {
        let mut pace = Pace::default();
        (0..50).for_each(|_| pace.refused());
        pace.tick(at(0));
        assert_eq!(pace.until(), Some(at(100)));
        pace.refused();
        assert!(pace.is_paused());
        pace.tick(at(50));
        assert_eq!(pace.until(), Some(at(150)));
    }

    #[test]
    fn a_request_waits_for_the_end_of_its_interval_and_no_longer() {
        let length = SignedDuration::from_millis(250);
        let mut interval = Interval::default();
        assert!(!interval.holds(at(0), length), "nothing was asked for before");
        interval.made(at(0), length);
        assert!(interval.holds(at(100), length));
        assert_eq!(interval.until(), Some(at(250)));
        assert!(!interval.holds(at(250), length) && interval.until().is_none());
        interval.made(at(9_000), length);
        assert!(!interval.holds(at(0), length), "the clock was set back");
        interval.made(at(0), SignedDuration::ZERO);
        assert_eq!(interval, Interval::default());
    }
}
