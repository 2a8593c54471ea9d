//! Jobs as lines of a table. Text made from values.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use unicode_width::UnicodeWidthStr;

use super::state::{State, age, counts, duration, reason};
use crate::color::{Painter, Style};
use crate::printable::printable;
use crate::words;

/// Most characters in a cell: a name has 63 at most, and who writes longer ones has a reason to.
const MAX_CELL_CHARS: usize = 80;

/// Between two columns.
const GAP: usize = 3;

const HEAD: [&str; 9] =
    ["NAMESPACE", "NAME", "STATE", "DONE", "FAILED", "RUNNING", "WAITING", "AGE", "DURATION"];

/// Where the state is.
const STATE: usize = 2;

/// From where on cells tell the time, which is no news.
const TIMES: usize = 7;

/// A table whose columns grow with what is in them.
#[derive(Debug)]
pub(crate) struct Table {
    painter: Painter,
    has_namespaces: bool,
    widths: [usize; HEAD.len()],
}

/// A line of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    cells: [String; HEAD.len()],
    style: Style,
}

impl Row {
    /// That of a Job, or of one that is gone.
    pub(crate) fn new(job: &Job, is_gone: bool, now: Timestamp) -> Self {
        let state = State::of(job);
        let counts = counts(job);
        let word = match reason(job) {
            _ if is_gone => "Deleted".to_owned(),
            Some(reason) => format!("{}: {reason}", state.word()),
            None => state.word().to_owned(),
        };
        let done = match counts.total {
            Some(total) => format!("{}/{total}", counts.done),
            None => counts.done.to_string(),
        };
        let told = |time: Option<_>| time.map_or("-".to_owned(), words::age);
        let cells = [
            job.metadata.namespace.clone().unwrap_or_default(),
            job.metadata.name.clone().unwrap_or_default(),
            word,
            done,
            counts.failed.to_string(),
            counts.running.to_string(),
            counts.waiting.unwrap_or(0).to_string(),
            told(age(job, now)),
            told(duration(job, now)),
        ];
        let style = if is_gone { Style::Warning } else { state.style() };
        Row { cells: cells.map(|cell| printable(&cell, MAX_CELL_CHARS)), style }
    }

    /// Whether it says the same, but for the time that has passed.
    pub(crate) fn is_like(&self, other: &Row) -> bool {
        self.cells[..TIMES] == other.cells[..TIMES]
    }
}

impl Table {
    /// An empty one.
    pub(crate) fn new(has_namespaces: bool, painter: Painter) -> Self {
        Table { painter, has_namespaces, widths: HEAD.map(UnicodeWidthStr::width) }
    }

    /// Its head, with columns that are wide enough for these rows.
    pub(crate) fn head(&mut self, rows: &[Row]) -> String {
        rows.iter().for_each(|row| self.fit(row));
        let row = Row { cells: HEAD.map(str::to_owned), style: Style::Message };
        self.line(&row, false)
    }

    /// A line.
    pub(crate) fn row(&mut self, row: &Row) -> String {
        self.fit(row);
        self.line(row, true)
    }

    fn fit(&mut self, row: &Row) {
        for (width, cell) in self.widths.iter_mut().zip(&row.cells) {
            *width = (*width).max(cell.width());
        }
    }

    fn line(&self, row: &Row, is_painted: bool) -> String {
        let first = usize::from(!self.has_namespaces);
        let mut line = String::new();
        for (number, cell) in row.cells.iter().enumerate().skip(first) {
            let is_state = number == STATE && is_painted;
            line += &match is_state {
                true => self.painter.paint(row.style, cell).to_string(),
                false => cell.clone(),
            };
            let is_last = number + 1 == HEAD.len();
            let room = if is_last { 0 } else { self.widths[number] + GAP - cell.width() };
            line.extend(std::iter::repeat_n(' ', room));
        }
        line.push('\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(name: &str, reason: &str) -> Row {
        let job = json!({
            "metadata": {"name": name, "namespace": "default",
                "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"completions": 3, "template": {}},
            "status": {"succeeded": 1, "failed": 2, "startTime": "2026-01-01T00:00:01Z",
                "conditions": [{"type": "Failed", "status": "True", "reason": reason,
                    "lastTransitionTime": "2026-01-01T00:00:11Z"}]},
        });
        let job: Job = serde_json::from_value(job).expect("it is a Job");
        Row::new(&job, false, "2026-01-01T01:00:00Z".parse().expect("a time"))
    }

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let rows = [row("a", "BackoffLimitExceeded"), row("longer", "Why")];
        let mut table = Table::new(false, Painter::new(false));
        let text = table.head(&rows) + &table.row(&rows[0]) + &table.row(&rows[1]);
        let expected = "\
NAME     STATE                          DONE   FAILED   RUNNING   WAITING   AGE     DURATION
a        Failed: BackoffLimitExceeded   1/3    2        0         0         1h00m   10s
longer   Failed: Why                    1/3    2        0         0         1h00m   10s
";
        assert_eq!(text, expected);
        let mut table = Table::new(true, Painter::new(true));
        let text = table.head(&rows) + &table.row(&rows[1]);
        assert!(text.starts_with("NAMESPACE   NAME "), "{text}");
        assert!(
            text.contains("default     longer   \u{1b}[1;31mFailed: Why\u{1b}[0m   "),
            "{text}"
        );
    }

    #[test]
    fn a_job_cannot_drive_the_terminal() {
        let mut table = Table::new(false, Painter::new(false));
        let text = table.row(&row("evil\u{1b}[2J", "line\nbreak"));
        assert!(text.starts_with("evil\\u{1b}[2J   Failed: line\\nbreak   "), "{text}");
    }

    #[test]
    fn time_that_passes_is_no_news() {
        let (mut one, other) = (row("a", "Why"), row("a", "Why"));
        one.cells[7] = "3d".to_owned();
        assert!(one.is_like(&other) && !one.is_like(&row("a", "Else")));
    }
}
