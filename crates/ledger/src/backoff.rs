//! How long to wait after failures before the next Pod.

use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// The delays between a failure and the Pod that replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffDelays {
    /// After the first failure.
    pub base: SignedDuration,
    /// Never more than this.
    pub cap: SignedDuration,
}

impl Default for BackoffDelays {
    /// Kubernetes' own: 10 s doubling to 10 min.
    fn default() -> Self {
        Self { base: SignedDuration::from_secs(10), cap: SignedDuration::from_secs(600) }
    }
}

impl BackoffDelays {
    /// The delay after so many failures in a row: doubled with each, up to the cap.
    pub fn after(&self, failures: u32) -> SignedDuration {
        if failures == 0 {
            return SignedDuration::ZERO;
        }
        let mut delay = self.base;
        for _ in 1..failures {
            if delay >= self.cap {
                break;
            }
            delay = delay.saturating_mul(2);
        }
        if failures == 1 { delay } else { delay.min(self.cap) }
    }

    /// When the next Pod may be created after the last of so many failures.
    pub fn ready_at(&self, failures: u32, last_failure: Timestamp) -> Timestamp {
        last_failure.checked_add(self.after(failures)).unwrap_or(Timestamp::MAX)
    }
}

/// How many failures are remembered: with so many the delay has come to its cap, as long as
/// that is not above 2^31 times its base.
const MAX_FAILURES: usize = 32;

/// The failures of a Job since its last success, which hold back all of its Pods where
/// failures are not counted per index. They may be told in any order. Times are whole
/// seconds: of a success and a failure in the same one, what is told last came last.
/// Otherwise a Pod that fails at once, beside one that succeeded, would be replaced without
/// a pause until the second is over, or the Job has failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailureStreak {
    /// When they were, the earliest first; the last of them if there are many.
    failures: Vec<Timestamp>,
    last_success: Option<Timestamp>,
}

impl FailureStreak {
    /// A Pod succeeded: failures up to then no longer matter.
    pub fn succeeded(&mut self, at: Timestamp) {
        self.last_success = self.last_success.max(Some(at));
        self.failures.retain(|failure| *failure > at);
    }

    /// A Pod failed.
    pub fn failed(&mut self, at: Timestamp) {
        if Some(at) >= self.last_success {
            let place = self.failures.partition_point(|failure| *failure <= at);
            self.failures.insert(place, at);
            if self.failures.len() > MAX_FAILURES {
                self.failures.remove(0);
            }
        }
    }

    /// When the next Pod may be created; at once if there was no failure.
    pub fn ready_at(&self, delays: &BackoffDelays) -> Option<Timestamp> {
        self.failures.last().map(|&last| delays.ready_at(self.failures.len() as u32, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("a time")
    }

    #[test]
    fn the_delay_doubles_up_to_its_cap() {
        let delays = BackoffDelays::default();
        let seconds = |failures: u32| delays.after(failures).as_secs();
        assert_eq!(
            [0, 1, 2, 3, 6, 7, 8, u32::MAX].map(seconds),
            [0, 10, 20, 40, 320, 600, 600, 600]
        );
    }

    #[test]
    fn an_odd_base_or_cap_does_no_harm() {
        let huge = BackoffDelays { base: SignedDuration::MAX, cap: SignedDuration::MAX };
        assert_eq!(huge.ready_at(3, second(5)), Timestamp::MAX);
        let nothing = BackoffDelays { base: SignedDuration::ZERO, cap: SignedDuration::ZERO };
        assert_eq!(nothing.ready_at(9, second(5)), second(5));
    }

    #[test]
    fn failures_in_a_row_hold_the_next_pod_back() {
        let delays = BackoffDelays::default();
        let mut streak = FailureStreak::default();
        assert_eq!(streak.ready_at(&delays), None);
        streak.failed(second(100));
        assert_eq!(streak.ready_at(&delays), Some(second(110)));
        streak.failed(second(120));
        streak.failed(second(115));
        assert_eq!(streak.ready_at(&delays), Some(second(160)), "counted from the last failure");
    }

    #[test]
    fn a_success_forgives_what_failed_before_it() {
        let delays = BackoffDelays::default();
        let mut streak = FailureStreak::default();
        streak.failed(second(100));
        streak.succeeded(second(90));
        assert_eq!(streak.ready_at(&delays), Some(second(110)), "the failure came later");
        streak.succeeded(second(105));
        assert_eq!(streak.ready_at(&delays), None);
        streak.failed(second(104));
        assert_eq!(streak.ready_at(&delays), None, "seen late, but older than the success");
        streak.failed(second(106));
        assert_eq!(streak.ready_at(&delays), Some(second(116)));
    }

    #[test]
    fn within_one_second_what_is_told_last_came_last() {
        let delays = BackoffDelays::default();
        let mut streak = FailureStreak::default();
        streak.failed(second(100));
        streak.succeeded(second(100));
        assert_eq!(streak.ready_at(&delays), None, "a success forgives");
        streak.failed(second(100));
        assert_eq!(streak.ready_at(&delays), Some(second(110)), "and the next failure waits");
    }
}
