//! How soon a helper is started again. A container that ends the helper ends itself with it, and is
//! replaced at once, as it has not failed: without a pause that would go on for ever, as fast as it can.

use std::time::Duration;

use tokio::time::Instant;

/// The pause after the second death in a row, doubled with each up to the longest. It holds up all
/// containers of the node, whoever is to blame, and whoever waits to be deleted meanwhile.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A helper that has lived so long was not ended by what it had just started: many times the longest
/// pause, so that the pauses themselves do not make a row look like none.
const WORTHWHILE: Duration = Duration::from_secs(60);

/// The deaths of helpers, one after the other.
#[derive(Debug)]
pub(super) struct Deaths {
    began: Instant,
    /// How many helpers in a row have died soon.
    in_a_row: u32,
}

impl Deaths {
    /// None yet: the first helper was started.
    pub(super) fn none(now: Instant) -> Self {
        Deaths { began: now, in_a_row: 0 }
    }

    /// A helper has died. How long to wait for the next one.
    pub(super) fn another(&mut self, now: Instant) -> Duration {
        let is_soon = now.saturating_duration_since(self.began) < WORTHWHILE;
        self.in_a_row = if is_soon { self.in_a_row.saturating_add(1) } else { 1 };
        match self.in_a_row.checked_sub(2) {
            None => Duration::ZERO,
            Some(more) => FIRST_PAUSE.saturating_mul(1 << more.min(10)).min(LONGEST_PAUSE),
        }
    }

    /// The next one was started.
    pub(super) fn began(&mut self, now: Instant) {
        self.began = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_that_die_one_after_the_other_come_ever_later_and_one_that_has_lived_comes_at_once() {
        let mut now = Instant::now();
        let mut deaths = Deaths::none(now);
        let mut pauses = Vec::new();
        for lived in [1, 1, 1, 1, 1, 1, 1, 60, 1] {
            now += Duration::from_secs(lived);
            let pause = deaths.another(now);
            pauses.push(pause.as_secs());
            now += pause;
            deaths.began(now);
        }
        assert_eq!(pauses, [0, 1, 2, 4, 8, 10, 10, 0, 1]);
    }
}
