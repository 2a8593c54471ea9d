//! More plays, for fair weather and a clock that everybody lives by: many Pods, and how long delays
//! are. On the embedded server tests of their own say the same more exactly.

use serde_json::json;

use crate::fate::Fate;
use crate::history::History;
use crate::play::Play;
use crate::plays::{base, indexed, with};

/// How many seconds later than it should a Pod may come, on a machine that has much to do.
const LATENESS: i64 = 8;

/// Those with many Pods, which keep a cluster busy. No name begins with that of another play.
pub fn crowds() -> Vec<Play> {
    vec![
        Play { name: "hundred", spec: indexed(100, 10), fates: |_| Fate::succeeds(), ..base() },
        Play {
            // More Pods end at once than a status has room for until they are counted.
            name: "crowd",
            spec: indexed(600, 300),
            fates: |_| Fate::succeeds(),
            check: |job| {
                let status = job.status.as_ref().expect("a status");
                assert_eq!(status.completed_indexes.as_deref(), Some("0-599"));
            },
            ..base()
        },
    ]
}

/// Those that tell how long delays are, for a cluster that has little else to do. No name begins
/// with that of another play.
pub fn delays() -> Vec<Play> {
    vec![
        Play {
            name: "doubling",
            spec: json!({"backoffLimit": 3}),
            fates: |_| Fate::fails(1).after(1),
            end: "Failed BackoffLimitExceeded",
            review: |history, job| assert_delays(history, job, None, &[10, 20, 40]),
            ..base()
        },
        Play {
            name: "apart",
            spec: with(indexed(3, 3), json!({"backoffLimitPerIndex": 3})),
            fates: |who| match (who.index, who.attempt) {
                (Some(0), 0..3) | (Some(1), 0) => Fate::fails(1).after(1),
                (Some(2), 0) => Fate::fails(1).after(30),
                _ => Fate::succeeds(),
            },
            counts: |_, _| (3, 5),
            review: |history, job| {
                assert_delays(history, job, Some(0), &[10, 20, 40]);
                assert_delays(history, job, Some(1), &[10]);
                assert_delays(history, job, Some(2), &[10]);
            },
            ..base()
        },
    ]
}

/// Whether Pods came as long after the ones before as they should. Times of Pods are in whole
/// seconds.
fn assert_delays(history: &History, job: &str, index: Option<u32>, expected: &[i64]) {
    let delays = history.recorded_delays(job, index);
    let is_so =
        |(delay, expected): (&i64, &i64)| (expected - 1..=expected + LATENESS).contains(delay);
    let is_so = delays.len() == expected.len() && delays.iter().zip(expected).all(is_so);
    assert!(is_so, "index {index:?}: {delays:?} instead of {expected:?}");
}
