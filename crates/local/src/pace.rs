//! How long to wait before something that was refused is tried again.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use stint_apiserver::Clock;

/// The first wait. Most refusals in one process are conflicts, and over at once.
const FIRST: Duration = Duration::from_millis(5);

/// The longest wait: whatever was in the way, half a minute after it is gone all goes on.
const LONGEST: Duration = Duration::from_secs(30);

/// How often a clock is looked at by those who wait for a time of day: clocks are set, and
/// machines sleep, which timers do not notice.
const LOOK_EVERY: SignedDuration = SignedDuration::from_secs(30);

/// How long to wait after so many attempts in a row that failed.
pub(crate) fn delay(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    (FIRST * 2u32.pow(doublings)).min(LONGEST)
}

/// Waits until a moment has come; without one, for ever.
pub(crate) async fn reached(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment.into()).await,
        None => std::future::pending().await,
    }
}

/// Waits until a clock shows a time; without one, for ever.
pub(crate) async fn shown(clock: &Clock, time: Option<Timestamp>) {
    let Some(time) = time else { return std::future::pending().await };
    loop {
        let left = time.duration_since(clock.now()).min(LOOK_EVERY);
        let Ok(left) = Duration::try_from(left) else { return };
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left).await;
    }
}

/// This moment as timers see it, so that a test's time is the same.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_doubles_up_to_the_longest() {
        let waits = [1, 2, 3, 13, 14, u32::MAX].map(|failures| delay(failures).as_millis());
        assert_eq!(waits, [5, 10, 20, 20_480, 30_000, 30_000]);
    }
}
