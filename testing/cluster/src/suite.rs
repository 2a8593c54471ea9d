//! What is run, and how.

use crate::cluster::{ClusterError, Options};

use crate::report::Report;
use crate::stint::Build;
use crate::theatre::Theatre;
use crate::{coexistence, plays, unwatched};

/// What is run, and how.
#[derive(Clone, Debug, Default)]
pub struct Suite {
    /// Only scenarios with one of these in their names; none: all.
    pub filters: Vec<String>,
    /// How clusters are started.
    pub options: Options,
    /// Which stint is run.
    pub build: Build,
    /// Whether logs are kept when nothing has failed.
    pub keeps_logs: bool,
}

impl Suite {
    /// Runs what was asked for.
    pub async fn run(&self, report: &mut Report) -> Result<(), ClusterError> {
        plays::run(self, report).await?;
        unwatched::run(self, report).await?;
        coexistence::run(self, report).await
    }

    /// Whether a scenario is to be run.
    pub fn wants(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|part| name.contains(part))
    }

    /// Ends clusters; tells where their logs are if something has failed.
    pub fn close(&self, theatres: impl IntoIterator<Item = Theatre>, has_failed: bool) {
        for mut theatre in theatres {
            if has_failed || self.keeps_logs {
                theatre.cluster.keep_folder();
                println!("logs: {}", theatre.cluster.folder().display());
            }
        }
    }
}

/// The names of all scenarios.
pub fn names() -> Vec<String> {
    let names = [plays::names(), unwatched::names(), coexistence::names()];
    names.into_iter().flatten().collect()
}
