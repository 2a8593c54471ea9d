//! The life of a namespace.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, ServiceAccount};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use crate::kit::{self, CA};

async fn namespace(client: &Client, name: &str) -> Api<Namespace> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    kit::create(&namespaces, json!({"metadata": {"name": name}})).await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), name);
    kit::until(&maps, "a map", |all| all.contains_key("kube-root-ca.crt")).await;
    namespaces
}

fn condition(namespace: &Namespace, kind: &str) -> Option<(String, String)> {
    let conditions = namespace.status.as_ref()?.conditions.as_ref()?;
    let found = conditions.iter().find(|condition| condition.type_ == kind)?;
    Some((found.status.clone(), found.message.clone().unwrap_or_default()))
}

#[tokio::test]
async fn what_every_namespace_has_is_made_again_and_put_back() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        namespace(&client, "work").await;
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "work");
        let uid = accounts.get("default").await.expect("it is there").uid();
        kit::delete(&accounts, "default", &DeleteParams::default()).await;
        let is_new = |found: Option<&ServiceAccount>| found.is_some_and(|it| it.uid() != uid);
        kit::until(&accounts, "a new account", |all| is_new(all.get("default"))).await;

        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "work");
        let name = "kube-root-ca.crt";
        let uid = maps.get(name).await.expect("it is there").uid();
        kit::delete(&maps, name, &DeleteParams::default()).await;
        let is_new = |found: Option<&ConfigMap>| found.is_some_and(|it| it.uid() != uid);
        kit::until(&maps, "a new map", |all| is_new(all.get(name))).await;

        let edit =
            json!({"data": {"ca.crt": "mine", "more": "mine"}, "metadata": {"annotations": null}});
        maps.patch(name, &PatchParams::default(), &Patch::Merge(edit)).await.expect("an edit");
        kit::until(&maps, "the certificate", |all| {
            let data = all[name].data.clone().unwrap_or_default();
            data.len() == 1 && data["ca.crt"] == CA && all[name].annotations().len() == 1
        })
        .await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn a_deleted_namespace_is_emptied_and_can_be_made_again() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let namespaces = namespace(&client, "work").await;
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "work");
        for index in 0..700 {
            kit::create(&maps, json!({"metadata": {"name": format!("map-{index}")}})).await;
        }
        let pods: Api<Pod> = Api::namespaced(client.clone(), "work");
        kit::create(&pods, kit::pod("waiting", &[])).await;
        let uid = namespaces.get("work").await.expect("it is there").uid();
        kit::delete(&namespaces, "work", &DeleteParams::default()).await;
        kit::until_gone(&namespaces, "work").await;
        let everywhere: Api<ConfigMap> = Api::all(client.clone());
        let fields = ListParams::default().fields("metadata.namespace=work");
        assert!(everywhere.list(&fields).await.expect("a list").items.is_empty());
        let pods: Api<Pod> = Api::all(client.clone());
        assert!(pods.list(&ListParams::default()).await.expect("a list").items.is_empty());

        namespace(&client, "work").await;
        assert_ne!(namespaces.get("work").await.expect("it is there").uid(), uid);
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn a_namespace_waits_for_finalizers_and_says_so() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let namespaces = namespace(&client, "work").await;
        let jobs: Api<Job> = Api::namespaced(client.clone(), "work");
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "work");
        let pods: Api<Pod> = Api::namespaced(client.clone(), "work");
        kit::create(&jobs, kit::held(kit::job("held"))).await;
        kit::create(&pods, kit::held(kit::pod("held", &[]))).await;
        kit::create(&maps, json!({"metadata": {"name": "free"}})).await;
        kit::delete(&namespaces, "work", &DeleteParams::default()).await;
        // Pods go first: as long as one is there, nothing else is touched.
        kit::until(&namespaces, "the Pod to be reported", |all| {
            let remaining = condition(&all["work"], "NamespaceContentRemaining");
            remaining.is_some_and(|(status, message)| {
                status == "True"
                    && message == "Some resources are remaining: pods. has 1 resource instances"
            })
        })
        .await;
        assert!(maps.get_opt("free").await.expect("an answer").is_some());
        kit::let_go(&pods, "held").await;
        kit::until(&namespaces, "the Job to be reported", |all| {
            let finalizers = condition(&all["work"], "NamespaceFinalizersRemaining");
            let failure = condition(&all["work"], "NamespaceDeletionContentFailure");
            finalizers.is_some_and(|(status, message)| {
                status == "True"
                    && message
                        == "Some content in the namespace has finalizers remaining: \
                            example.com/hold in 1 resource instances"
            }) && failure.is_some_and(|(status, _)| status == "False")
        })
        .await;
        kit::until_gone(&maps, "free").await;
        kit::until(&jobs, "the Job to be marked", |all| {
            all["held"].metadata.deletion_timestamp.is_some()
        })
        .await;
        let refused = maps.create(&Default::default(), &ConfigMap::default()).await;
        assert!(refused.is_err());
        kit::let_go(&jobs, "held").await;
        kit::until_gone(&namespaces, "work").await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn a_pod_that_runs_gets_its_grace_period_before_its_namespace_goes() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let namespaces = namespace(&client, "work").await;
        let pods: Api<Pod> = Api::namespaced(client.clone(), "work");
        let mut running = kit::pod("running", &[]);
        running["spec"]["nodeName"] = json!("here");
        running["spec"]["terminationGracePeriodSeconds"] = json!(3600);
        kit::create(&pods, running).await;
        kit::delete(&namespaces, "work", &DeleteParams::default()).await;
        let deleted =
            kit::until(&pods, "the Pod to be deleted", |all| kit::is_deleted(all, "running")).await;
        assert_eq!(deleted["running"].metadata.deletion_grace_period_seconds, Some(3600));
        kit::until(&namespaces, "the Pod to be reported", |all| {
            let failure = condition(&all["work"], "NamespaceDeletionContentFailure");
            failure.is_some_and(|(status, _)| status == "False")
        })
        .await;
        // The node says that it has ended.
        kit::delete(&pods, "running", &DeleteParams::default().grace_period(0)).await;
        kit::until_gone(&namespaces, "work").await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn a_restart_goes_on_with_a_namespace_that_is_being_deleted() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cluster, client) = kit::in_folder(folder.path()).await;
    let namespaces = kit::watched(&cluster, namespace(&client, "work")).await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "work");
    kit::create(&maps, kit::held(kit::map("held", &[]))).await;
    kit::delete(&namespaces, "work", &DeleteParams::default()).await;
    cluster.shutdown().await.expect("it ends");

    let (cluster, client) = kit::in_folder(folder.path()).await;
    kit::watched(&cluster, async {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "work");
        kit::until(&maps, "the map to be deleted", |all| kit::is_deleted(all, "held")).await;
        kit::let_go(&maps, "held").await;
        kit::until_gone(&namespaces, "work").await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}
