//! Containers that are started again, and nodes.

use std::time::Duration;

use serde_json::json;

use crate::cluster::{Cluster, condition, container, main, phase, state_of, status_of};

/// The seconds between an end and the next start.
fn pauses(cluster: &Cluster) -> Vec<u64> {
    let timed = cluster.fake.timed();
    let ends = timed.iter().filter(|(_, what)| what.starts_with("end"));
    let starts = timed.iter().filter(|(_, what)| what.starts_with("start")).skip(1);
    ends.zip(starts).map(|((end, _), (start, _))| (start - end).round() as u64).collect()
}

#[tokio::test(start_paused = true)]
async fn a_container_that_fails_again_and_again_waits_longer_each_time() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let spec = json!({"restartPolicy": "OnFailure", "containers": [main("sleep 1 exit 1")]});
    cluster.create("p", spec).await;
    let pod = cluster.wait("p", "waits after its third run", |pod| {
        phase(pod) == "Running"
            && status_of(pod, "main").restart_count == 2
            && state_of(pod, "main") == "waiting CrashLoopBackOff"
    });
    let pod = pod.await;
    let last = status_of(&pod, "main").last_state.clone().expect("it has ended before");
    assert_eq!(last.terminated.expect("it ended").exit_code, 1);
    assert_eq!(condition(&pod, "Ready"), "False ContainersNotReady");
    cluster
        .wait("p", "runs for the fifth time", |pod| status_of(pod, "main").restart_count == 4)
        .await;
    assert_eq!(pauses(&cluster), [0, 10, 20, 40]);
    assert!(cluster.reasons("p").await.contains(&"BackOff".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_container_that_succeeds_is_not_started_again_on_failure() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let spec = json!({"restartPolicy": "OnFailure", "containers": [main("exit 0")]});
    cluster.create("p", spec).await;
    let pod = cluster.wait_phase("p", "Succeeded").await;
    assert_eq!(status_of(&pod, "main").restart_count, 0);
}

#[tokio::test(start_paused = true)]
async fn a_rule_starts_a_container_again_that_its_policy_would_not() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let mut again = main("exit 42");
    again["restartPolicy"] = json!("Never");
    again["restartPolicyRules"] =
        json!([{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]);
    cluster.create("p", json!({"containers": [again]})).await;
    cluster
        .wait("p", "is started again", |pod| {
            phase(pod) == "Running" && status_of(pod, "main").restart_count >= 1
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_rule_may_start_all_containers_again() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let mut watcher = container("watcher", "sleep 20 exit 42");
    watcher["restartPolicy"] = json!("Never");
    watcher["restartPolicyRules"] = json!([{"action": "RestartAllContainers",
        "exitCodes": {"operator": "In", "values": [42]}}]);
    let spec = json!({"initContainers": [container("init", "exit 0")],
        "containers": [watcher, container("worker", "stubborn")]});
    cluster.create("p", spec).await;
    let pod = cluster.wait("p", "runs again", |pod| {
        phase(pod) == "Running"
            && ["init", "watcher", "worker"]
                .iter()
                .all(|name| status_of(pod, name).restart_count == 1)
            && state_of(pod, "worker") == "running"
    });
    let pod = pod.await;
    let last = status_of(&pod, "worker").last_state.clone().expect("it has ended before");
    assert_eq!(last.terminated.expect("it ended").exit_code, 137);
    assert_eq!(condition(&pod, "AllContainersRestarting"), "False");
    assert_eq!(
        cluster.fake.history()[2..],
        [
            "start watcher",
            "start worker",
            "end watcher 42",
            "Kill worker",
            "end worker 137",
            "start init",
            "end init 0",
            "start watcher",
            "start worker"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_ran_when_the_node_was_lost_has_failed_by_disruption() {
    let cluster = Cluster::new().await;
    let node = cluster.start();
    cluster.script("ran", "forever").await;
    cluster.script("done", "exit 0").await;
    cluster.wait_phase("ran", "Running").await;
    cluster.wait_phase("done", "Succeeded").await;
    drop(node);
    cluster.script("new", "exit 0").await;
    let _node = cluster.start();
    let pod = cluster.wait_phase("ran", "Failed").await;
    assert_eq!(condition(&pod, "DisruptionTarget"), "True TerminationByKubelet");
    assert_eq!(state_of(&pod, "main"), "terminated ContainerStatusUnknown 137");
    let message = pod.status.and_then(|status| status.message).unwrap_or_default();
    assert!(message.contains("stint was stopped"), "{message}");
    cluster.wait_phase("new", "Succeeded").await;
    assert_eq!(phase(&cluster.find("done").await.expect("it is there")), "Succeeded");
    let starts = cluster.fake.history().iter().filter(|it| *it == "start main").count();
    assert_eq!(starts, 3, "nothing is started twice");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_was_started_and_not_reported_is_not_started_twice() {
    let cluster = Cluster::new().await;
    let pod = cluster.script("p", "exit 0").await;
    cluster.fake.leave(pod.metadata.uid.as_deref().expect("it has one"));
    let _node = cluster.start();
    let pod = cluster.wait_phase("p", "Failed").await;
    assert_eq!(condition(&pod, "DisruptionTarget"), "True TerminationByKubelet");
    assert!(cluster.fake.history().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_shut_down_ends_its_pods_and_says_so() {
    let cluster = Cluster::new().await;
    let node = cluster.start();
    cluster.script("polite", "forever").await;
    cluster.script("stubborn", "stubborn").await;
    cluster.wait_phase("polite", "Running").await;
    cluster.wait_phase("stubborn", "Running").await;
    let began = tokio::time::Instant::now();
    node.shutdown(Duration::from_secs(5)).await;
    let took = began.elapsed().as_secs();
    assert!((5..8).contains(&took), "the grace of the shutdown counts: {took}");
    for (name, state) in [("polite", "terminated Error 143"), ("stubborn", "terminated Error 137")]
    {
        let pod = cluster.find(name).await.expect("its state is kept");
        assert_eq!(phase(&pod), "Failed");
        assert_eq!(condition(&pod, "DisruptionTarget"), "True TerminationByKubelet");
        assert_eq!(state_of(&pod, "main"), state);
    }
    let nodes: kube::Api<k8s_openapi::api::core::v1::Node> = kube::Api::all(cluster.admin.clone());
    let node = nodes.get("here").await.expect("it is registered");
    let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
    let ready = conditions.iter().find(|it| it.type_ == "Ready").expect("it is told");
    assert_eq!(ready.status, "False");
}
