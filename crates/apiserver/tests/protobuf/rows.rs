//! Rows of `rows.jsonl`: an object as Go's own types write it, in protobuf and in JSON. Of each
//! kind there is one with every field of its Go type set, one in which everything is there and
//! zero, one with nothing, a random one; and the bodies of the requests in `server.rs`.
//!
//! More of them, in the same form, are read from the file that `STINT_PROTOBUF_ROWS` names.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;
use stint_apiserver::protobuf::{decode, envelope};
use stint_apiserver::schema;

use crate::typed;

#[test]
fn every_row_is_the_json_that_go_writes() {
    let rows = read();
    let more = std::env::var_os("STINT_PROTOBUF_ROWS").map(|path| read_file(Path::new(&path)));
    let mut count = 0;
    for row in rows.into_iter().chain(more.into_iter().flatten()) {
        row.check();
        count += 1;
    }
    println!("{count} rows");
}

#[test]
fn every_kind_has_a_row_with_every_field() {
    let names: HashSet<String> = read().into_iter().map(|row| row.name).collect();
    for (api_version, kind, _) in schema::KINDS {
        for of in ["every field", "zeros", "nothing"] {
            let name = format!("{kind} of {api_version}: {of}");
            assert!(names.contains(&name), "there is no row {name}");
        }
    }
}

#[test]
fn the_page_counts_the_rows() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/protobuf.md");
    let page = fs::read_to_string(path).expect("docs/protobuf.md");
    let text = format!("{} rows", read().len());
    assert!(page.contains(&text), "docs/protobuf.md does not say: {text}");
}

/// A row.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) api_version: String,
    pub(crate) kind: String,
    /// The whole body in base64.
    protobuf: String,
    pub(crate) json: Value,
}

impl Row {
    /// The body of a request.
    pub(crate) fn body(&self) -> Vec<u8> {
        STANDARD.decode(&self.protobuf).expect("base64")
    }

    /// Options say the version of any group; here they have one.
    pub(crate) fn message(&self) -> schema::Message {
        let version =
            if self.kind == "DeleteOptions" { "meta.k8s.io/v1" } else { &self.api_version };
        schema::of_kind(version, &self.kind).expect("a kind of the schema")
    }

    fn check(&self) {
        let name = format!("{} ({})", self.name, self.kind);
        let body = self.body();
        let envelope = envelope::open(&body).expect("an envelope");
        assert_eq!((envelope.api_version, envelope.kind), (&*self.api_version, &*self.kind));
        let read = decode::object(envelope.raw, self.message());
        let read = read.unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut expected = self.json.clone();
        for of_type in ["apiVersion", "kind"] {
            expected.as_object_mut().expect("an object").remove(of_type);
        }
        // Protobuf cannot tell a list that is not there from an empty one, nor JSON's null.
        strip(&mut expected);
        same(&read, &expected, &name);

        let typed = |value: &Value| typed::through(&self.api_version, &self.kind, value);
        match (typed(&read), typed(&self.json)) {
            (Ok(from_protobuf), Ok(from_json)) => same(&from_protobuf, &from_json, &name),
            // A time that the type has to have is null.
            (from_protobuf, Err(_)) => {
                let from_json = typed(&expected);
                assert_eq!(from_protobuf.is_ok(), from_json.is_ok(), "{name}");
                assert_eq!(from_protobuf.ok(), from_json.ok(), "{name}");
            }
            (Err(error), Ok(_)) => panic!("{name}: {error}"),
        }
    }
}

/// Finds the first place where two values differ: an object of every field is too much to read.
fn same(read: &Value, expected: &Value, at: &str) {
    match (read, expected) {
        (Value::Object(read), Value::Object(expected)) => {
            let names = read.keys().chain(expected.keys());
            for name in names {
                let (read, expected) = (read.get(name), expected.get(name));
                let [read, expected] = [read, expected].map(|field| field.unwrap_or(&Value::Null));
                same(read, expected, &format!("{at}.{name}"));
            }
        }
        (Value::Array(read), Value::Array(expected)) if read.len() == expected.len() => {
            for (index, (read, expected)) in read.iter().zip(expected).enumerate() {
                same(read, expected, &format!("{at}[{index}]"));
            }
        }
        _ => assert_eq!(read, expected, "{at}"),
    }
}

/// Takes out what is null.
fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The rows of this house.
pub(crate) fn read() -> Vec<Row> {
    let rows =
        read_file(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/protobuf/rows.jsonl"));
    assert!(rows.len() >= 70, "rows are lost: {}", rows.len());
    rows
}

/// The row of a name.
pub(crate) fn named(name: &str) -> Row {
    read().into_iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no row {name}"))
}

fn read_file(path: &Path) -> Vec<Row> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
}
