//! What the API does not take of a Job, in its own words: worth a line in the log, and of each Job one
//! a minute, as it is asked again ever later and each time refused.

use std::collections::HashMap;
use std::time::Duration;

use stint_ledger::op::{OpKind, Outcome, Refusal};
use tokio::time::Instant;

use crate::answer::Weather;
use crate::calls::JOB_LEAVES;
use crate::router::JobUid;

/// How often the same Job is spoken of.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// For how many Jobs that is known before those that may be spoken of again are forgotten.
const KNOWN: usize = 1_000;

/// Which Jobs were spoken of, and when.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    told: HashMap<JobUid, Instant>,
}

impl Refusals {
    /// Whether this Job is to be spoken of; it is, then.
    pub(crate) fn is_news(&mut self, job: &JobUid, now: Instant) -> bool {
        let is_old = |at: &Instant| now.saturating_duration_since(*at) >= LOG_EVERY;
        if self.told.len() >= KNOWN {
            self.told.retain(|_, at| !is_old(at));
        }
        let is_news = self.told.get(job).is_none_or(is_old);
        if is_news {
            self.told.insert(job.clone(), now);
        }
        is_news
    }
}

/// Why the API does not take a write that nothing but an odd cluster refuses: ever in this form, or as
/// long as an admission plugin or a role is what it is. That it is too busy says nothing of the write.
pub(crate) fn rejection<'a>(
    kind: &OpKind,
    outcome: &'a Outcome,
    weather: Weather,
) -> Option<&'a str> {
    let is_ours = match kind {
        OpKind::WriteStatus { .. }
        | OpKind::RemoveFinalizer(_)
        | OpKind::AdoptPod(_)
        | OpKind::ReleasePod(_) => true,
        // An Event on the Job tells of those.
        OpKind::CreatePod(_) | OpKind::DeletePod(_) => false,
        OpKind::LookUpJob
        | OpKind::LookUpPod(_)
        | OpKind::LookUpPods
        | OpKind::EmitEvent(_)
        | OpKind::Record(_) => false,
    };
    match outcome {
        Outcome::Refused(Refusal::Rejected(why)) if is_ours && why != JOB_LEAVES => Some(why),
        Outcome::Refused(Refusal::TryLater(why)) if is_ours => match weather {
            Weather::Fine | Weather::Trouble => Some(why),
            Weather::Busy(_) => None,
        },
        Outcome::Refused(_) | Outcome::Applied(_) | Outcome::InDoubt => None,
    }
}

/// What was refused, and why, in a word each: for metrics.
pub(crate) fn words(
    kind: &OpKind,
    refusal: &Refusal,
    weather: Weather,
) -> (&'static str, &'static str) {
    let verb = match kind {
        OpKind::CreatePod(_) => "create",
        OpKind::DeletePod(_) => "delete",
        OpKind::RemoveFinalizer(_) => "remove_finalizer",
        OpKind::AdoptPod(_) => "adopt",
        OpKind::ReleasePod(_) => "release",
        OpKind::WriteStatus { .. } => "status",
        OpKind::LookUpJob | OpKind::LookUpPod(_) | OpKind::LookUpPods => "look_up",
        OpKind::EmitEvent(_) | OpKind::Record(_) => "event",
    };
    let reason = match refusal {
        Refusal::AlreadyExists => "already_exists",
        Refusal::Conflict => "conflict",
        Refusal::NotFound => "not_found",
        Refusal::TryLater(_) if matches!(weather, Weather::Busy(_)) => "busy",
        Refusal::TryLater(_) => "try_later",
        Refusal::Rejected(why) if why == JOB_LEAVES => "not_found",
        Refusal::Rejected(_) => "rejected",
        // It passes, with all that is there, and is nobody's fault.
        Refusal::NamespaceGoes(_) => "not_found",
    };
    (verb, reason)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::batch::v1::JobStatus;

    use super::*;

    #[test]
    fn a_job_is_spoken_of_once_a_minute() {
        let mut refusals = Refusals::default();
        let (a, b): (JobUid, JobUid) = ("a".into(), "b".into());
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let rows =
            [(&a, 0, true), (&a, 59, false), (&b, 59, true), (&a, 60, true), (&a, 61, false)];
        for (job, seconds, expected) in rows {
            assert_eq!(refusals.is_news(job, at(seconds)), expected, "{job} {seconds}");
        }
    }

    #[test]
    fn only_what_the_server_does_not_take_is_worth_a_line() {
        let status = OpKind::WriteStatus { version: 1, status: Box::new(JobStatus::default()) };
        let rejected = |why: &str| Outcome::Refused(Refusal::Rejected(why.to_owned()));
        let forbidden = Outcome::Refused(Refusal::TryLater("denied".to_owned()));
        let (fine, busy) = (Weather::Fine, Weather::Busy(None));
        assert_eq!(rejection(&status, &rejected("no"), fine), Some("no"));
        assert_eq!(rejection(&status, &rejected(JOB_LEAVES), fine), None);
        assert_eq!(rejection(&status, &forbidden, fine), Some("denied"));
        assert_eq!(rejection(&status, &forbidden, busy), None);
        assert_eq!(rejection(&status, &Outcome::Refused(Refusal::Conflict), fine), None);
        assert_eq!(rejection(&OpKind::LookUpJob, &rejected("no"), fine), None);
        let reason = |refusal: Refusal, weather| words(&status, &refusal, weather);
        let (rejected, later) = (Refusal::Rejected("no".into()), Refusal::TryLater("no".into()));
        assert_eq!(reason(rejected, Weather::Fine), ("status", "rejected"));
        assert_eq!(reason(later.clone(), Weather::Fine), ("status", "try_later"));
        assert_eq!(reason(later, Weather::Busy(None)), ("status", "busy"));
    }
}
