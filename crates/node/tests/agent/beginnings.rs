//! What a container is made of, and what happens while that is missing.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use crate::cluster::{Cluster, NAMESPACE, main, state_of, status_of};

#[tokio::test(start_paused = true)]
async fn a_container_gets_its_command_environment_volumes_and_limits() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    cluster.config_map("cm", json!({"KEY": "value"})).await;
    let container = json!({
        "name": "main", "command": ["exit", "$(CODE)"], "args": ["$(IP)", "$$(X)"],
        "workingDir": "/work",
        "envFrom": [{"configMapRef": {"name": "cm"}}],
        "env": [
            {"name": "CODE", "value": "0"},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
        "volumeMounts": [{"name": "cm", "mountPath": "/etc/cm"}],
        "resources": {"limits": {"cpu": "250m", "memory": "64Mi"}},
        "securityContext": {"runAsUser": 1000},
    });
    let spec = json!({"hostname": "h", "containers": [container],
        "volumes": [{"name": "cm", "configMap": {"name": "cm"}}]});
    cluster.create("p", spec).await;
    cluster.wait_phase("p", "Succeeded").await;
    let spec = cluster.fake.spec("main");
    assert_eq!(spec.command, ["exit", "0", "127.64.0.1", "$(X)"]);
    let env: Vec<String> = spec.env.iter().map(|(name, it)| format!("{name}={it}")).collect();
    assert_eq!(env, ["PATH=/bin", "HOSTNAME=h", "KEY=value", "CODE=0", "IP=127.64.0.1"]);
    assert_eq!((spec.user, spec.limits.cpu_millis), (Some(1000), Some(250)));
    assert_eq!(spec.limits.memory_bytes, Some(64 << 20));
    let targets: Vec<String> =
        spec.mounts.iter().map(|mount| mount.target.display().to_string()).collect();
    assert_eq!(targets, ["/etc/cm", "/dev/termination-log"]);
    assert!(spec.mounts[0].read_only && !spec.mounts[1].read_only);
    let sandboxes = cluster.fake.sandboxes();
    assert_eq!(sandboxes[0].hostname.as_deref(), Some("h"));
    assert_eq!(sandboxes[0].limits.cpu_millis, Some(250));
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_the_config_map_of_a_volume() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let mut container = main("exit 0");
    container["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    let spec = json!({"containers": [container],
        "volumes": [{"name": "v", "configMap": {"name": "late"}}]});
    cluster.create("p", spec).await;
    let pod = cluster
        .wait("p", "is told", |pod| {
            pod.status.as_ref().is_some_and(|it| it.container_statuses.is_some())
        })
        .await;
    assert_eq!(state_of(&pod, "main"), "waiting ContainerCreating");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(cluster.reasons("p").await.contains(&"FailedMount".to_owned()));
    cluster.config_map("late", json!({"k": "v"})).await;
    cluster.wait_phase("p", "Succeeded").await;
}

#[tokio::test(start_paused = true)]
async fn a_container_waits_for_the_config_map_of_its_environment() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let mut container = main("exit 0");
    container["envFrom"] = json!([{"configMapRef": {"name": "late"}}]);
    cluster.create("p", json!({"containers": [container]})).await;
    let is_told = |pod: &k8s_openapi::api::core::v1::Pod| {
        let told = pod.status.as_ref().is_some_and(|it| it.container_statuses.is_some());
        told && state_of(pod, "main") == "waiting CreateContainerConfigError"
    };
    let pod = cluster.wait("p", "says what is missing", is_told).await;
    let waiting = status_of(&pod, "main").state.clone().and_then(|it| it.waiting);
    let message = waiting.and_then(|it| it.message).unwrap_or_default();
    assert_eq!(message, "configmap \"late\" not found");
    cluster.config_map("late", json!({"k": "v"})).await;
    let pod = cluster.wait_phase("p", "Succeeded").await;
    assert_eq!(status_of(&pod, "main").restart_count, 0);
}

