//! Whether what is known of the Pods keeps up with what is known of the Job.
//!
//! A uid leaves the status for a counter once its finalizer is gone. Whoever knows the
//! counter but not yet that the finalizer is gone would count that Pod again: a stale
//! cache, a list from an older version, a second leader. So nothing is counted, decided
//! or created before the Pods are known at least as of the last status that somebody
//! else has written. What the ledger has written itself it knows already.
//!
//! The other way round, whoever knows that a finalizer is gone but not yet the status that
//! accounts for its Pod would take that Pod for one that never was, and create another. So
//! if somebody else has taken a finalizer off, nothing is created before the Job is known as
//! of that moment: by the watch, by a status of our own, or by asking.
//!
//! A list that a new process begins with may be old altogether. A Job that nobody has
//! begun shows that by a status that can still be written; one that somebody has begun
//! is looked up, and its Pods are, before anything is done for it.

use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// How long the watch may take to catch up before the Pods are looked up. A watch is
/// behind by milliseconds; a list of many Pods is dear.
const PATIENCE: SignedDuration = SignedDuration::from_secs(1);

/// How a question past every cache stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LookUp {
    #[default]
    NotNeeded,
    Needed,
    InFlight,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Freshness {
    /// Whether the Pods have been listed.
    is_listed: bool,
    /// Every Pod that is not known has been created, or changed, after this version.
    pods_version: u64,
    /// The version of the last status that came from somebody else.
    foreign_version: u64,
    stale_since: Option<Timestamp>,
    is_looking: bool,
    /// What `foreign_version` was when the Pods were last looked up.
    looked_up_for: u64,
    /// Whether an answer was older than what was known when it was asked for.
    is_torn: bool,
    /// Whether the API itself has told what the Job is, and not only a cache.
    is_job_verified: bool,
    /// The same of the Pods.
    are_pods_verified: bool,
    /// The version at which somebody else last took a finalizer off.
    untracked_version: u64,
    /// What that was when the Job was last asked for.
    asked_version: u64,
    /// Whatever its own version is, the Job is known as of this one.
    job_known_at: u64,
}

impl Freshness {
    /// The API itself has told what the Job is.
    pub(crate) fn verify_job(&mut self) {
        self.is_job_verified = true;
    }

    /// The API itself has told what the Pods are, or that there can be none.
    pub(crate) fn verify_pods(&mut self) {
        self.are_pods_verified = true;
    }

    pub(crate) fn is_job_verified(&self) -> bool {
        self.is_job_verified
    }

    /// Whether the ledger may act on what it knows.
    pub(crate) fn is_verified(&self) -> bool {
        self.is_job_verified && self.are_pods_verified
    }

    /// Somebody else has taken a finalizer off at this version.
    pub(crate) fn foreign_removal(&mut self, version: u64) {
        self.untracked_version = self.untracked_version.max(version);
    }

    /// Whether a Job at this version may be older than what is known of its Pods.
    pub(crate) fn is_job_behind(&self, version: u64) -> bool {
        self.untracked_version > version.max(self.job_known_at)
    }

    /// The API is asked for the Job.
    pub(crate) fn job_is_asked_for(&mut self) {
        self.asked_version = self.untracked_version;
    }

    /// What the API has answered to that is known.
    pub(crate) fn job_is_answered(&mut self) {
        self.job_known_at = self.job_known_at.max(self.asked_version);
    }

    /// Somebody else has written a status at this version.
    pub(crate) fn foreign_status(&mut self, version: u64) {
        self.foreign_version = self.foreign_version.max(version);
    }

    /// All Pods are known as of this version; whether that is news.
    pub(crate) fn pods_known_at(&mut self, version: u64) -> bool {
        let is_news = !self.is_listed || version > self.pods_version;
        self.is_listed = true;
        self.pods_version = self.pods_version.max(version);
        is_news
    }

    pub(crate) fn is_listed(&self) -> bool {
        self.is_listed
    }

    pub(crate) fn pods_version(&self) -> u64 {
        self.pods_version
    }

    /// Whether what is known of the Pods can be counted on.
    pub(crate) fn is_current(&self) -> bool {
        self.is_listed && self.pods_version >= self.foreign_version
    }

