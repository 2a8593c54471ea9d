//! What Jobs do, as data: the same plays are given in fair weather, under faults, and with a
//! controller that is killed.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;

use k8s_openapi::api::batch::v1::Job;
use serde_json::{Value, json};

use crate::act;
use crate::cluster::{Cluster, counts, end};
use crate::driver::{Driver, End, Fate, Who};
use crate::history::History;

type Acting<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A Job, what becomes of its Pods, what users do to it, and how it must end.
pub(crate) struct Play {
    pub(crate) name: &'static str,
    spec: Value,
    fates: fn(&Who) -> Fate,
    /// What is there before the Job.
    before: for<'a> fn(&'a Cluster, &'a str) -> Acting<'a>,
    act: for<'a> fn(&'a Cluster, &'a str) -> Acting<'a>,
    end: &'static str,
    /// Whether its end sweeps Pods away: of those it is not known what they would have become,
    /// and they need not count.
    lingers: bool,
    /// How many Pods, or indexes, must count as succeeded and as failed.
    counts: fn(&History, &str) -> (usize, usize),
    /// What else must hold.
    check: fn(&Job),
}

/// The play of this name.
pub(crate) fn play(name: &str) -> Play {
    plays().into_iter().find(|play| play.name == name).unwrap_or_else(|| panic!("no play {name}"))
}

/// Pods end as the plays say.
pub(crate) fn driver() -> Driver {
    let plays = plays();
    Driver::new(move |who| match plays.iter().find(|play| who.job.starts_with(play.name)) {
        Some(play) => (play.fates)(who),
        None => Fate::succeeds(),
    })
}

impl Play {
    /// Gives the play on a cluster whose controller runs; the Job as it ended, unless it is gone.
    pub(crate) async fn give(&self, cluster: &Cluster) -> Option<Job> {
        (self.before)(cluster, self.name).await;
        cluster.create(self.name, self.spec.clone()).await;
        (self.act)(cluster, self.name).await;
        if self.end.is_empty() {
            return None;
        }
        let job = cluster.finish(self.name).await;
        let context =
            || format!("{}: {:?}\n{:#?}", self.name, job.status, cluster.history.of(self.name));
        assert_eq!(end(&job).as_deref(), Some(self.end), "{}", context());
        let (active, succeeded, failed) = counts(&job);
        let expected = (self.counts)(&cluster.history, self.name);
        // A Pod that a request has made after its sender had looked, found none, and ended the
        // Job, is removed again and does not count.
        let strays = cluster.strays.load(Ordering::Relaxed);
        let is_right = |counted: i32, seen: usize, excused: usize| {
            (counted as usize..=counted as usize + strays + excused).contains(&seen)
        };
        let swept = if self.lingers { cluster.history.swept(self.name) } else { 0 };
        assert_eq!(active, 0, "{}", context());
        assert!(is_right(succeeded, expected.0, 0), "{expected:?} succeeded: {}", context());
        assert!(is_right(failed, expected.1, swept), "{expected:?} failed: {}", context());
        (self.check)(&job);
        Some(job)
    }
}

/// Checks what must hold whatever was played.
pub(crate) async fn check_all(cluster: &Cluster) {
    cluster.settle_all().await;
    assert_eq!(cluster.history.broken(), [""; 0]);
    cluster.history.check_ends();
    let refused = cluster.tally.answered("PATCH jobs/status", 422);
    assert_eq!(refused, 0, "statuses that the API refused");
}

fn nothing<'a>(_: &'a Cluster, _: &'a str) -> Acting<'a> {
    Box::pin(std::future::ready(()))
}

fn fine(_: &Job) {}

/// Every Pod that ended counts as it ended, successes of an index once.
fn as_ended(history: &History, job: &str) -> (usize, usize) {
    (history.successes(job), history.count(job, "Failed"))
}

/// All Pods count as failed, ended or deleted, but those that succeeded.
fn all_failed(history: &History, job: &str) -> (usize, usize) {
    let succeeded = history.successes(job);
    (succeeded, history.of(job).len() - succeeded)
}

fn indexed(completions: u32, parallelism: u32) -> Value {
    json!({"completionMode": "Indexed", "completions": completions, "parallelism": parallelism})
}

fn with(mut spec: Value, more: Value) -> Value {
    for (key, value) in more.as_object().expect("fields of a spec") {
        spec[key] = value.clone();
    }
    spec
}

