//! What a controller does when it is asked to end.

use k8s_openapi::api::core::v1::Event;
use kube::Client;
use kube::api::{Api, ListParams};
use serde_json::json;
use stint_controller::Controller;
use tokio::sync::oneshot;

use stint_kit::job::counts;
use stint_kit::{Driver, Fate, NAMESPACE};

use crate::cluster::Cluster;

/// More Pods than are told of one by one: the rest is a count, which is written every ten seconds.
const PODS: i32 = 40;

#[tokio::test(start_paused = true)]
async fn what_it_has_yet_to_tell_of_is_told() {
    let cluster = Cluster::new(Driver::new(|_| Fate::runs())).await;
    let client = Client::new(cluster.service(), NAMESPACE);
    let controller = Controller::new(client, cluster.config());
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(controller.run(async { drop(stopped.await) }));
    cluster.create("many", json!({"completions": PODS, "parallelism": PODS})).await;
    cluster.wait("many", "runs", |job| counts(job).0 == PODS).await;
    drop(stop);
    running.await.expect("it ends");
    let events: Api<Event> = Api::namespaced(cluster.admin.clone(), NAMESPACE);
    let events = events.list(&ListParams::default()).await.expect("a list").items;
    let made = events.iter().filter(|event| event.reason.as_deref() == Some("SuccessfulCreate"));
    let told: i32 = made.map(|event| event.count.unwrap_or(1)).sum();
    assert_eq!(told, PODS, "{events:#?}");
}
