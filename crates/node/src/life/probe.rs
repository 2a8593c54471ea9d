//! When a container is probed, and what its answers come to. It must not know how one probes.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Probe;

use super::plan::seconds;
use crate::backoff::later;

/// The numbers of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProbePlan {
    pub(crate) initial_delay: Duration,
    pub(crate) period: Duration,
    pub(crate) success_threshold: u32,
    pub(crate) failure_threshold: u32,
    /// How long the container has to end if this probe fails.
    pub(crate) grace: Option<Duration>,
}

/// What a probe is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeKind {
    Startup,
    Liveness,
    Readiness,
}

impl ProbeKind {
    /// As events name it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            ProbeKind::Startup => "Startup",
            ProbeKind::Liveness => "Liveness",
            ProbeKind::Readiness => "Readiness",
        }
    }
}

/// What the answers so far come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Succeeded,
    Failed,
}

impl ProbePlan {
    pub(crate) fn of(probe: &Probe) -> Self {
        let number = |number: Option<i32>, default: i32| {
            u32::try_from(number.unwrap_or(default)).unwrap_or(1).max(1)
        };
        ProbePlan {
            initial_delay: seconds(probe.initial_delay_seconds.unwrap_or(0).into()),
            period: Duration::from_secs(number(probe.period_seconds, 10).into()),
            success_threshold: number(probe.success_threshold, 1),
            failure_threshold: number(probe.failure_threshold, 3),
            grace: probe.termination_grace_period_seconds.map(seconds),
        }
    }
}

/// A probe of one run of a container.
#[derive(Clone, Debug)]
pub(crate) struct Probing {
    plan: ProbePlan,
    next_at: Timestamp,
    is_under_way: bool,
    in_a_row: u32,
    last: Option<bool>,
}

impl Probing {
    /// A probe of a container that was started.
    pub(crate) fn new(plan: ProbePlan, started: Timestamp) -> Self {
        let next_at = later(started, plan.initial_delay);
        Probing { plan, next_at, is_under_way: false, in_a_row: 0, last: None }
    }

    pub(crate) fn plan(&self) -> &ProbePlan {
        &self.plan
    }

    /// When it is to be asked next, unless it is being asked.
    pub(crate) fn wake_at(&self) -> Option<Timestamp> {
        (!self.is_under_way).then_some(self.next_at)
    }

    /// Whether to ask now.
    pub(crate) fn begin(&mut self, now: Timestamp) -> bool {
        let is_due = !self.is_under_way && self.next_at <= now;
        if is_due {
            self.is_under_way = true;
            self.next_at = later(now, self.plan.period);
        }
        is_due
    }

    /// Takes in an answer; what the answers come to once there are enough of a kind.
    pub(crate) fn take(&mut self, is_success: bool) -> Option<Verdict> {
        self.is_under_way = false;
        self.in_a_row = if self.last == Some(is_success) { self.in_a_row + 1 } else { 1 };
        self.last = Some(is_success);
        match is_success {
            true if self.in_a_row >= self.plan.success_threshold => Some(Verdict::Succeeded),
            false if self.in_a_row >= self.plan.failure_threshold => Some(Verdict::Failed),
            true | false => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("a time")
    }

    #[test]
    fn thresholds_count_answers_in_a_row() {
        let plan = ProbePlan {
            initial_delay: Duration::ZERO,
            period: Duration::from_secs(1),
            success_threshold: 2,
            failure_threshold: 3,
            grace: None,
        };
        let mut probing = Probing::new(plan, at(0));
        let answers = [true, true, true, false, false, true, false, false, false, true, true];
        let verdicts: String = answers
            .iter()
            .map(|answer| match probing.take(*answer) {
                None => '.',
                Some(Verdict::Succeeded) => 's',
                Some(Verdict::Failed) => 'f',
            })
            .collect();
        assert_eq!(verdicts, ".ss.....f.s");
    }

    #[test]
    fn a_probe_is_asked_after_its_delay_and_then_by_its_period_one_at_a_time() {
        let plan = ProbePlan {
            initial_delay: Duration::from_secs(5),
            period: Duration::from_secs(10),
            success_threshold: 1,
            failure_threshold: 1,
            grace: None,
        };
        let mut probing = Probing::new(plan, at(100));
        assert_eq!(probing.wake_at(), Some(at(105)));
        assert!(!probing.begin(at(104)));
        assert!(probing.begin(at(105)));
        assert!(!probing.begin(at(120)), "the first is still under way");
        assert_eq!(probing.wake_at(), None);
        assert_eq!(probing.take(true), Some(Verdict::Succeeded));
        assert_eq!(probing.wake_at(), Some(at(115)));
    }
}