/// All plays. Names are such that none begins with another.
pub(crate) fn plays() -> Vec<Play> {
    let base = || Play {
        name: "",
        spec: json!({}),
        fates: |_| Fate::succeeds().after(1),
        before: nothing,
        act: nothing,
        end: "Complete CompletionsReached",
        lingers: false,
        counts: as_ended,
        check: fine,
    };
    let mut plays = vec![
        Play { name: "indexed", spec: indexed(6, 3), ..base() },
        Play { name: "counted", spec: json!({"completions": 5, "parallelism": 2}), ..base() },
        Play { name: "instant", spec: indexed(8, 8), fates: |_| Fate::succeeds(), ..base() },
        Play { name: "queue", spec: json!({"parallelism": 3}), ..base() },
        Play {
            name: "retried",
            spec: json!({"completions": 3, "parallelism": 1}),
            fates: |who| if who.attempt < 2 { Fate::fails(1) } else { Fate::succeeds() },
            ..base()
        },
        Play {
            name: "restarted",
            spec: json!({
                "backoffLimit": 3,
                "template": {"spec": {
                    "restartPolicy": "OnFailure", "containers": [{"name": "main", "image": "i"}],
                }},
            }),
            fates: |_| Fate { end: End::Restarts(3), ..Fate::succeeds().after(1) },
            end: "Failed BackoffLimitExceeded",
            counts: all_failed,
            ..base()
        },
        Play { name: "nothing", spec: json!({"completions": 0}), ..base() },
        Play {
            name: "limited",
            spec: json!({"completions": 2, "backoffLimit": 2}),
            fates: |_| Fate::fails(1).after(1),
            end: "Failed BackoffLimitExceeded",
            ..base()
        },
        Play {
            name: "late",
            spec: json!({"completions": 2, "parallelism": 2, "activeDeadlineSeconds": 60}),
            fates: |_| Fate::runs(),
            end: "Failed DeadlineExceeded",
            counts: all_failed,
            ..base()
        },
    ];
    plays.extend(policies(base));
    plays.extend(success_policies(base));
    plays.extend(users(base));
    plays.extend(indexes(base));
    plays.extend(deletions(base));
    plays
}

/// What policies do.
fn policies(base: fn() -> Play) -> Vec<Play> {
    let rule = |action: &str, rule: Value| {
        let mut rule = rule;
        rule["action"] = action.into();
        json!({"podFailurePolicy": {"rules": [rule]}})
    };
    let code = |code: i32| json!({"onExitCodes": {"operator": "In", "values": [code]}});
    vec![
        Play {
            name: "perindex",
            spec: with(indexed(4, 4), json!({"backoffLimitPerIndex": 1})),
            fates: |who| {
                if who.index == Some(1) { Fate::fails(1).after(1) } else { Fate::succeeds() }
            },
            end: "Failed FailedIndexes",
            check: |job| {
                let status = job.status.as_ref().expect("a status");
                assert_eq!(status.failed_indexes.as_deref(), Some("1"));
                assert_eq!(status.completed_indexes.as_deref(), Some("0,2,3"));
                assert_eq!(status.failed, Some(2));
            },
            ..base()
        },
        Play {
            name: "blog",
            spec: with(indexed(8, 8), json!({"backoffLimitPerIndex": 1})),
            fates: |who| match who.index {
                Some(1 | 2) => Fate::fails(1).after(1),
                _ => Fate::succeeds().after(1),
            },
            end: "Failed FailedIndexes",
            counts: |_, _| (6, 4),
            check: |job| {
                let status = job.status.as_ref().expect("a status");
                assert_eq!(status.completed_indexes.as_deref(), Some("0,3-7"));
                assert_eq!(status.failed_indexes.as_deref(), Some("1,2"));
            },
            ..base()
        },
        Play {
            name: "persistent",
            spec: with(indexed(3, 3), json!({"backoffLimitPerIndex": 2})),
            fates: |who| match (who.index, who.attempt) {
                (Some(1), 0) | (Some(2), 0 | 1) => Fate::fails(1),
                _ => Fate::succeeds().after(1),
            },
            counts: |_, _| (3, 3),
            check: |job| {
                let status = job.status.as_ref().expect("a status");
                assert_eq!(status.completed_indexes.as_deref(), Some("0-2"));
                assert_eq!(status.failed_indexes.as_deref(), Some(""));
            },
            ..base()
        },
        Play {
            name: "patient",
            // Nobody says podReplacementPolicy: it is Failed beside a Pod failure policy.
            spec: with(indexed(2, 2), rule("FailJob", code(42))),
            fates: |who| match who.attempt {
                0 => Fate::runs().farewell(20),
                _ => Fate::succeeds().after(1),
            },
            act: |cluster, name| Box::pin(act::evict_and_watch(cluster, name)),
            counts: |_, _| (2, 2),
            check: |job| {
                let spec = job.spec.as_ref().expect("a spec");
                assert_eq!(spec.pod_replacement_policy.as_deref(), Some("Failed"));
            },
            ..base()
        },
        Play {
            name: "maxfailed",
            spec: with(indexed(6, 6), json!({"backoffLimitPerIndex": 0, "maxFailedIndexes": 1})),
            fates: |who| if who.index < Some(3) { Fate::fails(1) } else { Fate::runs() },
            end: "Failed MaxFailedIndexesExceeded",
            counts: all_failed,
            ..base()
        },
        Play {
            name: "bothlimits",
            spec: with(indexed(3, 3), json!({"backoffLimitPerIndex": 5, "backoffLimit": 1})),
            fates: |who| if who.index == Some(0) { Fate::fails(1) } else { Fate::runs() },
            end: "Failed BackoffLimitExceeded",
            counts: all_failed,
            ..base()
        },
        Play {
            name: "failjob",
            spec: with(indexed(3, 3), rule("FailJob", code(42))),
            fates: |who| if who.index == Some(0) { Fate::fails(42) } else { Fate::runs() },
            end: "Failed PodFailurePolicy",
            counts: all_failed,
            ..base()
        },
        Play {
            name: "ignored",
            spec: with(
                json!({"completions": 2, "backoffLimit": 0}),
                rule("Ignore", json!({"onPodConditions": [{"type": "DisruptionTarget"}]})),
            ),
            fates: |who| match who.attempt {
                0 => Fate { end: End::FailsBy("DisruptionTarget", 137), ..Fate::succeeds() },
                _ => Fate::succeeds(),
            },
            counts: |_, _| (2, 0),
            ..base()
        },
        Play {
            name: "failindex",
            spec: with(
                with(indexed(3, 3), json!({"backoffLimitPerIndex": 3})),
                rule("FailIndex", code(7)),
            ),
            fates: |who| if who.index == Some(2) { Fate::fails(7) } else { Fate::succeeds() },
            end: "Failed FailedIndexes",
            counts: |_, _| (2, 1),
            ..base()
        },
    ]
}

