//! Several containers: what comes first, what runs beside, what is told of each.

use serde_json::json;

use crate::cluster::{Cluster, condition, container, main, state_of, status_of};

#[tokio::test(start_paused = true)]
async fn a_pod_that_runs_and_succeeds_is_told_as_a_kubelet_tells_it() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    cluster.script("p", "sleep 60 exit 0").await;
    let pod = cluster.wait_phase("p", "Running").await;
    let status = pod.status.as_ref().expect("it has one");
    assert_eq!(state_of(&pod, "main"), "running");
    let told = status_of(&pod, "main");
    assert_eq!((told.ready, told.started, told.restart_count), (true, Some(true), 0));
    assert_eq!(told.image, "i");
    assert!(told.container_id.as_deref().is_some_and(|id| id.starts_with("fake://")));
    for kind in
        ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
    {
        assert_eq!(condition(&pod, kind), "True", "{kind}");
    }
    let address = cluster.fake.sandboxes()[0].address;
    assert!(address.is_loopback());
    assert_eq!(status.pod_ip, Some(address.to_string()));
    assert_eq!(status.host_ip.as_deref(), Some("127.0.0.1"));
    assert_eq!(status.qos_class.as_deref(), Some("BestEffort"));
    assert_eq!(status.observed_generation, Some(1));
    assert!(status.start_time.is_some());
    let ready_since = |pod: &k8s_openapi::api::core::v1::Pod| {
        let conditions = pod.status.clone().and_then(|status| status.conditions);
        let ready = conditions.into_iter().flatten().find(|it| it.type_ == "Ready");
        ready.and_then(|it| it.last_transition_time).expect("it has a time").0.as_second()
    };
    let since = ready_since(&pod);
    let pod = cluster.wait_phase("p", "Succeeded").await;
    assert_eq!(state_of(&pod, "main"), "terminated Completed 0");
    assert_eq!(condition(&pod, "Ready"), "False PodCompleted");
    assert_eq!(condition(&pod, "ContainersReady"), "False PodCompleted");
    assert_eq!(condition(&pod, "Initialized"), "True PodCompleted");
    assert_eq!(condition(&pod, "PodReadyToStartContainers"), "False");
    assert!((59..=62).contains(&(ready_since(&pod) - since)), "the condition changed at the end");
    assert!(cluster.reasons("p").await.is_empty(), "a healthy Pod has no events");
}

#[tokio::test(start_paused = true)]
async fn init_containers_run_one_after_the_other_and_main_ones_together() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let spec = json!({
        "initContainers": [container("a", "sleep 10 exit 0"), container("b", "sleep 10 exit 0")],
        "containers": [container("x", "sleep 10 exit 0"), container("y", "sleep 20 exit 0")],
    });
    cluster.create("p", spec).await;
    let pod = cluster.wait("p", "runs b", |pod| {
        pod.status.as_ref().is_some_and(|it| it.init_container_statuses.is_some())
            && state_of(pod, "b") == "running"
    });
    let pod = pod.await;
    assert_eq!(crate::cluster::phase(&pod), "Pending");
    assert_eq!(state_of(&pod, "a"), "terminated Completed 0");
    assert!(status_of(&pod, "a").ready);
    assert_eq!(state_of(&pod, "x"), "waiting PodInitializing");
    assert_eq!(condition(&pod, "Initialized"), "False ContainersNotInitialized");
    cluster.wait_phase("p", "Succeeded").await;
    assert_eq!(
        cluster.fake.history(),
        ["start a", "end a 0", "start b", "end b 0", "start x", "start y", "end x 0", "end y 0"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_init_container_fails_a_pod_that_is_never_restarted() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let spec =
        json!({"initContainers": [container("a", "exit 3")], "containers": [main("exit 0")]});
    cluster.create("p", spec).await;
    let pod = cluster.wait_phase("p", "Failed").await;
    assert_eq!(state_of(&pod, "a"), "terminated Error 3");
    assert_eq!(state_of(&pod, "main"), "waiting PodInitializing");
    assert_eq!(cluster.fake.history(), ["start a", "end a 3"]);
}

#[tokio::test(start_paused = true)]
async fn sidecars_start_first_and_end_last_in_reverse_order() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let sidecar = |name: &str, script: &str| {
        let mut container = container(name, script);
        container["restartPolicy"] = json!("Always");
        container
    };
    let mut slow = sidecar("slow", "forever");
    slow["startupProbe"] = json!({"exec": {"command": ["bad-before", "5"]}, "periodSeconds": 2,
        "failureThreshold": 10});
    let spec = json!({
        "initContainers": [slow, container("init", "exit 0"), sidecar("late", "forever")],
        "containers": [main("sleep 30 exit 0")],
    });
    cluster.create("p", spec).await;
    let pod = cluster.wait_phase("p", "Succeeded").await;
    let steps: Vec<String> =
        cluster.fake.history().into_iter().filter(|it| !it.starts_with("exec")).collect();
    assert_eq!(
        steps,
        [
            "start slow",
            "start init",
            "end init 0",
            "start late",
            "start main",
            "end main 0",
            "Terminate late",
            "end late 143",
            "Terminate slow",
            "end slow 143",
        ]
    );
    let gated = cluster.fake.at("start init") - cluster.fake.at("start slow");
    assert!((5.0..8.0).contains(&gated), "the startup probe holds the others back: {gated}");
    assert_eq!(state_of(&pod, "slow"), "terminated Error 143");
}

#[tokio::test(start_paused = true)]
async fn a_sidecar_that_ends_is_started_again_beside_the_main_container() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let mut sidecar = container("side", "sleep 5 exit 0");
    sidecar["restartPolicy"] = json!("Always");
    let spec = json!({"initContainers": [sidecar], "containers": [main("sleep 12 exit 0")]});
    cluster.create("p", spec).await;
    let pod = cluster.wait_phase("p", "Succeeded").await;
    assert_eq!(status_of(&pod, "side").restart_count, 1);
    let starts = cluster.fake.history().iter().filter(|it| *it == "start side").count();
    assert_eq!(starts, 2);
}

#[tokio::test(start_paused = true)]
async fn one_of_several_that_fails_fails_the_pod_when_all_have_ended() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let spec = json!({"containers": [container("x", "exit 1"), container("y", "sleep 9 exit 0")]});
    cluster.create("p", spec).await;
    let pod = cluster.wait("p", "tells x's end", |pod| {
        crate::cluster::phase(pod) == "Running" && state_of(pod, "x") == "terminated Error 1"
    });
    let pod = pod.await;
    assert_eq!(condition(&pod, "Ready"), "False ContainersNotReady");
    let pod = cluster.wait_phase("p", "Failed").await;
    assert_eq!(state_of(&pod, "y"), "terminated Completed 0");
}
