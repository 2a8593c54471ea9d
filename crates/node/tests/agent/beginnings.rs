//! What a container is made of, and what happens while that is missing.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

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
    let address = cluster.fake.sandboxes()[0].address.to_string();
    assert_eq!(spec.command, ["exit", "0", &address, "$(X)"]);
    let env: Vec<String> = spec.env.iter().map(|(name, it)| format!("{name}={it}")).collect();
    assert_eq!(env, ["PATH=/bin", "HOSTNAME=h", "KEY=value", "CODE=0", &format!("IP={address}")]);
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
async fn volumes_follow_what_they_are_made_from_while_the_pod_runs() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    cluster.config_map("cm", json!({"k": "old"})).await;
    let mut container = main("forever");
    container["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    let spec = json!({"containers": [container], "volumes": [
        {"name": "v", "configMap": {"name": "cm"}},
        {"name": "l", "downwardAPI": {"items":
            [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}}]});
    let pod = cluster.create("p", spec).await;
    cluster.wait_phase("p", "Running").await;
    let uid = pod.metadata.uid.expect("it has one");
    let folder = cluster.folder.path().join("pods").join(uid).join("volumes");
    let text = |file: &str| std::fs::read_to_string(folder.join(file)).expect("it is there");
    assert_eq!((text("v/k"), text("l/labels")), ("old".to_owned(), String::new()));
    let params = PatchParams::default();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.admin.clone(), NAMESPACE);
    for new in ["new", "newer"] {
        let patch = Patch::Merge(json!({"data": {"k": new}}));
        maps.patch("cm", &params, &patch).await.expect("it can be changed");
        let patch = Patch::Merge(json!({"metadata": {"labels": {"a": new}}}));
        cluster.pods().patch("p", &params, &patch).await.expect("labels can be changed");
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!((text("v/k"), text("l/labels")), (new.to_owned(), format!("a={new:?}")));
    }
    maps.delete("cm", &Default::default()).await.expect("it can be deleted");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(text("v/k"), "newer", "what it has stays");
    cluster.delete("p", None).await;
    cluster.wait_gone("p").await;
    let calls = cluster.count("GET", "/configmaps/cm");
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(cluster.count("GET", "/configmaps/cm"), calls, "nobody looks any more");
    assert!(!folder.exists());
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
async fn a_container_waits_for_what_another_writes_for_its_environment() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let refer = |name: &str, key: &str, optional: bool| {
        json!({"name": name, "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "of/env",
            "key": key, "optional": optional}}})
    };
    let mut container = main("exit 0");
    container["env"] = json!([refer("A", "A", false), refer("B", "NONE", true),
        {"name": "C", "value": "$(A)$(A)"}]);
    let spec = json!({"containers": [container], "volumes": [{"name": "v", "emptyDir": {}}]});
    let pod = cluster.create("p", spec).await;
    let uid = pod.metadata.uid.expect("it has one");
    let is_told = |pod: &k8s_openapi::api::core::v1::Pod| {
        let told = pod.status.as_ref().is_some_and(|it| it.container_statuses.is_some());
        told && state_of(pod, "main") == "waiting CreateContainerConfigError"
    };
    let pod = cluster.wait("p", "says what is missing", is_told).await;
    let waiting = status_of(&pod, "main").state.clone().and_then(|it| it.waiting);
    let message = waiting.and_then(|it| it.message).unwrap_or_default();
    let expected = "environment variable key \"A\" not found in file \"of/env\" of volume \"v\"";
    assert_eq!(message, expected);
    let folder = cluster.folder.path().join("pods").join(uid).join("volumes/v/of");
    std::fs::create_dir(&folder).expect("the volume is there");
    std::fs::write(folder.join("env"), "# values\nA='1'\n").expect("a file");
    cluster.wait_phase("p", "Succeeded").await;
    let env = cluster.fake.spec("main").env;
    let own: Vec<_> = env.iter().skip(2).map(|(name, it)| format!("{name}={it}")).collect();
    assert_eq!(own, ["A=1", "C=11"]);
}