/// When some successes are enough.
fn success_policies(base: fn() -> Play) -> Vec<Play> {
    let policy = |rules: Value| json!({"successPolicy": {"rules": rules}});
    vec![
        Play {
            name: "enough",
            spec: with(
                indexed(5, 5),
                policy(json!([
                    {"succeededIndexes": "3-4"}, {"succeededIndexes": "0-2", "succeededCount": 1},
                ])),
            ),
            fates: |who| {
                if who.index == Some(1) { Fate::succeeds().after(2) } else { Fate::runs() }
            },
            end: "Complete SuccessPolicy",
            counts: |_, _| (1, 0),
            ..base()
        },
        Play {
            name: "leader",
            spec: with(indexed(4, 4), policy(json!([{"succeededIndexes": "0"}]))),
            fates: |who| {
                if who.index == Some(0) {
                    Fate::succeeds().after(3)
                } else {
                    Fate::runs().farewell(5)
                }
            },
            end: "Complete SuccessPolicy",
            counts: |_, _| (1, 0),
            ..base()
        },
        Play {
            name: "everyone",
            spec: with(indexed(3, 3), policy(json!([{"succeededCount": 3}]))),
            end: "Complete SuccessPolicy",
            counts: |_, _| (3, 0),
            ..base()
        },
        Play {
            name: "despite",
            spec: with(
                with(indexed(4, 4), policy(json!([{"succeededCount": 2}]))),
                json!({"backoffLimitPerIndex": 0}),
            ),
            fates: |who| match who.index {
                Some(0) => Fate::fails(1),
                Some(1 | 2) => Fate::succeeds().after(4),
                _ => Fate::runs(),
            },
            end: "Complete SuccessPolicy",
            // The Job may be as good as over before the one that fails is there.
            lingers: true,
            counts: |history, job| (2, history.count(job, "Failed")),
            ..base()
        },
    ]
}

