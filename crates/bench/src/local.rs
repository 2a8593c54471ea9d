//! What a Job costs in the whole embedded cluster, with Pods that end the moment they are started:
//! the store, the API server, the controller, the binder, the collectors and the node, without any
//! process.

mod instant;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use k8s_openapi::api::batch::v1::Job;
use kube::Client;
use kube::api::{Api, PostParams, WatchEvent, WatchParams};
use serde_json::json;
use stint_local::{Cluster, Identity, NodeOptions, Options};
use stint_peers::usage::Usage;

use self::instant::InstantRuntime;
use crate::contest::Rounds;
use crate::counts::Counts;
use crate::error::BenchError;
use crate::ledger::alone;
use crate::metric::{
    API_CALLS_PER_POD, CPU, CPU_PER_POD, Metric, PEAK, STORE_WRITES_PER_POD, Sample, WALL,
    WALL_PER_POD,
};
use crate::process::job;
use crate::report::{Report, Subject};
use crate::spawned::folder;
use crate::worker::Task;

/// How many Pods the node takes at once: as `stint run` has it by default.
const MAX_PODS: u32 = 1000;

/// How long the server watches before the watch begins anew.
const WATCH_SECONDS: u32 = 290;

/// What is measured.
#[derive(Clone, Debug)]
pub struct LocalPlan {
    /// The numbers of indexes.
    pub indexes: Vec<u32>,
    /// How many Pods at once.
    pub parallelism: u32,
    /// How often.
    pub rounds: Rounds,
}

impl LocalPlan {
    /// The usual, or very little of it.
    pub fn new(is_quick: bool) -> Self {
        if is_quick {
            let rounds = Rounds { warmups: 0, repetitions: 1 };
            return LocalPlan { indexes: vec![50], parallelism: 50, rounds };
        }
        LocalPlan {
            indexes: vec![1_000, 10_000, 100_000],
            parallelism: MAX_PODS,
            rounds: Rounds { warmups: 1, repetitions: 3 },
        }
    }
}

/// Measures it.
///
/// # Errors
///
/// [`BenchError`] if a worker fails.
pub fn local(subject: &Subject, plan: &LocalPlan) -> Result<Report, BenchError> {
    let about = "A Job through the whole embedded cluster, with Pods that end at once.";
    let mut report = Report::new("local", about, plan.rounds, subject).plotting(WALL_PER_POD);
    for &indexes in &plan.indexes {
        let parallelism = plan.parallelism;
        let work = vec![("indexes", json!(indexes)), ("at once", json!(parallelism))];
        report.add(alone(subject, plan.rounds, &work, Task::Local, (indexes, parallelism))?);
    }
    report.note(
        "calls and writes are those of all parts together, from the Job's creation to its end"
            .to_owned(),
    );
    Ok(report.finish())
}

/// Runs a Job in this process, with a node that waits so long before it says what is not the last
/// word on a Pod, if that is not to be the usual.
pub(crate) fn run(
    indexes: u32,
    parallelism: u32,
    status_delay: Option<Duration>,
) -> Result<Sample, BenchError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(BenchError::Runtime)?;
    let folder = folder()?;
    let cluster = runtime.block_on(start(folder.path(), status_delay))?;
    let measured = runtime.block_on(measure(&cluster, indexes, parallelism));
    let closed = runtime.block_on(cluster.shutdown());
    let sample = measured?;
    closed.map_err(stint_local::StartError::from)?;
    Ok(sample)
}

/// Starts an embedded cluster with Pods that end at once.
pub(crate) async fn start(
    folder: &Path,
    status_delay: Option<Duration>,
) -> Result<Cluster, BenchError> {
    let usual = stint_node::Options::new("bench", folder.join("pods"));
    let status_delay = status_delay.unwrap_or(usual.status_delay);
    let options = stint_node::Options { max_pods: MAX_PODS, status_delay, ..usual };
    let node =
        NodeOptions { runtime: Arc::new(InstantRuntime), options, grace: Duration::from_secs(1) };
    Ok(Cluster::start(Options { node: Some(node), ..Options::default() }).await?)
}

async fn measure(cluster: &Cluster, indexes: u32, parallelism: u32) -> Result<Sample, BenchError> {
    let client = cluster.client(Identity::admin());
    let usage = || Usage::of(std::process::id()).map_err(BenchError::Runtime);
    let (counts, spent, began) = (Counts::of(&client).await?, usage()?, Instant::now());
    run_job(&client, indexes, parallelism).await?;
    let took = began.elapsed().as_secs_f64();
    let (counts, usage) = (Counts::of(&client).await?.since(&counts), usage()?);
    let processor = (usage.processor.saturating_sub(spent.processor)).as_secs_f64();
    let pods = f64::from(indexes);
    let mut sample = Sample::default()
        .with(WALL, took)
        .with(WALL_PER_POD, took / pods)
        .with(CPU, processor)
        .with(CPU_PER_POD, processor / pods)
        .with(PEAK, usage.peak as f64)
        .with(STORE_WRITES_PER_POD, counts.writes as f64 / pods)
        .with(API_CALLS_PER_POD, counts.calls() as f64 / pods);
    for (call, count) in &counts.by_call {
        sample = sample.with(Metric::detail(format!("calls {call}")), *count as f64);
    }
    Ok(sample)
}

/// Creates a Job and waits until it is complete.
async fn run_job(client: &Client, indexes: u32, parallelism: u32) -> Result<(), BenchError> {
    let name = "bench";
    let job = job(indexes, parallelism);
    let job: Job = serde_json::from_value(job).expect("this is a Job");
    let jobs: Api<Job> = Api::default_namespaced(client.clone());
    let refused = |what| move |source| BenchError::Api { what, source };
    let job = jobs.create(&PostParams::default(), &job).await;
    let mut version =
        job.map_err(refused("the Job"))?.metadata.resource_version.unwrap_or_default();
    loop {
        let params = WatchParams::default().timeout(WATCH_SECONDS);
        let watch = jobs.watch(&params, &version).await.map_err(refused("a watch of the Job"))?;
        let mut watch = std::pin::pin!(watch);
        while let Some(event) = watch.next().await {
            let event = event.map_err(refused("the watch of the Job"))?;
            let (WatchEvent::Added(job) | WatchEvent::Modified(job)) = event else { continue };
            match end(&job) {
                None => version = job.metadata.resource_version.unwrap_or_default(),
                Some("Complete") => return Ok(()),
                Some(end) => {
                    return Err(BenchError::Job { name: name.to_owned(), end: end.to_owned() });
                }
            }
        }
    }
}

/// How a Job has ended, if it has.
fn end(job: &Job) -> Option<&str> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let is_end = |kind: &str| matches!(kind, "Complete" | "Failed");
    let end = conditions.iter().find(|it| is_end(&it.type_) && it.status == "True")?;
    Some(&end.type_)
}
