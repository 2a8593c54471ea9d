//! What `deploy/` installs, asked of a real kube-apiserver: every kustomize overlay and the Helm chart
//! with its values, applied without effect (server-side dry run); the Pods of their Deployments,
//! which must be allowed where Pod Security is restricted; and one overlay in place of the other.

use std::collections::BTreeSet;
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

/// Where stint says how it is, unless it is told otherwise.
const PORT: u16 = 8080;

/// From one overlay to the other.
const OVER: &str = "manifests/kustomize-over";

/// The component for the Prometheus Operator.
const MONITOR: &str = "service-monitor";

/// By which label installations differ.
const INSTANCE: &str = "app.kubernetes.io/instance";

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
    let component = [format!("manifests/kustomize-{MONITOR}")];
    let charts = VALUES.iter().map(|(name, _)| format!("manifests/helm-{name}"));
    overlays.chain(component).chain(charts).chain([OVER.to_owned()]).collect()
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
        let (took, result) = match &**name {
            OVER => attempt(move_over(&cluster)).await,
            _ => attempt(check(&cluster, name)).await,
        };
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
    let installations = installations(name, &version).await;
    for objects in &installations {
        apply(cluster, objects, &["--dry-run=server"]).await;
        check_rules(objects).await;
        check_selectors(objects);
        check_pods(only(objects, "Deployment"));
        create_pod(&admin, &only(objects, "Deployment")["spec"]["template"]).await;
    }
    check_monitors(&installations);
}

/// What docs/kubernetes.md says of the Pods and no API server asks for: how many there are, that nothing
/// can be written in them, what they may use, and that they are asked how they are where stint says it.
fn check_pods(deployment: &Value) {
    assert_eq!(deployment["spec"]["replicas"], 2);
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true, "{container}");
    let resources = &container["resources"];
    for amount in ["/requests/cpu", "/requests/memory", "/limits/memory"] {
        assert!(resources.pointer(amount).is_some(), "no {amount} in {resources}");
    }
    assert_eq!(container["ports"], json!([{"name": "http", "containerPort": PORT}]));
    for (probe, path) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
        assert_eq!(container[probe]["httpGet"], json!({"path": path, "port": "http"}), "{probe}");
    }
}

/// Everything that selects the Pods or the Service of an installation selects those, and says of which
/// installation they are.
fn check_selectors(objects: &[Value]) {
    let (deployment, service) = (only(objects, "Deployment"), only(objects, "Service"));
    let budget = only(objects, "PodDisruptionBudget");
    let template = &deployment["spec"]["template"];
    let (affinity, spread) =
        (&template["spec"]["affinity"], &template["spec"]["topologySpreadConstraints"]);
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let apart = &affinity["podAntiAffinity"][preferred][0]["podAffinityTerm"];
    let selectors = [
        ("the Deployment", &deployment["spec"]["selector"]["matchLabels"]),
        ("the PodDisruptionBudget", &budget["spec"]["selector"]["matchLabels"]),
        ("the Service", &service["spec"]["selector"]),
        ("the anti-affinity", &apart["labelSelector"]["matchLabels"]),
        ("the spread over zones", &spread[0]["labelSelector"]["matchLabels"]),
    ];
    let pods = &template["metadata"]["labels"];
    for (what, selector) in selectors {
        assert!(selects(selector, pods), "{what} selects {selector}, and Pods have {pods}");
    }
    for object in [budget, service] {
        assert_eq!(namespace(object), namespace(deployment), "{}", object["kind"]);
    }
}

/// Every ServiceMonitor selects the Service that it came with, and none of another installation.
fn check_monitors(installations: &[Vec<Value>]) {
    for (number, objects) in installations.iter().enumerate() {
        let Some(monitor) = find(objects, "ServiceMonitor") else { continue };
        let selector = &monitor["spec"]["selector"]["matchLabels"];
        for (other, objects) in installations.iter().enumerate() {
            let service = only(objects, "Service");
            let labels = &service["metadata"]["labels"];
            let is_selected = selects(selector, labels) && namespace(monitor) == namespace(service);
            assert_eq!(is_selected, number == other, "{selector}, and a Service has {labels}");
        }
        let port = &monitor["spec"]["endpoints"][0]["port"];
        assert_eq!(port, &only(objects, "Service")["spec"]["ports"][0]["name"]);
    }
}

/// Whether labels are selected, by which installation it is among others.
fn selects(selector: &Value, labels: &Value) -> bool {
    let Some(pairs) = selector.as_object() else { return false };
    pairs.contains_key(INSTANCE) && pairs.iter().all(|(key, value)| labels[key] == *value)
}

fn namespace(object: &Value) -> Option<&str> {
    object["metadata"]["namespace"].as_str()
}

fn find<'a>(objects: &'a [Value], kind: &str) -> Option<&'a Value> {
    objects.iter().find(|object| object["kind"] == kind)
}

/// The object of this kind, of which there is one.
fn only<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let count = objects.iter().filter(|object| object["kind"] == kind).count();
    assert_eq!(count, 1, "objects that are a {kind}");
    find(objects, kind).expect("there is one")
}

