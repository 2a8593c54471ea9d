//! Rows of a report for people.

use serde_json::Value;

use crate::contest::grouped;
use crate::metric::{Metric, WALL};
use crate::report::{Row, ratio};

/// A line for each row, with a head whenever the columns change.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    for group in rows.chunk_by(|one, other| heads(one) == heads(other)) {
        let is_contest = group.iter().any(|row| ratio(rows, row).is_some());
        let mut lines = vec![head(&group[0], is_contest)];
        lines.extend(group.iter().map(|row| line(rows, row, is_contest)));
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&aligned(&lines));
    }
    text
}

fn heads(row: &Row) -> Vec<&str> {
    row.work.iter().map(|(name, _)| *name).chain(shown(row).map(|metric| metric.head)).collect()
}

fn shown(row: &Row) -> impl Iterator<Item = &Metric> {
    row.figures.iter().map(|(metric, _)| metric).filter(|metric| !metric.head.is_empty())
}

fn head(row: &Row, is_contest: bool) -> Vec<String> {
    let mut cells: Vec<String> = row.work.iter().map(|(name, _)| (*name).to_owned()).collect();
    cells.push("who".to_owned());
    for metric in shown(row) {
        cells.push(metric.head.to_owned());
        if is_contest && *metric == WALL {
            cells.push("ratio".to_owned());
        }
    }
    cells
}

fn line(rows: &[Row], row: &Row, is_contest: bool) -> Vec<String> {
    let mut cells: Vec<String> = row.work.iter().map(|(_, value)| cell(value)).collect();
    cells.push(row.who.clone());
    for (metric, spread) in row.figures.iter().filter(|(metric, _)| !metric.head.is_empty()) {
        let text = |value| metric.unit.text(value);
        if *metric == WALL {
            let (least, most) = (text(spread.least), text(spread.most));
            cells.push(format!("{} [{least}, {most}]", text(spread.median)));
            if is_contest {
                cells.push(ratio(rows, row).map_or_else(String::new, |it| format!("{it:.2}x")));
            }
        } else {
            cells.push(text(spread.median));
        }
    }
    cells
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => grouped(&other.to_string()),
    }
}

/// Columns of the same width: what begins with a digit to the right.
fn aligned(lines: &[Vec<String>]) -> String {
    let count = lines.iter().map(Vec::len).max().unwrap_or(0);
    let length =
        |line: &Vec<String>, place: usize| line.get(place).map_or(0, |it| it.chars().count());
    let widths: Vec<usize> = (0..count)
        .map(|place| lines.iter().map(|line| length(line, place)).max().unwrap_or(0))
        .collect();
    let is_number = |place: usize| {
        let below = lines.iter().skip(1).filter_map(|line| line.get(place));
        below.filter(|it| !it.is_empty()).all(|it| it.starts_with(|c: char| c.is_ascii_digit()))
    };
    let mut text = String::new();
    for line in lines {
        let mut shown = String::new();
        for (place, cell) in line.iter().enumerate() {
            let gap = " ".repeat(widths[place] - cell.chars().count());
            let (before, after) = if is_number(place) { (&*gap, "") } else { ("", &*gap) };
            shown.push_str(&format!("  {before}{cell}{after}"));
        }
        text.push_str(shown.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_to_the_right_and_words_to_the_left() {
        let lines = [["who", "time"], ["a", "10 s"], ["long", "5 s"]];
        let lines: Vec<Vec<String>> =
            lines.iter().map(|line| line.map(str::to_owned).to_vec()).collect();
        assert_eq!(aligned(&lines), "  who   time\n  a     10 s\n  long   5 s\n");
    }
}
