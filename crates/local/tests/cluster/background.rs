//! Deletion in the background: dependents go after their owner.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::kit::{self, owned_by};

#[tokio::test]
async fn a_chain_goes_link_by_link_and_nothing_else_does() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let job = kit::create(&jobs, kit::job("j")).await;
        let other = kit::create(&jobs, kit::job("other")).await;
        for index in 0..10 {
            let name = format!("p{index}");
            let pod = kit::create(&pods, kit::pod(&name, &[owned_by(&job)])).await;
            kit::create(&maps, kit::map(&name, &[owned_by(&pod)])).await;
        }
        kit::create(&pods, kit::pod("theirs", &[owned_by(&other)])).await;
        kit::create(&pods, kit::pod("nobodys", &[])).await;
        kit::delete(&jobs, "j", &DeleteParams::background()).await;
        kit::until(&maps, "the end of the maps", |all| {
            all.keys().all(|name| name == "kube-root-ca.crt")
        })
        .await;
        let left = kit::until(&pods, "the end of the Pods", |all| all.len() == 2).await;
        assert_eq!(left.into_keys().collect::<Vec<_>>(), ["nobodys", "theirs"]);
        assert!(jobs.get_opt("j").await.expect("an answer").is_none());
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn a_pod_of_two_jobs_goes_with_the_second() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let first = kit::create(&jobs, kit::job("first")).await;
        let second = kit::create(&jobs, kit::job("second")).await;
        let owners = [owned_by(&first), owned_by(&second)];
        let made = kit::create(&pods, kit::pod("p", &owners)).await;
        kit::delete(&jobs, "first", &DeleteParams::background()).await;
        let left = kit::until(&pods, "the loss of the first", |all| {
            all["p"].owner_references().len() == 1
        })
        .await;
        assert_eq!(left["p"].owner_references(), &[owned_by(&second)]);
        assert_eq!(left["p"].uid(), made.uid());
        kit::delete(&jobs, "second", &DeleteParams::background()).await;
        kit::until_gone(&pods, "p").await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

/// The Job goes while its Pods are still being made, as by a controller that has not seen yet
/// that it is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_that_are_made_while_their_job_goes_go_as_well() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let job = kit::create(&jobs, kit::job("j")).await;
        let maker = tokio::spawn({
            let (pods, owner) = (pods.clone(), owned_by(&job));
            async move {
                for index in 0..300 {
                    let owners = [owner.clone()];
                    let pod = kit::pod(&format!("p{index}"), &owners);
                    kit::create(&pods, pod).await;
                }
            }
        });
        kit::until(&pods, "some Pods", |all| all.len() >= 100).await;
        kit::delete(&jobs, "j", &DeleteParams::background()).await;
        maker.await.expect("all are made");
        kit::until(&pods, "the end of all Pods", |all| all.is_empty()).await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

/// Every change of the Pod makes the version stale by which it would be deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_changes_all_the_time_goes_all_the_same() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let job = kit::create(&jobs, kit::job("j")).await;
        kit::create(&pods, kit::pod("p", &[owned_by(&job)])).await;
        let changer = tokio::spawn({
            let pods = pods.clone();
            async move {
                for count in 0.. {
                    let patch = json!({"metadata": {"labels": {"count": count.to_string()}}});
                    let params = PatchParams::default();
                    if pods.patch("p", &params, &Patch::Merge(patch)).await.is_err() {
                        return;
                    }
                }
            }
        });
        kit::delete(&jobs, "j", &DeleteParams::background()).await;
        kit::until_gone(&pods, "p").await;
        changer.await.expect("it ends");
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn a_job_of_the_same_name_does_not_inherit() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let old = kit::create(&jobs, kit::job("j")).await;
        kit::delete(&jobs, "j", &DeleteParams::background()).await;
        let new = kit::create(&jobs, kit::job("j")).await;
        kit::create(&pods, kit::pod("young", &[owned_by(&new)])).await;
        let old_pod = serde_json::from_value(kit::pod("old", &[owned_by(&old)])).expect("a Pod");
        pods.create(&PostParams::default(), &old_pod).await.expect("it can be created");
        kit::until_gone(&pods, "old").await;
        assert!(pods.get_opt("young").await.expect("an answer").is_some());
        assert_eq!(jobs.get("j").await.expect("it is there").uid(), new.uid());
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}
