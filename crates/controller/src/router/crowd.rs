//! How many Jobs have something to tell at once, and how far apart their statuses are for that.
//!
//! A few Jobs are looked at one by one, and their statuses follow every change. Of many at once all
//! statuses together are as many calls as those of a few, and the server's time goes to their Pods.
//!
//! It must not know what a status says.

use std::collections::{HashMap, VecDeque};

use jiff::{SignedDuration, Timestamp};

use super::JobUid;

/// How many Jobs may tell something before they do so less often: with four statuses a second each,
/// 32 in all.
const FEW: usize = 8;

/// However many there are, none has a status that is older than this, and none is counted that has
/// told nothing for so long.
const LONGEST: SignedDuration = SignedDuration::from_secs(3);

/// The Jobs that have told something lately.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    last_told: HashMap<JobUid, Timestamp>,
    /// The same in order, with those that have told something since.
    told: VecDeque<(Timestamp, JobUid)>,
}

impl Crowd {
    /// A status of a Job is written.
    pub(super) fn tells(&mut self, job: &JobUid, now: Timestamp) {
        self.last_told.insert(job.clone(), now);
        self.told.push_back((now, job.clone()));
    }

    /// How far apart the statuses of each Job are; `least` if there are but a few.
    pub(super) fn interval(&mut self, least: SignedDuration, now: Timestamp) -> SignedDuration {
        self.forget(now);
        let crowds = i32::try_from(self.last_told.len().div_ceil(FEW)).unwrap_or(i32::MAX);
        least.saturating_mul(crowds.max(1)).min(least.max(LONGEST))
    }

    /// Forgets those that have told nothing for long; a clock that is set back makes all of them
    /// wait no longer than that.
    fn forget(&mut self, now: Timestamp) {
        let is_old = |at: Timestamp| now.duration_since(at).abs() >= LONGEST;
        while let Some((at, job)) = self.told.pop_front_if(|(at, _)| is_old(*at)) {
            if self.last_told.get(&job) == Some(&at) {
                self.last_told.remove(&job);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: SignedDuration = SignedDuration::from_millis(250);

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).expect("a time")
    }

    fn uids(count: usize) -> Vec<JobUid> {
        (0..count).map(|number| format!("job-{number}").into()).collect()
    }

    #[test]
    fn the_more_jobs_tell_something_the_further_apart_are_their_statuses() {
        let mut crowd = Crowd::default();
        assert_eq!(crowd.interval(LEAST, at(0)), LEAST);
        for (count, times) in [(8, 1), (9, 2), (16, 2), (80, 10), (96, 12), (97, 12), (5_000, 12)] {
            // However often each of them does.
            for job in uids(count).iter().chain(&uids(count)) {
                crowd.tells(job, at(0));
            }
            assert_eq!(crowd.interval(LEAST, at(0)), LEAST * times, "{count}");
        }
    }

    #[test]
    fn jobs_that_have_nothing_to_tell_make_nobody_wait() {
        let mut crowd = Crowd::default();
        uids(80).iter().for_each(|job| crowd.tells(job, at(0)));
        uids(16).iter().for_each(|job| crowd.tells(job, at(2_000)));
        assert_eq!(crowd.interval(LEAST, at(2_999)), LEAST * 10);
        assert_eq!(crowd.interval(LEAST, at(3_000)), LEAST * 2);
        assert_eq!(crowd.interval(LEAST, at(5_000)), LEAST);
        assert!(crowd.told.is_empty() && crowd.last_told.is_empty());
        // A clock that is set back by a year.
        uids(80).iter().for_each(|job| crowd.tells(job, at(31_536_000_000)));
        assert_eq!(crowd.interval(LEAST, at(0)), LEAST);
    }

    #[test]
    fn what_is_asked_for_is_the_least() {
        let mut crowd = Crowd::default();
        uids(100).iter().for_each(|job| crowd.tells(job, at(0)));
        let asked = SignedDuration::from_mins(1);
        assert_eq!(crowd.interval(asked, at(0)), asked);
        let at_once = SignedDuration::ZERO;
        assert_eq!(crowd.interval(at_once, at(0)), at_once);
    }
}