#[tokio::test(start_paused = true)]
async fn what_can_never_run_fails_instead_of_waiting_for_ever() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    cluster.create("none", json!({"containers": [{"name": "main"}]})).await;
    let pod = cluster.wait_phase("none", "Failed").await;
    assert_eq!(state_of(&pod, "main"), "terminated ContainerCannotRun 127");
    let end = status_of(&pod, "main").state.clone().and_then(|it| it.terminated);
    let message = end.and_then(|it| it.message).unwrap_or_default();
    assert!(message.contains("has no command: images are not used"), "{message}");
    cluster.script("wrong", "nonsense").await;
    let pod = cluster.wait_phase("wrong", "Failed").await;
    assert_eq!(state_of(&pod, "main"), "terminated StartError 127");
}

#[tokio::test(start_paused = true)]
async fn a_node_registers_itself_and_gives_signs_of_life() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(cluster.admin.clone());
    let leases: Api<Lease> = Api::namespaced(cluster.admin.clone(), "kube-node-lease");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let node = nodes.get("here").await.expect("it is registered");
    let status = node.status.expect("it has one");
    let conditions = status.conditions.unwrap_or_default();
    let ready = conditions.iter().find(|it| it.type_ == "Ready").expect("it is told");
    assert_eq!(ready.status, "True");
    assert_eq!(status.capacity.expect("it has some")["pods"].0, "1k");
    let renewed = async || {
        let lease = leases.get("here").await.expect("there is one");
        lease.spec.and_then(|spec| spec.renew_time).expect("it has a time").0
    };
    let first = renewed().await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let passed = renewed().await.duration_since(first).as_secs();
    assert!((20..=31).contains(&passed), "{passed}");
}

#[tokio::test(start_paused = true)]
async fn hosts_files_follow_the_services_in_place() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    cluster.script("p", "forever").await;
    cluster.wait_phase("p", "Running").await;
    let file = cluster.fake.sandboxes()[0].hosts_file.clone().expect("it has one");
    let inode = || std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&file).expect("there"));
    let before = inode();
    let text = std::fs::read_to_string(&file).expect("it is text");
    assert!(text.contains("127.64.0.1\tp\n"), "{text}");
    let service = json!({
        "metadata": {"name": "svc"},
        "spec": {"clusterIP": "None", "selector": {"app": "a"}},
    });
    let service: Service = serde_json::from_value(service).expect("a service");
    let services: Api<Service> = Api::namespaced(cluster.admin.clone(), NAMESPACE);
    services.create(&PostParams::default(), &service).await.expect("it can be made");
    let other = json!({
        "metadata": {"name": "work-0-x", "labels": {"app": "a"}},
        "spec": {"hostname": "work-0", "subdomain": "svc", "nodeName": "here",
            "containers": [{"name": "main", "image": "i", "command": ["forever"]}]},
    });
    let other = serde_json::from_value(other).expect("a Pod");
    cluster.pods().create(&PostParams::default(), &other).await.expect("it is valid");
    cluster.wait_phase("work-0-x", "Running").await;
    let slice = json!({
        "metadata": {"name": "s", "labels": {"kubernetes.io/service-name": "far"}},
        "addressType": "IPv4", "ports": [], "endpoints": [{"addresses": ["10.1.2.3"]}],
    });
    let slice: EndpointSlice = serde_json::from_value(slice).expect("a slice");
    let slices: Api<EndpointSlice> = Api::namespaced(cluster.admin.clone(), NAMESPACE);
    slices.create(&PostParams::default(), &slice).await.expect("it can be made");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let text = std::fs::read_to_string(&file).expect("it is text");
    let name = "127.64.0.2\twork-0.svc\twork-0.svc.default\twork-0.svc.default.svc\t";
    assert!(text.contains(name) && text.contains("10.1.2.3\tfar\t"), "{text}");
    assert_eq!(inode(), before);
    for (label, is_named) in [("b", false), ("a", true)] {
        let patch = Patch::Merge(json!({"metadata": {"labels": {"app": label}}}));
        let patched = cluster.pods().patch("work-0-x", &PatchParams::default(), &patch).await;
        patched.expect("labels can be changed");
        tokio::time::sleep(Duration::from_secs(1)).await;
        let text = std::fs::read_to_string(&file).expect("it is text");
        assert_eq!(text.contains("work-0.svc"), is_named, "{text}");
    }
    cluster.delete("work-0-x", None).await;
    slices.delete("s", &Default::default()).await.expect("it can be deleted");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let text = std::fs::read_to_string(&file).expect("it is text");
    assert!(!text.contains("work-0") && !text.contains("far"), "{text}");
    assert_eq!(inode(), before);
}
