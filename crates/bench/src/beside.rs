//! Small Jobs, alone and beside a large one that was there before: what latency and fairness share.

use crate::arena::{Ring, Runner};
use crate::contest::Rounds;
use crate::error::BenchError;
use crate::load::{Load, create};

/// What is measured.
#[derive(Clone, Debug)]
pub struct BesidePlan {
    /// How many small Jobs there are.
    pub jobs: u32,
    /// The large Job.
    pub large: Load,
    /// By whom.
    pub runners: Vec<Runner>,
    /// How often.
    pub rounds: Rounds,
}

impl BesidePlan {
    /// So many small Jobs, or very few.
    pub fn new(jobs: u32, is_quick: bool) -> Self {
        let runners = vec![Runner::Stint, Runner::Lifted, Runner::Embedded];
        if is_quick {
            let rounds = Rounds { warmups: 0, repetitions: 1 };
            return BesidePlan { jobs: 3, large: Load::one(20, 5), runners, rounds };
        }
        let rounds = Rounds { warmups: 0, repetitions: 3 };
        BesidePlan { jobs, large: Load::one(10_000, 1_000), runners, rounds }
    }
}

/// Has the large Job begin, if there is one, and answers with its name.
pub(crate) async fn begin(
    ring: &Ring<'_>,
    name: &str,
    large: Option<Load>,
) -> Result<String, BenchError> {
    let name = format!("{name}-large");
    if let Some(large) = large {
        create(ring.client, &large.job(&name)).await?;
        ring.observer.until(&name, |times| times.first_pod).await?;
    }
    Ok(name)
}
