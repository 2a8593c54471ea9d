//! Who counts as an owner.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, DeleteParams};
use serde_json::json;

use crate::kit::{self, owned_by};

#[tokio::test]
async fn an_owner_in_another_namespace_is_nobody() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        kit::create(&namespaces, json!({"metadata": {"name": "other"}})).await;
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        let job = kit::create(&jobs, kit::job("j")).await;
        let here: Api<Pod> = Api::default_namespaced(client.clone());
        let there: Api<Pod> = Api::namespaced(client.clone(), "other");
        kit::create(&here, kit::pod("p", &[owned_by(&job)])).await;
        kit::create(&there, kit::pod("p", &[owned_by(&job)])).await;
        kit::until_gone(&there, "p").await;
        assert!(here.get_opt("p").await.expect("an answer").is_some());
        assert!(jobs.get_opt("j").await.expect("an answer").is_some());
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn a_node_owns_in_every_namespace() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let nodes: Api<Node> = Api::all(client.clone());
        let node = kit::create(&nodes, json!({"metadata": {"name": "here"}})).await;
        let mut apis = Vec::new();
        for namespace in ["default", "kube-public"] {
            let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
            kit::create(&maps, kit::map("m", &[owned_by(&node)])).await;
            apis.push(maps);
        }
        kit::delete(&nodes, "here", &DeleteParams::default()).await;
        for maps in apis {
            kit::until_gone(&maps, "m").await;
        }
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn owners_of_kinds_that_are_not_served_are_left_alone() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let job = kit::create(&jobs, kit::job("j")).await;
        let strange = OwnerReference {
            api_version: "example.com/v1".to_owned(),
            kind: "Widget".to_owned(),
            name: "w".to_owned(),
            uid: "1".to_owned(),
            ..OwnerReference::default()
        };
        kit::create(&maps, kit::map("alone", std::slice::from_ref(&strange))).await;
        kit::create(&maps, kit::map("both", &[strange.clone(), owned_by(&job)])).await;
        kit::delete(&jobs, "j", &DeleteParams::background()).await;
        let left = kit::until(&maps, "the loss of the Job", |all| {
            all["both"].metadata.owner_references.as_ref().is_some_and(|all| all.len() == 1)
        })
        .await;
        for name in ["alone", "both"] {
            let owners = left[name].metadata.owner_references.as_deref();
            assert_eq!(owners, Some(std::slice::from_ref(&strange)));
        }
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

/// A reference may say anything; it must not lead a request elsewhere.
#[tokio::test]
async fn an_owners_name_is_no_path() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let job = kit::create(&jobs, kit::job("j")).await;
        for (index, name) in ["j/status", "j?", "j#", "../jobs/j", "j%"].into_iter().enumerate() {
            let owner = OwnerReference { name: name.to_owned(), ..owned_by(&job) };
            kit::create(&maps, kit::map(&format!("m{index}"), &[owner])).await;
        }
        kit::until(&maps, "the end of the maps", |all| {
            all.keys().all(|name| name == "kube-root-ca.crt")
        })
        .await;
        assert!(jobs.get_opt("j").await.expect("an answer").is_some());
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}
