//! Containers that are started again, and nodes.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use stint_node::Gate;

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

/// What a Pod says of a container that has run once, and has not begun to run again.
fn check_is_of_the_first_run(pod: &Pod) {
    let status = status_of(pod, "main");
    let last = status.last_state.as_ref().and_then(|it| it.terminated.as_ref());
    assert_eq!(status.restart_count, 0);
    assert_eq!(last.and_then(|it| it.container_id.as_ref()), status.container_id.as_ref());
}

fn runs_again(pod: &Pod) -> bool {
    state_of(pod, "main").starts_with("running") && status_of(pod, "main").restart_count == 1
}

#[tokio::test(start_paused = true)]
async fn a_run_counts_when_it_has_begun() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let spec = json!({"restartPolicy": "OnFailure", "containers": [main("slow sleep 1 exit 1")]});
    cluster.create("p", spec).await;
    let pod = cluster.wait("p", "is about to run again", |pod| {
        let has_run = pod.status.as_ref().is_some_and(|it| it.container_statuses.is_some())
            && status_of(pod, "main").last_state.is_some();
        has_run && state_of(pod, "main") == "waiting ContainerCreating"
    });
    let pod = pod.await;
    check_is_of_the_first_run(&pod);
    cluster.wait("p", "runs again", runs_again).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_cannot_begin_does_not_count() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    cluster.config_map("cm", json!({"KEY": "value"})).await;
    let mut again = main("sleep 5 exit 1");
    again["env"] = json!([
        {"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "KEY"}}}
    ]);
    cluster.create("p", json!({"restartPolicy": "OnFailure", "containers": [again]})).await;
    cluster.wait_phase("p", "Running").await;
    let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> =
        kube::Api::default_namespaced(cluster.admin.clone());
    maps.delete("cm", &Default::default()).await.expect("it can be deleted");
    // Through several tries.
    let wanted = "waiting CreateContainerConfigError";
    for _ in 0..3 {
        let pod = cluster.wait("p", wanted, |pod| state_of(pod, "main") == wanted).await;
        check_is_of_the_first_run(&pod);
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    cluster.config_map("cm", json!({"KEY": "value"})).await;
    cluster.wait("p", "runs again", runs_again).await;
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
            "Terminate worker",
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

/// Creates a Pod that waits for the ConfigMap `late`, in the way that is named.
async fn create_waiting(cluster: &Cluster, name: &str) {
    let mut waiting = main("exit 0");
    let mut spec = json!({});
    match name {
        "volume" => {
            waiting["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
            spec["volumes"] = json!([{"name": "v", "configMap": {"name": "late"}}]);
        }
        _ => waiting["envFrom"] = json!([{"configMapRef": {"name": "late"}}]),
    }
    spec["containers"] = json!([waiting]);
    if name == "init" {
        spec["initContainers"] = json!([container("first", "exit 0")]);
    }
    cluster.create(name, spec).await;
    let expected = match name {
        "volume" => "waiting ContainerCreating",
        _ => "waiting CreateContainerConfigError",
    };
    let is_told = |pod: &k8s_openapi::api::core::v1::Pod| {
        pod.status.as_ref().is_some_and(|it| it.container_statuses.is_some())
            && state_of(pod, "main") == expected
    };
    cluster.wait(name, "waits", is_told).await;
}

/// What is to hold of Pods that waited for `late` when the node ended, whichever way it did.
async fn check_waiting_pods(cluster: &Cluster, ended: &str) {
    let pod = cluster.wait_phase("init", "Failed").await;
    assert_eq!(condition(&pod, "DisruptionTarget"), "True TerminationByKubelet", "{ended}");
    assert_eq!(state_of(&pod, "first"), "terminated Completed 0");
    assert!(status_of(&pod, "first").ready, "{ended}: it has done its work");
    assert_eq!(condition(&pod, "Initialized"), "True", "{ended}");
    assert_eq!(state_of(&pod, "main"), "terminated ContainerStatusUnknown 137");
    let mut began = Vec::new();
    for name in ["environment", "volume"] {
        let pod = cluster.find(name).await.expect("its state is kept");
        assert_eq!((phase(&pod), condition(&pod, "DisruptionTarget")), ("Pending", "".into()));
        began.push(pod.status.and_then(|status| status.start_time));
    }
    cluster.config_map("late", json!({"k": "v"})).await;
    for (name, began) in ["environment", "volume"].into_iter().zip(began) {
        let pod = cluster.wait_phase(name, "Succeeded").await;
        assert_eq!(pod.status.and_then(|status| status.start_time), began, "{ended}");
    }
    let starts = cluster.fake.history().iter().filter(|it| *it == "start main").count();
    assert_eq!(starts, 2, "{ended}: each is started once");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_never_began_outlives_a_shutdown_and_is_started_by_the_next_node() {
    let cluster = Cluster::new().await;
    let node = cluster.start();
    for name in ["environment", "volume", "init"] {
        create_waiting(&cluster, name).await;
    }
    node.shutdown(Duration::from_secs(5)).await;
    assert_eq!(phase(&cluster.find("init").await.expect("it is kept")), "Failed");
    assert_eq!(folders(&cluster), 0, "nothing of them is left");
    let _node = cluster.start();
    check_waiting_pods(&cluster, "shut down").await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_never_began_outlives_a_kill_and_is_started_by_the_next_node() {
    let cluster = Cluster::new().await;
    let node = cluster.start();
    for name in ["environment", "volume", "init"] {
        create_waiting(&cluster, name).await;
    }
    drop(node);
    // The next node gives them other addresses, and has another one itself.
    let addresses = stint_node::AddressRange {
        network: std::net::Ipv4Addr::new(127, 99, 0, 0),
        ..cluster.options().addresses
    };
    let host_address = std::net::Ipv4Addr::new(127, 0, 0, 9);
    let options = stint_node::Options { addresses, host_address, ..cluster.options() };
    let _node = cluster.start_with(options);
    check_waiting_pods(&cluster, "killed").await;
    let status = cluster.find("environment").await.and_then(|pod| pod.status).expect("it is there");
    let pod_ips: Vec<String> = status.pod_ips.into_iter().flatten().map(|it| it.ip).collect();
    let host_ips: Vec<String> = status.host_ips.into_iter().flatten().map(|it| it.ip).collect();
    assert_eq!(
        (pod_ips, host_ips),
        (vec![status.pod_ip.expect("it has one")], vec!["127.0.0.9".into()])
    );
}

/// Lets the Node say that it was last seen before the machine was started again.
async fn reboot(cluster: &Cluster) {
    let nodes: kube::Api<k8s_openapi::api::core::v1::Node> = kube::Api::all(cluster.admin.clone());
    let node = nodes.get("here").await.expect("it is registered");
    let info = node.status.and_then(|status| status.node_info).expect("it has told");
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("Linux has one");
    assert_eq!(info.boot_id, boot.trim());
    let patch = kube::api::Patch::Merge(json!({"status": {"nodeInfo": {"bootID": "earlier"}}}));
    let patched = nodes.patch_status("here", &Default::default(), &patch).await;
    patched.expect("a status can be written");
}

#[tokio::test(start_paused = true)]
async fn what_was_written_down_counts_only_if_the_machine_has_not_crashed_since() {
    let cluster = Cluster::new().await;
    let node = cluster.start();
    create_waiting(&cluster, "environment").await;
    // After a shutdown all that was written is there.
    node.shutdown(Duration::from_secs(5)).await;
    reboot(&cluster).await;
    let node = cluster.start();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(phase(&cluster.find("environment").await.expect("it is there")), "Pending");
    // After a crash of the machine a container may have run of which nothing is known.
    drop(node);
    reboot(&cluster).await;
    // One that ends before it may look at Pods does not forget it.
    let (_key, gate) = Gate::shut();
    let node = cluster.start_with(stint_node::Options { gate, ..cluster.options() });
    tokio::time::sleep(Duration::from_secs(60)).await;
    node.shutdown(Duration::from_secs(5)).await;
    let _node = cluster.start();
    let pod = cluster.wait_phase("environment", "Failed").await;
    assert_eq!(condition(&pod, "DisruptionTarget"), "True TerminationByKubelet");
    create_waiting(&cluster, "volume").await;
    cluster.config_map("late", json!({"k": "v"})).await;
    cluster.wait_phase("volume", "Succeeded").await;
    assert_eq!(cluster.fake.history(), ["start main", "end main 0"]);
}

#[tokio::test(start_paused = true)]
async fn what_was_started_and_not_reported_is_not_started_twice_whatever_was_said_before() {
    let cluster = Cluster::new().await;
    let slow = stint_node::Options { status_delay: Duration::from_secs(3600), ..cluster.options() };
    let node = cluster.start_with(slow);
    let spec = json!({"initContainers": [container("first", "exit 0")],
        "containers": [container("a", "forever"), container("b", "exit 0")]});
    cluster.create("silent", spec).await;
    let mut waiting = main("exit 0");
    waiting["envFrom"] = json!([{"configMapRef": {"name": "late"}}]);
    let other = container("other", "forever");
    cluster.create("told", json!({"containers": [waiting, other]})).await;
    // What is said of it is that both wait.
    let told = json!({"status": {"phase": "Pending", "containerStatuses": [
        {"name": "main", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"waiting": {"reason": "ContainerCreating"}}},
        {"name": "other", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"waiting": {"reason": "ContainerCreating"}}}]}});
    let patch = kube::api::Patch::Merge(told);
    let patched = cluster.pods().patch_status("told", &Default::default(), &patch).await;
    patched.expect("a status can be written");
    let is_begun = |what: &str| cluster.fake.history().iter().any(|it| it == what);
    while !is_begun("start other") || !is_begun("end b 0") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    drop(node);
    let starts = || {
        let history = cluster.fake.history();
        history.into_iter().filter(|it| it.starts_with("start")).count()
    };
    let before = starts();
    let _node = cluster.start();
    let silent = cluster.wait_phase("silent", "Failed").await;
    let told = cluster.wait_phase("told", "Failed").await;
    for (pod, names) in [(&silent, ["first", "a", "b"].as_slice()), (&told, &["main", "other"])] {
        assert_eq!(condition(pod, "DisruptionTarget"), "True TerminationByKubelet");
        for name in names {
            assert_eq!(state_of(pod, name), "terminated ContainerStatusUnknown 137", "{name}");
            let end = status_of(pod, name).state.clone().and_then(|it| it.terminated);
            let message = end.and_then(|it| it.message).unwrap_or_default();
            let expected = match *name {
                "main" => "could not be located when the pod was terminated",
                _ => "how it ended is not known",
            };
            assert!(message.contains(expected), "{name}: {message}");
        }
    }
    assert_eq!(starts(), before, "nothing is started again");
}

#[tokio::test(start_paused = true)]
async fn what_all_containers_of_a_pod_came_to_is_not_lost_with_the_node() {
    let cluster = Cluster::new().await;
    for (name, code) in
        [("good", 0), ("bad", 3), ("again", 3), ("half", 0), ("stopped", 0), ("init", 0)]
    {
        let mut spec = json!({"containers": [main("exit 0"), container("other", "exit 0")]});
        match name {
            "again" => spec["restartPolicy"] = json!("OnFailure"),
            "init" => spec["initContainers"] = json!([container("first", "exit 1")]),
            _ => {}
        }
        let pod = cluster.create(name, spec).await;
        // Another node process has said this, and was killed before it said the last word.
        let ended = |code: i32| json!({"terminated": {"exitCode": code, "reason": "Told"}});
        let other = match name {
            "half" => json!({"running": {}}),
            _ => ended(0),
        };
        let mut status = json!({"phase": "Running", "containerStatuses": [
            {"name": "main", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
                "state": ended(code)},
            {"name": "other", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
                "state": other}]});
        if name == "stopped" {
            status["conditions"] = json!([{"type": "DisruptionTarget", "status": "True",
                "reason": "TerminationByKubelet"}]);
        }
        if name == "init" {
            status["initContainerStatuses"] = json!([{"name": "first", "image": "i",
                "imageID": "", "ready": false, "restartCount": 0, "state": ended(1)}]);
            for told in status["containerStatuses"].as_array_mut().expect("a list") {
                told["state"] = json!({"waiting": {"reason": "PodInitializing"}});
            }
        }
        let patch = kube::api::Patch::Merge(json!({"status": status}));
        let patched = cluster.pods().patch_status(name, &Default::default(), &patch).await;
        patched.expect("a status can be written");
        // One of them has begun again, and nothing was said of that.
        let folder = cluster.folder.path().join("pods").join(pod.metadata.uid.expect("it has one"));
        std::fs::create_dir_all(&folder).expect("a folder");
        let begun = match name {
            "again" => "main.1.begun",
            "init" => "first.0.begun",
            _ => "main.0.begun",
        };
        std::fs::write(folder.join(begun), "").expect("a file");
    }
    let _node = cluster.start();
    for (name, expected, is_disrupted) in [
        ("good", "Succeeded", false),
        ("bad", "Failed", false),
        ("again", "Failed", true),
        ("half", "Failed", true),
        ("stopped", "Failed", true),
        ("init", "Failed", false),
    ] {
        let pod = cluster.wait(name, "ends", |pod| !matches!(phase(pod), "Running")).await;
        assert_eq!(phase(&pod), expected, "{name}");
        assert_eq!(!condition(&pod, "DisruptionTarget").is_empty(), is_disrupted, "{name}");
        let first = if name == "init" { "first" } else { "main" };
        assert!(state_of(&pod, first).starts_with("terminated Told"), "{name}");
    }
    assert!(cluster.fake.history().is_empty(), "nothing is started");
}

/// How many Pods have a folder.
fn folders(cluster: &Cluster) -> usize {
    let pods = std::fs::read_dir(cluster.folder.path().join("pods"));
    pods.map_or(0, Iterator::count)
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_pods_that_ended_before_the_node_was_killed() {
    let cluster = Cluster::new().await;
    let node = cluster.start();
    let ended = cluster.script("ended", "exit 0").await;
    cluster.wait_phase("ended", "Succeeded").await;
    drop(node);
    // Its end was written, and then there was no time to remove its folder.
    for uid in [ended.metadata.uid.as_deref().expect("it has one"), "gone"] {
        let volume = cluster.folder.path().join("pods").join(uid).join("volumes/v");
        std::fs::create_dir_all(&volume).expect("a folder");
        std::fs::write(volume.join("file"), "text").expect("a file");
    }
    let _node = cluster.start();
    let began = tokio::time::Instant::now();
    while folders(&cluster) > 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "{} are left", folders(&cluster));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(phase(&cluster.find("ended").await.expect("it is there")), "Succeeded");
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
