//! What the API server does not take, however often it is asked.

use kube::Client;
use serde_json::json;
use stint_apiserver::access::Identity;

use stint_kit::{Driver, Fate, NAMESPACE};

use crate::cluster::Cluster;

#[tokio::test(start_paused = true)]
async fn what_is_refused_is_counted_by_what_was_asked_for_and_why() {
    let cluster = Cluster::new(Driver::new(|_| Fate::runs())).await;
    let client = Client::new(cluster.service_for(Identity::view()), NAMESPACE);
    let metrics = cluster.start_with(client, cluster.config());
    cluster.create("mine", json!({})).await;
    let counted = || -> usize {
        let text = metrics.text();
        let name = r#"stint_controller_refusals_total{verb="status",reason="try_later"} "#;
        let count = text.lines().find_map(|line| line.strip_prefix(name));
        count.expect("it is there before the first").parse().expect("a number")
    };
    cluster.until("is refused over and over", async |_| counted() >= 3).await;
    // The last answer may not have been looked at yet.
    let refused = cluster.tally.answered("PATCH jobs/status", 403);
    assert!((refused - 1..=refused).contains(&counted()), "{} of {refused}", counted());
}
