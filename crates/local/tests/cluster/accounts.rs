//! Service accounts: who Pods are. Every namespace has one, and a Pod that names another which is
//! not there is refused, as by the admission plugin ServiceAccount of kube-apiserver.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Namespace, Pod, ServiceAccount};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;
use stint_apiserver::access::Identity;
use stint_local::{Cluster, Options};

use crate::kit;

/// A Pod that names an account.
fn pod_of(name: &str, account: &str) -> Pod {
    let mut pod = kit::pod(name, &[]);
    pod["spec"]["serviceAccountName"] = json!(account);
    serde_json::from_value(pod).expect("a Pod")
}

#[tokio::test]
async fn a_pod_whose_account_is_not_there_is_refused_until_it_is() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        kit::create(&namespaces, json!({"metadata": {"name": "other"}})).await;
        let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
        let of_other: Api<ServiceAccount> = Api::namespaced(client.clone(), "other");
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        // An account of that name elsewhere is another one.
        kit::create(&of_other, json!({"metadata": {"name": "robot"}})).await;
        let create = async || pods.create(&PostParams::default(), &pod_of("p", "robot")).await;
        let Err(kube::Error::Api(status)) = create().await else { panic!("it was admitted") };
        assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
        let message = "pods \"p\" is forbidden: error looking up service account default/robot: \
                       serviceaccount \"robot\" not found";
        assert_eq!(status.message, message);
        assert_eq!(pods.get_opt("p").await.expect("an answer").map(drop), None);

        kit::create(&accounts, json!({"metadata": {"name": "robot"}})).await;
        let pod = create().await.expect("it is admitted");
        let spec = pod.spec.expect("a spec");
        assert_eq!(spec.service_account_name.as_deref(), Some("robot"));
        // Who has its account keeps it when that goes.
        kit::delete(&accounts, "robot", &DeleteParams::default()).await;
        kit::report(&pods, "p", json!({"phase": "Running"})).await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn the_account_default_is_everybodys_and_comes_back() {
    let (cluster, client) = kit::in_memory().await;
    kit::watched(&cluster, async {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        kit::create(&namespaces, json!({"metadata": {"name": "new"}})).await;
        let pods: Api<Pod> = Api::namespaced(client.clone(), "new");
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "new");
        // At once, whether or not the namespace is furnished.
        let pod = kit::create(&pods, kit::pod("first", &[])).await;
        let spec = pod.spec.expect("a spec");
        assert_eq!(spec.service_account_name.as_deref(), Some("default"));
        assert_eq!(spec.service_account.as_deref(), Some("default"));
        let all = kit::until(&accounts, "an account", |all| all.contains_key("default")).await;
        let uid = all["default"].uid();
        kit::delete(&accounts, "default", &DeleteParams::default()).await;
        kit::create(&pods, kit::pod("second", &[])).await;
        let is_another = |account: &ServiceAccount| account.uid() != uid;
        kit::until(&accounts, "another account", |all| all.get("default").is_some_and(is_another))
            .await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}

#[tokio::test]
async fn a_job_goes_on_once_the_account_of_its_pods_is_there() {
    let cluster = Cluster::start(Options::default()).await.expect("it starts");
    let client = cluster.client(Identity::admin());
    kit::watched(&cluster, async {
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let events: Api<Event> = Api::default_namespaced(client.clone());
        let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
        kit::create(
            &jobs,
            json!({
                "metadata": {"name": "work"},
                "spec": {"completions": 2, "parallelism": 2, "template": {"spec": {
                    "restartPolicy": "Never", "serviceAccountName": "robot",
                    "containers": [{"name": "main", "image": "x"}]}}},
            }),
        )
        .await;
        let is_told = |event: &Event| {
            event.involved_object.kind.as_deref() == Some("Job")
                && event.reason.as_deref() == Some("FailedCreate")
                && event.type_.as_deref() == Some("Warning")
                && event.message.as_deref().is_some_and(|text| {
                    text.ends_with(
                        "is forbidden: error looking up service account default/robot: \
                         serviceaccount \"robot\" not found",
                    )
                })
        };
        kit::until(&events, "an Event", |all| all.values().any(is_told)).await;
        let job = jobs.get("work").await.expect("it is there");
        assert_eq!(job.status.and_then(|status| status.conditions), None, "it has not failed");
        kit::create(&accounts, json!({"metadata": {"name": "robot"}})).await;
        kit::until(&pods, "two Pods", |all| all.len() == 2).await;
    })
    .await;
    cluster.shutdown().await.expect("it ends");
}
