//! The plays that are given everywhere, under faults, too.

use k8s_openapi::api::batch::v1::Job;
use serde_json::{Value, json};

use crate::act;
use crate::fate::{End, Fate};
use crate::history::History;
use crate::play::{Acting, NAME, Play};
use crate::stage::Stage;

fn nothing<'a>(_: &'a Stage, _: &'a str) -> Acting<'a> {
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

pub(crate) fn indexed(completions: u32, parallelism: u32) -> Value {
    json!({"completionMode": "Indexed", "completions": completions, "parallelism": parallelism})
}

pub(crate) fn with(mut spec: Value, more: Value) -> Value {
    for (key, value) in more.as_object().expect("fields of a spec") {
        spec[key] = value.clone();
    }
    spec
}

/// A play in which everything goes well.
pub(crate) fn base() -> Play {
    Play {
        name: "",
        spec: json!({}),
        fates: |_| Fate::succeeds().after(1),
        before: nothing,
        act: nothing,
        end: "Complete CompletionsReached",
        lingers: false,
        counts: as_ended,
        check: fine,
        review: |_, _| {},
    }
}

/// All plays. Names are such that none begins with another.
pub fn plays() -> Vec<Play> {
    let mut plays = vec![
        Play { name: "indexed", spec: indexed(6, 3), ..base() },
        Play { name: "counted", spec: json!({"completions": 5, "parallelism": 2}), ..base() },
        Play { name: "instant", spec: indexed(8, 8), fates: |_| Fate::succeeds(), ..base() },
        Play {
            name: "queue",
            spec: json!({"parallelism": 3}),
            // Once all Pods are there: after a success there are no more.
            fates: |_| Fate::succeeds().after(15),
            ..base()
        },
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
    plays.extend(policies());
    plays.extend(success_policies());
    plays.extend(users());
    plays.extend(indexes());
    plays.extend(deletions());
    plays
}

/// What policies do.
fn policies() -> Vec<Play> {
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
            act: |stage, name| Box::pin(act::evict_and_watch(stage, name)),
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
            // Once all Pods are there, so that it is certain how many fail with the Job.
            fates: |who| if who.index < Some(2) { Fate::fails(1).after(15) } else { Fate::runs() },
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
            fates: |who| match who.index {
                Some(0) => Fate::fails(42).after(15),
                _ => Fate::runs(),
            },
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
fn success_policies() -> Vec<Play> {
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
                if who.index == Some(1) { Fate::succeeds().after(15) } else { Fate::runs() }
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
                    Fate::succeeds().after(15)
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
                Some(1 | 2) => Fate::succeeds().after(15),
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
fn users() -> Vec<Play> {
    vec![
        Play {
            name: "suspended",
            spec: with(indexed(3, 3), json!({"suspend": true})),
            act: |stage, name| Box::pin(act::suspend(stage, name)),
            ..base()
        },
        Play {
            name: "scaled",
            spec: json!({"completions": 6, "parallelism": 4}),
            fates: |_| Fate::succeeds().after(20),
            act: |stage, name| Box::pin(act::scale(stage, name)),
            ..base()
        },
        Play {
            name: "elastic",
            spec: indexed(5, 5),
            fates: |who| match who.index {
                Some(0..3) => Fate::succeeds().after(10),
                _ => Fate::runs(),
            },
            act: |stage, name| Box::pin(act::shrink(stage, name)),
            counts: |_, _| (3, 0),
            ..base()
        },
        Play {
            name: "deleted",
            spec: indexed(4, 4),
            fates: |_| Fate::runs(),
            act: |stage, name| Box::pin(act::delete_job(stage, name)),
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
            act: |stage, name| Box::pin(act::evict(stage, name)),
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
            act: |stage, name| Box::pin(act::evict_and_watch(stage, name)),
            counts: |_, _| (2, 2),
            ..base()
        },
        Play {
            name: "released",
            spec: json!({"completions": 1}),
            fates: |who| if who.attempt == 0 { Fate::runs() } else { Fate::succeeds() },
            act: |stage, name| Box::pin(act::relabel(stage, name)),
            counts: |_, _| (1, 0),
            ..base()
        },
    ]
}

/// What becomes of indexes (KEP-2214).
fn indexes() -> Vec<Play> {
    vec![
        Play {
            name: "numbered",
            spec: indexed(3, 3),
            fates: |_| Fate::succeeds().after(5),
            act: |stage, name| Box::pin(act::read_numbers(stage, name)),
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
            act: |stage, name| Box::pin(act::scale(stage, name)),
            ..base()
        },
        Play {
            name: "grown",
            spec: indexed(2, 2),
            // The last one ends long after the Job has grown.
            fates: |who| match who.index {
                Some(1) => Fate::succeeds().late(),
                _ => Fate::succeeds().after(1),
            },
            act: |stage, name| Box::pin(act::grow(stage, name)),
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
fn deletions() -> Vec<Play> {
    vec![
        Play {
            name: "terminating",
            spec: indexed(2, 2),
            fates: |who| match who.attempt {
                0 => Fate::runs().late_farewell(),
                _ => Fate::succeeds().after(1),
            },
            act: |stage, name| Box::pin(act::evict_and_count(stage, name)),
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
            act: |stage, name| Box::pin(act::orphan(stage, name)),
            end: "",
            ..base()
        },
        Play {
            name: "foreground",
            spec: indexed(3, 3),
            fates: |_| Fate::runs(),
            act: |stage, name| Box::pin(act::delete_in_foreground(stage, name)),
            end: "",
            ..base()
        },
        Play {
            name: "adopted",
            spec: json!({
                "completions": 2, "manualSelector": true,
                "selector": {"matchLabels": {"app": NAME}},
                "template": {
                    "metadata": {"labels": {"app": NAME, "job-name": NAME}},
                    "spec": {
                        "restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}],
                    },
                },
            }),
            fates: |who| match who.attempt {
                0 => Fate::succeeds().late(),
                _ => Fate::succeeds().after(1),
            },
            before: |stage, name| Box::pin(act::abandon(stage, name)),
            act: |stage, name| Box::pin(act::see_adoption(stage, name)),
            ..base()
        },
    ]
}
