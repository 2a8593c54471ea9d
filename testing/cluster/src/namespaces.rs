//! A namespace that is deleted while a Job in it runs. Its Pods go first, and the Job only once they
//! are gone: until then it wants other Pods in their place, which nobody gets any more.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, PostParams};
use serde_json::{Value, json};
use stint_kit::job::manifest;
use tokio::time::Instant;

use crate::attempt::attempt;
use crate::cluster::{Cluster, ClusterError, Manager};
use crate::report::Report;
use crate::stint::{Mode, Stint};
use crate::suite::Suite;

const DELETED: &str = "namespaces/deleted";

/// Of the Job and of its namespace.
const NAME: &str = "doomed";

const PODS: usize = 3;

/// How long it may take, on a machine that has much to do. The backoff alone is 10 s.
const PATIENCE: Duration = Duration::from_secs(120);

/// How soon it is looked at again.
const AGAIN: Duration = Duration::from_millis(200);

/// The names of the scenarios.
pub fn names() -> Vec<String> {
    vec![DELETED.to_owned()]
}

/// Runs what was asked for.
pub async fn run(suite: &Suite, report: &mut Report) -> Result<(), ClusterError> {
    if !suite.wants(DELETED) {
        return Ok(());
    }
    let mut cluster = Cluster::start(suite.options.clone()).await?;
    cluster.start_manager(Manager::WithoutJobs).await?;
    let stint = Stint::start(&cluster, &suite.build, Mode::Replace).await?;
    let before = report.failed();
    let (took, result) = attempt(deleted(&cluster)).await;
    report.tell(DELETED, took, result);
    stint.stop().await;
    suite.close_cluster(cluster, report.failed() > before);
    Ok(())
}

/// With backoffLimitPerIndex a Pod that has failed, as one that is deleted has, waits for the next one
/// of its index: here it would keep the namespace for ever.
async fn deleted(cluster: &Cluster) {
    let admin = cluster.admin().await.expect("a client");
    let namespaces: Api<Namespace> = Api::all(admin.clone());
    let metadata = ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata, ..Namespace::default() };
    namespaces.create(&PostParams::default(), &namespace).await.expect("it can be made");
    let pods: Api<Pod> = Api::namespaced(admin.clone(), NAME);
    let jobs: Api<Job> = Api::namespaced(admin, NAME);
    let mut job = manifest(NAME, spec());
    job.metadata.namespace = Some(NAME.to_owned());
    jobs.create(&PostParams::default(), &job).await.expect("the Job is valid");
    let count = async || pods.list(&ListParams::default()).await.expect("Pods").items.len();
    until("has its Pods", async || count().await == PODS).await;
    namespaces.delete(NAME, &DeleteParams::default()).await.expect("it can be deleted");
    let is_gone = async || namespaces.get_opt(NAME).await.expect("an answer").is_none();
    until("is gone", is_gone).await;
}

fn spec() -> Value {
    json!({
        "completionMode": "Indexed", "completions": PODS, "parallelism": PODS,
        "backoffLimitPerIndex": 3,
    })
}

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < PATIENCE, "the namespace never {what}");
        tokio::time::sleep(AGAIN).await;
    }
}
