//! The metrics that the Grafana dashboard and the alerts of docs/kubernetes.md speak of, asked of a
//! `stint controller` that has run a Job: each must be there, with the labels that are asked for, and
//! every expression must be PromQL to Prometheus' own parser.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;

use serde::Deserialize;
use serde_json::{Value, json};
use stint_kit::job::end;
use stint_kit::{Driver, Fate};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::attempt::attempt;
use crate::cluster::ClusterError;
use crate::program::{self, Program, Setup};
use crate::report::Report;
use crate::stint::Mode;
use crate::suite::Suite;
use crate::theatre::{Player, Theatre};
use crate::{deployed, programs};

const NAME: &str = "manifests/dashboard";

/// The labels that Prometheus itself gives what it reads.
const TARGET: [&str; 2] = ["job", "namespace"];

/// Metrics that others serve, which alerts speak of: kube-state-metrics.
const OF_OTHERS: &str = "kube_";

/// What Grafana puts in place of its variables.
const VARIABLES: [(&str, &str); 2] = [("$__rate_interval", "1m"), ("$job", "stint")];

/// The names of the scenarios.
pub fn names() -> Vec<String> {
    vec![NAME.to_owned()]
}

/// Runs what was asked for.
pub async fn run(suite: &Suite, report: &mut Report) -> Result<(), ClusterError> {
    if !suite.wants(NAME) {
        return Ok(());
    }
    let path = program::path(&suite.build).await?;
    // One index fails in a way that its policy speaks of.
    let driver = Driver::new(|who| match who.index {
        Some(0) => Fate::fails(7),
        _ => Fate::succeeds(),
    });
    let theatre = Theatre::open(suite.options.clone(), &Player::Nobody, driver).await?;
    let before = report.failed();
    let (took, result) = attempt(async {
        let setup = Setup::new(Mode::Replace, "stint");
        let stint = Program::start(&theatre.cluster, &path, &setup).expect("it starts");
        run_job(&theatre).await;
        let served = served(&stint.ask("/metrics").await.expect("it serves metrics"));
        check(&served).await;
    })
    .await;
    report.tell(NAME, took, result);
    suite.close([theatre], report.failed() > before);
    Ok(())
}

/// Runs a Job of which every metric tells something.
async fn run_job(theatre: &Theatre) {
    let spec = json!({
        "completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimitPerIndex": 1,
        "podFailurePolicy": {"rules": [
            {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [7]}},
        ]},
    });
    theatre.stage.create("told", spec).await;
    let job = theatre.stage.finish("told").await;
    assert_eq!(end(&job).as_deref(), Some("Failed FailedIndexes"));
}

/// What an expression speaks of.
#[derive(Debug, Deserialize)]
struct Names {
    metrics: Vec<String>,
    labels: Vec<String>,
}

async fn check(served: &BTreeMap<String, BTreeSet<String>>) {
    let expressions = [of_dashboard(), of_alerts()].concat();
    let all_names = parse(&expressions).await;
    for (expression, names) in expressions.iter().zip(&all_names) {
        assert!(!names.metrics.is_empty(), "{expression} selects nothing");
        for metric in names.metrics.iter().filter(|metric| !metric.starts_with(OF_OTHERS)) {
            let known = served.get(metric);
            let known = known.unwrap_or_else(|| panic!("{expression}: {metric} is not served"));
            for label in names.labels.iter().filter(|label| !TARGET.contains(&&***label)) {
                assert!(known.contains(label), "{expression}: {metric} has no label {label}");
            }
        }
    }
}

/// The expressions of all panels, and those that variables are read from.
fn of_dashboard() -> Vec<String> {
    let path = deployed::folder().join("grafana/stint-job-controller.json");
    let text = std::fs::read(path).expect("it can be read");
    let dashboard: Value = serde_json::from_slice(&text).expect("it is JSON");
    let mut found = Vec::new();
    gather(&dashboard["panels"], &mut found);
    let panels = dashboard["panels"].as_array().map_or(0, Vec::len);
    assert!(found.len() >= panels && panels > 0, "a panel shows nothing: {found:?}");
    for variable in dashboard["templating"]["list"].as_array().into_iter().flatten() {
        // label_values(METRIC, LABEL), which is Grafana's own.
        let query = variable["query"]["query"].as_str().unwrap_or_default();
        let values = query.strip_prefix("label_values(").and_then(|it| it.strip_suffix(')'));
        found.extend(values.and_then(|it| it.split(',').next()).map(str::to_owned));
    }
    let fill = |text: String| {
        VARIABLES.iter().fold(text, |text, (variable, value)| text.replace(variable, value))
    };
    found.into_iter().map(fill).collect()
}

fn gather(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("expr").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| gather(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The expressions in the first column of the table of alerts.
fn of_alerts() -> Vec<String> {
    let path = deployed::folder().join("../docs/kubernetes.md");
    let text = std::fs::read_to_string(path).expect("it can be read");
    let (_, section) = text.split_once("## Metrics and alerts").expect("the section is there");
    let (section, _) = section.split_once("\n## ").expect("it is not the last one");
    let cell = |line: &str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned());
    let found: Vec<String> = section.lines().filter_map(cell).collect();
    assert!(found.len() >= 5, "the table has changed: {found:?}");
    found
}

/// What expressions speak of, by Prometheus' own parser.
async fn parse(expressions: &[String]) -> Vec<Names> {
    let promql = programs::get("promql", None).expect("there is a parser");
    let mut command = Command::new(promql);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn().expect("it can be run");
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(expressions.join("\n").as_bytes()).await.expect("it listens");
    drop(input);
    let output = child.wait_with_output().await.expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let names: Vec<Names> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(names.len(), expressions.len());
    names
}

/// Every metric of an answer in Prometheus' format, with its labels.
fn served(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut metrics: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name: String =
            line.chars().take_while(|it| it.is_ascii_alphanumeric() || *it == '_').collect();
        let labels = line.strip_prefix(&*name).and_then(|rest| rest.strip_prefix('{'));
        // Values have neither quotes nor equals signs here.
        let keys = labels.and_then(|rest| rest.split_once('}')).map_or("", |(inner, _)| inner);
        let keys = keys.split(',').filter_map(|pair| Some(pair.split_once('=')?.0.to_owned()));
        metrics.entry(name).or_default().extend(keys);
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_read_with_their_labels() {
        let text = "# TYPE a counter\na_total{b=\"1\",c=\"x\"} 1\nd 0\nd_bucket{le=\"+Inf\"} 2\n";
        let served = served(text);
        let labels = |name: &str| served[name].iter().cloned().collect::<Vec<_>>();
        assert_eq!(labels("a_total"), ["b", "c"]);
        assert_eq!(labels("d"), [""; 0]);
        assert_eq!(labels("d_bucket"), ["le"]);
    }

    #[test]
    fn the_dashboard_and_the_alerts_have_expressions() {
        let (dashboard, alerts) = (of_dashboard(), of_alerts());
        assert!(dashboard.contains(&"stint_build_info".to_owned()), "{dashboard:?}");
        assert!(!dashboard.iter().any(|text| text.contains('$')), "{dashboard:?}");
        assert!(alerts.iter().all(|text| !text.contains('|')), "{alerts:?}");
    }
}
