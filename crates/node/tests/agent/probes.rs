//! Probes and hooks.

use serde_json::json;

use crate::cluster::{Cluster, condition, main, phase, state_of, status_of};

#[tokio::test(start_paused = true)]
async fn a_container_that_is_not_alive_is_started_again() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let mut container = main("forever");
    container["livenessProbe"] = json!({"exec": {"command": ["bad-after", "20"]},
        "periodSeconds": 5, "failureThreshold": 2});
    let spec = json!({"restartPolicy": "Always", "containers": [container]});
    cluster.create("p", spec).await;
    let pod = cluster.wait("p", "runs again", |pod| {
        phase(pod) == "Running"
            && status_of(pod, "main").restart_count == 1
            && state_of(pod, "main") == "running"
    });
    let pod = pod.await;
    let last = status_of(&pod, "main").last_state.clone().expect("it has ended before");
    assert_eq!(last.terminated.expect("it ended").exit_code, 143);
    let ran = cluster.fake.at("Terminate main") - cluster.fake.at("start main");
    assert!((24.0..27.0).contains(&ran), "after the second failure in a row: {ran}");
    let reasons = cluster.reasons("p").await;
    assert!(reasons.contains(&"Unhealthy".to_owned()) && reasons.contains(&"Killing".to_owned()));
}

/// One that is asked to end may do so with the code of a success.
#[tokio::test(start_paused = true)]
async fn a_container_that_hangs_and_ends_well_when_asked_has_not_succeeded() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let mut container = main("polite");
    container["livenessProbe"] = json!({"exec": {"command": ["bad"]}, "failureThreshold": 1});
    let spec = |policy: &str| json!({"restartPolicy": policy, "containers": [container]});
    cluster.create("p", spec("OnFailure")).await;
    let pod = cluster.wait("p", "runs again", |pod| {
        phase(pod) == "Running" && status_of(pod, "main").restart_count == 1
    });
    let last = status_of(&pod.await, "main").last_state.clone().expect("it has ended before");
    assert_eq!(last.terminated.expect("it ended").exit_code, 0);
    let told = cluster.messages("p").await;
    assert!(told.contains(&"Container main failed liveness probe, will be restarted".to_owned()));
    cluster.create("q", spec("Never")).await;
    cluster.wait_phase("q", "Succeeded").await;
    let told = cluster.messages("q").await;
    assert!(told.contains(&"Container main failed liveness probe, will be stopped".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_ready_when_its_probe_says_so() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let mut container = main("sleep 120 exit 0");
    container["readinessProbe"] = json!({"exec": {"command": ["bad-before", "20"]},
        "periodSeconds": 5, "successThreshold": 2});
    cluster.create("p", json!({"containers": [container]})).await;
    let pod = cluster.wait_phase("p", "Running").await;
    assert!(!status_of(&pod, "main").ready);
    assert_eq!(status_of(&pod, "main").started, Some(true));
    assert_eq!(condition(&pod, "Ready"), "False ContainersNotReady");
    let pod = cluster.wait("p", "is ready", |pod| condition(pod, "Ready") == "True").await;
    assert_eq!(condition(&pod, "ContainersReady"), "True");
}

#[tokio::test(start_paused = true)]
async fn a_container_that_never_starts_up_is_killed_with_the_grace_of_its_probe() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let mut container = main("stubborn");
    container["startupProbe"] = json!({"exec": {"command": ["bad"]}, "periodSeconds": 1,
        "failureThreshold": 3, "terminationGracePeriodSeconds": 2});
    cluster.create("p", json!({"containers": [container]})).await;
    let pod = cluster.wait_phase("p", "Failed").await;
    assert_eq!(state_of(&pod, "main"), "terminated Error 137");
    let grace = cluster.fake.at("Kill main") - cluster.fake.at("Terminate main");
    assert!((1.9..2.5).contains(&grace), "{grace}");
}

#[tokio::test(start_paused = true)]
async fn a_container_runs_once_its_hook_has_ended_and_not_at_all_if_it_fails() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let hooked = |command: serde_json::Value| {
        let mut container = main("forever");
        container["lifecycle"] = json!({"postStart": {"exec": {"command": command}}});
        json!({"containers": [container]})
    };
    cluster.create("good", hooked(json!(["take", "7"]))).await;
    let pod = cluster
        .wait("good", "is told", |pod| {
            pod.status.as_ref().is_some_and(|it| it.container_statuses.is_some())
        })
        .await;
    assert_eq!(
        (phase(&pod), state_of(&pod, "main").as_str()),
        ("Pending", "waiting ContainerCreating")
    );
    let pod = cluster.wait_phase("good", "Running").await;
    assert_eq!(condition(&pod, "Ready"), "True");
    cluster.create("bad", hooked(json!(["bad"]))).await;
    cluster.wait_phase("bad", "Failed").await;
    assert!(cluster.reasons("bad").await.contains(&"FailedPostStartHook".to_owned()));
}
