//! Rows of a report for people.

use serde_json::Value;

use crate::contest::grouped;
use crate::metric::{Metric, WALL};
use crate::report::{Row, ratio};

/// A line for each row, with a head whenever it is another kind of work.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    for group in rows.chunk_by(|one, other| names(one) == names(other)) {
        let is_contest = group.iter().any(|row| ratio(rows, row).is_some());
        let metrics = metrics(group);
        let mut lines = vec![head(&group[0], &metrics, is_contest)];
        lines.extend(group.iter().map(|row| line(rows, row, &metrics, is_contest)));
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&aligned(&lines));
    }
    text
}

fn names(row: &Row) -> Vec<&str> {
    row.work.iter().map(|(name, _)| *name).collect()
}

/// What is shown of these rows: all that any of them has.
fn metrics(rows: &[Row]) -> Vec<&Metric> {
    let mut all: Vec<&Metric> = Vec::new();
    for (metric, _) in rows.iter().flat_map(|row| &row.figures) {
        if !metric.head.is_empty() && !all.contains(&metric) {
            all.push(metric);
        }
    }
    all
}

fn head(row: &Row, metrics: &[&Metric], is_contest: bool) -> Vec<String> {
    let mut cells: Vec<String> = names(row).into_iter().map(str::to_owned).collect();
    cells.push("who".to_owned());
    for metric in metrics {
        cells.push(metric.head.to_owned());
        if is_contest && **metric == WALL {
            cells.push("ratio".to_owned());
        }
    }
    cells
}

fn line(rows: &[Row], row: &Row, metrics: &[&Metric], is_contest: bool) -> Vec<String> {
    let mut cells: Vec<String> = row.work.iter().map(|(_, value)| cell(value)).collect();
    cells.push(row.who.clone());
    for metric in metrics {
        let text = |value| metric.unit.text(value);
        let spread = row.figure(metric);
        let median = spread.map_or_else(String::new, |it| text(it.median));
        match spread {
            Some(it) if **metric == WALL => {
                cells.push(format!("{median} [{}, {}]", text(it.least), text(it.most)));
            }
            _ => cells.push(median),
        }
        if is_contest && **metric == WALL {
            cells.push(ratio(rows, row).map_or_else(String::new, |it| format!("{it:.2}x")));
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
