//! Deletion that leaves the dependents behind.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};

use crate::kit::{self, blocking, owned_by};

#[tokio::test]
async fn orphans_stay_and_are_not_inherited() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let job = kit::create(&jobs, kit::job("j")).await;
        let pod = kit::create(&pods, kit::pod("p", &[blocking(&job)])).await;
        kit::create(&maps, kit::map("m", &[owned_by(&pod)])).await;
        kit::delete(&jobs, "j", &DeleteParams::orphan()).await;
        kit::until_gone(&jobs, "j").await;
        let orphan = pods.get("p").await.expect("it stays");
        assert_eq!((orphan.uid(), orphan.owner_references().len()), (pod.uid(), 0));

        // A Job of that name comes and goes, and takes nothing along but its own.
        let job = kit::create(&jobs, kit::job("j")).await;
        kit::create(&pods, kit::pod("q", &[owned_by(&job)])).await;
        kit::delete(&jobs, "j", &DeleteParams::background()).await;
        kit::until_gone(&pods, "q").await;
        let orphan = pods.get("p").await.expect("it stays");
        assert_eq!(orphan.metadata.deletion_timestamp, None);
        let map = maps.get("m").await.expect("it stays");
        assert_eq!(map.owner_references(), &[owned_by(&pod)]);
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

/// As upstream: batch/v1 Jobs are from before there was a choice.
#[tokio::test]
async fn a_job_that_is_deleted_without_a_word_leaves_its_pods() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let job = kit::create(&jobs, kit::job("j")).await;
        for index in 0..100 {
            kit::create(&pods, kit::pod(&format!("p{index}"), &[owned_by(&job)])).await;
        }
        kit::delete(&jobs, "j", &DeleteParams::default()).await;
        kit::until_gone(&jobs, "j").await;
        let left = kit::until(&pods, "the Pods", |all| all.len() == 100).await;
        assert!(left.values().all(|pod| pod.owner_references().is_empty()));
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

/// What was made before the owner was deleted is an orphan, however little before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_is_made_right_before_its_job_goes_becomes_an_orphan() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        for index in 0..200 {
            let name = format!("j{index}");
            let job = kit::create(&jobs, kit::job(&name)).await;
            kit::create(&pods, kit::pod(&name, &[owned_by(&job)])).await;
            kit::delete(&jobs, &name, &DeleteParams::orphan()).await;
        }
        kit::until(&jobs, "the end of the Jobs", |all| all.is_empty()).await;
        let left = kit::until(&pods, "the orphans", |all| {
            all.values().all(|pod| pod.owner_references().is_empty())
        })
        .await;
        assert_eq!(left.len(), 200);
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}
