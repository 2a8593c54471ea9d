//! Deletion in the foreground: dependents go before their owner.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};

use crate::kit::{self, blocking, owned_by};

#[tokio::test]
async fn a_job_waits_for_the_whole_chain_below_it() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let job = kit::create(&jobs, kit::job("j")).await;
        let pod = kit::create(&pods, kit::pod("p", &[blocking(&job)])).await;
        kit::create(&maps, kit::held(kit::map("m", &[blocking(&pod)]))).await;
        kit::create(&pods, kit::pod("free", &[owned_by(&job)])).await;
        kit::delete(&jobs, "j", &DeleteParams::foreground()).await;
        kit::until(&maps, "the map to be deleted", |all| kit::is_deleted(all, "m")).await;
        kit::until_gone(&pods, "free").await;
        for finalizers in [
            jobs.get("j").await.expect("it waits").metadata.finalizers,
            pods.get("p").await.expect("it waits").metadata.finalizers,
        ] {
            assert_eq!(finalizers.as_deref(), Some(&["foregroundDeletion".to_owned()][..]));
        }
        kit::let_go(&maps, "m").await;
        kit::until_gone(&jobs, "j").await;
        assert!(pods.get_opt("p").await.expect("an answer").is_none());
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn a_dependent_that_does_not_block_is_not_waited_for() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let job = kit::create(&jobs, kit::job("j")).await;
        kit::create(&pods, kit::held(kit::pod("p", &[owned_by(&job)]))).await;
        kit::delete(&jobs, "j", &DeleteParams::foreground()).await;
        kit::until_gone(&jobs, "j").await;
        kit::until(&pods, "the Pod to be deleted", |all| kit::is_deleted(all, "p")).await;
        kit::let_go(&pods, "p").await;
        kit::until_gone(&pods, "p").await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn a_pod_of_another_living_job_only_loses_the_one_that_goes() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let first = kit::create(&jobs, kit::job("first")).await;
        let second = kit::create(&jobs, kit::job("second")).await;
        let owners = [blocking(&first), blocking(&second)];
        kit::create(&pods, kit::pod("p", &owners)).await;
        kit::delete(&jobs, "first", &DeleteParams::foreground()).await;
        kit::until_gone(&jobs, "first").await;
        let pod = pods.get("p").await.expect("it is there");
        assert_eq!(pod.owner_references(), &[blocking(&second)]);
        assert_eq!(pod.metadata.deletion_timestamp, None);
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn a_circle_of_owners_is_cut() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let a = kit::create(&maps, kit::map("a", &[])).await;
        let b = kit::create(&maps, kit::map("b", &[blocking(&a)])).await;
        let c = kit::create(&maps, kit::map("c", &[blocking(&b)])).await;
        let mut closed = a.clone();
        closed.metadata.owner_references = Some(vec![blocking(&c)]);
        maps.replace("a", &Default::default(), &closed).await.expect("it can be changed");
        kit::delete(&maps, "a", &DeleteParams::foreground()).await;
        kit::until(&maps, "the end of all three", |all| all.len() == 1).await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn a_restart_in_its_midst_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cluster, client) = kit::in_folder(folder.path()).await;
    let jobs: Api<Job> = Api::default_namespaced(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    kit::watched(&cluster, async {
        let job = kit::create(&jobs, kit::job("j")).await;
        for index in 0..20 {
            let name = format!("p{index}");
            kit::create(&pods, kit::held(kit::pod(&name, &[blocking(&job)]))).await;
        }
        kit::delete(&jobs, "j", &DeleteParams::foreground()).await;
        kit::until(&pods, "the first to be deleted", |all| {
            all.keys().any(|name| kit::is_deleted(all, name))
        })
        .await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");

    let (cluster, client) = kit::in_folder(folder.path()).await;
    let jobs: Api<Job> = Api::default_namespaced(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    kit::watched(&cluster, async {
        kit::until(&pods, "all to be deleted", |all| {
            all.len() == 20 && all.keys().all(|name| kit::is_deleted(all, name))
        })
        .await;
        assert!(jobs.get_opt("j").await.expect("an answer").is_some());
        for index in 0..20 {
            kit::let_go(&pods, &format!("p{index}")).await;
        }
        kit::until_gone(&jobs, "j").await;
        kit::until(&pods, "the end of the Pods", |all| all.is_empty()).await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}
