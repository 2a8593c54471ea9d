//! The API as the embedded server describes it, beside the description of a real kube-apiserver:
//! every type and every operation that the embedded server tells of must be there, and be the
//! same. What differs is listed with its reason, and a difference that is not there any more is
//! to be taken from the list.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use http::Request;
use kube::Client;
use serde_json::{Map, Value};
use stint_api::feature_gates::FeatureGates;
use stint_apiserver::access::{Authenticator, Identity};
use stint_apiserver::log::NoLogs;
use stint_apiserver::{ApiServer, Clock, Config, Limits};
use stint_store::{Options, Store};

use crate::attempt::attempt;
use crate::cluster::{Cluster, ClusterError};
use crate::report::Report;
use crate::suite::Suite;

/// Types and operations of v3.
const V3: &str = "openapi/v3";

/// Types of v2.
const V2: &str = "openapi/v2";

/// What differs: a part of the line, and why.
type Difference = (&'static str, &'static str);

const IN_V3: &[Difference] = &[
    ("List.description", "k8s-openapi has one type for all lists; their words are our own"),
    ("List.properties.items.description", "the same"),
    ("List.properties.metadata.description", "the same"),
    ("parameter ignoreStoreReadErrorWithClusterBreakingPotential", "nothing stored is unreadable"),
    ("parameter shardSelector", "an alpha feature that is not served"),
];

const IN_V2: &[Difference] = &[
    ("DeleteOptions.x-kubernetes-group-version-kind", "there are fewer groups"),
    ("WatchEvent.x-kubernetes-group-version-kind", "there are fewer groups"),
    ("WatchEvent.description", "k8s-openapi says of the type what Kubernetes says of its field"),
    ("WatchEvent.properties.object.description", "the same"),
    ("List.description", "k8s-openapi has one type for all lists; their words are our own"),
    ("List.properties.items.description", "the same"),
    ("List.properties.metadata.description", "the same"),
];

/// The names of the scenarios.
pub fn names() -> Vec<String> {
    vec![V3.to_owned(), V2.to_owned()]
}

/// Runs what was asked for.
pub async fn run(suite: &Suite, report: &mut Report) -> Result<(), ClusterError> {
    if !names().iter().any(|name| suite.wants(name)) {
        return Ok(());
    }
    let cluster = Cluster::start(suite.options.clone()).await?;
    if !cluster.version().is_that_of_rows() {
        println!("        openapi: the descriptions are those of another version");
        return Ok(());
    }
    for name in names().iter().filter(|name| suite.wants(name)) {
        let (took, result) = match &**name {
            V2 => attempt(compare_v2(&cluster)).await,
            _ => attempt(compare_v3(&cluster)).await,
        };
        report.tell(name, took, result);
    }
    Ok(())
}

async fn compare_v3(cluster: &Cluster) {
    let (real, ours) = (cluster.admin().await.expect("a client"), embedded());
    let (theirs, index) = (get(&real, "/openapi/v3").await, get(&ours, "/openapi/v3").await);
    let mut found = Vec::new();
    let mut compared = 0;
    for (name, place) in object(&index["paths"]) {
        let Some(there) = theirs["paths"][name]["serverRelativeURL"].as_str() else {
            found.push(format!("{name} is no part of theirs"));
            continue;
        };
        let ours = get(&ours, place["serverRelativeURL"].as_str().expect("a place")).await;
        let theirs = get(&real, there).await;
        let (own, known) = (&ours["components"]["schemas"], &theirs["components"]["schemas"]);
        compared += types(object(own), object(known), &mut found);
        operations(&ours["paths"], &theirs["paths"], &mut found);
    }
    assert!(compared > 300, "only {compared} types were compared");
    judge(found, IN_V3);
}

async fn compare_v2(cluster: &Cluster) {
    let (real, ours) = (cluster.admin().await.expect("a client"), embedded());
    let (theirs, ours) = (get(&real, "/openapi/v2").await, get(&ours, "/openapi/v2").await);
    let mut found = Vec::new();
    let compared = types(object(&ours["definitions"]), object(&theirs["definitions"]), &mut found);
    assert!(compared > 200, "only {compared} types were compared");
    judge(found, IN_V2);
}

/// The embedded server, in this process.
fn embedded() -> Client {
    let (gates, clock, logs) = (FeatureGates::default(), Clock::system(), Arc::new(NoLogs));
    let config = Config { gates, clock, logs, tracks_owners: true };
    let nobody = Authenticator::new(Vec::<(String, Identity)>::new());
    let store = Store::in_memory(Options::default());
    let server = ApiServer::new(store, nobody, config, Limits::default());
    Client::new(server.local(Identity::admin()), "default")
}

