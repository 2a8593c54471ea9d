//! The pages in docs/ that name what is in the code must be right.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use stint_api::advice::NAMES;
use stint_rules::rows;

#[test]
fn every_file_and_test_of_the_parity_table_exists() {
    let page = parity();
    let mut known = Known::default();
    let mut wrong = Vec::new();
    let mut outcomes: &[Outcome] = &[];
    let lines: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
    for line in &lines {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [_, place, tests @ ..] = &cells[..] else { panic!("a rule and a place: {line}") };
        outcomes = match tests {
            ["test"] => &[Outcome::Any],
            ["rejected by", "accepted beside"] => &[Outcome::Rejected, Outcome::Accepted],
            _ => outcomes,
        };
        if *place == "where" {
            continue;
        }
        assert_eq!(tests.len(), outcomes.len(), "a cell too few or too many: {line}");
        if !repository().join("crates/api/src").join(place.trim_matches('`')).is_file() {
            wrong.push(format!("no such file: {line}"));
        }
        for (test, outcome) in tests.iter().zip(outcomes) {
            let (file, name) = test.split_once(": ").unwrap_or((test, ""));
            if !known.has(file.trim_matches('`'), name, *outcome) {
                wrong.push(format!("no such test, {outcome:?}: {test}"));
            }
        }
    }
    assert!(lines.len() > 300, "the table has lost its lines: {}", lines.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_parity_page_counts_the_rows() {
    let rows_of = |folder| {
        let files = rows::files(folder).into_iter().map(|file| rows::read(&file));
        files.flat_map(|rows| rows.as_array().expect("a list of rows").clone()).collect::<Vec<_>>()
    };
    let (jobs, templates, pods) = (rows_of("job"), rows_of("pod"), rows_of("core_pod"));
    let all = || jobs.iter().chain(&templates).chain(&pods);
    let marked = |key| all().filter(|row: &&Value| row.get(key).is_some()).count();
    let page = parity();
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for (count, said) in [
        (jobs.len(), "rows of Jobs"),
        (templates.len(), "rows of Pod templates"),
        (pods.len(), "rows of Pods"),
        (marked("differs"), "rows marked `differs`"),
        (marked("unreachable"), "rows are marked `unreachable`"),
    ] {
        let text = format!(" {count} {said}");
        assert!(page.contains(&text), "docs/parity.md does not say:{text}");
    }
}

#[test]
fn the_parity_page_counts_and_names_the_rows_of_other_kinds() {
    let page = parity();
    let mut differing = 0;
    let mut count = 0;
    for file in rows::files("kinds") {
        for row in rows::read(&file).as_array().expect("a list of rows") {
            count += 1;
            differing += usize::from(row.get("differs").is_some());
            let test = format!("`rules/{file}`: {} |", name(row));
            let is_rule = outcome(row) == Outcome::Rejected;
            assert!(!is_rule || page.contains(&test), "docs/parity.md does not name {test}");
        }
    }
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for (count, said) in
        [(count, "rows of other kinds,"), (differing, "rows of other kinds marked `differs`")]
    {
        let text = format!(" {count} {said}");
        assert!(page.contains(&text), "docs/parity.md does not say:{text}");
    }
}

#[test]
fn every_warning_is_documented() {
    let page = fs::read_to_string(repository().join("docs/check.md")).expect("docs/check.md");
    let documented: Vec<&str> = page
        .lines()
        .skip_while(|line| *line != "## Warnings")
        .take_while(|line| *line != "## Exit codes")
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    assert_eq!(documented, NAMES);
}

/// What a row shows of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Rejected,
    Accepted,
    Any,
}

/// The tests of each file that was looked at, with what they show.
#[derive(Default)]
struct Known(BTreeMap<String, Vec<(String, Outcome)>>);

impl Known {
    fn has(&mut self, file: &str, name: &str, outcome: Outcome) -> bool {
        let tests = self.0.entry(file.to_owned()).or_insert_with(|| tests(file));
        let shows = |shown| outcome == Outcome::Any || outcome == shown;
        tests.iter().any(|(known, shown)| known == name && shows(*shown))
    }
}

fn tests(file: &str) -> Vec<(String, Outcome)> {
    if let Some(rows) = file.strip_prefix("rules/") {
        let rows = rows::read(rows);
        let rows = rows.as_array().expect("a file of rows is a list");
        return rows.iter().map(|row| (name(row), outcome(row))).collect();
    }
    let source = fs::read_to_string(repository().join("crates/api/src").join(file));
    let source = source.unwrap_or_else(|error| panic!("{file}: {error}"));
    let functions = source.lines().filter_map(|line| line.trim().strip_prefix("fn "));
    let names = functions.filter_map(|line| line.split_once('('));
    names.map(|(name, _)| (name.to_owned(), Outcome::Any)).collect()
}

fn name(row: &Value) -> String {
    row["name"].as_str().expect("a row has a name").to_owned()
}

fn outcome(row: &Value) -> Outcome {
    match row["errors"].as_array().expect("a row lists its errors")[..] {
        [] => Outcome::Accepted,
        [..] => Outcome::Rejected,
    }
}

fn parity() -> String {
    fs::read_to_string(repository().join("docs/parity.md")).expect("docs/parity.md")
}

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}
