//! Jobs on a real cluster: by stint, by the built-in controller, and by a loop that does the least.

use std::time::Instant;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use stint_peers::usage::Usage;

use crate::arena::{Arena, Pace, Ring, Runner};
use crate::contest::{Entrant, Rounds, hold};
use crate::counts::Counts;
use crate::error::BenchError;
use crate::floor;
use crate::load::{Load, create};
use crate::metric::{API_CALLS_PER_POD, CPU, LAST_END, Metric, PEAK, SERVER_CPU, Sample, WALL};
use crate::report::{Report, Subject};

/// How many Jobs are created at once.
const CREATING: usize = 16;

/// Above this many Pods the built-in controller is not measured at its defaults: at twenty calls a
/// second it takes a quarter of an hour each time, and how long is known beforehand.
const DEFAULTS_UP_TO: u32 = 1_000;

/// What is measured.
#[derive(Clone, Debug)]
pub struct ClusterPlan {
    /// The Jobs.
    pub loads: Vec<Load>,
    /// By whom, in the order of the table.
    pub runners: Vec<Runner>,
    /// How often.
    pub rounds: Rounds,
}

impl ClusterPlan {
    /// The usual, or very little of it.
    pub fn new(is_quick: bool) -> Self {
        let runners = vec![Runner::Stint, Runner::Lifted, Runner::Default, Runner::Floor];
        if is_quick {
            let loads = vec![
                Load::one(5, 5),
                Load { fails: 50, ..Load::one(4, 4) },
                Load { jobs: 3, indexes: 2, parallelism: 1, fails: 0 },
            ];
            return ClusterPlan { loads, runners, rounds: Rounds { warmups: 0, repetitions: 1 } };
        }
        let loads = Crowd::ALL.into_iter().flat_map(Crowd::loads).collect();
        ClusterPlan { loads, runners, rounds: Rounds { warmups: 1, repetitions: 3 } }
    }

    /// One Job of each size, with all of its Pods at once and with a tenth of them.
    pub fn sizes(indexes: &[u32]) -> Vec<Load> {
        let both = |&count: &u32| [Load::one(count, count), Load::one(count, (count / 10).max(1))];
        indexes.iter().flat_map(both).collect()
    }
}

/// Which Jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crowd {
    /// One of each size.
    Sizes,
    /// One with indexes that fail once.
    Failing,
    /// Many small ones at once.
    Many,
}

impl Crowd {
    /// All of them, in the order of the report.
    pub const ALL: [Crowd; 3] = [Crowd::Sizes, Crowd::Failing, Crowd::Many];

    /// What it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Crowd::Sizes => "sizes",
            Crowd::Failing => "failing",
            Crowd::Many => "many",
        }
    }

    /// The Jobs.
    pub fn loads(self) -> Vec<Load> {
        match self {
            Crowd::Sizes => ClusterPlan::sizes(&[100, 1_000, 10_000]),
            Crowd::Failing => {
                [10, 50].map(|fails| Load { fails, ..Load::one(1_000, 1_000) }).into()
            }
            Crowd::Many => vec![Load { jobs: 100, indexes: 20, parallelism: 5, fails: 0 }],
        }
    }
}

