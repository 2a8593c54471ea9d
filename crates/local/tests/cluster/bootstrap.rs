//! What a new cluster has, and what it still has after a restart.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use stint_apiserver::access::Identity;
use stint_local::{Cluster, Options, StartError, Storage};

use crate::kit;

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

#[tokio::test]
async fn a_new_cluster_has_four_namespaces_at_once() {
    let (cluster, client) = kit::in_memory().await;
    let namespaces: Api<Namespace> = Api::all(client);
    let list = namespaces.list(&ListParams::default()).await.expect("a list");
    let names: Vec<String> = list.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, NAMESPACES);
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn every_namespace_gets_a_service_account_and_the_certificate() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        for name in NAMESPACES {
            let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), name);
            kit::until(&accounts, "an account", |all| all.contains_key("default")).await;
            let maps: Api<ConfigMap> = Api::namespaced(client.clone(), name);
            let maps = kit::until(&maps, "a map", |all| all.contains_key("kube-root-ca.crt")).await;
            let map = &maps["kube-root-ca.crt"];
            assert_eq!(map.data.as_ref().expect("data")["ca.crt"], kit::CA);
            assert!(map.annotations().contains_key("kubernetes.io/description"));
        }
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn a_cluster_on_a_folder_goes_on_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cluster, client) = kit::in_folder(folder.path()).await;
    let namespaces: Api<Namespace> = Api::all(client);
    let uid = namespaces.get("default").await.expect("it is there").uid();
    let refused = Cluster::start(Options {
        storage: Storage::Folder(folder.path().to_owned()),
        ..Options::default()
    })
    .await;
    assert!(matches!(refused, Err(StartError::Store(_))), "{refused:?}");
    cluster.shutdown().await.expect("it ends");
    let refused = namespaces.get("default").await.map(|found| found.uid());
    assert_eq!(refused.expect("reads go on"), uid);

    let (cluster, client) = kit::in_folder(folder.path()).await;
    let namespaces: Api<Namespace> = Api::all(client);
    assert_eq!(namespaces.get("default").await.expect("it is there").uid(), uid);
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn a_client_may_do_what_its_identity_may() {
    let (cluster, _) = kit::in_memory().await;
    let namespaces: Api<Namespace> = Api::all(cluster.client(Identity::view()));
    assert_eq!(namespaces.list(&ListParams::default()).await.expect("a list").items.len(), 4);
    let refused = namespaces.delete("kube-node-lease", &Default::default()).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 403));
    cluster.shutdown().await.expect("it ends");
}