async fn get(client: &Client, path: &str) -> Value {
    let request = Request::get(path).body(Vec::new()).expect("a request");
    client.request(request).await.unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What differs must be expected, and what is expected must differ.
fn judge(found: Vec<String>, expected: &[Difference]) {
    let mut used = BTreeSet::new();
    let mut wrong = Vec::new();
    for line in found {
        match expected.iter().position(|(part, _)| line.contains(part)) {
            Some(at) => drop(used.insert(at)),
            None => wrong.push(line),
        }
    }
    let stale = expected.iter().enumerate().filter(|(at, _)| !used.contains(at));
    wrong.extend(stale.map(|(_, (part, _))| format!("does not differ any more: {part}")));
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

/// Compares types; how many.
fn types(ours: &Map<String, Value>, theirs: &Map<String, Value>, found: &mut Vec<String>) -> usize {
    for (name, own) in ours {
        let short = name.rsplit('.').next().expect("a name");
        match theirs.get(name) {
            Some(known) => differences(short, &plain(own), &plain(known), found),
            None => found.push(format!("{name} is no type of theirs")),
        }
    }
    ours.len()
}

/// A type without what this server does not tell: the words that kube-apiserver adds to the
/// description of an enumeration for its values. The order of names means nothing.
fn plain(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let plain = members.iter().map(|(name, value)| {
                let value = match (name.as_str(), value) {
                    ("description", Value::String(text)) => {
                        let words = text.split("Possible enum values:").next().unwrap_or("");
                        words.trim_end().into()
                    }
                    ("required", Value::Array(names)) => {
                        let mut names = names.clone();
                        names.sort_by_key(ToString::to_string);
                        names.into()
                    }
                    (_, value) => self::plain(value),
                };
                (name.clone(), value)
            });
            Value::Object(plain.collect())
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        other => other.clone(),
    }
}

/// One line for each difference.
fn differences(path: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                let path = format!("{path}.{name}");
                match (a.get(name), b.get(name)) {
                    (Some(a), Some(b)) => differences(&path, a, b, found),
                    (Some(a), None) => found.push(format!("{path}: only ours is {a}")),
                    (None, Some(b)) => found.push(format!("{path}: only theirs is {b}")),
                    (None, None) => {}
                }
            }
        }
        _ if ours == theirs => {}
        _ => found.push(format!("{path}: ours {ours}, theirs {theirs}")),
    }
}

/// Compares the operations of paths.
fn operations(ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    for (path, own) in object(ours) {
        let Some(known) = theirs.get(path) else {
            found.push(format!("{path} is no path of theirs"));
            continue;
        };
        for (method, operation) in object(own).iter().filter(|(name, _)| *name != "parameters") {
            let at = format!("{method} {path}");
            match known.get(method) {
                Some(there) => {
                    let (a, b) = (sight(operation, own), sight(there, known));
                    for line in a.symmetric_difference(&b) {
                        let whose = if a.contains(line) { "ours" } else { "theirs" };
                        found.push(format!("{at}: only {whose} has {line}"));
                    }
                }
                None => found.push(format!("{at} is no operation of theirs")),
            }
        }
    }
}

/// What there is to know of an operation, one line each. Media types of answers are not compared:
/// there is neither CBOR nor protobuf here; nor are the words for parameters, which are our own.
fn sight(operation: &Value, item: &Value) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for name in ["description", "operationId", "tags", "x-kubernetes-action"] {
        lines.insert(format!("{name} {}", operation[name]));
    }
    let kind: BTreeMap<&String, &Value> =
        operation["x-kubernetes-group-version-kind"].as_object().into_iter().flatten().collect();
    lines.insert(format!("kind {kind:?}"));
    let none = Vec::new();
    let lists = [&operation["parameters"], &item["parameters"]];
    for parameter in lists.into_iter().flat_map(|list| list.as_array().unwrap_or(&none)) {
        let (name, place) = (&parameter["name"], &parameter["in"]);
        let name = name.as_str().unwrap_or("");
        let (of, is_required) = (&parameter["schema"], &parameter["required"]);
        lines.insert(format!("parameter {name} in {place}: {of}, required {is_required}"));
    }
    if let Some(body) = operation["requestBody"]["content"].as_object() {
        lines.insert(format!("body required {}", operation["requestBody"]["required"]));
        for (media_type, content) in body {
            lines.insert(format!("body {media_type} {}", content["schema"]));
        }
    }
    for (code, response) in object(&operation["responses"]) {
        let content = response["content"].as_object();
        let json = content.and_then(|of| of.get("application/json").or(of.get("text/plain")));
        let schema = json.map(|json| json["schema"].to_string()).unwrap_or_default();
        lines.insert(format!("response {code} {} {schema}", response["description"]));
    }
    lines
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("an object")
}
