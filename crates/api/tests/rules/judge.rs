//! Judges rows by what the rules make of them.
//!
//! `STINT_RULES_DUMP=<file>` writes each as a line for any script to replay against a real API
//! server. CONTRIBUTING.md has the format of the lines.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::sync::{LazyLock, Mutex};

use stint_rules::case::Case;
use stint_rules::rows;

/// Judges every row of a file and reports all that do not hold. `keys` are those a row may have;
/// `at_least` guards against a file that has lost its rows.
pub(crate) fn run(file: &str, at_least: usize, keys: &[&str]) {
    let cases = Case::read_all(file);
    assert!(cases.len() >= at_least, "{file} has only {} rows", cases.len());
    let mut report = String::new();
    for case in &cases {
        for key in case.row.as_object().expect("a row is an object").keys() {
            let known = ["name", "errors", "differs"].contains(&key.as_str());
            let is_known = known || keys.contains(&key.as_str());
            assert!(is_known, "{file}: {}: unknown key {key}", case.name());
        }
        write(case);
        let mut found = String::new();
        if let Some(expected) = case.row.get("stored") {
            rows::compare("stored", expected, &case.played.stored, &mut found);
        }
        let (expected, errors) = (case.errors(), &case.played.errors);
        if !same(&expected, errors) {
            expected.iter().for_each(|line| writeln!(found, "  expected {line}").unwrap());
            errors.iter().for_each(|line| writeln!(found, "  got      {line}").unwrap());
        }
        if !found.is_empty() {
            writeln!(report, "\n{}\n{found}", case.name()).unwrap();
        }
    }
    assert!(report.is_empty(), "rows of {file} that do not hold:\n{report}");
}

fn same(expected: &[String], errors: &[String]) -> bool {
    expected.len() == errors.len()
        && expected.iter().zip(errors).all(|(expected, error)| rows::is_same(expected, error))
}

/// Writes a row's line, if there is a file to write it to.
fn write(case: &Case) {
    static DUMP: LazyLock<Option<Mutex<File>>> = LazyLock::new(|| {
        let path = std::env::var_os("STINT_RULES_DUMP")?;
        Some(Mutex::new(File::create(path).expect("the dump file can be made")))
    });
    let Some(dump) = &*DUMP else {
        return;
    };
    // The tests write from threads of their own, so a line goes out as one.
    let mut dump = dump.lock().expect("no test panics while it writes a line");
    let line = case.line();
    dump.write_all(format!("{line}\n").as_bytes()).expect("the dump file can be written");
}
