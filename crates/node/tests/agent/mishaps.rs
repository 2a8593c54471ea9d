//! What goes wrong around Pods: folders that others remove, workers that fail, machines on which
//! nothing can be mounted, nodes beside each other.

use std::collections::HashSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use stint_node::{Gate, Options};

use crate::cluster::{Cluster, condition, container, main, phase, state_of, status_of};

fn address(pod: &Pod) -> String {
    pod.status.as_ref().and_then(|status| status.pod_ip.clone()).expect("it has an address")
}

#[tokio::test(start_paused = true)]
async fn a_start_that_finds_the_folder_gone_makes_it_again() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    cluster.config_map("cm", json!({"k": "v"})).await;
    let mut container = main("sleep 60 exit 1");
    container["volumeMounts"] = json!([
        {"name": "empty", "mountPath": "/empty"}, {"name": "cm", "mountPath": "/cm"}]);
    let spec = json!({"restartPolicy": "OnFailure", "containers": [container], "volumes": [
        {"name": "empty", "emptyDir": {}}, {"name": "cm", "configMap": {"name": "cm"}}]});
    let pod = cluster.create("p", spec).await;
    cluster.wait_phase("p", "Running").await;
    let folder = cluster.folder.path().join("pods").join(pod.metadata.uid.expect("it has one"));
    std::fs::remove_dir_all(&folder).expect("it is there");
    cluster
        .wait("p", "runs again", |pod| {
            status_of(pod, "main").restart_count == 1 && state_of(pod, "main") == "running"
        })
        .await;
    let hosts = std::fs::read_to_string(folder.join("hosts")).expect("it is there again");
    assert!(hosts.contains("\tp\n"), "{hosts}");
    assert!(folder.join("volumes/empty").is_dir());
    let value = std::fs::read_to_string(folder.join("volumes/cm/k")).expect("it is there again");
    assert_eq!(value, "v");
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_worker_fails_has_failed_and_nothing_of_it_is_left() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let spec = json!({"restartPolicy": "OnFailure", "containers": [main("panic")]});
    let pod = cluster.create("p", spec).await;
    let failed = cluster.wait_phase("p", "Failed").await;
    let status = failed.status.clone().expect("it has one");
    assert_eq!(status.reason.as_deref(), Some("NodeError"));
    let message = status.message.unwrap_or_default();
    assert!(message.contains("as the test wants it"), "{message}");
    assert_eq!(state_of(&failed, "main"), "terminated ContainerStatusUnknown 137");
    assert_eq!(cluster.fake.history(), ["start main"]);
    assert_eq!(cluster.fake.gone(), 1);
    cluster.delete("p", Some(0)).await;
    cluster.wait_gone("p").await;
    let folder = cluster.folder.path().join("pods").join(pod.metadata.uid.expect("it has one"));
    assert!(!folder.exists());
    cluster.script("next", "exit 0").await;
    cluster.wait_phase("next", "Succeeded").await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_runtime_is_lost_has_failed_by_disruption_and_the_next_one_runs() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    // Neither a policy of its own nor a rule starts it again: it has not failed by itself.
    let spec = json!({"restartPolicy": "Always",
        "initContainers": [container("init", "exit 0")],
        "containers": [container("lost", "sleep 5 vanish"), container("other", "stubborn"),
            container("done", "exit 3")]});
    cluster.create("p", spec).await;
    let pod = cluster.wait_phase("p", "Failed").await;
    let status = pod.status.clone().expect("it has one");
    assert_eq!(status.reason.as_deref(), Some("Terminated"));
    assert_eq!(condition(&pod, "DisruptionTarget"), "True TerminationByKubelet");
    assert_eq!(state_of(&pod, "init"), "terminated Completed 0");
    assert_eq!(state_of(&pod, "lost"), "terminated ContainerStatusUnknown 137");
    assert_eq!(state_of(&pod, "done"), "terminated Error 3");
    let count = |what: &str| cluster.fake.history().iter().filter(|it| *it == what).count();
    assert_eq!(count("start lost"), 1, "{:?}", cluster.fake.history());
    cluster.script("next", "exit 0").await;
    cluster.wait_phase("next", "Succeeded").await;
}

