//! What `deploy/` installs, asked of a real kube-apiserver: every kustomize overlay and the Helm chart
//! with its values, applied without effect (server-side dry run); and the Pods of their Deployments,
//! which must be allowed where Pod Security is restricted.

use std::process::Stdio;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::attempt::attempt;
use crate::authority::User;
use crate::cluster::{Cluster, ClusterError};
use crate::report::Report;
use crate::suite::Suite;
use crate::{deployed, programs};

/// The namespace of all of it.
const NAMESPACE: &str = "stint-system";

/// The kind of the Prometheus Operator.
const MONITORS: &str = "servicemonitors.monitoring.coreos.com";

const OVERLAYS: [&str; 3] = ["managed-by", "replace-builtin", "namespaced"];

/// The values that the chart is rendered with.
const VALUES: [(&str, &[&str]); 4] = [
    ("plain", &[]),
    ("replace-builtin", &["replaceBuiltin=true"]),
    ("namespaces", &["namespaces={default,kube-system}"]),
    ("service-monitor", &["serviceMonitor.enabled=true", "serviceMonitor.labels.team=batch"]),
];

/// The names of the scenarios.
pub fn names() -> Vec<String> {
    let overlays = OVERLAYS.iter().map(|name| format!("manifests/kustomize-{name}"));
    let component = ["manifests/kustomize-service-monitor".to_owned()];
    let charts = VALUES.iter().map(|(name, _)| format!("manifests/helm-{name}"));
    overlays.chain(component).chain(charts).collect()
}

/// Runs what was asked for.
pub async fn run(suite: &Suite, report: &mut Report) -> Result<(), ClusterError> {
    if !names().iter().any(|name| suite.wants(name)) {
        return Ok(());
    }
    let mut cluster = Cluster::start(suite.options.clone()).await?;
    let before = report.failed();
    let (took, result) = attempt(define_monitors(&cluster)).await;
    if result.is_err() {
        report.tell("manifests: the kind of the Prometheus Operator", took, result);
    }
    for name in names().iter().filter(|name| suite.wants(name)) {
        let (took, result) = attempt(check(&cluster, name)).await;
        report.tell(name, took, result);
    }
    if report.failed() > before || suite.keeps_logs {
        cluster.keep_folder();
        println!("logs: {}", cluster.folder().display());
    }
    Ok(())
}

async fn check(cluster: &Cluster, name: &str) {
    let admin = cluster.admin().await.expect("a client");
    let version = admin.apiserver_version().await.expect("a version").git_version;
    let mut objects = objects(name, &version).await;
    assert!(!objects.is_empty(), "nothing is installed");
    for monitor in objects.iter_mut().filter(|object| object["kind"] == "ServiceMonitor") {
        monitor["metadata"]["namespace"] = NAMESPACE.into();
    }
    apply(cluster, &objects).await;
    check_rules(&objects).await;
    let deployments = objects.iter().filter(|object| object["kind"] == "Deployment");
    for deployment in deployments {
        create_pod(&admin, &deployment["spec"]["template"]).await;
    }
}

/// The rights are those that the scenarios of `rights` are about, however they are installed.
async fn check_rules(objects: &[Value]) {
    let rules = |objects: &[Value]| -> Vec<Value> {
        let is_of_jobs = |rules: &&Value| rules.to_string().contains("jobs/status");
        objects.iter().map(|object| &object["rules"]).filter(is_of_jobs).cloned().collect()
    };
    let model = deployed::kustomized("overlays/managed-by").await.expect("it can be rendered");
    let model = rules(&model);
    assert_eq!(model.len(), 1, "one role for Jobs");
    for rules in rules(objects) {
        assert_eq!(rules, model[0]);
    }
}

/// What a scenario is about, on this version of Kubernetes.
async fn objects(name: &str, version: &str) -> Vec<Value> {
    let name = name.trim_start_matches("manifests/");
    if name == "kustomize-service-monitor" {
        let path = "kustomize/components/service-monitor/service-monitor.yaml";
        let text = std::fs::read(deployed::folder().join(path)).expect("it can be read");
        return deployed::read(&text, path).expect("it is YAML");
    }
    if let Some(overlay) = name.strip_prefix("kustomize-") {
        let path = format!("overlays/{overlay}");
        return deployed::kustomized(&path).await.expect("it can be rendered");
    }
    let name = name.trim_start_matches("helm-");
    let (_, values) = VALUES.iter().find(|(known, _)| *known == name).expect("it was named");
    let helm = programs::get("helm", None).expect("there is a helm");
    let mut command = Command::new(helm);
    command.args(["template", "stint"]).arg(deployed::folder().join("helm/stint"));
    command.arg(format!("--namespace={NAMESPACE}")).arg(format!("--kube-version={version}"));
    command.args(values.iter().map(|value| format!("--set={value}")));
    deployed::rendered("helm", command, name).await.expect("it can be rendered")
}

/// Applies objects without effect.
async fn apply(cluster: &Cluster, objects: &[Value]) {
    let kubectl = programs::get("kubectl", None).expect("there is a kubectl");
    let kubeconfig = cluster.kubeconfig(&User::admin()).expect("a kubeconfig");
    let mut command = Command::new(kubectl);
    command.arg(format!("--kubeconfig={}", kubeconfig.display()));
    // The harness has put the roles of the overlays there already, and is their manager.
    command.args(["apply", "--server-side", "--dry-run=server", "--force-conflicts"]);
    command.args(["--output=name", "--filename=-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn().expect("kubectl can be run");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(list.as_bytes()).await.expect("it listens");
    drop(input);
    let output = child.wait_with_output().await.expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    // Warnings are of fields that do not exist, or of Pods that will not be allowed.
    assert_eq!(errors, "");
    let applied = String::from_utf8_lossy(&output.stdout).lines().count();
    assert_eq!(applied, objects.len(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Creates the Pod of a template without effect, in the namespace that takes restricted Pods only.
async fn create_pod(admin: &Client, template: &Value) {
    let mut pod = json!({"metadata": template["metadata"], "spec": template["spec"]});
    pod["metadata"]["name"] = "it".into();
    // Its own is not there: nothing was applied.
    pod["spec"]["serviceAccountName"] = "stint-controller".into();
    let pod: Pod = serde_json::from_value(pod).expect("a Pod");
    let pods: Api<Pod> = Api::namespaced(admin.clone(), NAMESPACE);
    let params = PostParams { dry_run: true, ..PostParams::default() };
    pods.create(&params, &pod).await.expect("its Pods are allowed");
}

/// The kind ServiceMonitor, of which nothing is known but its name.
async fn define_monitors(cluster: &Cluster) {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "metadata": {"name": MONITORS},
        "spec": {
            "group": "monitoring.coreos.com", "scope": "Namespaced",
            "names": {
                "kind": "ServiceMonitor", "plural": "servicemonitors",
                "singular": "servicemonitor", "listKind": "ServiceMonitorList",
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    });
    let definition: CustomResourceDefinition =
        serde_json::from_value(definition).expect("a definition");
    let admin = cluster.admin().await.expect("a client");
    let definitions: Api<CustomResourceDefinition> = Api::all(admin);
    definitions.create(&PostParams::default(), &definition).await.expect("it can be made");
    let is_served = |definition: CustomResourceDefinition| {
        let conditions = definition.status.and_then(|status| status.conditions);
        conditions
            .unwrap_or_default()
            .iter()
            .any(|it| it.type_ == "Established" && it.status == "True")
    };
    while !is_served(definitions.get(MONITORS).await.expect("it is there")) {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}