/// Measures it.
///
/// # Errors
///
/// [`BenchError`] if there is no cluster, or a Job does not complete.
pub fn cluster(subject: &Subject, plan: &ClusterPlan) -> Result<Report, BenchError> {
    let about = "Jobs on kube-apiserver and etcd, with Pods that end at once.";
    let mut report = Report::new("cluster", about, plan.rounds, subject);
    let arena = std::cell::RefCell::new(Arena::start(subject, &mut report)?);
    for load in &plan.loads {
        let is_too_long =
            |runner: &Runner| *runner == Runner::Default && load.pods() > DEFAULTS_UP_TO;
        let pace = if load.fails > 0 { Pace::Quick } else { Pace::Usual };
        // It has no index to wait for.
        let is_no_match = |runner: &Runner| *runner == Runner::Floor && load.fails > 0;
        let mut entrants = Vec::new();
        for &runner in plan.runners.iter().filter(|it| !is_too_long(it) && !is_no_match(it)) {
            let arena = &arena;
            let run = move || {
                let measure =
                    async |ring: Ring<'_>, name: &str| measure(&ring, name, runner, load).await;
                arena.borrow_mut().run(runner, pace, measure)
            };
            entrants.push(Entrant::new(runner.title(), run));
        }
        report.add(hold(plan.rounds, &load.work(), entrants)?);
    }
    report.note(format!(
        "CPU and memory are those of the controller's process; calls are the controller's on Pods, \
         Jobs and Events for each Pod that succeeds; the built-in controller at its defaults is left \
         out above {DEFAULTS_UP_TO} Pods"
    ));
    Ok(report.finish())
}

async fn measure(
    ring: &Ring<'_>,
    name: &str,
    runner: Runner,
    load: &Load,
) -> Result<Sample, BenchError> {
    let counts = Counts::of(ring.client).await?;
    let (controller, server) = (usage(ring.controller)?, usage(ring.server)?);
    let began = Instant::now();
    let (took, last_end) = match runner {
        Runner::Floor => {
            let Load { indexes, parallelism, jobs, .. } = load;
            floor::run(ring.client, ring.observer, name, indexes * jobs, parallelism * jobs)
                .await?;
            (began.elapsed().as_secs_f64(), None)
        }
        Runner::Stint | Runner::Lifted | Runner::Default | Runner::Embedded => {
            let (took, last_end) = run_jobs(ring, name, load, began).await?;
            (took, Some(last_end))
        }
    };
    let counts = Counts::of(ring.client).await?.since(&counts);
    let pods = f64::from(load.pods());
    let mut sample = Sample::default().with(WALL, took);
    if let (Some(before), Some(after)) = (controller, usage(ring.controller)?) {
        let spent = after.processor.saturating_sub(before.processor);
        sample = sample.with(CPU, spent.as_secs_f64()).with(PEAK, after.peak as f64);
    }
    sample = sample.with(API_CALLS_PER_POD, counts.of_controllers() as f64 / pods);
    if let (Some(before), Some(after)) = (server, usage(ring.server)?) {
        let spent = after.processor.saturating_sub(before.processor);
        sample = sample.with(SERVER_CPU, spent.as_secs_f64());
    }
    if let Some(seconds) = last_end {
        sample = sample.with(LAST_END, seconds);
    }
    for (call, count) in &counts.by_call {
        sample = sample.with(Metric::detail(format!("calls {call}")), *count as f64);
    }
    Ok(sample)
}

/// Runs all Jobs: the seconds until the last is complete, and from the last Pod's end to that.
async fn run_jobs(
    ring: &Ring<'_>,
    name: &str,
    load: &Load,
    began: Instant,
) -> Result<(f64, f64), BenchError> {
    let names: Vec<String> = (0..load.jobs).map(|place| format!("{name}-{place}")).collect();
    let creating =
        names.iter().map(|name| async move { create(ring.client, &load.job(name)).await });
    let creating = stream::iter(creating).buffer_unordered(CREATING);
    creating.try_collect::<()>().await?;
    let (mut ended, mut last_pod) = (began, began);
    for name in &names {
        let times = ring.observer.complete(name).await?;
        ended = times.end.map_or(ended, |(at, _)| ended.max(at));
        last_pod = times.last_end.map_or(last_pod, |at| last_pod.max(at));
    }
    let since = |earlier: Instant| ended.saturating_duration_since(earlier).as_secs_f64();
    Ok((since(began), since(last_pod)))
}

fn usage(process: Option<u32>) -> Result<Option<Usage>, BenchError> {
    process.map(|id| Usage::of(id).map_err(BenchError::Runtime)).transpose()
}
