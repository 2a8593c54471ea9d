//! Small Jobs that come at once, alone and beside a large Job that was there before: whether it
//! makes them wait.

use std::cell::RefCell;
use std::time::Instant;

use futures_util::future::try_join_all;
use serde_json::json;

use crate::arena::{Arena, Pace, Ring, Runner};
use crate::contest::{Entrant, Rounds, hold};
use crate::error::BenchError;
use crate::load::{Load, create};
use crate::metric::{JOB_P50, JOB_P99, Sample, WALL};
use crate::report::{Report, Subject};
use crate::spread::percentile;

/// What is measured.
#[derive(Clone, Debug)]
pub struct FairnessPlan {
    /// How many small Jobs come.
    pub jobs: u32,
    /// The large Job.
    pub large: Load,
    /// By whom.
    pub runners: Vec<Runner>,
    /// How often.
    pub rounds: Rounds,
}

impl FairnessPlan {
    /// The usual, or very little of it.
    pub fn new(is_quick: bool) -> Self {
        let runners = vec![Runner::Stint, Runner::Lifted, Runner::Embedded];
        if is_quick {
            let rounds = Rounds { warmups: 0, repetitions: 1 };
            return FairnessPlan { jobs: 3, large: Load::one(20, 5), runners, rounds };
        }
        let rounds = Rounds { warmups: 0, repetitions: 3 };
        FairnessPlan { jobs: 50, large: Load::one(10_000, 1_000), runners, rounds }
    }
}

/// Measures it.
///
/// # Errors
///
/// [`BenchError`] if there is no cluster, or a Job does not complete.
pub fn fairness(subject: &Subject, plan: &FairnessPlan) -> Result<Report, BenchError> {
    let about = "One-Pod Jobs that come at once, alone and beside a large Job.";
    let report = Report::new("fairness", about, plan.rounds, subject);
    let mut report = report.plotting(JOB_P50);
    let arena = RefCell::new(Arena::start(subject, &mut report)?);
    // Alone and beside in turn, for each who runs them: that is what is compared.
    for &runner in &plan.runners {
        let work = vec![("Jobs", json!(plan.jobs)), ("by", json!(runner.title()))];
        let entrants = [None, Some(plan.large)].map(|large| {
            let arena = &arena;
            let beside =
                large.map_or("alone".to_owned(), |it| format!("beside {} indexes", it.indexes));
            Entrant::new(beside, move || {
                let measure =
                    async |ring: Ring<'_>, name: &str| measure(&ring, name, plan.jobs, large).await;
                arena.borrow_mut().run(runner, Pace::Usual, measure)
            })
        });
        report.add(hold(plan.rounds, &work, entrants.into())?);
    }
    report.note(
        "each from its creation to Complete, as one observer sees it; time is that of the last"
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
    let small = (0..jobs).map(|place| async move {
        let name = format!("{name}-{place}");
        let began = Instant::now();
        create(ring.client, &Load::one(1, 1).job(&name)).await?;
        let times = ring.observer.complete(&name).await?;
        let end = times.end.map_or(began, |(at, _)| at);
        Ok::<f64, BenchError>(end.saturating_duration_since(began).as_secs_f64())
    });
    let took = try_join_all(small).await?;
    Ok(Sample::default()
        .with(WALL, percentile(&took, 100))
        .with(JOB_P50, percentile(&took, 50))
        .with(JOB_P99, percentile(&took, 99)))
}
