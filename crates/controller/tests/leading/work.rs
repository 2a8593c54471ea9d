//! What replicas do to Jobs: one of them, none too often, and no harm if two believe to lead.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;
use stint_controller::{Config, Controller};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::net::Net;
use crate::replica::{Cluster, NAMESPACE, until};

const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// Ends every Pod: the first of each index fails, the second succeeds.
struct Fate {
    /// The Pods of each index, by their uids.
    seen: Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>,
    running: JoinHandle<()>,
}

impl Fate {
    fn start(cluster: &Cluster) -> Self {
        let pods: Api<Pod> = Api::namespaced(cluster.admin.clone(), NAMESPACE);
        let seen: Arc<Mutex<BTreeMap<String, BTreeSet<String>>>> = Arc::default();
        let told = seen.clone();
        let running = tokio::spawn(async move {
            loop {
                let all = pods.list(&ListParams::default()).await.expect("Pods can be listed");
                for pod in all.items {
                    let annotations = pod.metadata.annotations.unwrap_or_default();
                    let index = annotations.get(INDEX).cloned().unwrap_or_default();
                    let uid = pod.metadata.uid.expect("a uid");
                    told.lock().expect("a lock").entry(index).or_default().insert(uid);
                    let phase = pod.status.and_then(|status| status.phase);
                    if matches!(phase.as_deref(), Some("Failed" | "Succeeded")) {
                        continue;
                    }
                    let is_first = annotations.get(FAILURES).is_none_or(|count| count == "0");
                    let phase = if is_first { "Failed" } else { "Succeeded" };
                    let patch = Patch::Merge(json!({"status": {"phase": phase}}));
                    let name = pod.metadata.name.expect("a name");
                    // It may be gone.
                    let _ = pods.patch_status(&name, &PatchParams::default(), &patch).await;
                }
                sleep(Duration::from_millis(70)).await;
            }
        });
        Fate { seen, running }
    }
}

impl Drop for Fate {
    fn drop(&mut self) {
        self.running.abort();
    }
}

async fn is_complete(cluster: &Cluster, name: &str) -> bool {
    let job = cluster.jobs().get(name).await.expect("the Job is there");
    let conditions = job.status.and_then(|status| status.conditions).unwrap_or_default();
    conditions.iter().any(|it| it.type_ == "Complete" && it.status == "True")
}

async fn check(cluster: &Cluster, fate: &Fate, name: &str, indexes: usize) {
    let status = cluster.jobs().get(name).await.expect("the Job is there").status;
    let status = status.expect("a status");
    let count = i32::try_from(indexes).expect("few");
    assert_eq!((status.succeeded, status.failed), (Some(count), Some(count)));
    assert_eq!(status.completed_indexes, Some(format!("0-{}", indexes - 1)));
    let seen = fate.seen.lock().expect("a lock").clone();
    assert_eq!(seen.len(), indexes);
    assert!(seen.values().all(|pods| pods.len() == 2), "{seen:?}");
    let pods: Api<Pod> = Api::namespaced(cluster.admin.clone(), NAMESPACE);
    until("no Pod is kept", async || {
        let all = pods.list(&ListParams::default()).await.expect("Pods can be listed");
        all.items.iter().all(|pod| pod.metadata.finalizers.iter().flatten().next().is_none())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn two_that_both_believe_to_lead_do_no_harm() {
    let cluster = Cluster::new().await;
    let nets = [Net::default(), Net::default()];
    let running: Vec<JoinHandle<()>> = nets
        .iter()
        .map(|net| {
            let config = Config { clock: cluster.clock(), ..Config::default() };
            let controller = Controller::new(cluster.client(net), config);
            tokio::spawn(controller.run(std::future::pending()))
        })
        .collect();
    let fate = Fate::start(&cluster);
    let spec = json!({
        "completions": 20, "parallelism": 6, "completionMode": "Indexed",
        "backoffLimitPerIndex": 3,
    });
    cluster.create("work", spec).await;
    until("it is complete", async || is_complete(&cluster, "work").await).await;
    check(&cluster, &fate, "work", 20).await;
    // Otherwise this has shown nothing.
    for net in nets {
        assert!(net.written().iter().any(|line| line.starts_with("POST")), "{:?}", net.written());
    }
    running.iter().for_each(JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn work_goes_on_through_stops_crashes_and_cuts() {
    let cluster = Cluster::new().await;
    let fate = Fate::start(&cluster);
    let mut leader = cluster.start("0");
    until("it leads", async || leader.leads()).await;
    let spec = json!({
        "completions": 40, "parallelism": 3, "completionMode": "Indexed",
        "backoffLimitPerIndex": 3,
    });
    cluster.create("work", spec).await;
    for number in 1..7 {
        let next = cluster.start(&number.to_string());
        sleep(Duration::from_secs(13)).await;
        match number % 3 {
            0 => leader.kill(),
            1 => leader.stop().await,
            _ => {
                leader.net.cut(true);
                until("it steps down", async || !leader.leads()).await;
                leader.kill();
            }
        }
        until("the next leads", async || next.leads()).await;
        leader = next;
    }
    until("it is complete", async || is_complete(&cluster, "work").await).await;
    check(&cluster, &fate, "work", 40).await;
}

#[tokio::test(start_paused = true)]
async fn a_standby_writes_nothing() {
    let cluster = Cluster::new().await;
    let fate = Fate::start(&cluster);
    let leader = cluster.start("a");
    until("it leads", async || leader.leads()).await;
    let standby = cluster.start("b");
    let spec = json!({
        "completions": 3, "parallelism": 3, "completionMode": "Indexed",
        "backoffLimitPerIndex": 3,
    });
    cluster.create("work", spec).await;
    until("it is complete", async || is_complete(&cluster, "work").await).await;
    check(&cluster, &fate, "work", 3).await;
    assert_eq!(standby.net.written(), Vec::<String>::new());
    assert_eq!(standby.net.lease_writes(), 0);
}

#[tokio::test(start_paused = true)]
async fn who_wakes_up_after_its_term_writes_nothing_until_it_leads_again() {
    let cluster = Cluster::new().await;
    let leader = cluster.start("a");
    until("it has listed", async || leader.health.ready() == Ok("leading".into())).await;
    // Just after a renewal, so that it looks at the Lease as late as can be.
    let renewals = leader.net.lease_writes();
    until("it is renewed", async || leader.net.lease_writes() > renewals).await;
    let before = leader.net.written().len();
    leader.sleep_through(Duration::from_secs(60));
    cluster.create("work", json!({"completions": 1})).await;
    sleep(Duration::from_millis(1_500)).await;
    assert_eq!(leader.net.written().len(), before, "{:?}", leader.net.written());
    let renewals = leader.net.lease_writes();
    until("it has the lease again", async || leader.net.lease_writes() > renewals).await;
    let took = until("it works again", async || leader.net.written().len() > before).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
}
