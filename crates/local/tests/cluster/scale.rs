//! Many dependents, few requests; and what is missed is caught up with.

use futures_util::{StreamExt, stream};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{Api, DeleteParams};
use serde_json::json;
use stint_local::Options;

use crate::kit::{self, owned_by};

const PODS: usize = 5_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pods_of_a_large_job_cost_one_request_each() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let job = kit::create(&jobs, kit::job("j")).await;
        let owners = [owned_by(&job)];
        stream::iter(0..PODS)
            .map(|index| {
                let mut pod = kit::pod(&format!("p{index}"), &owners);
                // Nobody is to tell them why they wait.
                pod["spec"]["schedulerName"] = json!("nobody");
                kit::create(&pods, pod)
            })
            .buffer_unordered(64)
            .for_each(|_| async {})
            .await;
        let before = kit::requests(&client).await;
        kit::delete(&jobs, "j", &DeleteParams::background()).await;
        kit::until(&pods, "the end of all Pods", |all| all.is_empty()).await;
        let made = kit::requests(&client).await - before;
        // Ours: a deletion, a watch and the metrics. The collector's: a look at the Job.
        assert!(made <= PODS + 10, "{made} requests");
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

/// The store keeps so little of the past that every watch falls out of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_falls_behind_lists_anew_and_misses_nothing() {
    let store = stint_store::Options { window_changes: 4, ..stint_store::Options::default() };
    let (cluster, client) = kit::start_with(Options { store, ..Options::default() }).await;
    kit::watched(&cluster, async {
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let namespaces: Api<Namespace> = Api::all(client.clone());
        for round in 0..20 {
            let job = kit::create(&jobs, kit::job(&format!("j{round}"))).await;
            let owners = [owned_by(&job)];
            stream::iter(0..20)
                .map(|index| kit::create(&pods, kit::pod(&format!("p{round}-{index}"), &owners)))
                .buffer_unordered(20)
                .for_each(|_| async {})
                .await;
            kit::delete(&jobs, &format!("j{round}"), &DeleteParams::background()).await;
            kit::create(&namespaces, json!({"metadata": {"name": format!("n{round}")}})).await;
        }
        // A watch of our own would fall behind, too.
        while !pods.list(&Default::default()).await.expect("a list").items.is_empty() {
            tokio::task::yield_now().await;
        }
        let maps: Api<ConfigMap> = Api::all(client.clone());
        while maps.list(&Default::default()).await.expect("a list").items.len() < 24 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}