#[tokio::test(start_paused = true)]
async fn where_nothing_can_be_mounted_only_pods_that_need_it_are_refused() {
    let cluster = Cluster::new().await;
    cluster.fake.forbid_mounts();
    let _node = cluster.start();
    let mut mounts = main("exit 0");
    mounts["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    let volumes = json!([{"name": "v", "emptyDir": {}}]);
    let plain = json!([main("exit 0")]);
    let rows: [(&str, Value, &str); 4] = [
        ("mounts", json!({"containers": [mounts], "volumes": volumes}), "volumeMounts"),
        ("named", json!({"hostname": "h", "subdomain": "svc", "containers": plain}), "subdomain"),
        ("called", json!({"hostnameOverride": "h", "containers": plain}), "hostnameOverride"),
        (
            "aliases",
            json!({"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}], "containers": plain}),
            "hostAliases",
        ),
    ];
    for (name, spec, field) in rows {
        cluster.create(name, spec).await;
        let pod = cluster.wait_phase(name, "Failed").await;
        let status = pod.status.clone().expect("it has one");
        assert_eq!(status.reason.as_deref(), Some("CreatePodSandboxError"), "{name}");
        let message = status.message.unwrap_or_default();
        assert!(message.contains(field), "{name}: {message}");
    }
    // A Job with indexes gives each of its Pods a host name, whether or not anybody asks for it.
    let rows = [
        json!({"containers": plain}),
        json!({"hostname": "work-0", "containers": plain}),
        json!({"containers": plain, "volumes": volumes}),
        json!({"hostNetwork": true, "subdomain": "svc", "containers": plain}),
    ];
    for (i, spec) in rows.into_iter().enumerate() {
        let name = format!("runs-{i}");
        cluster.create(&name, spec).await;
        cluster.wait_phase(&name, "Succeeded").await;
    }
    assert!(cluster.fake.sandboxes().iter().all(|it| it.hosts_file.is_none()));
}

#[tokio::test(start_paused = true)]
async fn nodes_beside_each_other_and_after_each_other_give_other_addresses() {
    const PODS: usize = 20;
    let (here, there) = (Cluster::new().await, Cluster::new().await);
    let nodes = [here.start(), there.start()];
    let mut seen = HashSet::new();
    for cluster in [&here, &there] {
        for i in 0..PODS {
            cluster.script(&format!("p-{i}"), "exit 0").await;
            let pod = cluster.wait_phase(&format!("p-{i}"), "Succeeded").await;
            assert!(seen.insert(address(&pod)), "{} was given before", address(&pod));
        }
    }
    drop(nodes);
    let _node = here.start();
    for i in 0..PODS {
        here.script(&format!("q-{i}"), "exit 0").await;
        let pod = here.wait_phase(&format!("q-{i}"), "Succeeded").await;
        assert_eq!(phase(&pod), "Succeeded");
        assert!(seen.insert(address(&pod)), "{} was given before", address(&pod));
    }
}

/// A cluster with a Pod that is to go, and of which an earlier process has said that it has ended, and
/// no more. Removals are refused.
async fn unremovable() -> Cluster {
    let cluster = Cluster::new().await;
    cluster.script("p", "forever").await;
    cluster.delete("p", Some(30)).await;
    let failed = Patch::Merge(json!({"status": {"phase": "Failed"}}));
    let params = PatchParams::default();
    cluster.pods().patch_status("p", &params, &failed).await.expect("it can be");
    cluster.refuse_removals(true);
    cluster
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_cannot_be_removed_now_is_removed_when_it_can() {
    let cluster = unremovable().await;
    let _node = cluster.start();
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(cluster.find("p").await.is_some());
    cluster.refuse_removals(false);
    cluster.wait_gone("p").await;
}

#[tokio::test(start_paused = true)]
async fn nobody_tries_to_remove_a_pod_whose_name_is_another_ones() {
    let cluster = unremovable().await;
    let _node = cluster.start();
    let tries = || cluster.count("POST", "/pods/p");
    while tries() < 3 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    cluster.delete("p", Some(0)).await;
    cluster.wait_gone("p").await;
    cluster.script("p", "forever").await;
    cluster.wait_phase("p", "Running").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let before = tries();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(tries(), before);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_begun_or_told_of_the_past_before_the_gate_is_open() {
    let cluster = Cluster::new().await;
    cluster.script("bound", "exit 0").await;
    // It was lost by an earlier process.
    cluster.script("lost", "forever").await;
    let running = json!({"status": {"phase": "Running", "containerStatuses": [{
        "name": "main", "image": "none", "imageID": "", "ready": true, "restartCount": 0,
        "state": {"running": {"startedAt": "2027-01-15T08:00:00Z"}},
    }]}});
    let params = PatchParams::default();
    let patched = cluster.pods().patch_status("lost", &params, &Patch::Merge(running)).await;
    patched.expect("it can be");
    let (key, gate) = Gate::shut();
    let _node = cluster.start_with(Options { gate, ..cluster.options() });
    while cluster.count("PATCH", "/nodes/here/status") == 0 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(cluster.fake.sandboxes().is_empty());
    assert_eq!(phase(&cluster.find("lost").await.expect("it is there")), "Running");
    assert_eq!(phase(&cluster.find("bound").await.expect("it is there")), "Pending");
    key.open();
    cluster.wait_phase("bound", "Succeeded").await;
    cluster.wait_phase("lost", "Failed").await;
}
