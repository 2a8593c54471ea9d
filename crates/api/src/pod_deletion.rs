//! How a Pod is deleted: it is given time to end, and goes when the time is up and nobody
//! holds it back.
//!
//! What the options of a deletion say of dependents and preconditions is the caller's
//! business.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::closed_set::PodPhase;

/// What became of a request to delete a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// The Pod says now when it goes. It is stored, or removed if [`is_to_be_removed`].
    Marked,
    /// The Pod goes already, and no later than asked for. Nothing has changed.
    Pending,
}

/// The grace period of a deletion, in seconds: what the request says, else what the Pod
/// says. A Pod that has no node, or has ended, gets none; a period below zero is 1.
pub fn grace_period(pod: &Pod, requested: Option<i64>) -> i64 {
    let spec = pod.spec.as_ref();
    let node = spec.and_then(|spec| spec.node_name.as_deref()).unwrap_or("");
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("");
    let has_ended = matches!(PodPhase::parse(phase), Some(PodPhase::Succeeded | PodPhase::Failed));
    if node.is_empty() || has_ended {
        return 0;
    }
    let own = spec.and_then(|spec| spec.termination_grace_period_seconds);
    at_least_one_if_negative(requested.or(own).unwrap_or(0))
}

/// Marks a Pod as being deleted, `requested` seconds from now at the latest. A Pod that
/// goes already may only go sooner.
pub fn begin_deletion(pod: &mut Pod, requested: Option<i64>, now: &Time) -> Deletion {
    if pod.metadata.deletion_timestamp.is_some() {
        return hasten(&mut pod.metadata, requested, now);
    }
    let seconds = grace_period(pod, requested);
    pod.metadata.deletion_timestamp = Some(later(now, seconds));
    pod.metadata.deletion_grace_period_seconds = Some(seconds);
    // Whoever looks after the Pod has something new to observe.
    if let Some(generation) = pod.metadata.generation.filter(|generation| *generation > 0) {
        pod.metadata.generation = Some(generation.saturating_add(1));
    }
    Deletion::Marked
}

/// Whether an object that is deleted has no time left and no finalizer to wait for: asked
/// after every write of it.
pub fn is_to_be_removed(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
        && meta.deletion_grace_period_seconds == Some(0)
        && meta.finalizers.as_ref().is_none_or(Vec::is_empty)
}

fn hasten(meta: &mut ObjectMeta, requested: Option<i64>, now: &Time) -> Deletion {
    let left = at_least_one_if_negative(meta.deletion_grace_period_seconds.unwrap_or(0));
    let at = meta.deletion_timestamp.as_ref().unwrap_or(now);
    if left == 0 {
        meta.deletion_timestamp = Some(at.min(now).clone());
        meta.deletion_grace_period_seconds = Some(0);
        return Deletion::Marked;
    }
    let Some(seconds) = requested.map(at_least_one_if_negative).filter(|seconds| *seconds < left)
    else {
        return Deletion::Pending;
    };
    let sooner = later(at, seconds - left);
    let is_overdue = sooner < *now;
    meta.deletion_timestamp = Some(if is_overdue { now.clone() } else { sooner });
    // Time that is up already still leaves it to the node to say that the Pod has ended.
    let seconds = if is_overdue { seconds.min(1) } else { seconds };
    meta.deletion_grace_period_seconds = Some(seconds);
    Deletion::Marked
}

fn at_least_one_if_negative(seconds: i64) -> i64 {
    if seconds < 0 { 1 } else { seconds }
}

/// So many seconds later, or earlier if there are fewer than none.
fn later(time: &Time, seconds: i64) -> Time {
    let end = if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Time(time.0.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(end))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn time(seconds: i64) -> Time {
        Time(Timestamp::from_second(seconds).expect("a time"))
    }

    fn running(finalizers: &[&str]) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "generation": 1, "finalizers": finalizers},
            "spec": {"containers": [], "nodeName": "n1", "terminationGracePeriodSeconds": 30},
            "status": {"phase": "Running"},
        }))
        .expect("a Pod")
    }

    fn when(pod: &Pod) -> (i64, Option<i64>, Option<i64>) {
        let at = pod.metadata.deletion_timestamp.as_ref().expect("it is deleted").0.as_second();
        (at, pod.metadata.deletion_grace_period_seconds, pod.metadata.generation)
    }

    #[test]
    fn a_pod_goes_when_its_time_is_up() {
        let mut pod = running(&[]);
        assert_eq!(begin_deletion(&mut pod, None, &time(100)), Deletion::Marked);
        assert_eq!(when(&pod), (130, Some(30), Some(2)));
        assert!(!is_to_be_removed(&pod.metadata));
        assert_eq!(begin_deletion(&mut pod, Some(0), &time(110)), Deletion::Marked);
        assert_eq!(when(&pod), (110, Some(0), Some(2)));
        assert!(is_to_be_removed(&pod.metadata));
    }

    #[test]
    fn a_pod_may_only_go_sooner() {
        let mut pod = running(&[]);
        begin_deletion(&mut pod, Some(60), &time(100));
        for later in [None, Some(60), Some(61)] {
            assert_eq!(begin_deletion(&mut pod, later, &time(110)), Deletion::Pending);
            assert_eq!(when(&pod), (160, Some(60), Some(2)));
        }
        assert_eq!(begin_deletion(&mut pod, Some(20), &time(110)), Deletion::Marked);
        assert_eq!(when(&pod), (120, Some(20), Some(2)));
        // What would have been up before now is up now, with a second to say so.
        assert_eq!(begin_deletion(&mut pod, Some(5), &time(110)), Deletion::Marked);
        assert_eq!(when(&pod), (110, Some(1), Some(2)));
    }

    #[test]
    fn a_finalizer_holds_a_pod_back() {
        let mut pod = running(&["a.io/b"]);
        begin_deletion(&mut pod, Some(0), &time(100));
        assert!(!is_to_be_removed(&pod.metadata));
        assert_eq!(begin_deletion(&mut pod, Some(0), &time(110)), Deletion::Marked);
        assert_eq!(when(&pod), (100, Some(0), Some(2)));
        pod.metadata.finalizers = None;
        assert!(is_to_be_removed(&pod.metadata));
    }

    #[test]
    fn no_time_is_too_long() {
        let mut pod = running(&[]);
        begin_deletion(&mut pod, Some(i64::MAX), &time(100));
        assert_eq!(when(&pod).1, Some(i64::MAX));
        assert_eq!(begin_deletion(&mut pod, Some(i64::MIN), &time(100)), Deletion::Marked);
        assert_eq!(when(&pod).1, Some(1));
    }
}
