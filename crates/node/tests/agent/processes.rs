//! Pods whose containers are real processes: what a manifest says arrives where a program looks.

use std::sync::Arc;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use stint_node::{HelperCommand, Isolation, LogOptions, Node, ProcessOptions, ProcessRuntime};

use crate::cluster::{Cluster, NAMESPACE, condition, phase, state_of, status_of};

/// A cluster, and a node with processes on it; none where nothing can be mounted.
async fn start() -> Option<(Cluster, Node)> {
    let cluster = Cluster::new().await;
    let runtime = runtime(&cluster).await;
    if runtime.isolation() == Isolation::None {
        eprintln!("nothing can be mounted here: {:?}", runtime.notes());
        return None;
    }
    let node = cluster.start_on(Arc::new(runtime), cluster.options());
    Some((cluster, node))
}

async fn runtime(cluster: &Cluster) -> ProcessRuntime {
    let program = env!("CARGO_BIN_EXE_stint-process-helper").into();
    let mut options = ProcessOptions::new(cluster.folder.path());
    options.helper = HelperCommand { program, args: vec![] };
    ProcessRuntime::start(options).await.expect("the helper starts")
}

fn shell(name: &str, script: &str) -> Value {
    json!({"name": name, "command": ["sh", "-c", script]})
}

async fn log(node: &Node, pod: &Pod, container: &str) -> String {
    let options = LogOptions { container: container.to_owned(), ..LogOptions::default() };
    let pieces: Vec<_> = node.logs().open(pod, &options).expect("it has run").collect().await;
    String::from_utf8(pieces.concat()).expect("text")
}

fn message(pod: &Pod, container: &str) -> String {
    let end = status_of(pod, container).state.clone().and_then(|it| it.terminated);
    end.and_then(|it| it.message).unwrap_or_default()
}

