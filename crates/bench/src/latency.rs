//! How soon something happens to a small Job: from its creation to its first Pod, and from the end
//! of its Pod to Complete, alone and beside a large Job.

use std::cell::RefCell;
use std::time::Instant;

use serde_json::json;

use crate::arena::{Arena, Pace, Ring, Runner};
use crate::contest::{Entrant, Rounds, hold};
use crate::error::BenchError;
use crate::load::{Load, create};
use crate::metric::{COMPLETE_P50, COMPLETE_P99, FIRST_POD_P50, FIRST_POD_P99, Metric, Sample};
use crate::report::{Report, Subject};
use crate::spread::percentile;

/// What is measured.
#[derive(Clone, Debug)]
pub struct LatencyPlan {
    /// How many small Jobs run, one after the other.
    pub jobs: u32,
    /// The large Job.
    pub large: Load,
    /// By whom.
    pub runners: Vec<Runner>,
    /// How often.
    pub rounds: Rounds,
}

impl LatencyPlan {
    /// The usual, or very little of it.
    pub fn new(is_quick: bool) -> Self {
        let runners = vec![Runner::Stint, Runner::Lifted, Runner::Embedded];
        if is_quick {
            let rounds = Rounds { warmups: 0, repetitions: 1 };
            return LatencyPlan { jobs: 2, large: Load::one(20, 5), runners, rounds };
        }
        let rounds = Rounds { warmups: 0, repetitions: 3 };
        LatencyPlan { jobs: 100, large: Load::one(10_000, 1_000), runners, rounds }
    }
}

/// Measures it.
///
/// # Errors
///
/// [`BenchError`] if there is no cluster, or a Job does not complete.
pub fn latency(subject: &Subject, plan: &LatencyPlan) -> Result<Report, BenchError> {
    let about = "One-Pod Jobs, one after the other: how soon each is served.";
    let report = Report::new("latency", about, plan.rounds, subject);
    let mut report = report.plotting(COMPLETE_P50);
    let arena = RefCell::new(Arena::start(subject, &mut report)?);
    for large in [None, Some(plan.large)] {
        let beside = large.map_or("nothing".to_owned(), |it| format!("{} indexes", it.indexes));
        let work = vec![("Jobs", json!(plan.jobs)), ("beside", json!(beside))];
        let entrants = plan.runners.iter().map(|&runner| {
            let arena = &arena;
            Entrant::new(runner.title(), move || {
                let measure =
                    async |ring: Ring<'_>, name: &str| measure(&ring, name, plan.jobs, large).await;
                arena.borrow_mut().run(runner, Pace::Usual, measure)
            })
        });
        report.add(hold(plan.rounds, &work, entrants.collect())?);
    }
    report.note(
        "all times are those of one observer who watches Jobs and Pods; beside a large Job only \
         those count that were served before its end"
            .to_owned(),
    );
    Ok(report.finish())
}

async fn measure(
    ring: &Ring<'_>,
    name: &str,
    jobs: u32,
    large: Option<Load>,
) -> Result<Sample, BenchError> {
    let large_name = format!("{name}-large");
    if let Some(large) = large {
        create(ring.client, &large.job(&large_name)).await?;
        ring.observer.until(&large_name, |times| times.first_pod).await?;
    }
    let (mut firsts, mut completes) = (Vec::new(), Vec::new());
    for place in 0..jobs {
        let name = format!("{name}-{place}");
        let began = Instant::now();
        create(ring.client, &Load::one(1, 1).job(&name)).await?;
        let times = ring.observer.complete(&name).await?;
        let has_large_ended = large.is_some() && ring.observer.has_ended(&large_name);
        if has_large_ended && !firsts.is_empty() {
            break;
        }
        let (Some(first), Some(last), Some((end, _))) =
            (times.first_pod, times.last_end, times.end)
        else {
            continue;
        };
        firsts.push(first.saturating_duration_since(began).as_secs_f64());
        completes.push(end.saturating_duration_since(last).as_secs_f64());
    }
    let count = Metric::detail("jobs".to_owned());
    Ok(Sample::default()
        .with(FIRST_POD_P50, percentile(&firsts, 50))
        .with(FIRST_POD_P99, percentile(&firsts, 99))
        .with(COMPLETE_P50, percentile(&completes, 50))
        .with(COMPLETE_P99, percentile(&completes, 99))
        .with(count, firsts.len() as f64))
}
