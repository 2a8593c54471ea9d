//! Rows: an object, and what its row in a table says. `rows/*.yaml` has a file for each kind,
//! read by the house's own decoder:
//!
//! | key | what it is |
//! |---|---|
//! | `columns` | the columns; those that only `-o wide` prints have a `+` |
//! | `base`, `cells` | an object, and its cells by the names of their columns |
//! | `rows` | the rows: `object` and `cells` are laid over those, null deletes |
//! | `conditions` | in a row: the reason of its condition `Completed`, if it has one |
//!
//! Times are told from `now` ([`moment`]).

use std::fs;
use std::path::PathBuf;

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use stint_api::decode;
use stint_apiserver::patch::{Patch, PatchType, schema};
use stint_apiserver::table::kind::{self, TableKind};

use crate::{dump, moment};

/// The files, and how many rows each has at least.
const FILES: [(&str, usize); 15] = [
    ("config_map", 2),
    ("endpoint_slice", 11),
    ("endpoints", 9),
    ("event", 19),
    ("events_event", 6),
    ("job", 48),
    ("lease", 4),
    ("limit_range", 2),
    ("namespace", 4),
    ("node", 13),
    ("pod", 84),
    ("resource_quota", 5),
    ("secret", 4),
    ("service", 19),
    ("service_account", 2),
];

#[test]
fn every_row_holds() {
    let now: Timestamp = "2026-05-01T12:00:00Z".parse().expect("a time");
    let mut wrong = Vec::new();
    for (name, at_least) in FILES {
        let file = File::read(name);
        assert!(file.rows.len() >= at_least, "{name} has lost rows: {}", file.rows.len());
        for row in &file.rows {
            let row = Row::new(&file, row, now);
            dump::write(name, &row, now);
            let printed = file.kind.print(&row.object, now);
            let printed = printed.unwrap_or_else(|error| panic!("{name}: {}: {error}", row.name));
            let conditions: Vec<&str> = printed.conditions.iter().map(|one| one.reason).collect();
            if printed.cells != row.cells || conditions != row.conditions {
                wrong.push(format!(
                    "{name}: {}\n  expected {} {:?}\n  got      {} {conditions:?}",
                    row.name,
                    json!(row.cells),
                    row.conditions,
                    json!(printed.cells),
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} rows do not hold:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn every_kind_has_its_columns() {
    for (name, _) in FILES {
        let file = File::read(name);
        let columns: Vec<String> = file
            .kind
            .columns
            .iter()
            .map(|column| {
                let is_time = column.name == "Created At";
                let expected = if is_time { "date" } else { "string" };
                assert_eq!(column.column_type, expected, "{name}");
                assert_eq!(column.format == "name", column.name == "Name", "{name}");
                let wide = ["", "+"][usize::try_from(column.priority).expect("0 or 1")];
                format!("{}{wide}", column.name)
            })
            .collect();
        assert_eq!(json!(columns), file.columns, "{name}");
    }
}

#[test]
fn the_page_counts_the_rows() {
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/tables.md");
    let page = fs::read_to_string(page).expect("docs/tables.md");
    let count: usize = FILES.iter().map(|(name, _)| File::read(name).rows.len()).sum();
    assert!(page.contains(&format!("{count} rows")), "docs/tables.md does not say: {count} rows");
}

/// The rows of a kind.
struct File {
    kind: TableKind,
    columns: Value,
    base: Value,
    cells: Value,
    rows: Vec<Value>,
}

impl File {
    fn read(name: &str) -> Self {
        let path = format!("tests/table/rows/{name}.yaml");
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let documents = decode::read_str(&text);
        let [document] = &documents[..] else { panic!("{name}: {} documents", documents.len()) };
        assert!(document.problems.is_empty(), "{name}: {:#?}", document.problems);
        let mut file = document.root.as_ref().expect("a document has a root").to_json();
        let mut take = |key: &str| file[key].take();
        let base = take("base");
        let text = |key: &str| base[key].as_str().expect("an object has a kind");
        let kind = kind::of(text("apiVersion"), text("kind")).expect("a kind with a table");
        let Value::Array(rows) = take("rows") else { panic!("{name} has no rows") };
        Self { kind, columns: take("columns"), base, cells: take("cells"), rows }
    }
}

/// A row written out.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) object: Value,
    pub(crate) cells: Vec<Value>,
    pub(crate) conditions: Vec<String>,
}

impl Row {
    fn new(file: &File, row: &Value, now: Timestamp) -> Self {
        const KEYS: [&str; 4] = ["name", "object", "cells", "conditions"];
        let name = row["name"].as_str().expect("a row has a name");
        for key in row.as_object().expect("a row is an object").keys() {
            assert!(KEYS.contains(&key.as_str()), "{name}: unknown key {key}");
        }
        let mut object = overlay(&file.base, row.get("object"));
        moment::write_out(&mut object, now);
        let cells = overlay(&file.cells, row.get("cells"));
        let columns = file.kind.columns.iter().map(|column| column.name);
        assert!(columns.clone().count() == cells.as_object().map_or(0, |cells| cells.len()));
        let conditions = row.get("conditions").and_then(Value::as_str).map(str::to_owned);
        Self {
            name: name.to_owned(),
            object,
            cells: columns.map(|column| cells[column].clone()).collect(),
            conditions: conditions.into_iter().collect(),
        }
    }
}

fn overlay(base: &Value, over: Option<&Value>) -> Value {
    let any = schema::of_kind("v1", "Pod").expect("a kind; merge patches do not ask for it");
    let over = over.cloned().unwrap_or_else(|| json!({}));
    let patch = Patch::from_value(PatchType::Merge, over).expect("an object");
    patch.apply(base.clone(), any).expect("a merge patch always applies")
}
