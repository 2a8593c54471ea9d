//! How Pods end: by deletion, by their deadline, by leaving the API.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::cluster::{Cluster, condition, container, main, phase, state_of};

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_is_asked_to_end_and_goes() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    cluster.script("p", "forever").await;
    cluster.wait_phase("p", "Running").await;
    cluster.delete("p", None).await;
    cluster.wait_gone("p").await;
    assert_eq!(cluster.fake.history(), ["start main", "Terminate main", "end main 143"]);
}

#[tokio::test(start_paused = true)]
async fn a_container_that_does_not_listen_is_killed_when_its_time_is_up() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    cluster.script("p", "stubborn").await;
    cluster.wait_phase("p", "Running").await;
    cluster.delete("p", Some(20)).await;
    cluster.wait_gone("p").await;
    let took = cluster.fake.at("Kill main") - cluster.fake.at("Terminate main");
    assert!((19.5..20.5).contains(&took), "{took}");
}

#[tokio::test(start_paused = true)]
async fn a_second_deletion_may_shorten_the_time() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    cluster.script("p", "stubborn").await;
    cluster.wait_phase("p", "Running").await;
    cluster.delete("p", Some(600)).await;
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    cluster.delete("p", Some(5)).await;
    cluster.wait_gone("p").await;
    let took = cluster.fake.at("Kill main") - cluster.fake.at("Terminate main");
    assert!((9.0..16.0).contains(&took), "{took}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_forced_out_of_the_api_has_two_seconds_left() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    cluster.script("p", "stubborn").await;
    cluster.wait_phase("p", "Running").await;
    cluster.delete("p", Some(0)).await;
    cluster.script("q", "sleep 5 exit 0").await;
    cluster.wait_phase("q", "Succeeded").await;
    let took = cluster.fake.at("Kill main") - cluster.fake.at("Terminate main");
    assert!((1.9..2.5).contains(&took), "{took}");
    // Nothing of them is left, once the last of them has been cleared up after.
    let pods = cluster.folder.path().join("pods");
    let left = || std::fs::read_dir(&pods).expect("a folder").count();
    for _ in 0..600 {
        if left() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{} folders are left", left());
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_keeps_a_pod_that_has_ended() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    cluster.script("p", "forever").await;
    let finalizer = json!({"metadata": {"finalizers": ["a.io/b"]}});
    let params = PatchParams::default();
    cluster.pods().patch("p", &params, &Patch::Merge(finalizer)).await.expect("it can be");
    cluster.wait_phase("p", "Running").await;
    cluster.delete("p", None).await;
    let pod = cluster
        .wait("p", "ends with no time left", |pod| {
            phase(pod) == "Failed" && pod.metadata.deletion_grace_period_seconds == Some(0)
        })
        .await;
    assert_eq!(state_of(&pod, "main"), "terminated Error 143");
    assert_eq!(pod.status.expect("it has one").observed_generation, pod.metadata.generation);
    let none = json!({"metadata": {"finalizers": null}});
    cluster.pods().patch("p", &params, &Patch::Merge(none)).await.expect("it can be");
    cluster.wait_gone("p").await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_time_is_up_fails_with_that_reason() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let spec = json!({"activeDeadlineSeconds": 30, "terminationGracePeriodSeconds": 5,
        "containers": [main("stubborn")]});
    cluster.create("p", spec).await;
    let pod = cluster.wait_phase("p", "Failed").await;
    assert_eq!(
        pod.status.as_ref().expect("it has one").reason.as_deref(),
        Some("DeadlineExceeded")
    );
    assert_eq!(state_of(&pod, "main"), "terminated Error 137");
    assert_eq!(condition(&pod, "DisruptionTarget"), "");
    let ran = cluster.fake.at("Terminate main") - cluster.fake.at("start main");
    assert!((29.0..31.0).contains(&ran), "{ran}");
    let grace = cluster.fake.at("Kill main") - cluster.fake.at("Terminate main");
    assert!((4.5..5.5).contains(&grace), "{grace}");
}

#[tokio::test(start_paused = true)]
async fn a_hook_runs_before_the_signal_and_within_the_grace() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let mut quick = container("quick", "forever");
    quick["lifecycle"] = json!({"preStop": {"exec": {"command": ["take", "3"]}}});
    let mut slow = container("slow", "stubborn");
    slow["lifecycle"] = json!({"preStop": {"exec": {"command": ["take", "300"]}}});
    cluster.create("p", json!({"containers": [quick, slow]})).await;
    cluster.wait_phase("p", "Running").await;
    cluster.delete("p", Some(10)).await;
    cluster.wait_gone("p").await;
    let hooked = cluster.fake.at("Terminate quick") - cluster.fake.at("exec quick take 3");
    assert!((2.9..3.5).contains(&hooked), "{hooked}");
    let hooked = cluster.fake.at("Terminate slow") - cluster.fake.at("exec slow take 300");
    assert!((9.9..10.5).contains(&hooked), "{hooked}");
    let killed = cluster.fake.at("Kill slow") - cluster.fake.at("Terminate slow");
    assert!((1.9..2.5).contains(&killed), "{killed}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_deleted_before_it_begins_is_not_begun() {
    let cluster = Cluster::new().await;
    cluster.script("p", "forever").await;
    cluster.delete("p", None).await;
    assert!(cluster.find("p").await.is_some(), "its node has not spoken yet");
    let _node = cluster.start();
    cluster.wait_gone("p").await;
    assert!(cluster.fake.history().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_lost_is_made_again() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    cluster.lose_answers(2);
    cluster.script("short", "exit 0").await;
    cluster.wait_phase("short", "Succeeded").await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(cluster.count("PATCH", "/short/status"), 3, "twice in vain, and then no more");
    cluster.script("p", "forever").await;
    cluster.wait_phase("p", "Running").await;
    cluster.lose_answers(3);
    cluster.delete("p", None).await;
    cluster.wait_gone("p").await;
    assert_eq!(cluster.fake.history().iter().filter(|it| *it == "start main").count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_last_status_is_refused_can_be_deleted() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    cluster.script("p", "forever").await;
    cluster.wait_phase("p", "Running").await;
    cluster.refuse_statuses();
    cluster.delete("p", None).await;
    cluster.wait_gone("p").await;
    assert_eq!(cluster.count("DELETE", "/p"), 1);
    assert!(cluster.fake.history().contains(&"end main 143".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_pod_may_be_deleted_while_one_container_waits_and_another_ends() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let spec = json!({"restartPolicy": "OnFailure",
        "containers": [container("crash", "exit 1"), container("slow", "stubborn")]});
    cluster.create("p", spec).await;
    cluster
        .wait("p", "crashes", |pod| {
            phase(pod) == "Running" && state_of(pod, "crash") == "waiting CrashLoopBackOff"
        })
        .await;
    cluster.delete("p", Some(60)).await;
    cluster.wait_gone("p").await;
    let took = cluster.fake.at("Kill slow") - cluster.fake.at("Terminate slow");
    assert!((59.5..60.5).contains(&took), "{took}");
    let starts = cluster.fake.history().iter().filter(|it| *it == "start crash").count();
    assert_eq!(starts, 2, "nothing is started any more");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_takes_the_name_of_another_is_another() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    cluster.script("p", "forever").await;
    cluster.wait_phase("p", "Running").await;
    cluster.delete("p", Some(0)).await;
    let other = cluster.script("p", "sleep 5 exit 0").await;
    let pod = cluster.wait_phase("p", "Succeeded").await;
    assert_eq!(pod.metadata.uid, other.metadata.uid);
    assert_eq!(state_of(&pod, "main"), "terminated Completed 0");
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_removed_once_and_only_if_it_waits_for_that() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    cluster.script("running", "forever").await;
    cluster.script("ended", "exit 0").await;
    cluster.wait_phase("running", "Running").await;
    cluster.wait_phase("ended", "Succeeded").await;
    let finalizer = json!({"metadata": {"finalizers": ["a.io/b"]}});
    let params = PatchParams::default();
    cluster.pods().patch("ended", &params, &Patch::Merge(finalizer)).await.expect("it can be");
    cluster.delete("running", None).await;
    cluster.delete("ended", None).await;
    cluster.wait_gone("running").await;
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    assert_eq!(cluster.count("DELETE", "/running"), 1);
    assert_eq!(cluster.count("DELETE", "/ended"), 0, "its finalizer is all that keeps it");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_has_ended_has_no_container_that_waits() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let mut never = container("never", "exit 0");
    never["envFrom"] = json!([{"configMapRef": {"name": "none"}}]);
    let spec = json!({"restartPolicy": "OnFailure",
        "containers": [container("crash", "exit 3"), never, container("slow", "forever")]});
    let pod = cluster.create("p", spec).await;
    let finalizer = json!({"metadata": {"finalizers": ["a.io/b"]}});
    let params = PatchParams::default();
    cluster.pods().patch("p", &params, &Patch::Merge(finalizer)).await.expect("it can be");
    cluster
        .wait("p", "crashes", |pod| {
            phase(pod) == "Running" && state_of(pod, "crash") == "waiting CrashLoopBackOff"
        })
        .await;
    cluster.delete("p", None).await;
    let ended = cluster.wait_phase("p", "Failed").await;
    assert_eq!(ended.metadata.uid, pod.metadata.uid);
    let states = ["crash", "never", "slow"].map(|name| state_of(&ended, name));
    assert_eq!(
        states,
        ["terminated Error 3", "terminated ContainerStatusUnknown 137", "terminated Error 143"]
    );
}
