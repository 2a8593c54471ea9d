//! What a new cluster has, and what it still has after a restart.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use stint_apiserver::access::Identity;
use stint_local::{AuditFile, Cluster, Options, StartError, Storage};

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
async fn what_a_cluster_does_first_is_in_its_audit_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit.log");
    let log = AuditFile::open(&path).expect("it opens");
    let options = Options { audit: Some(log.clone()), ..Options::default() };
    let cluster = Cluster::start(options).await.expect("it starts");
    log.flush().await;
    let lines = std::fs::read_to_string(&path).expect("it is there");
    let made = lines.lines().filter_map(|line| {
        let event: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let is_made = event["verb"] == "create" && event["objectRef"]["resource"] == "namespaces";
        (is_made && event["user"]["username"] == "system:apiserver").then_some(event)
    });
    assert_eq!(made.count(), NAMESPACES.len(), "{lines}");
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

/// `stint run` on a folder of `stint serve`: it listens nowhere, so it has no authority.
#[tokio::test]
async fn a_cluster_without_a_certificate_leaves_that_of_another_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let has_certificate =
        |map: &ConfigMap| map.data.as_ref().is_some_and(|all| all["ca.crt"] == kit::CA);
    let name = "kube-root-ca.crt";
    let (cluster, client) = kit::in_folder(folder.path()).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    kit::watched(&cluster, kit::until(&maps, "a map", |all| all.contains_key(name))).await;
    cluster.shutdown().await.expect("it ends");

    let storage = Storage::Folder(folder.path().to_owned());
    let cluster =
        Cluster::start(Options { storage, ..Options::default() }).await.expect("it starts");
    let client = cluster.client(Identity::admin());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let namespaces: Api<Namespace> = Api::all(client.clone());
    kit::watched(&cluster, async {
        // By then the others have been looked at: they were there before.
        kit::create(&namespaces, serde_json::json!({"metadata": {"name": "z"}})).await;
        let of_new: Api<ConfigMap> = Api::namespaced(client, "z");
        let maps_of_new = kit::until(&of_new, "a map", |all| all.contains_key(name)).await;
        assert!(!has_certificate(&maps_of_new[name]), "nobody knows one");
        assert!(has_certificate(&maps.get(name).await.expect("it is there")));
        // Nor is it touched when it changes.
        let label = serde_json::json!({"metadata": {"labels": {"seen": "true"}}});
        maps.patch(name, &Default::default(), &kube::api::Patch::Merge(label))
            .await
            .expect("an edit");
        kit::delete(&of_new, name, &Default::default()).await;
        kit::until(&of_new, "another map", |all| {
            all.get(name).is_some_and(|map| map.uid() != maps_of_new[name].uid())
        })
        .await;
        assert!(has_certificate(&maps.get(name).await.expect("it is there")));
    })
    .await;
    cluster.shutdown().await.expect("it ends");

    let (cluster, client) = kit::in_folder(folder.path()).await;
    let of_new: Api<ConfigMap> = Api::namespaced(client, "z");
    kit::watched(
        &cluster,
        kit::until(&of_new, "the certificate", |all| has_certificate(&all[name])),
    )
    .await;
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
