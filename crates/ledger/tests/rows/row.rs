//! Rows as data: a Job, what happens to it, and what the ledger asks for in answer.
//!
//! ```yaml
//! - name: what the row shows, as a sentence
//!   job: {completions: 2}        # merged into the spec of the base manifest below
//!   show: events                 # instead of the writes: events, metrics, or several
//!   manages: example.com/own     # whose Jobs are ours, if not the built-in controller's
//!   forgivesNodes: true          # Pods that their node ended do not count
//!   statusEvery: 5               # the seconds between statuses that can wait, if not none
//!   crowdEvery: 60               # the same with many Jobs, for those that count but a few Pods
//!   script: |
//!     > pod a fails 1            # a step
//!     status uncountedFailed=[a] # the ops that it leads to, one a line
//! ```

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use stint_api::decode;

/// One row.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) job: Value,
    pub(crate) manages: Option<String>,
    pub(crate) forgives_nodes: bool,
    pub(crate) status_every: i64,
    pub(crate) crowd_every: i64,
    pub(crate) show: Vec<String>,
    pub(crate) script: Vec<Exchange>,
}

/// A step, and the lines that must come of it.
pub(crate) struct Exchange {
    pub(crate) step: String,
    pub(crate) expected: Vec<String>,
}

/// The rows of a file.
pub(crate) fn read(file: &str) -> Vec<Row> {
    let path = folder().join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
    let rows = yaml(&text);
    rows.as_array().expect("a file of rows is a list").iter().map(row).collect()
}

/// The files of rows, by name.
pub(crate) fn files() -> Vec<String> {
    let entries = fs::read_dir(folder()).expect("the folder of rows");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string());
    let mut files: Vec<String> = names.map(|name| name.expect("a UTF-8 name")).collect();
    files.retain(|name| name.ends_with(".yaml"));
    files.sort();
    files
}

/// The one document of a YAML text, read as Kubernetes reads it.
pub(crate) fn yaml(text: &str) -> Value {
    let documents = decode::read_str(text);
    let [document] = &documents[..] else { panic!("{} documents in: {text}", documents.len()) };
    assert!(document.problems.is_empty(), "{:#?}", document.problems);
    document.root.as_ref().expect("a document without problems has a root").to_json()
}

/// Merges a patch into a value (RFC 7386: null removes).
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let target = target.as_object_mut().expect("it was just made one");
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key).or_insert(Value::Null), value);
        }
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/rows")
}

fn row(value: &Value) -> Row {
    let name = value["name"].as_str().expect("a row has a name").to_owned();
    for key in value.as_object().expect("a row is an object").keys() {
        let known = [
            "name",
            "job",
            "manages",
            "forgivesNodes",
            "statusEvery",
            "crowdEvery",
            "show",
            "script",
        ];
        assert!(known.contains(&key.as_str()), "{name}: unknown key {key}");
    }
    let text = |key: &str| value.get(key).map(|text| text.as_str().expect("a text").to_owned());
    let show = text("show").unwrap_or_else(|| "writes".to_owned());
    Row {
        job: manifest(&value["job"]),
        manages: text("manages"),
        forgives_nodes: value["forgivesNodes"].as_bool().unwrap_or(false),
        status_every: value["statusEvery"].as_i64().unwrap_or(0),
        crowd_every: value["crowdEvery"].as_i64().unwrap_or(0),
        show: show.split(", ").map(str::to_owned).collect(),
        script: script(&text("script").unwrap_or_else(|| panic!("{name}: no script"))),
        name,
    }
}

/// The base manifest, with a patch merged into its spec.
fn manifest(patch: &Value) -> Value {
    let mut job = json!({
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "busybox:1.36"}],
        }}},
    });
    if !patch.is_null() {
        merge(&mut job["spec"], patch);
    }
    job
}

fn script(text: &str) -> Vec<Exchange> {
    let mut script: Vec<Exchange> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match (line.strip_prefix("> "), script.last_mut()) {
            (Some(step), _) => {
                script.push(Exchange { step: step.trim().to_owned(), expected: Vec::new() });
            }
            (None, Some(exchange)) => exchange.expected.push(line.trim().to_owned()),
            (None, None) => panic!("a script begins with a step: {line}"),
        }
    }
    script
}
