//! Which Pods go first when there are too many.

use std::cmp::Ordering;

use k8s_openapi::jiff::Timestamp;

use crate::pod_facts::{PodFacts, PodPhase};

/// What is looked at to choose a Pod for removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whether it has a node.
    pub is_scheduled: bool,
    /// Whether it runs.
    pub is_running: bool,
    /// Since when it has been ready; not ready if absent.
    pub ready_since: Option<Timestamp>,
    /// How often its containers were restarted.
    pub restart_count: u32,
    /// When it was created.
    pub created: Timestamp,
}

impl Standing {
    /// The standing of an active Pod.
    pub fn of(pod: &PodFacts) -> Self {
        Self {
            is_scheduled: pod.is_scheduled,
            is_running: pod.phase == PodPhase::Running,
            ready_since: pod.ready_since,
            restart_count: pod.restart_count,
            created: pod.created,
        }
    }

    /// `Less` if this one goes before the other: unscheduled, then pending, then not
    /// ready, then ready for less time, then restarted more often, then newer.
    pub fn goes_before(&self, other: &Self) -> Ordering {
        let readiness = (self.ready_since.is_some()).cmp(&other.ready_since.is_some());
        self.is_scheduled
            .cmp(&other.is_scheduled)
            .then(self.is_running.cmp(&other.is_running))
            .then(readiness)
            .then(other.ready_since.cmp(&self.ready_since))
            .then(other.restart_count.cmp(&self.restart_count))
            .then(other.created.cmp(&self.created))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("a time")
    }

    #[test]
    fn the_least_useful_pods_go_first() {
        let best = Standing {
            is_scheduled: true,
            is_running: true,
            ready_since: Some(second(10)),
            restart_count: 0,
            created: second(1),
        };
        let in_order = [
            Standing { is_scheduled: false, is_running: false, ready_since: None, ..best },
            Standing { is_running: false, ready_since: None, ..best },
            Standing { ready_since: None, ..best },
            Standing { ready_since: Some(second(20)), ..best },
            Standing { restart_count: 3, ..best },
            Standing { created: second(2), ..best },
            best,
        ];
        let mut sorted = in_order;
        sorted.reverse();
        sorted.sort_by(Standing::goes_before);
        assert_eq!(sorted, in_order);
    }
}
