//! The pages in docs/ that name what is in the code must be right.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use stint_api::advice::NAMES;

use crate::rows;

#[test]
fn every_file_and_test_of_the_parity_table_exists() {
    let repository = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(repository.join("docs/parity.md")).expect("docs/parity.md");
    let mut known = Known::default();
    let mut wrong = Vec::new();
    let lines: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
    for line in &lines {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [_, place, test] = cells[..] else { panic!("three cells: {line}") };
        if place == "where" {
            continue;
        }
        let source = repository.join("crates/api/src").join(place.trim_matches('`'));
        if !source.is_file() {
            wrong.push(format!("no such file: {line}"));
        }
        let (file, name) = test.split_once(": ").unwrap_or((test, ""));
        if !known.has(&repository, file.trim_matches('`'), name) {
            wrong.push(format!("no such test: {line}"));
        }
    }
    assert!(lines.len() > 300, "the table has lost its lines: {}", lines.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_warning_is_documented() {
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/check.md");
    let page = fs::read_to_string(page).expect("docs/check.md");
    let documented: Vec<&str> = page
        .lines()
        .skip_while(|line| *line != "## Warnings")
        .take_while(|line| *line != "## Exit codes")
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    assert_eq!(documented, NAMES);
}

/// The tests of each file that was looked at.
#[derive(Default)]
struct Known(BTreeMap<String, Vec<String>>);

impl Known {
    fn has(&mut self, repository: &Path, file: &str, name: &str) -> bool {
        let names = self.0.entry(file.to_owned()).or_insert_with(|| names(repository, file));
        names.iter().any(|known| known == name)
    }
}

fn names(repository: &Path, file: &str) -> Vec<String> {
    if let Some(rows) = file.strip_prefix("rules/") {
        let rows = rows::read(rows);
        let rows = rows.as_array().expect("a file of rows is a list");
        return rows.iter().filter_map(|row| row["name"].as_str().map(str::to_owned)).collect();
    }
    let source = fs::read_to_string(repository.join("crates/api/src").join(file));
    let source = source.unwrap_or_else(|error| panic!("{file}: {error}"));
    let functions = source.lines().filter_map(|line| line.trim().strip_prefix("fn "));
    functions.filter_map(|line| line.split_once('(')).map(|(name, _)| name.to_owned()).collect()
}
