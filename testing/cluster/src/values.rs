//! The values of the Helm chart: what stint would refuse, Helm refuses before anything is installed, and
//! says which value it is; what Helm takes, stint takes. No cluster is asked.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use stint_api::feature_gates::Gate;
use tokio::process::Command;

use crate::attempt::attempt;
use crate::cluster::ClusterError;
use crate::deployed::{self, DeployedError};
use crate::program;
use crate::report::Report;
use crate::suite::Suite;

const REFUSED: &str = "values/refused";
const ACCEPTED: &str = "values/accepted";

/// Any that the chart is for.
const VERSION: &str = "1.36.0";

/// What is refused, as JSON by its place, and what is named then.
const WRONG: [(&str, &str, &str); 44] = [
    ("managedBy", "\"nobody\"", "managedBy"),
    ("managedBy", "\"a..b/c\"", "managedBy"),
    ("managedBy", "\"-a.io/c\"", "managedBy"),
    ("managedBy", "\"a.io/\"", "managedBy"),
    ("managedBy", "\"a.io/b c\"", "managedBy"),
    ("managedBy", "\"kubernetes.io/job-controller\"", "managedBy"),
    (
        "managedBy",
        "\"a.io/012345678901234567890123456789012345678901234567890123456789\"",
        "managedBy",
    ),
    ("managedBy", "null", "managedBy"),
    ("namespaces", "[\"A\"]", "namespaces"),
    ("namespaces", "[\"a b\"]", "namespaces"),
    ("namespaces", "[\"../a\"]", "namespaces"),
    ("namespaces", "[\"\"]", "namespaces"),
    ("config", "null", "config"),
    ("config.max-inflite", "3", "max-inflite"),
    ("config.max-inflight", "0", "max-inflight"),
    ("config.max-inflight", "1.5", "max-inflight"),
    ("config.max-inflight", "1e30", "max-inflight"),
    ("config.qps", "0", "qps"),
    ("config.qps", "-1", "qps"),
    ("config.feature-gates", "\"JobManagedBi=true\"", "feature-gates"),
    ("config.feature-gates", "\"JobManagedBy\"", "feature-gates"),
    ("config.feature-gates", "\"JobManagedBy=no\"", "feature-gates"),
    ("config.feature-gates", "\"JobManagedBy=false\"", "JobManagedBy off"),
    ("config.log-level", "\"loud\"", "log-level"),
    ("config.pod-failure-backoff-base", "\"10\"", "pod-failure-backoff-base"),
    ("config.pod-failure-backoff-base", "\"-1s\"", "pod-failure-backoff-base"),
    ("config.pod-failure-backoff-base", "\"11m\"", "pod-failure-backoff-max (10m)"),
    ("config.pod-failure-backoff-max", "\"9s\"", "pod-failure-backoff-base (10s)"),
    ("leaderElection.leaseName", "\"a..b\"", "leaseName"),
    ("leaderElection.leaseName", "\"A\"", "leaseName"),
    ("leaderElection.leaseDuration", "null", "leaseDuration"),
    ("leaderElection.leaseDuration", "\"\"", "leaseDuration"),
    ("leaderElection.leaseDuration", "\"15500ms\"", "leaseDuration"),
    ("leaderElection.leaseDuration", "\"10s\"", "longer than leaderElection.renewDeadline"),
    ("leaderElection.renewDeadline", "\"2400ms\"", "longer than 1.2 times"),
    ("leaderElection.retryPeriod", "\"99ms\"", "100ms at least"),
    ("leaderElection.retryPeriod", "\"soon\"", "retryPeriod"),
    ("serviceAccount.create", "false", "serviceAccount.name is empty"),
    ("podDisruptionBudget.minAvailable", "2", "podDisruptionBudget.minAvailable (2)"),
    ("podDisruptionBudget.minAvailable", "3", "replicaCount (2)"),
    ("podDisruptionBudget.minAvailable", "\"51%\"", "podDisruptionBudget.minAvailable (51%)"),
    ("podDisruptionBudget.minAvailable", "\"100%\"", "replicaCount (2)"),
    ("podDisruptionBudget.minAvailable", "-1", "minAvailable"),
    ("podDisruptionBudget.minAvailable", "null", "minAvailable"),
];

