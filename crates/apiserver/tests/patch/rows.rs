//! Rows: an object, a patch, and what comes of it. `rows/*.yaml` are read by the house's own
//! decoder, so that their YAML is read as Kubernetes reads it.
//!
//! | key | what it is |
//! |---|---|
//! | `base` | the object in `bases.yaml` |
//! | `in` | the path that `original`, `patch` and `result` start at; the object if absent |
//! | `original` | laid over the base: null deletes, lists are replaced |
//! | `status` | the object's status, for a patch of the status subresource |
//! | `patch` | the patch |
//! | `result` | laid over the object: what the patch changes. The text `~null` is a null |
//! | `error`, `says` | or else the status of the answer, and what its message has in it |
//! | `upstream` | kube-apiserver's status, where it is not `error`; `panic` if it drops the connection |
//! | `differs` | why kube-apiserver comes to another result |

use std::fs;
use std::path::PathBuf;

use serde_json::{Map, Value, json};
use stint_api::decode;
use stint_apiserver::patch::{Patch, PatchType, schema};

use crate::dump;

const FILES: [(&str, PatchType, usize); 6] = [
    ("json", PatchType::Json, 50),
    ("merge", PatchType::Merge, 20),
    ("objects", PatchType::Strategic, 40),
    ("lists", PatchType::Strategic, 75),
    ("order", PatchType::Strategic, 30),
    ("kinds", PatchType::Strategic, 40),
];

const KEYS: [&str; 11] = [
    "name", "base", "in", "original", "status", "patch", "result", "error", "says", "upstream",
    "differs",
];

#[test]
fn every_row_holds() {
    let bases = read("bases.yaml");
    let mut wrong = Vec::new();
    for (file, patch_type, at_least) in FILES {
        let rows = read(&format!("rows/{file}.yaml"));
        let rows = rows.as_array().expect("a file of rows is a list");
        assert!(rows.len() >= at_least, "{file} has lost rows: {}", rows.len());
        for row in rows {
            let name = format!("{file}: {}", row["name"].as_str().expect("a row has a name"));
            for key in row.as_object().expect("a row is an object").keys() {
                assert!(KEYS.contains(&key.as_str()), "{name}: unknown key {key}");
            }
            let row = Row::new(&name, row, &bases, patch_type);
            dump::write(&row);
            wrong.extend(row.judge().err().map(|report| format!("{name}\n{report}")));
        }
    }
    assert!(wrong.is_empty(), "{} rows do not hold:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn the_page_counts_the_rows() {
    let page =
        fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/patches.md"))
            .expect("docs/patches.md");
    let rows: Vec<Value> = FILES
        .iter()
        .flat_map(|(file, ..)| read(&format!("rows/{file}.yaml")).as_array().unwrap().clone())
        .collect();
    let marked = |key: &str| rows.iter().filter(|row| row.get(key).is_some()).count();
    for text in [
        format!("{} rows", rows.len()),
        format!("{} rows marked `upstream`", marked("upstream")),
        format!("{} rows marked `differs`", marked("differs")),
    ] {
        assert!(page.contains(&text), "docs/patches.md does not say: {text}");
    }
}

/// A row written out.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) patch_type: PatchType,
    pub(crate) original: Value,
    pub(crate) patch: Value,
    pub(crate) subresource: Option<&'static str>,
    pub(crate) expected: Expected,
    pub(crate) upstream: Option<Value>,
    pub(crate) differs: Option<String>,
}

pub(crate) enum Expected {
    Result(Value),
    Error { status: u64, says: String },
}

impl Row {
    fn new(name: &str, row: &Value, bases: &Value, patch_type: PatchType) -> Self {
        let within = |value: &Value| match row.get("in") {
            Some(path) => {
                let path = path.as_str().expect("a path").rsplit('.');
                path.fold(value.clone(), |value, field| json!({ field: value }))
            }
            None => value.clone(),
        };
        let base = row["base"].as_str().expect("a row has a base");
        let mut original = bases.get(base).unwrap_or_else(|| panic!("{name}: no {base}")).clone();
        if let Some(over) = row.get("original") {
            overlay(&mut original, &within(over));
        }
        if let Some(status) = row.get("status") {
            original["status"] = status.clone();
        }
        let expected = match (row.get("result"), row.get("error")) {
            (Some(result), None) => {
                let mut expected = original.clone();
                overlay(&mut expected, &within(result));
                Expected::Result(expected)
            }
            (None, Some(status)) => Expected::Error {
                status: status.as_u64().expect("a status is a number"),
                says: row["says"].as_str().expect("an error says something").to_owned(),
            },
            _ => panic!("{name}: a result or an error"),
        };
        Self {
            name: name.to_owned(),
            patch_type,
            original,
            patch: within(&row["patch"]),
            subresource: row.get("status").map(|_| "status"),
            expected,
            upstream: row.get("upstream").cloned(),
            differs: row.get("differs").map(|why| why.as_str().expect("a reason").to_owned()),
        }
    }

    fn judge(&self) -> Result<(), String> {
        let text = |key: &str| self.original[key].as_str().expect("an object has a kind");
        let of = schema::of_kind(text("apiVersion"), text("kind")).expect("a kind of the table");
        let outcome = Patch::read(self.patch_type, self.patch.to_string().as_bytes())
            .and_then(|patch| patch.apply(self.original.clone(), of));
        match (&self.expected, outcome) {
            (Expected::Result(expected), Ok(result)) if *expected == result => Ok(()),
            (Expected::Result(expected), Ok(result)) => {
                Err(format!("  expected {expected}\n  got      {result}"))
            }
            (Expected::Error { status, says }, Err(error))
                if *status == u64::from(error.status()) && error.to_string().contains(says) =>
            {
                Ok(())
            }
            (Expected::Error { status, says }, Err(error)) => {
                Err(format!("  expected {status} {says}\n  got      {} {error}", error.status()))
            }
            (Expected::Result(_), Err(error)) => Err(format!("  got      error {error}")),
            (Expected::Error { .. }, Ok(result)) => Err(format!("  got      {result}")),
        }
    }
}

/// A merge patch by another hand, with a way to say null.
fn overlay(target: &mut Value, over: &Value) {
    match over {
        Value::Object(fields) => {
            if !target.is_object() {
                *target = Value::Object(Map::new());
            }
            let target = target.as_object_mut().expect("it was just made one");
            for (name, field) in fields {
                if field.is_null() {
                    target.remove(name);
                } else {
                    overlay(target.entry(name.clone()).or_insert(Value::Null), field);
                }
            }
        }
        Value::String(text) if text == "~null" => *target = Value::Null,
        other => *target = other.clone(),
    }
}

fn read(file: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/patch").join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
    let documents = decode::read_str(&text);
    let [document] = &documents[..] else { panic!("{file}: {} documents", documents.len()) };
    assert!(document.problems.is_empty(), "{file}: {:#?}", document.problems);
    document.root.as_ref().expect("a document without problems has a root").to_json()
}