/// The rights are those that the scenarios of `rights` are about, however they are installed: of Jobs and
/// around them, and of the Lease. There is no role that grants anything else.
async fn check_rules(objects: &[Value]) {
    let model = deployed::kustomized("overlays/managed-by").await.expect("it can be rendered");
    let model: BTreeSet<String> = rules(&model).into_iter().collect();
    assert_eq!(model.len(), 2, "a role for Jobs and one for the Lease");
    let found: BTreeSet<String> = rules(objects).into_iter().collect();
    assert_eq!(found, model);
}

/// What each role grants, whatever the Lease is called.
fn rules(objects: &[Value]) -> Vec<String> {
    let roles = objects
        .iter()
        .filter(|object| matches!(object["kind"].as_str(), Some("Role" | "ClusterRole")));
    let rules = roles.map(|role| {
        let mut rules = role["rules"].clone();
        for rule in rules.as_array_mut().into_iter().flatten() {
            if let Some(names) = rule.get_mut("resourceNames") {
                assert_eq!(names.as_array().map(Vec::len), Some(1), "one Lease");
                *names = json!(["the Lease"]);
            }
        }
        rules.to_string()
    });
    rules.collect()
}

/// What a scenario installs on this version of Kubernetes, each with what belongs to it.
async fn installations(name: &str, version: &str) -> Vec<Vec<Value>> {
    let name = name.trim_start_matches("manifests/");
    if let Some(component) = name.strip_prefix("kustomize-").filter(|it| *it == MONITOR) {
        let mut all = Vec::new();
        for overlay in OVERLAYS {
            let objects = deployed::extended(overlay, component).await.expect("it can be rendered");
            assert!(find(&objects, "ServiceMonitor").is_some(), "{overlay} has none");
            all.push(objects);
        }
        return all;
    }
    if let Some(overlay) = name.strip_prefix("kustomize-") {
        let path = format!("overlays/{overlay}");
        return vec![deployed::kustomized(&path).await.expect("it can be rendered")];
    }
    let name = name.trim_start_matches("helm-");
    let (_, values) = VALUES.iter().find(|(known, _)| *known == name).expect("it was named");
    let objects = deployed::chart("stint", NAMESPACE, version, values).await;
    vec![objects.expect("it can be rendered")]
}

/// Applies objects; without a warning, which would be of fields that do not exist or of Pods that
/// will not be allowed.
async fn apply(cluster: &Cluster, objects: &[Value], flags: &[&str]) {
    let arguments = [&["apply", "--server-side", "--output=name", "--filename=-"], flags].concat();
    let applied = kubectl(cluster, &arguments, objects).await;
    assert_eq!(applied.lines().count(), objects.len(), "{applied}");
}

/// What kubectl says of objects.
pub(crate) async fn kubectl(cluster: &Cluster, arguments: &[&str], objects: &[Value]) -> String {
    let kubectl = programs::get("kubectl", None).expect("there is a kubectl");
    let kubeconfig = cluster.kubeconfig(&User::admin()).expect("a kubeconfig");
    let mut command = Command::new(kubectl);
    command.arg(format!("--kubeconfig={}", kubeconfig.display())).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn().expect("kubectl can be run");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(list.as_bytes()).await.expect("it listens");
    drop(input);
    let output = child.wait_with_output().await.expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(errors, "");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// One overlay is installed, then the other beside it, and the first is taken away: the other stays
/// whole, and so does the namespace that they share.
async fn move_over(cluster: &Cluster) {
    let overlay = async |name: &str| {
        let path = format!("overlays/{name}");
        deployed::kustomized(&path).await.expect("it can be rendered")
    };
    let (first, second) = (overlay("managed-by").await, overlay("replace-builtin").await);
    for objects in [&first, &second] {
        apply(cluster, objects, &[]).await;
    }
    kubectl(cluster, &["delete", "--wait=false", "--output=name", "--filename=-"], &first).await;
    let namespace = deployed::namespace().expect("it can be read");
    let stays = [namespace, second].concat();
    let left = kubectl(cluster, &["get", "--output=json", "--filename=-"], &stays).await;
    let left: Value = serde_json::from_str(&left).expect("JSON");
    let left = left["items"].as_array().expect("a list");
    assert_eq!(left.len(), stays.len());
    for object in left {
        let meta = &object["metadata"];
        let (kind, name) = (&object["kind"], &meta["name"]);
        assert!(meta["deletionTimestamp"].is_null(), "{kind} {name} goes with the other overlay");
    }
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

/// The kind ServiceMonitor, as the Prometheus Operator defines it.
async fn define_monitors(cluster: &Cluster) {
    let path = programs::get("service-monitor", None).expect("there is a definition");
    let definition = deployed::from_file(&path).expect("it can be read");
    apply(cluster, &definition, &[]).await;
    let admin = cluster.admin().await.expect("a client");
    let definitions: Api<CustomResourceDefinition> = Api::all(admin);
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
