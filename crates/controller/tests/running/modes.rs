//! What a controller can be told: whose Jobs, where, how fast, and with which features.

use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::json;
use stint_api::names::finalizer;
use stint_controller::Config;
use tokio::time::Instant;

use stint_kit::job::{counts, end, manifest};
use stint_kit::play::{driver, play};
use stint_kit::{Driver, Fate, NAMESPACE};

use crate::cluster::{Cluster, check_all};
use crate::fault::{Faulty, Weather};

#[tokio::test(start_paused = true)]
async fn beside_the_built_in_controller_only_jobs_that_name_us_are_run() {
    let cluster = Cluster::new(Driver::new(|_| Fate::succeeds().after(60))).await;
    let config = Config { clock: cluster.clock(), ..Config::beside() };
    cluster.start_with(Client::new(cluster.service(), NAMESPACE), config);
    cluster.create("theirs", json!({})).await;
    cluster.create("ours", json!({"managedBy": "stint.dev/job-controller"})).await;
    cluster.wait("ours", "runs", |job| counts(job).0 == 1).await;
    let pods = cluster.pods_of("ours").await;
    let finalizers = pods[0].metadata.finalizers.clone().unwrap_or_default();
    assert_eq!(finalizers, [finalizer::STINT_JOB_TRACKING]);
    let job = cluster.wait("ours", "finishes", |job| end(job).is_some()).await;
    assert_eq!(counts(&job), (0, 1, 0));
    let pods = cluster.pods_of("ours").await;
    assert!(pods[0].metadata.finalizers.as_ref().is_none_or(Vec::is_empty));
    assert!(cluster.history.of("theirs").is_empty());
    check_all(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn jobs_of_other_namespaces_are_left_alone() {
    let cluster = Cluster::new(driver()).await;
    let namespaces: Api<Namespace> = Api::all(cluster.admin.clone());
    let other = serde_json::from_value(json!({"metadata": {"name": "other"}})).expect("one");
    namespaces.create(&PostParams::default(), &other).await.expect("a namespace can be made");
    let mut config = cluster.config();
    config.namespaces = [NAMESPACE.to_owned(), "missing".to_owned()].into();
    cluster.start_with(Client::new(cluster.service(), NAMESPACE), config);
    let mut job = manifest("elsewhere", json!({}));
    job.metadata.namespace = Some("other".to_owned());
    let jobs = Api::namespaced(cluster.admin.clone(), "other");
    jobs.create(&PostParams::default(), &job).await.expect("a Job");
    play("indexed").give(&cluster).await;
    let job = jobs.get("elsewhere").await.expect("it is there");
    assert!(job.status.is_none_or(|status| status.start_time.is_none()));
    check_all(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_cautious_operator_gets_no_more_calls_a_second_than_asked_for() {
    let cluster = Cluster::new(Driver::new(|_| Fate::succeeds())).await;
    let mut config = cluster.config();
    (config.qps, config.max_inflight) = (Some(20.0), 4);
    cluster.start_with(Client::new(cluster.service(), NAMESPACE), config);
    let began = Instant::now();
    let spec = json!({"completionMode": "Indexed", "completions": 100, "parallelism": 100});
    cluster.create("slow", spec).await;
    let job = cluster.finish("slow").await;
    assert_eq!(counts(&job), (0, 100, 0));
    let rate = cluster.tally.total() as f64 / began.elapsed().as_secs_f64();
    // A second's worth at once, and then twenty a second.
    assert!((10.0..23.0).contains(&rate), "{rate} calls a second");
}

/// More Pods than a page of a list has, on a server that does not stream lists, taken over by
/// a controller that knows nothing.
#[tokio::test(start_paused = true)]
async fn lists_of_many_pages_are_whole() {
    let cluster = Cluster::new(Driver::new(|_| Fate::succeeds().after(600))).await;
    let weather = Weather { calls: 0, watches: 0, is_old_server: true };
    let client = || {
        let service =
            Faulty::new(cluster.service(), weather, 0, cluster.newest(), cluster.strays.clone());
        Client::new(service, NAMESPACE)
    };
    cluster.start_with(client(), cluster.config());
    let spec = json!({"completionMode": "Indexed", "completions": 1_200, "parallelism": 1_200});
    cluster.create("many", spec).await;
    cluster.wait("many", "runs", |job| counts(job).0 == 1_200).await;
    cluster.start_with(client(), cluster.config());
    let job = cluster.finish("many").await;
    assert_eq!(counts(&job), (0, 1_200, 0));
    assert_eq!(cluster.history.of("many").len(), 1_200);
    check_all(&cluster).await;
}
