//! How long a container that ends again and again waits before it is started again.
//!
//! As a kubelet: the first restart is at once, the second ten seconds after the end, then twice
//! as long each time up to five minutes. A run of ten minutes is forgiven everything.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// The numbers of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffOptions {
    /// The pause before the second restart.
    pub base: Duration,
    /// The longest pause.
    pub cap: Duration,
    /// A run of this length makes the next restart the first again.
    pub forgiven_after: Duration,
}

impl Default for BackoffOptions {
    fn default() -> Self {
        BackoffOptions {
            base: Duration::from_secs(10),
            cap: Duration::from_secs(300),
            forgiven_after: Duration::from_secs(600),
        }
    }
}

/// What is remembered of one container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Backoff {
    /// Ends since the last run that was forgiven.
    ends: u32,
}

impl Backoff {
    /// Takes in an end; when the container may be started again, and how long it waits for that.
    pub(crate) fn end(
        &mut self,
        began: Option<Timestamp>,
        ended: Timestamp,
        options: &BackoffOptions,
    ) -> (Timestamp, Duration) {
        let lasted = began.map_or(SignedDuration::ZERO, |began| ended.duration_since(began));
        if Duration::try_from(lasted).is_ok_and(|lasted| lasted >= options.forgiven_after) {
            self.ends = 0;
        }
        let pause = match self.ends {
            0 => Duration::ZERO,
            ends => options.base.saturating_mul(1 << (ends - 1).min(20)).min(options.cap),
        };
        self.ends = self.ends.saturating_add(1);
        (later(ended, pause), pause)
    }
}

/// So much later.
pub(crate) fn later(time: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("a time")
    }

    #[test]
    fn pauses_double_to_five_minutes_and_a_long_run_is_forgiven() {
        let options = BackoffOptions::default();
        let mut backoff = Backoff::default();
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let (until, pause) = backoff.end(Some(at(0)), at(5), &options);
            assert_eq!(until, later(at(5), pause));
            pauses.push(pause.as_secs());
        }
        assert_eq!(pauses, [0, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(backoff.end(Some(at(0)), at(600), &options).1, Duration::ZERO);
        assert_eq!(backoff.end(Some(at(0)), at(599), &options).1, Duration::from_secs(10));
        // One that never started has not run for long.
        assert_eq!(backoff.end(None, at(1000), &options).1, Duration::from_secs(20));
    }
}
