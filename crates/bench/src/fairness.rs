//! Small Jobs that come at once, alone and beside a large Job that was there before: whether it
//! makes them wait.

use std::cell::RefCell;
use std::time::Instant;

use futures_util::future::try_join_all;
use serde_json::json;

use crate::arena::{Arena, Pace, Ring};
use crate::beside::{BesidePlan, begin};
use crate::contest::{Entrant, hold};
use crate::error::BenchError;
use crate::load::{Load, create};
use crate::metric::{JOB_P50, JOB_P99, Sample, WALL};
use crate::report::{Report, Subject};
use crate::spread::percentile;

/// Measures it.
///
/// # Errors
///
/// [`BenchError`] if there is no cluster, or a Job does not complete.
pub fn fairness(subject: &Subject, plan: &BesidePlan) -> Result<Report, BenchError> {
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
    begin(ring, name, large).await?;
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