/// What is taken: values at the edges of what the table above refuses.
const RIGHT: [(&str, &str); 22] = [
    ("managedBy", "\"example.com/a/b.c~d%!$&'()*+,;=:-\""),
    ("managedBy", "\"x/y\""),
    ("replaceBuiltin", "true"),
    ("namespaces", "[\"a\",\"b-1\"]"),
    ("namespaces", "null"),
    ("config.max-inflight", "1"),
    ("config.max-inflight", "100000"),
    ("config.qps", "0.001"),
    ("config.qps", "1000000"),
    ("config.feature-gates", "\"\""),
    ("config.pod-failure-backoff-base", "\"10m\""),
    ("config.pod-failure-backoff-max", "\"1h02m03s004ms\""),
    ("leaderElection.leaseName", "\"a.b-c\""),
    ("leaderElection.leaseDuration", "\"99999h999999m99999999s\""),
    ("leaderElection.leaseDuration", "\"11s\""),
    ("leaderElection.renewDeadline", "\"2401ms\""),
    ("serviceAccount", "{\"create\":false,\"name\":\"mine\"}"),
    ("podDisruptionBudget.minAvailable", "0"),
    ("podDisruptionBudget.minAvailable", "\"50%\""),
    ("podDisruptionBudget", "{\"enabled\":false,\"minAvailable\":2}"),
    ("replicaCount", "0"),
    ("replicaCount", "1"),
];

/// Texts that YAML would take for numbers and the like, where they stand without quotes.
const LOOK_ALIKES: [(&str, &str); 7] = [
    ("namespaces", "[\"1e3\",\"null\"]"),
    ("leaderElection.leaseName", "\"007\""),
    ("serviceAccount.name", "\"0x1\""),
    ("priorityClassName", "\"1\""),
    ("serviceMonitor.enabled", "true"),
    ("serviceMonitor.interval", "\"30\""),
    ("podDisruptionBudget.minAvailable", "\"50%\""),
];

/// What is a text in every object.
const TEXTS: [&str; 6] =
    ["name", "namespace", "serviceAccountName", "priorityClassName", "interval", "resourceNames"];

/// The names of the scenarios.
pub fn names() -> Vec<String> {
    [REFUSED, ACCEPTED].map(str::to_owned).to_vec()
}

/// Runs what was asked for.
pub async fn run(suite: &Suite, report: &mut Report) -> Result<(), ClusterError> {
    if suite.wants(REFUSED) {
        let (took, result) = attempt(refused()).await;
        report.tell(REFUSED, took, result);
    }
    if suite.wants(ACCEPTED) {
        let stint = program::path(&suite.build).await?;
        let (took, result) = attempt(accepted(&stint)).await;
        report.tell(ACCEPTED, took, result);
    }
    Ok(())
}

async fn render(place: &str, value: &str) -> Result<Vec<Value>, DeployedError> {
    let flag = format!("--set-json={place}={value}");
    deployed::chart_with("stint", "stint-system", VERSION, &[flag]).await
}

async fn refused() {
    for (place, value, named) in WRONG {
        match render(place, value).await {
            Ok(_) => panic!("the chart takes {place}={value}"),
            Err(DeployedError::Render { words, .. }) => {
                assert!(words.contains(named), "{place}={value}: {words}");
            }
            Err(other) => panic!("{other}"),
        }
    }
}

async fn accepted(stint: &Path) {
    // Without that one stint runs nothing but in place of the built-in controller.
    let all = Gate::ALL.iter().filter(|gate| **gate != Gate::JobManagedBy);
    let gates: Vec<String> = all.map(|gate| format!("{}=false", gate.name())).collect();
    let gates = format!("\"{}\"", gates.join(","));
    let rows = RIGHT.into_iter().chain([("config.feature-gates", &*gates)]);
    for (place, value) in rows {
        let objects = render(place, value).await.expect("the chart takes it");
        let map = objects.iter().find(|object| object["kind"] == "ConfigMap");
        let text = map.and_then(|map| map["data"]["stint.yaml"].as_str()).expect("its file");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("stint.yaml");
        std::fs::write(&file, text).expect("it can be written");
        let mut command = Command::new(stint);
        command.args(["controller", "--print-config", "--config"]).arg(&file);
        command.env_clear().stdin(Stdio::null());
        let output = command.output().await.expect("stint can be run");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{place}={value}: {words}\n{text}");
    }
    let flags = LOOK_ALIKES.map(|(place, value)| format!("--set-json={place}={value}"));
    let objects = deployed::chart_with("stint", "123", VERSION, &flags).await;
    objects.expect("the chart takes them").iter().for_each(has_texts);
}

/// What must be a text is one.
fn has_texts(value: &Value) {
    for (key, inner) in value.as_object().into_iter().flatten() {
        let mut texts = inner.as_array().map_or(std::slice::from_ref(inner), Vec::as_slice).iter();
        let is_text = !TEXTS.contains(&&**key) || texts.all(Value::is_string);
        assert!(is_text, "{key}: {inner} is no text");
        has_texts(inner);
    }
    value.as_array().into_iter().flatten().for_each(has_texts);
}
