//! docs/parity.md must name every row, and nothing that is not there.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::row;

#[test]
fn the_parity_page_names_every_row_of_the_ledger_once() {
    let mut named = BTreeSet::new();
    for [_, place, rows] in table("## The ledger") {
        let file = repository().join("crates/ledger/src").join(place.trim_matches('`'));
        assert!(file.is_file(), "no such file: {place}");
        for row in pieces(&rows) {
            assert!(named.insert(row.clone()), "named twice: {row:?}");
        }
    }
    let rows: BTreeSet<Piece> = rows().into_iter().collect();
    let missing: Vec<_> = rows.difference(&named).collect();
    let unknown: Vec<_> = named.difference(&rows).collect();
    assert!(missing.is_empty(), "rows that docs/parity.md does not name: {missing:#?}");
    assert!(unknown.is_empty(), "docs/parity.md names what is not there: {unknown:#?}");
}

#[test]
fn what_shows_a_test_plan_exists() {
    let rows = rows();
    let sim = read("docs/testing.md");
    let bullets = table("## Test plans of the proposals");
    for [bullet, shown_by] in &bullets {
        for piece in pieces(shown_by) {
            let Piece(place, name) = &piece;
            let exists = match place.split_once('/') {
                Some(("rows", _)) => rows.contains(&piece),
                Some(("rules", _)) => {
                    let rows = row::yaml(&read(&format!("crates/api/tests/{place}")));
                    let rows = rows.as_array().expect("a list of rows");
                    rows.iter().any(|row| row["name"] == *name)
                }
                // A scenario is a function, or a line of the table of plays.
                Some(("running", _)) => {
                    let file = read(&format!("crates/controller/tests/{place}"));
                    file.contains(&format!("fn {name}("))
                        || file.contains(&format!("    {name}: \""))
                }
                _ if place == "simulator" => sim.contains(&format!("| {name} |")),
                _ => read(&format!("crates/ledger/src/{place}")).contains(&format!("fn {name}(")),
            };
            assert!(exists, "{bullet}: no such test: {piece:?}");
        }
    }
    assert!(bullets.len() > 40, "the tables have lost their lines: {}", bullets.len());
}

#[test]
fn the_parity_page_counts_the_rows_of_the_ledger() {
    let page = read("docs/parity.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let said = format!("There are {} rows, in", rows().len());
    assert!(page.contains(&said), "docs/parity.md does not say: {said}");
}

/// A place, and the name of a test or row in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Piece(String, String);

/// Every row there is.
fn rows() -> Vec<Piece> {
    let of = |file: String| {
        let rows = row::read(&file).into_iter().map(|row| row.name);
        rows.map(|name| Piece(format!("rows/{file}"), name)).collect::<Vec<_>>()
    };
    row::files().into_iter().flat_map(of).collect()
}

/// What a cell names: places with names, several of one place after each other.
fn pieces(cell: &str) -> Vec<Piece> {
    let mut place = String::new();
    let mut piece = |text: &str| {
        let is_place = text.starts_with('`') || text.starts_with("simulator: ");
        let name = match text.split_once(": ").filter(|_| is_place) {
            Some((new_place, name)) => {
                place = new_place.trim_matches('`').to_owned();
                name
            }
            None => text,
        };
        Piece(place.clone(), name.to_owned())
    };
    cell.split("; ").map(&mut piece).collect()
}

/// The lines of the tables below a heading. They have no outer bars: those with are
/// the tables of the API's rules, which have a test of their own.
fn table<const CELLS: usize>(heading: &str) -> Vec<[String; CELLS]> {
    let page = read("docs/parity.md");
    let section = page.lines().skip_while(|line| *line != heading).skip(1);
    let section = section.take_while(|line| !line.starts_with("## "));
    let is_line = |line: &&str| line.contains(" | ");
    let is_head = |line: &&str| line.starts_with("rule | ") || line.starts_with("what is tested");
    let lines = section.filter(is_line).filter(|line| !is_head(line));
    let cells = |line: &str| line.split(" | ").map(str::to_owned).collect::<Vec<_>>();
    lines
        .map(|line| cells(line).try_into().unwrap_or_else(|_| panic!("{CELLS} cells: {line}")))
        .collect()
}

fn read(path: &str) -> String {
    let text = fs::read_to_string(repository().join(path));
    text.unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}
