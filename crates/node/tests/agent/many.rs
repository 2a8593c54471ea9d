//! Many Pods, and what they cost.

use std::time::Duration;

use kube::api::ListParams;

use crate::cluster::{Cluster, phase};

/// With the delay that a node is shipped with: time passes only when nobody has anything to do.
#[tokio::test(start_paused = true)]
async fn a_short_pod_costs_one_status_write_and_no_other_call() {
    const PODS: usize = 200;
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    for i in 0..PODS {
        cluster.script(&format!("p-{i}"), "exit 0").await;
    }
    for i in 0..PODS {
        cluster.wait_phase(&format!("p-{i}"), "Succeeded").await;
    }
    assert_eq!(cluster.count("PATCH", "/status") - cluster.count("PATCH", "/here/status"), PODS);
    assert_eq!(cluster.count("DELETE", ""), 0);
    // A look at the node, and watches of it, of Pods and of the addresses of services.
    assert_eq!(cluster.count("GET", ""), 4);
    let addresses: std::collections::HashSet<_> =
        cluster.fake.sandboxes().into_iter().map(|it| it.address).collect();
    assert_eq!(addresses.len(), PODS);
    let all = cluster.pods().list(&ListParams::default()).await.expect("they can be listed");
    assert!(all.items.iter().all(|pod| phase(pod) == "Succeeded"));
    let logs = std::fs::read_dir(cluster.folder.path().join("logs"));
    assert!(logs.is_err(), "a container that says nothing has no log file");
}

/// A server that is busy is not asked to take what the next word makes old.
#[tokio::test(start_paused = true)]
async fn where_the_api_is_slow_a_pod_costs_little_more_than_its_last_status() {
    const PODS: usize = 200;
    let cluster = Cluster::new().await;
    cluster.slow_statuses(2);
    let _node = cluster.start();
    for i in 0..PODS {
        cluster.script(&format!("p-{i}"), "sleep 3 exit 0").await;
    }
    for i in 0..PODS {
        cluster.wait_phase(&format!("p-{i}"), "Succeeded").await;
    }
    let statuses = cluster.count("PATCH", "/status") - cluster.count("PATCH", "/here/status");
    // Each that was written before held one of four places for two of some three seconds.
    assert!((PODS..PODS + 20).contains(&statuses), "{statuses} for {PODS} Pods");
    // Where there is room each Pod is seen to run.
    cluster.slow_statuses(0);
    for i in 0..PODS {
        cluster.script(&format!("q-{i}"), "sleep 60 exit 0").await;
    }
    for i in 0..PODS {
        cluster.wait_phase(&format!("q-{i}"), "Running").await;
    }
}

/// How long so many short Pods take, from the first creation to the last status.
async fn take(pods: usize) -> Duration {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let began = std::time::Instant::now();
    for i in 0..pods {
        cluster.script(&format!("p-{i}"), "exit 0").await;
    }
    for i in 0..pods {
        cluster.wait_phase(&format!("p-{i}"), "Succeeded").await;
    }
    let took = began.elapsed();
    println!(
        "{pods} Pods: {:.1} µs each, {} status writes",
        took.as_secs_f64() * 1e6 / pods as f64,
        cluster.count("PATCH", "/status")
    );
    took
}

/// Measures; takes a minute without optimisation.
#[tokio::test]
#[ignore = "a measurement"]
async fn the_cost_of_a_pod_does_not_grow_with_their_number() {
    let few = take(1_000).await;
    let many = take(10_000).await;
    assert!(many < few * 20, "{few:?} for 1,000 and {many:?} for 10,000");
}