/// What users do.
fn users(base: fn() -> Play) -> Vec<Play> {
    vec![
        Play {
            name: "suspended",
            spec: with(indexed(3, 3), json!({"suspend": true})),
            act: |cluster, name| Box::pin(act::suspend(cluster, name)),
            ..base()
        },
        Play {
            name: "scaled",
            spec: json!({"completions": 6, "parallelism": 4}),
            fates: |_| Fate::succeeds().after(20),
            act: |cluster, name| Box::pin(act::scale(cluster, name)),
            ..base()
        },
        Play {
            name: "elastic",
            spec: indexed(5, 5),
            fates: |who| match who.index {
                Some(0..3) => Fate::succeeds().after(10),
                _ => Fate::runs(),
            },
            act: |cluster, name| Box::pin(act::shrink(cluster, name)),
            counts: |_, _| (3, 0),
            ..base()
        },
        Play {
            name: "deleted",
            spec: indexed(4, 4),
            fates: |_| Fate::runs(),
            act: |cluster, name| Box::pin(act::delete_job(cluster, name)),
            end: "",
            ..base()
        },
        Play {
            name: "evicted",
            spec: indexed(2, 2),
            fates: |who| match who.attempt {
                0 => Fate::runs().farewell(20),
                _ => Fate::succeeds().after(1),
            },
            act: |cluster, name| Box::pin(act::evict(cluster, name)),
            counts: |_, _| (2, 2),
            ..base()
        },
        Play {
            name: "waiting",
            spec: with(indexed(2, 2), json!({"podReplacementPolicy": "Failed"})),
            fates: |who| match who.attempt {
                0 => Fate::runs().farewell(20),
                _ => Fate::succeeds().after(1),
            },
            act: |cluster, name| Box::pin(act::evict_and_watch(cluster, name)),
            counts: |_, _| (2, 2),
            ..base()
        },
        Play {
            name: "released",
            spec: json!({"completions": 1}),
            fates: |who| if who.attempt == 0 { Fate::runs() } else { Fate::succeeds() },
            act: |cluster, name| Box::pin(act::relabel(cluster, name)),
            counts: |_, _| (1, 0),
            ..base()
        },
    ]
}

/// What becomes of indexes (KEP-2214).
fn indexes(base: fn() -> Play) -> Vec<Play> {
    vec![
        Play {
            name: "numbered",
            spec: indexed(3, 3),
            fates: |_| Fate::succeeds().after(5),
            act: |cluster, name| Box::pin(act::read_numbers(cluster, name)),
            ..base()
        },
        Play {
            name: "unlucky",
            spec: indexed(3, 2),
            fates: |who| match (who.index, who.attempt) {
                (Some(1), 0 | 1) | (Some(2), 0) => Fate::fails(1),
                _ => Fate::succeeds().after(1),
            },
            counts: |_, _| (3, 3),
            check: |job| {
                let status = job.status.as_ref().expect("a status");
                assert_eq!(status.completed_indexes.as_deref(), Some("0-2"));
                assert_eq!(status.failed_indexes, None);
            },
            ..base()
        },
        Play {
            name: "resized",
            spec: indexed(6, 4),
            fates: |_| Fate::succeeds().after(20),
            act: |cluster, name| Box::pin(act::scale(cluster, name)),
            ..base()
        },
        Play {
            name: "grown",
            spec: indexed(2, 2),
            // The last one ends long after the Job has grown.
            fates: |who| Fate::succeeds().after(if who.index == Some(1) { 3600 } else { 1 }),
            act: |cluster, name| Box::pin(act::grow(cluster, name)),
            counts: |_, _| (4, 0),
            check: |job| {
                let status = job.status.as_ref().expect("a status");
                assert_eq!(status.completed_indexes.as_deref(), Some("0-3"));
            },
            ..base()
        },
    ]
}

/// How Jobs and their Pods go (KEP-2307).
fn deletions(base: fn() -> Play) -> Vec<Play> {
    vec![
        Play {
            name: "terminating",
            spec: indexed(2, 2),
            fates: |who| match who.attempt {
                0 => Fate::runs().farewell(3600),
                _ => Fate::succeeds().after(1),
            },
            act: |cluster, name| Box::pin(act::evict_and_count(cluster, name)),
            counts: |_, _| (2, 2),
            check: |job| {
                let status = job.status.as_ref().expect("a status");
                assert_eq!(status.terminating, Some(0));
            },
            ..base()
        },
        Play {
            name: "orphaned",
            spec: indexed(3, 3),
            fates: |_| Fate::runs(),
            act: |cluster, name| Box::pin(act::orphan(cluster, name)),
            end: "",
            ..base()
        },
        Play {
            name: "foreground",
            spec: indexed(3, 3),
            fates: |_| Fate::runs(),
            act: |cluster, name| Box::pin(act::delete_in_foreground(cluster, name)),
            end: "",
            ..base()
        },
        Play {
            name: "adopted",
            spec: json!({
                "completions": 2, "manualSelector": true,
                "selector": {"matchLabels": {"app": "adopted"}},
                "template": {
                    "metadata": {"labels": {"app": "adopted", "job-name": "adopted"}},
                    "spec": {
                        "restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}],
                    },
                },
            }),
            fates: |who| Fate::succeeds().after(if who.attempt == 0 { 600 } else { 1 }),
            before: |cluster, name| Box::pin(act::abandon(cluster, name)),
            act: |cluster, name| Box::pin(act::see_adoption(cluster, name)),
            ..base()
        },
    ]
}
