//! How soon something happens to a small Job: from its creation to its first Pod, and from the end
//! of its Pod to Complete, alone and beside a large Job.

use std::cell::RefCell;
use std::time::Instant;

use serde_json::json;

use crate::arena::{Arena, Pace, Ring};
use crate::beside::{BesidePlan, begin};
use crate::contest::{Entrant, hold};
use crate::error::BenchError;
use crate::load::{Load, create};
use crate::metric::{COMPLETE_P50, COMPLETE_P99, FIRST_POD_P50, FIRST_POD_P99, Metric, Sample};
use crate::report::{Report, Subject};
use crate::spread::percentile;

/// Measures it.
///
/// # Errors
///
/// [`BenchError`] if there is no cluster, or a Job does not complete.
pub fn latency(subject: &Subject, plan: &BesidePlan) -> Result<Report, BenchError> {
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
    let large_name = begin(ring, name, large).await?;
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