    /// Whether the Pods are to be looked up now.
    pub(crate) fn is_look_up_due(&mut self, now: Timestamp) -> bool {
        if !self.is_listed || (self.is_current() && self.are_pods_verified) {
            self.stale_since = None;
            return false;
        }
        if !self.are_pods_verified {
            return !self.is_looking;
        }
        // A clock that was set back must not put the question off for ever.
        let since = self.stale_since.map_or(now, |since| since.min(now));
        self.stale_since = Some(since);
        !self.is_looking && now >= Self::patience_ends(since)
    }

    /// They are not looked up any more.
    pub(crate) fn looking_ends(&mut self) {
        self.is_looking = false;
    }

    /// The Pods are looked up.
    pub(crate) fn pods_are_asked_for(&mut self) {
        self.is_looking = true;
        self.looked_up_for = self.foreign_version;
    }

    /// They are known as of this version, which past every cache is as new as any that was known
    /// before, where versions can be compared.
    pub(crate) fn pods_are_answered(&mut self, version: u64) {
        self.is_torn = version < self.looked_up_for;
    }

    /// Whether versions of Jobs and Pods cannot be compared.
    pub(crate) fn is_torn(&self) -> bool {
        self.is_torn
    }

    /// When the Pods will be looked up if the watch does not catch up.
    pub(crate) fn look_up_at(&self) -> Option<Timestamp> {
        self.stale_since.filter(|_| !self.is_looking).map(Self::patience_ends)
    }

    fn patience_ends(since: Timestamp) -> Timestamp {
        since.checked_add(PATIENCE).unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_of_somebody_else_is_waited_for_and_then_asked_about() {
        let second = |seconds: i64| Timestamp::from_second(seconds).expect("a time");
        let mut freshness = Freshness::default();
        freshness.verify_pods();
        assert!(!freshness.is_current() && !freshness.is_look_up_due(second(0)));
        freshness.foreign_status(7);
        assert!(freshness.pods_known_at(5));
        assert!(!freshness.is_current() && !freshness.is_look_up_due(second(1)));
        assert_eq!(freshness.look_up_at(), Some(second(2)));
        assert!(freshness.is_look_up_due(second(2)));
        freshness.pods_are_asked_for();
        assert!(!freshness.is_look_up_due(second(9)) && freshness.look_up_at().is_none());
        assert!(freshness.pods_known_at(7) && freshness.is_current());
        assert!(!freshness.pods_known_at(6) && freshness.pods_version() == 7);
    }

    #[test]
    fn an_answer_older_than_what_was_known_before_it_was_asked_for_tells_of_two_stores() {
        let mut freshness = Freshness::default();
        freshness.foreign_status(70);
        freshness.pods_are_asked_for();
        // This one may have come after the answer was made.
        freshness.foreign_status(90);
        freshness.pods_are_answered(80);
        assert!(!freshness.is_torn());
        freshness.pods_are_asked_for();
        freshness.pods_are_answered(80);
        assert!(freshness.is_torn());
        freshness.pods_are_asked_for();
        freshness.pods_are_answered(90);
        assert!(!freshness.is_torn());
    }

    #[test]
    fn a_job_is_behind_until_it_is_as_new_as_the_removal_or_asked_for_after_it() {
        let mut freshness = Freshness::default();
        assert!(!freshness.is_job_behind(0));
        freshness.foreign_removal(7);
        assert!(freshness.is_job_behind(6) && !freshness.is_job_behind(7));
        freshness.job_is_asked_for();
        freshness.foreign_removal(9);
        freshness.job_is_answered();
        assert!(freshness.is_job_behind(6), "it was asked for before the second one");
        freshness.job_is_asked_for();
        freshness.job_is_answered();
        assert!(!freshness.is_job_behind(6));
    }

    #[test]
    fn what_only_a_list_has_told_is_looked_up_at_once() {
        let now = Timestamp::from_second(0).expect("a time");
        let mut freshness = Freshness::default();
        assert!(!freshness.is_look_up_due(now), "there is no list yet");
        freshness.pods_known_at(5);
        assert!(freshness.is_look_up_due(now) && !freshness.is_verified());
        freshness.pods_are_asked_for();
        assert!(!freshness.is_look_up_due(now));
        freshness.looking_ends();
        freshness.verify_pods();
        assert!(!freshness.is_look_up_due(now) && !freshness.is_verified());
        freshness.verify_job();
        assert!(freshness.is_verified());
    }
}
