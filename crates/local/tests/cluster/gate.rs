//! Nothing is done for what an earlier cluster has left before somebody lets it.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::Api;
use serde_json::json;
use stint_local::{Cluster, Gate, Identity, Options};

use crate::kit::{self, Still};
use crate::leftovers;

#[tokio::test(start_paused = true)]
async fn no_pod_is_made_or_bound_and_no_job_goes_before_the_gate_is_open() {
    let still = Still::new();
    let (key, gate) = Gate::shut();
    let options = Options { clock: still.clock(), gate, ..Options::default() };
    let cluster = Cluster::start(options).await.expect("the cluster starts");
    let client = cluster.client(Identity::admin());
    still
        .watched(&cluster, async {
            let (jobs, pods): (Api<Job>, Api<Pod>) =
                (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));
            kit::create(&Api::<Node>::all(client.clone()), kit::node("a", "8", 10)).await;
            kit::create(&jobs, kit::job("j")).await;
            let mut over = leftovers::mortal("over", 2);
            over["metadata"]["finalizers"] = json!(null);
            kit::create(&jobs, over).await;
            leftovers::finish(&jobs, "over", "Complete", 0).await;
            kit::create(&pods, kit::asking("alone", "1")).await;
            for second in 1..=60 {
                still.go_to(second).await;
                let list = pods.list(&Default::default()).await.expect("a list");
                let names: Vec<_> = list.items.iter().map(|pod| &pod.metadata.name).collect();
                assert_eq!(names.len(), 1, "after {second} s: {names:?}");
                assert_eq!(kit::node_of(&list.items[0]), None, "after {second} s");
                assert!(list.items[0].status.as_ref().is_none_or(|it| it.conditions.is_none()));
            }
            assert!(jobs.get_opt("over").await.expect("an answer").is_some());
            key.open();
            kit::until_gone(&jobs, "over").await;
            let is_bound = |pod: &Pod| kit::node_of(pod) == Some("a");
            kit::until(&pods, "both are bound", |all| all.len() == 2 && all.values().all(is_bound))
                .await;
        })
        .await;
    cluster.shutdown().await.expect("it stops");
}
