//! Reading rows, applying their patches, and comparing what comes of them.
//!
//! A row patches the base Job (`rules/base.yaml`) and lists the errors it must get, word
//! for word and in order. The files are read by the decoder under test, so their YAML is
//! read as Kubernetes reads it.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use serde_json::{Map, Value, json};
use stint_api::decode;

/// The one document of a file below `rules/`.
pub fn read(file: &str) -> Value {
    let path = folder().join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
    let documents = decode::read_str(&text);
    let [document] = &documents[..] else { panic!("{file}: {} documents", documents.len()) };
    assert!(document.problems.is_empty(), "{file}: {:#?}", document.problems);
    document.root.as_ref().expect("a document without problems has a root").to_json()
}

/// The files of a folder below `rules/`, by name.
pub fn files(name: &str) -> Vec<String> {
    let entries =
        fs::read_dir(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut files: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a UTF-8 name"))
        .map(|file| format!("{name}/{file}"))
        .collect();
    files.sort();
    files
}

/// Merges a patch into a value (RFC 7386: null removes); no patch changes nothing. What
/// rows abbreviate is written out: `{$list: 20, of: x}`, `{$range: [1, 9]}` and
/// `{$text: 64, of: a}`.
pub fn patch(target: &mut Value, patch: &Value) {
    if !patch.is_null() {
        merge(target, &expand(patch));
    }
}

/// Adds to the report where `actual` is not what is `expected` of some of its fields.
pub fn compare(path: &str, expected: &Value, actual: &Value, report: &mut String) {
    match (expected, actual) {
        (Value::Object(fields), _) if !fields.is_empty() => {
            for (name, expected) in fields {
                compare(&format!("{path}.{name}"), expected, &actual[name], report);
            }
        }
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => {
            for (index, (expected, actual)) in expected.iter().zip(actual).enumerate() {
                compare(&format!("{path}[{index}]"), expected, actual, report);
            }
        }
        _ if expected == actual => {}
        _ => writeln!(report, "  {path}: expected {expected}, got {actual}").unwrap(),
    }
}

/// Whether an error is the one that was expected. `TEMPLATE` in an expectation stands for a Pod
/// template, whatever it is.
pub fn is_same(expected: &str, error: &str) -> bool {
    match expected.split_once("TEMPLATE") {
        Some((head, tail)) => error.starts_with(head) && error.ends_with(tail),
        None => expected == error,
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../crates/api/tests/rules")
}

fn merge(target: &mut Value, patch: &Value) {
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

fn expand(value: &Value) -> Value {
    let count = |value: &Value| value.as_u64().expect("a count") as usize;
    match value {
        Value::Object(map) => match (map.get("$list"), map.get("$range"), map.get("$text")) {
            (Some(length), None, None) => Value::Array(vec![expand(&map["of"]); count(length)]),
            (None, Some(range), None) => {
                json!((count(&range[0])..=count(&range[1])).collect::<Vec<_>>())
            }
            (None, None, Some(length)) => {
                json!(map["of"].as_str().expect("a text").repeat(count(length)))
            }
            _ => {
                let entries = map.iter().map(|(key, value)| (key.clone(), expand(value)));
                Value::Object(entries.collect::<Map<_, _>>())
            }
        },
        Value::Array(items) => items.iter().map(expand).collect(),
        _ => value.clone(),
    }
}
