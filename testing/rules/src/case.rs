//! A row that was played.

use serde_json::{Value, json};

use crate::exchange::Exchange;
use crate::{job, kinds, pod, rows, template};

/// What the rules make of a row.
#[derive(Debug)]
pub struct Played {
    /// The requests that say the same.
    pub exchange: Exchange,
    /// What is stored then.
    pub stored: Value,
    /// What is wrong with it.
    pub errors: Vec<String>,
}

/// A row, and what the rules make of it.
#[derive(Debug)]
pub struct Case {
    /// Where the row is, such as `job/status.yaml`.
    pub file: String,
    /// The row.
    pub row: Value,
    /// What the rules make of it.
    pub played: Played,
}

impl Case {
    /// The rows of a file, played.
    pub fn read_all(file: &str) -> Vec<Case> {
        let rows = rows::read(file);
        let rows = rows.as_array().expect("a file of rows is a list");
        rows.iter().map(|row| Case::play(file, row)).collect()
    }

    fn play(file: &str, row: &Value) -> Case {
        let (folder, name) = file.split_once('/').expect("a folder and a file");
        let (row, played) = match folder {
            "job" => (row.clone(), job::play(row)),
            "pod" => (template::with_stored(row), template::play(row)),
            "core_pod" => (row.clone(), pod::play(row)),
            "kinds" => (row.clone(), kinds::play(name, row)),
            _ => panic!("{file}: no such folder of rows"),
        };
        Case { file: file.to_owned(), row, played }
    }

    /// What it shows.
    pub fn name(&self) -> &str {
        self.row["name"].as_str().expect("a row has a name")
    }

    /// The errors that must come, in order.
    pub fn errors(&self) -> Vec<String> {
        serde_json::from_value(self.row["errors"].clone())
            .unwrap_or_else(|error| panic!("{}: {}: errors: {error}", self.file, self.name()))
    }

    /// What the row says of itself.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.row[key].as_str()
    }

    /// All that a script needs to replay it, as JSON.
    pub fn line(&self) -> Value {
        let exchange = &self.played.exchange;
        let mut line = json!({
            "file": format!("rules/{}", self.file),
            "setup": exchange.setup,
            "request": exchange.request,
        });
        if let Some(before) = &exchange.before {
            line["before"] = before.clone();
        }
        for key in
            ["name", "gates", "createGates", "errors", "reason", "stored", "differs", "unreachable"]
        {
            if let Some(value) = self.row.get(key) {
                line[key] = value.clone();
            }
        }
        line
    }
}
