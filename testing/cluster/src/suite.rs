//! What is run, and how.

use futures_util::future::join;

use crate::cluster::{Cluster, ClusterError, Options};
use crate::report::Report;
use crate::stint::Build;
use crate::theatre::Theatre;
use crate::{
    coexistence, dashboard, faults, foreign, gates, installed, manifests, moving, namespaces,
    openapi, plays, random, requests, rights, rules, unwatched, values,
};

/// What is run, and how.
#[derive(Clone, Debug, Default)]
pub struct Suite {
    /// Only scenarios with one of these in their names; none: all.
    pub filters: Vec<String>,
    /// How clusters are started.
    pub options: Options,
    /// Which stint is run.
    pub build: Build,
    /// Which seeds of the random differential are run.
    pub seeds: random::Seeds,
    /// How bad the weather of faults is.
    pub weather: faults::Weather,
    /// How many Pods of others there are in foreign.
    pub crowd: foreign::Crowd,
    /// Whether logs are kept when nothing has failed.
    pub keeps_logs: bool,
}

impl Suite {
    /// Runs what was asked for.
    ///
    /// They are two rows beside each other, as most of the time is spent waiting. What matters to the
    /// second does not depend on how busy the machine is, and it begins with what is small.
    pub async fn run(&self, report: &mut Report) -> Result<(), ClusterError> {
        let (mut first, mut second) = (Report::default(), Report::default());
        let (plays, others) = join(self.run_plays(&mut first), self.run_others(&mut second)).await;
        report.add(first);
        report.add(second);
        plays.and(others)
    }

    async fn run_plays(&self, report: &mut Report) -> Result<(), ClusterError> {
        plays::run(self, report).await?;
        unwatched::run(self, report).await?;
        coexistence::run(self, report).await
    }

    async fn run_others(&self, report: &mut Report) -> Result<(), ClusterError> {
        values::run(self, report).await?;
        manifests::run(self, report).await?;
        dashboard::run(self, report).await?;
        openapi::run(self, report).await?;
        requests::run(self, report).await?;
        rules::run(self, report).await?;
        installed::run(self, report).await?;
        rights::run(self, report).await?;
        gates::run(self, report).await?;
        namespaces::run(self, report).await?;
        moving::run(self, report).await?;
        faults::run(self, report).await?;
        foreign::run(self, report).await?;
        random::run(self, report).await
    }

    /// Whether a scenario is to be run.
    pub fn wants(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|part| name.contains(part))
    }

    /// Ends clusters; tells where their logs are if something has failed.
    pub fn close(&self, theatres: impl IntoIterator<Item = Theatre>, has_failed: bool) {
        for theatre in theatres {
            self.close_cluster(theatre.cluster, has_failed);
        }
    }

    /// Ends a cluster; tells where its logs are if something has failed.
    pub fn close_cluster(&self, mut cluster: Cluster, has_failed: bool) {
        if has_failed || self.keeps_logs {
            cluster.keep_folder();
            println!("logs: {}", cluster.folder().display());
        }
    }
}

/// The names of all scenarios.
pub fn names() -> Vec<String> {
    let names = [
        plays::names(),
        unwatched::names(),
        random::names(),
        coexistence::names(),
        faults::names(),
        foreign::names(),
        moving::names(),
        rights::names(),
        values::names(),
        manifests::names(),
        installed::names(),
        gates::names(),
        namespaces::names(),
        dashboard::names(),
        openapi::names(),
        requests::names(),
        rules::names(),
    ];
    names.into_iter().flatten().collect()
}
