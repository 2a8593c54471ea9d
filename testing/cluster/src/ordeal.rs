//! A Job some of whose indexes fail once and some for good, and what must have come of it whatever
//! happened on the way: every index as its fate is, every Pod counted once, none kept.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use stint_kit::job::{counts, end, is_tracked};
use stint_kit::{Fate, Life, Span, Stage, Who};

/// One index of so many fails once, and another one for good.
const EVERY: u32 = 20;

/// Which of them.
const FAILS_ONCE: u32 = 7;
const FAILS: u32 = 13;

/// A Job.
#[derive(Clone, Copy, Debug)]
pub struct Ordeal {
    /// Its name.
    pub name: &'static str,
    /// How many indexes it has.
    pub indexes: u32,
}

impl Ordeal {
    /// What becomes of its Pods, in 200 to 1100 ms.
    pub fn fate(who: &Who) -> Fate {
        let Some(index) = who.index else {
            return Plain::fate(who.attempt);
        };
        // By what it bears, and not by how many there were: one that was deleted was no failure.
        let fate = match (index % EVERY, who.failures) {
            (FAILS_ONCE, 0) | (FAILS, _) => Fate::fails(1),
            _ => Fate::succeeds(),
        };
        let after = Duration::from_millis(200 + u64::from(index * 37 % 10) * 100);
        Fate { after: Span::Exactly(after), ..fate }
    }

    /// Its spec.
    pub fn spec(&self, parallelism: u64) -> Value {
        json!({
            "completionMode": "Indexed", "completions": self.indexes, "parallelism": parallelism,
            "backoffLimitPerIndex": 1,
        })
    }

    /// Waits for the end, and checks it: every index had the Pods that its fate asks for, and not one
    /// more.
    pub async fn check(&self, stage: &Stage) {
        let job = stage.finish(self.name).await;
        let status = job.status.clone().expect("a status");
        let context =
            || format!("{}: {}", self.name, serde_json::to_string(&status).expect("JSON"));
        assert_eq!(end(&job).as_deref(), Some("Failed FailedIndexes"), "{}", context());
        let failing: Vec<u32> = self.indexes_of(FAILS).collect();
        let succeeded = self.indexes as usize - failing.len();
        let failed = 2 * failing.len() + self.indexes_of(FAILS_ONCE).count();
        assert_eq!(counts(&job), (0, succeeded as i32, failed as i32), "{}", context());
        let text: Vec<String> = failing.iter().map(u32::to_string).collect();
        assert_eq!(status.failed_indexes.as_deref(), Some(&*text.join(",")), "{}", context());
        let completed = all_but(&failing, self.indexes);
        assert_eq!(status.completed_indexes, Some(completed), "{}", context());
        let uncounted = status.uncounted_terminated_pods.clone().unwrap_or_default();
        let uncounted = [uncounted.succeeded, uncounted.failed].map(Option::unwrap_or_default);
        assert!(uncounted.iter().all(Vec::is_empty), "{}", context());
        self.check_pods(&stage.history.of(self.name));
        let broken = stage.history.broken();
        let broken: Vec<&String> = broken.iter().filter(|it| it.contains(self.name)).collect();
        assert!(broken.is_empty(), "{broken:#?}");
        let held = stage.pods_of(self.name).await.into_iter().filter(is_tracked).count();
        assert_eq!(held, 0, "Pods of {} bear the finalizer", self.name);
    }

    fn indexes_of(&self, kind: u32) -> impl Iterator<Item = u32> {
        (0..self.indexes).filter(move |index| index % EVERY == kind)
    }

    /// Every index had the Pods that its fate asks for, and not one more.
    fn check_pods(&self, lives: &[Life]) {
        let mut phases: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
        for life in lives {
            phases.entry(life.index.expect("an index")).or_default().push(&life.phase);
        }
        for index in 0..self.indexes {
            let expected: &[&str] = match index % EVERY {
                FAILS => &["Failed", "Failed"],
                FAILS_ONCE => &["Failed", "Succeeded"],
                _ => &["Succeeded"],
            };
            let seen = phases.get(&index).map(|it| &it[..]);
            assert_eq!(seen, Some(expected), "{}, index {index}", self.name);
        }
    }
}

/// A Job without indexes, some of whose first Pods fail.
#[derive(Clone, Debug)]
pub struct Plain {
    /// Its name.
    pub name: String,
}

impl Plain {
    /// How many must succeed, all at once; and one of so many fails first.
    const COMPLETIONS: usize = 12;
    const EVERY: usize = 3;

    /// What becomes of its Pods, in some 100 ms, one after the other.
    fn fate(attempt: usize) -> Fate {
        let fails = attempt < Self::COMPLETIONS && attempt % Self::EVERY == 1;
        let after = Duration::from_millis(20 + (attempt * 37 % 10) as u64 * 10);
        let fate = if fails { Fate::fails(1) } else { Fate::succeeds() };
        Fate { after: Span::Exactly(after), ..fate }
    }

    /// Its spec.
    pub fn spec(&self) -> Value {
        json!({
            "completions": Self::COMPLETIONS, "parallelism": Self::COMPLETIONS, "backoffLimit": 100,
        })
    }

    /// Waits for the end, and checks that every Pod was needed.
    pub async fn check(&self, stage: &Stage) {
        let job = stage.finish(&self.name).await;
        let failed = Self::COMPLETIONS / Self::EVERY;
        let expected = (0, Self::COMPLETIONS as i32, failed as i32);
        assert_eq!(counts(&job), expected, "{}: {:?}", self.name, job.status);
        let lives = stage.history.of(&self.name);
        let is_needed = |life: &Life| life.has_counted && !life.is_deleted;
        let extra: Vec<&Life> = lives.iter().filter(|life| !is_needed(life)).collect();
        assert!(extra.is_empty(), "{}: nobody needs {extra:#?}", self.name);
        assert_eq!(lives.len(), Self::COMPLETIONS + failed, "{}", self.name);
    }
}

/// All indexes but these, as a status writes them.
fn all_but(failing: &[u32], indexes: u32) -> String {
    let mut ranges = Vec::new();
    let mut first = 0;
    for &index in failing.iter().chain([&indexes]) {
        match index - first {
            0 => {}
            1 => ranges.push(first.to_string()),
            2 => ranges.push(format!("{first},{}", first + 1)),
            _ => ranges.push(format!("{first}-{}", index - 1)),
        }
        first = index + 1;
    }
    ranges.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_written_as_a_status_writes_them() {
        assert_eq!(all_but(&[0, 2, 5, 9], 200), "1,3,4,6-8,10-199");
        assert_eq!(all_but(&[199], 200), "0-198");
    }
}
