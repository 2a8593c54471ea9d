//! What a Job costs in its ledger alone: every index from start to Complete, with Pods that end as
//! soon as they exist and an API that answers at once.

mod world;

use std::time::{Duration, Instant};

use serde_json::json;
use stint_peers::usage::Usage;

use self::world::{Begun, World};
use crate::contest::{Entrant, Rounds, Work, hold};
use crate::error::BenchError;
use crate::metric::{CPU_PER_POD, PEAK, STATUS_WRITES, Sample, WALL};
use crate::report::{Report, Subject};
use crate::worker::{Task, employ};

/// What is measured.
#[derive(Clone, Debug)]
pub struct LedgerPlan {
    /// The numbers of indexes, each with how many at once.
    pub sizes: Vec<(u32, u32)>,
    /// How many Pods there are of a Job that is taken over; none: that is not measured.
    pub takeover: Option<u32>,
    /// How often.
    pub rounds: Rounds,
}

impl LedgerPlan {
    /// The usual, or very little of it.
    pub fn new(is_quick: bool) -> Self {
        if is_quick {
            let rounds = Rounds { warmups: 0, repetitions: 1 };
            return LedgerPlan { sizes: vec![(100, 10), (100, 100)], takeover: Some(100), rounds };
        }
        let small = [1_000, 10_000, 100_000, 1_000_000].map(|indexes| (indexes, 100));
        let wide = [10_000, 100_000].map(|indexes| (indexes, indexes));
        LedgerPlan {
            sizes: small.into_iter().chain(wide).collect(),
            takeover: Some(100_000),
            rounds: Rounds { warmups: 1, repetitions: 5 },
        }
    }
}

/// Measures it.
///
/// # Errors
///
/// [`BenchError`] if a worker fails.
pub fn ledger(subject: &Subject, plan: &LedgerPlan) -> Result<Report, BenchError> {
    let about = "A Job through the ledger alone, with Pods that end at once.";
    let mut report = Report::new("ledger", about, plan.rounds, subject).plotting(CPU_PER_POD);
    for &(indexes, parallelism) in &plan.sizes {
        let work = vec![("indexes", json!(indexes)), ("at once", json!(parallelism))];
        report.add(alone(subject, plan.rounds, &work, Task::Ledger, (indexes, parallelism))?);
    }
    if let Some(pods) = plan.takeover {
        let work = vec![("indexes", json!(pods)), ("at once", json!("taken over"))];
        report.add(alone(subject, plan.rounds, &work, Task::Takeover, (pods, pods))?);
        report.note("taken over: a Job that another process has begun, from the list of its running Pods to the first write".to_owned());
    }
    Ok(report.finish())
}

/// A worker as the only entrant.
pub(crate) fn alone(
    subject: &Subject,
    rounds: Rounds,
    work: &Work,
    task: Task,
    (indexes, parallelism): (u32, u32),
) -> Result<Vec<crate::report::Row>, BenchError> {
    let run = || employ(subject, task, indexes, parallelism);
    hold(rounds, work, vec![Entrant::new("stint", run)])
}

/// Small Jobs are run again and again until there were so many Pods: what a single one takes is
/// less than the noise.
const PODS: u32 = 100_000;

/// Runs a Job in this process.
pub(crate) fn run(completions: u32, parallelism: u32) -> Sample {
    let rounds = (PODS / completions).max(1);
    let mut writes = 0;
    let clock = Clock::now();
    for _ in 0..rounds {
        let mut world = World::new(completions, parallelism);
        world.run();
        writes = world.writes;
    }
    clock.sample(rounds, completions).with(PEAK, peak()).with(STATUS_WRITES, writes as f64)
}

/// Takes a Job over in this process.
pub(crate) fn take_over(completions: u32) -> Sample {
    let begun = Begun::new(completions);
    let clock = Clock::now();
    let writes = begun.take_over();
    clock.sample(1, completions).with(PEAK, peak()).with(STATUS_WRITES, writes as f64)
}

/// The most memory this process has had.
fn peak() -> f64 {
    Usage::of(std::process::id()).map_or(0.0, |usage| usage.peak as f64)
}

/// How long this process has run: the wall clock, and the time of the processor.
struct Clock {
    wall: Instant,
    processor: Option<Duration>,
}

impl Clock {
    fn now() -> Self {
        Self { wall: Instant::now(), processor: processor_time() }
    }

    /// What one of so many Jobs took.
    fn sample(&self, rounds: u32, pods: u32) -> Sample {
        let wall = self.wall.elapsed();
        let processor = processor_time().zip(self.processor);
        let processor = processor.map_or(wall, |(now, start)| now.saturating_sub(start));
        let each = (processor / rounds).as_secs_f64() / f64::from(pods);
        Sample::default().with(WALL, (wall / rounds).as_secs_f64()).with(CPU_PER_POD, each)
    }
}

/// What the first thread of this process has had of the processor, as the kernel tells it to the
/// nanosecond. It is the only one that works here.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    let nanos = text.split(' ').next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos)).filter(|time| !time.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_goes_through_the_ledger() {
        let mut world = World::new(1_000, 100);
        world.run();
        // Each wave is counted by one status; begin and end have their own.
        assert_eq!(world.writes, 12);
        assert_eq!(Begun::new(100).take_over(), 1);
    }
}