#[tokio::test(start_paused = true)]
async fn what_can_never_run_fails_instead_of_waiting_for_ever() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    cluster.create("none", json!({"containers": [{"name": "main"}]})).await;
    let pod = cluster.wait_phase("none", "Failed").await;
    assert_eq!(state_of(&pod, "main"), "terminated StartError 128");
    let end = status_of(&pod, "main").state.clone().and_then(|it| it.terminated);
    let message = end.and_then(|it| it.message).unwrap_or_default();
    assert!(message.contains("has no command: images are not used"), "{message}");
    let mut devices = main("exit 0");
    devices["volumeDevices"] = json!([{"name": "v", "devicePath": "/dev/x"}]);
    let claim = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]);
    cluster.create("devices", json!({"containers": [devices], "volumes": claim})).await;
    let token = json!([{"name": "v", "projected": {"sources": [
        {"serviceAccountToken": {"path": "token"}}]}}]);
    cluster.create("token", json!({"containers": [main("exit 0")], "volumes": token})).await;
    for (name, kind) in
        [("devices", "persistentVolumeClaim"), ("token", "projected serviceAccountToken")]
    {
        let pod = cluster.wait_phase(name, "Failed").await;
        let status = pod.status.expect("it has one");
        assert_eq!(status.reason.as_deref(), Some("FailedMount"));
        let message = status.message.unwrap_or_default();
        assert!(message.contains(&format!("{kind} is not supported")), "{message}");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(cluster.reasons(name).await.contains(&"FailedMount".to_owned()));
    }
    for script in ["nonsense", "unsupported"] {
        cluster.script(script, script).await;
        let pod = cluster.wait_phase(script, "Failed").await;
        assert_eq!(state_of(&pod, "main"), "terminated StartError 128");
    }
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
async fn a_node_that_is_deleted_comes_back_within_seconds() {
    let cluster = Cluster::new().await;
    let _node = cluster.start();
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(cluster.admin.clone());
    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = nodes.get("here").await.expect("it is registered").metadata.uid;
    for _ in 0..2 {
        nodes.delete("here", &Default::default()).await.expect("it can be deleted");
        tokio::time::sleep(Duration::from_secs(2)).await;
        let node = nodes.get("here").await.expect("it is registered again");
        assert_ne!(node.metadata.uid, before, "it is another one");
        let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
        let ready = conditions.iter().find(|it| it.type_ == "Ready").expect("it is told");
        assert_eq!(ready.status, "True");
    }
    let said = cluster.count("PATCH", "/nodes/here/status") + cluster.count("POST", "/nodes");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let later = cluster.count("PATCH", "/nodes/here/status") + cluster.count("POST", "/nodes");
    assert_eq!(said, later, "its own words make it say nothing");
}

#[tokio::test(start_paused = true)]
async fn hosts_files_follow_the_services_in_place() {
    let cluster = Cluster::new().await;
    let slices: Api<EndpointSlice> = Api::namespaced(cluster.admin.clone(), NAMESPACE);
    let slice = |name: &str, service: &str, endpoint: Value| -> EndpointSlice {
        let slice = json!({
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": service}},
            "addressType": "IPv4", "ports": [], "endpoints": [endpoint],
        });
        serde_json::from_value(slice).expect("a slice")
    };
    let far = slice("far", "far", json!({"addresses": ["10.1.2.3"]}));
    slices.create(&PostParams::default(), &far).await.expect("it can be made");
    let _node = cluster.start();
    cluster.script("p", "forever").await;
    cluster.wait_phase("p", "Running").await;
    let file = cluster.fake.sandboxes()[0].hosts_file.clone().expect("it has one");
    let inode = || std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&file).expect("there"));
    let before = inode();
    let text = async || {
        tokio::time::sleep(Duration::from_secs(1)).await;
        std::fs::read_to_string(&file).expect("it is text")
    };
    let address = cluster.fake.sandboxes()[0].address;
    let found = text().await;
    assert!(found.contains(&format!("{address}\tp\n")), "{found}");
    assert!(found.contains("10.1.2.3\tfar\t"), "{found}");
    // As the cluster writes it for a Pod of this node.
    let endpoint = |is_ready: bool| json!({"addresses": [address], "hostname": "work-0", "conditions": {"ready": is_ready}});
    let near = slice("near", "svc", endpoint(true));
    slices.create(&PostParams::default(), &near).await.expect("it can be made");
    let name = format!("{address}\twork-0.svc\twork-0.svc.default\twork-0.svc.default.svc\t");
    let found = text().await;
    assert!(found.contains(&name), "{found}");
    for is_ready in [false, true] {
        let patch = Patch::Merge(json!({"endpoints": [endpoint(is_ready)]}));
        let patched = slices.patch("near", &PatchParams::default(), &patch).await;
        patched.expect("a slice can be changed");
        let found = text().await;
        assert_eq!(found.contains(&name), is_ready, "{found}");
    }
    slices.delete("near", &DeleteParams::default()).await.expect("it can go");
    let found = text().await;
    assert!(!found.contains("work-0") && found.contains("10.1.2.3\tfar\t"), "{found}");
    assert_eq!(inode(), before);
}
