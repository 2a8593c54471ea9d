//! The TTL controller: Jobs that have a time to live after their end are deleted when it is
//! over (KEP-592). Of Jobs it knows when they ended, and nothing else.
//!
//! # Guarantees
//!
//! A Job is looked at once more before it goes, and it goes only as it was then: whoever makes
//! the time longer is heard until the very end.

use std::convert::Infallible;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::JobCondition;
use kube::Client;
use kube::api::{Api, DeleteParams, Preconditions};
use serde::Deserialize;
use stint_api::closed_set::JobConditionType;
use stint_api::condition;
use stint_apiserver::Clock;
use stint_node::Gate;
use tracing::warn;

use crate::deadlines::Deadlines;
use crate::feed::{News, whole};
use crate::pace::{now, reached, shown};
use crate::queue::{Queue, Settled};
use crate::refusal::{Refusal, words};
use crate::resource;
use crate::sight::{Key, Sight};

/// How many Jobs are deleted at once.
const AT_ONCE: usize = 16;

type JobSight = Sight<JobSpecSight, JobStatusSight>;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct JobSpecSight {
    ttl_seconds_after_finished: Option<i32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct JobStatusSight {
    conditions: Option<Vec<JobCondition>>,
}

/// Deletes Jobs when their time is over, for ever, once the gate is open.
pub(crate) async fn run(client: Client, clock: Clock, gate: Gate) -> Infallible {
    gate.opened().await;
    let mut feed = whole(resource::part::<JobSight>(&client, resource::jobs(), None));
    let (mut deadlines, mut queue) = (Deadlines::default(), Queue::default());
    let mut works = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(news) = feed.next() => match news {
                News::Began => deadlines.clear(),
                News::Seen(job) => match due(&job) {
                    Some(time) => deadlines.set(Key::of(&job.metadata), time),
                    None => deadlines.remove(&Key::of(&job.metadata)),
                },
                News::Gone(job) => deadlines.remove(&Key::of(&job.metadata)),
                News::Complete => {}
            },
            Some((key, settled)) = works.next() => queue.settle(key, settled, now()),
            () = shown(&clock, deadlines.next()) => {}
            () = reached(queue.due_at()) => {}
        }
        while let Some(key) = deadlines.take_due(clock.now()) {
            queue.add(key);
        }
        while works.len() < AT_ONCE
            && let Some(key) = queue.take(now())
        {
            works.push(async {
                let settled = delete(&client, &key, clock.now()).await;
                (key, settled)
            });
        }
    }
}

/// When a Job is to be deleted, if at all.
fn due(job: &JobSight) -> Option<Timestamp> {
    let ttl = job.spec.ttl_seconds_after_finished?;
    if job.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let ended = finished_at(job.status.conditions.as_deref().unwrap_or_default())?;
    Some(ended.checked_add(SignedDuration::from_secs(ttl.into())).unwrap_or(Timestamp::MAX))
}

/// When a Job ended: since when it says so.
fn finished_at(conditions: &[JobCondition]) -> Option<Timestamp> {
    let ends = [JobConditionType::Complete, JobConditionType::Failed];
    let ended = ends.into_iter().filter(|kind| condition::is_true(conditions, *kind));
    let times = ended.filter_map(|kind| {
        let time = condition::find(conditions, kind)?.last_transition_time.as_ref()?;
        Some(time.0)
    });
    times.min()
}

/// Deletes a Job, with what it owns, if its time is over as it is now.
async fn delete(client: &Client, key: &Key, now: Timestamp) -> Settled {
    match try_to_delete(client, key, now).await {
        Ok(()) => Settled::Done,
        Err(error) => match Refusal::of(&error) {
            Refusal::NotFound => Settled::Done,
            // It has changed in between: it is looked at again.
            Refusal::Conflict => Settled::Again,
            Refusal::AlreadyExists | Refusal::Terminating | Refusal::Expired | Refusal::Other => {
                warn!(job = ?key, error = words(&error), "it cannot be deleted now");
                Settled::Failed
            }
        },
    }
}

async fn try_to_delete(client: &Client, key: &Key, now: Timestamp) -> kube::Result<()> {
    let jobs: Api<JobSight> = resource::part(client, resource::jobs(), Some(&key.namespace));
    let Some(job) = jobs.get_opt(&key.name).await? else { return Ok(()) };
    // Of a Job that has got more time the watch tells.
    if due(&job).is_none_or(|time| time > now) {
        return Ok(());
    }
    let (uid, resource_version) = (job.metadata.uid, job.metadata.resource_version);
    let params = DeleteParams::foreground().preconditions(Preconditions { uid, resource_version });
    jobs.delete(&key.name, &params).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn seconds(ttl: Value, conditions: Value) -> Option<i64> {
        let spec = json!({"ttlSecondsAfterFinished": ttl});
        let job = json!({"spec": spec, "status": {"conditions": conditions}});
        let job: JobSight = serde_json::from_value(job).expect("a Job");
        due(&job).map(Timestamp::as_second)
    }

    #[test]
    fn time_runs_from_the_end_of_a_job() {
        let condition = |kind, status| json!({"type": kind, "status": status, "lastTransitionTime": "1970-01-01T00:00:10Z"});
        let complete = json!([condition("Suspended", "False"), condition("Complete", "True")]);
        assert_eq!(seconds(json!(5), complete.clone()), Some(15));
        assert_eq!(seconds(json!(0), json!([condition("Failed", "True")])), Some(10));
        assert_eq!(seconds(json!(null), complete), None);
        assert_eq!(seconds(json!(5), json!([condition("Complete", "False")])), None);
        assert_eq!(seconds(json!(5), json!([condition("SuccessCriteriaMet", "True")])), None);
        assert_eq!(seconds(json!(5), json!([])), None);
    }
}
