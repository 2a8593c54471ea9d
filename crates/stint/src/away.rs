//! A server that does not answer: for a moment, or for good. No clock: `now` is a parameter.

use std::time::{Duration, Instant};

/// How long it may be away before it is given up: a restart takes less.
const AWAY_TIME: Duration = Duration::from_secs(5);

/// How long ago a failure may be to belong to the one that comes now.
const SAME_AWAY: Duration = Duration::from_secs(2);

/// Since when the server has been away.
#[derive(Debug, Default)]
pub(crate) struct Away {
    /// The first failure, and the last.
    span: Option<(Instant, Instant)>,
}

impl Away {
    /// It did not answer. Whether it has not for so long that it will not.
    pub(crate) fn is_for_good(&mut self, now: Instant) -> bool {
        let first = match self.span {
            Some((first, last)) if now.duration_since(last) < SAME_AWAY => first,
            _ => now,
        };
        self.span = Some((first, now));
        now.duration_since(first) >= AWAY_TIME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_that_are_far_apart_are_not_one() {
        let (begin, mut away) = (Instant::now(), Away::default());
        let mut at = |millis| away.is_for_good(begin + Duration::from_millis(millis));
        assert_eq!([0, 1_900, 3_800, 4_999].map(&mut at), [false; 4]);
        assert_eq!([60_000, 61_000].map(&mut at), [false; 2]);
        assert_eq!([62_500, 64_000, 65_500].map(&mut at), [false, false, true]);
    }
}