#[tokio::test]
async fn a_program_finds_its_environment_volumes_names_and_folder() {
    let Some((cluster, node)) = start().await else { return };
    cluster.config_map("cm", json!({"KEY": "from map", "file": "of map"})).await;
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"SECRET": "of secret"}});
    let secret: Secret = serde_json::from_value(secret).expect("a Secret");
    let secrets: Api<Secret> = Api::namespaced(cluster.admin.clone(), NAMESPACE);
    secrets.create(&PostParams::default(), &secret).await.expect("it can be made");
    let host = tempfile::tempdir().expect("a folder");
    std::fs::write(host.path().join("file"), "of host\n").expect("a file");

    let mut init = shell("init", "echo \"WORD='of init'\" > /scratch/env");
    init["volumeMounts"] = json!([{"name": "scratch", "mountPath": "/scratch"}]);
    let mut main = shell(
        "main",
        "echo \"$0 $1 $POD $CPU $KEY $ONE $WORD\"; pwd; hostname; grep -c \"$IP.*job-0\" /etc/hosts\n\
         cat /cm/file /s/SECRET /mixed/deep/one /mixed/labels /sub; echo; cat /host/file\n\
         (: > /cm/new) 2>/dev/null || echo 'read-only'\n\
         : > /scratch/new && echo written; echo goodbye > /my/words; exit 3",
    );
    main["args"] = json!(["$(KEY)", "$$(KEY)"]);
    main["workingDir"] = json!("/scratch");
    main["terminationMessagePath"] = json!("/my/words");
    main["resources"] = json!({"limits": {"cpu": "1500m"}});
    main["envFrom"] = json!([{"configMapRef": {"name": "cm"}}]);
    main["env"] = json!([
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        {"name": "ONE", "valueFrom": {"secretKeyRef": {"name": "s", "key": "SECRET"}}},
        {"name": "WORD", "valueFrom":
            {"fileKeyRef": {"volumeName": "scratch", "path": "env", "key": "WORD"}}},
    ]);
    main["volumeMounts"] = json!([
        {"name": "scratch", "mountPath": "/scratch"}, {"name": "cm", "mountPath": "/cm"},
        {"name": "s", "mountPath": "/s"}, {"name": "mixed", "mountPath": "/mixed"},
        {"name": "host", "mountPath": "/host"},
        {"name": "cm", "mountPath": "/sub", "subPath": "KEY"},
    ]);
    let other = shell("other", "kill -9 $$$$");
    let labels = json!([{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels['l']"}}]);
    let spec = json!({"hostname": "job-0", "initContainers": [init], "containers": [main, other],
    "volumes": [
        {"name": "scratch", "emptyDir": {}}, {"name": "cm", "configMap": {"name": "cm"}},
        {"name": "s", "secret": {"secretName": "s"}},
        {"name": "host", "hostPath": {"path": host.path(), "type": "Directory"}},
        {"name": "mixed", "projected": {"sources": [
            {"secret": {"name": "s", "items": [{"key": "SECRET", "path": "deep/one"}]}},
            {"downwardAPI": {"items": labels}}]}},
    ]});
    cluster.create("p", spec).await;
    let pod = cluster.wait_phase("p", "Failed").await;
    assert_eq!(
        log(&node, &pod, "main").await,
        "from map $(KEY) p 2 from map of secret of init\n/scratch\njob-0\n1\n\
         of mapof secretof secretfrom map\nof host\nread-only\nwritten\n"
    );
    assert_eq!(state_of(&pod, "init"), "terminated Completed 0");
    assert_eq!(state_of(&pod, "main"), "terminated Error 3");
    assert_eq!(message(&pod, "main"), "goodbye\n");
    assert_eq!(state_of(&pod, "other"), "terminated Error 137");
    let pods = cluster.folder.path().join("pods");
    eventually(|| std::fs::read_dir(&pods).is_ok_and(|it| it.count() == 0)).await;
}

/// Waits until something is so.
async fn eventually(mut is_so: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !is_so() {
        assert!(began.elapsed() < std::time::Duration::from_secs(60), "it never comes to it");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn hooks_and_probes_run_in_the_container_and_its_end_leaves_time_to_clean_up() {
    let Some((cluster, node)) = start().await else { return };
    let mut main = shell("main", "trap 'echo asked; exit 0' TERM; while :; do sleep 0.01; done");
    main["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    main["lifecycle"] = json!({
        "postStart": {"exec": {"command": ["sh", "-c", "echo up > /v/up"]}},
        "preStop": {"exec": {"command": ["sh", "-c", "echo stopping > /proc/$(cat /v/pid)/fd/1"]}},
    });
    main["command"][2] = json!(format!(
        "exec 2>/dev/null; echo $$$$ > /v/pid; {}",
        main["command"][2].as_str().expect("a script")
    ));
    main["readinessProbe"] =
        json!({"exec": {"command": ["test", "-e", "/v/up"]}, "periodSeconds": 1});
    let spec = json!({"containers": [main], "volumes": [{"name": "v", "emptyDir": {}}],
        "terminationGracePeriodSeconds": 30});
    cluster.create("p", spec).await;
    cluster.wait("p", "is ready", |pod| condition(pod, "Ready") == "True").await;
    let finalizer = Patch::Merge(json!({"metadata": {"finalizers": ["a.io/b"]}}));
    let patched = cluster.pods().patch("p", &PatchParams::default(), &finalizer).await;
    patched.expect("it can be kept");
    cluster.delete("p", None).await;
    let pod = cluster.wait("p", "ends", |pod| phase(pod) == "Succeeded").await;
    assert_eq!(log(&node, &pod, "main").await, "stopping\nasked\n");
}

#[tokio::test]
async fn a_mounted_config_map_changes_while_the_container_runs() {
    let cluster = Cluster::new().await;
    let runtime = runtime(&cluster).await;
    if runtime.isolation() == Isolation::None {
        return eprintln!("nothing can be mounted here: {:?}", runtime.notes());
    }
    let options = stint_node::Options {
        volume_interval: std::time::Duration::from_millis(50),
        ..cluster.options()
    };
    let node = cluster.start_on(Arc::new(runtime), options);
    cluster.config_map("cm", json!({"k": "old"})).await;
    let mut main = shell(
        "main",
        "cat /v/k; echo; while test $(cat /v/k) = old; do sleep 0.01; done; cat /v/k /sub",
    );
    main["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"},
        {"name": "v", "mountPath": "/sub", "subPath": "k"}]);
    let spec =
        json!({"containers": [main], "volumes": [{"name": "v", "configMap": {"name": "cm"}}]});
    cluster.create("p", spec).await;
    cluster.wait_phase("p", "Running").await;
    let maps: Api<k8s_openapi::api::core::v1::ConfigMap> =
        Api::namespaced(cluster.admin.clone(), NAMESPACE);
    let patch = Patch::Merge(json!({"data": {"k": "new"}}));
    maps.patch("cm", &PatchParams::default(), &patch).await.expect("it can be changed");
    let pod = cluster.wait_phase("p", "Succeeded").await;
    assert_eq!(log(&node, &pod, "main").await, "old\nnewold");
}
