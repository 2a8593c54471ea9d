//! Pods that wait to be created are called back when nobody wants them any more.

use std::time::Duration;

use kube::Client;
use serde_json::json;

use stint_kit::{Driver, Fate, NAMESPACE};

use crate::cluster::Cluster;

/// How many Pods there are in the end of a Job that is stopped after its first.
async fn pods_of_one_that(stops: impl AsyncFn(&Cluster)) -> usize {
    let cluster = Cluster::new(Driver::new(|_| Fate::runs())).await;
    let mut config = cluster.config();
    config.qps = Some(5.0);
    cluster.start_with(Client::new(cluster.service(), NAMESPACE), config);
    let spec = json!({"completionMode": "Indexed", "completions": 300, "parallelism": 300});
    cluster.create("a", spec).await;
    cluster.until("has Pods", async |it| it.history.of("a").len() >= 5).await;
    stops(&cluster).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    cluster.tally.answered("POST pods", 201)
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_deleted_gets_no_more_pods() {
    let pods = pods_of_one_that(async |cluster| cluster.delete("a").await).await;
    assert!(pods < 20, "{pods} Pods were created");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_suspended_gets_no_more_pods() {
    let suspended = json!({"spec": {"suspend": true}});
    let pods = pods_of_one_that(async |cluster| cluster.patch("a", suspended.clone()).await).await;
    assert!(pods < 20, "{pods} Pods were created");
}
