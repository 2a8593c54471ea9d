//! Why there is nothing to report.

use std::io;
use std::path::PathBuf;

/// Why a benchmark does not come to an end.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A file or a folder cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// A program cannot be started.
    #[error("cannot start {program}: {source}")]
    Spawn {
        /// Its name.
        program: String,
        /// What is wrong.
        source: io::Error,
    },
    /// A program did not do what it was to do.
    #[error("{program} {what}")]
    Program {
        /// Its name.
        program: String,
        /// What it did instead.
        what: String,
    },
    /// The embedded cluster does not start.
    #[error("the embedded cluster does not start: {0}")]
    Start(#[from] stint_local::StartError),
    /// There is no real cluster to measure on.
    #[error("there is no cluster to measure on: {0}")]
    Cluster(#[from] stint_peers::cluster::ClusterError),
    /// The API refused something.
    #[error("{what}: {source}")]
    Api {
        /// What was asked for.
        what: &'static str,
        /// The refusal.
        source: kube::Error,
    },
    /// The Job came to another end than it should have.
    #[error("the Job {name} ended as {end}: nothing is measured by that")]
    Job {
        /// The Job.
        name: String,
        /// How it ended.
        end: String,
    },
    /// No threads, or no event loop.
    #[error("cannot start: {0}")]
    Runtime(#[source] io::Error),
}
