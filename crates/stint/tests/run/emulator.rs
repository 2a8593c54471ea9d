//! A terminal's screen: what is on it after what was sent, also when its size changes. There are two
//! kinds: those that lay out anew what no longer fits into a row, and those that cut it off.

/// What a terminal does with rows that have become too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Narrowed {
    /// The rest goes to a row of its own, and what is beneath moves down.
    Reflows,
    Cuts,
}

/// A screen, and the rows that have scrolled off it.
#[derive(Debug)]
pub(crate) struct Emulator {
    narrowed: Narrowed,
    columns: usize,
    height: usize,
    rows: Vec<Row>,
    /// The first row that is not scrolled off.
    top: usize,
    row: usize,
    /// As many as there are columns, if the last column was just written.
    column: usize,
    wraps: bool,
    /// What is not a whole character or sequence yet.
    begun: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
struct Row {
    cells: Vec<char>,
    /// Whether the next row goes on with the same line.
    goes_on: bool,
}

impl Emulator {
    pub(crate) fn new(narrowed: Narrowed, columns: u16, height: u16) -> Self {
        Emulator {
            narrowed,
            columns: columns.into(),
            height: height.into(),
            rows: vec![Row::default()],
            top: 0,
            row: 0,
            column: 0,
            wraps: true,
            begun: Vec::new(),
        }
    }

    /// The lines, also those that have scrolled off, without what is blank at their ends.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = vec![String::new()];
        for row in &self.rows {
            let last = lines.last_mut().expect("there is always one");
            last.extend(&row.cells);
            if !row.goes_on {
                *last = last.trim_end().to_owned();
                lines.push(String::new());
            }
        }
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }

    pub(crate) fn take(&mut self, sent: &[u8]) {
        self.begun.extend_from_slice(sent);
        let bytes = std::mem::take(&mut self.begun);
        let whole = match std::str::from_utf8(&bytes) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let text = std::str::from_utf8(&bytes[..whole]).expect("so far it is valid");
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if c != '\u{1b}' {
                self.character(c);
                rest = &rest[c.len_utf8()..];
                continue;
            }
            let is_last = |c: char| c.is_ascii_alphabetic();
            let Some(end) = rest.find(is_last) else { break };
            self.sequence(&rest[1..=end]);
            rest = &rest[end + 1..];
        }
        self.begun = bytes[whole - rest.len()..].to_vec();
    }

    fn character(&mut self, c: char) {
        match c {
            '\r' => self.column = 0,
            '\n' => self.next_row(),
            c => {
                assert!(!c.is_control(), "{c:?} is not known here");
                if self.column == self.columns && self.wraps {
                    self.rows[self.row].goes_on = true;
                    self.next_row();
                    self.column = 0;
                }
                self.column = self.column.min(self.columns - 1);
                let cells = &mut self.rows[self.row].cells;
                if cells.len() <= self.column {
                    cells.resize(self.column + 1, ' ');
                }
                cells[self.column] = c;
                self.column += 1;
            }
        }
    }

    fn next_row(&mut self) {
        self.row += 1;
        if self.row == self.rows.len() {
            self.rows.push(Row::default());
        }
        self.top = self.top.max((self.row + 1).saturating_sub(self.height));
    }

    /// What comes after an escape character.
    fn sequence(&mut self, text: &str) {
        let (parameters, last) = text.split_at(text.len() - 1);
        let count = parameters[1..].parse().unwrap_or(1);
        match (parameters, last) {
            ("[?7", "h" | "l") => self.wraps = last == "h",
            (_, "m") => {}
            (_, "A") => self.row = self.row.saturating_sub(count).max(self.top),
            (_, "B") => self.row = (self.row + count).min(self.rows.len() - 1),
            ("[", "L") => {
                self.rows.insert(self.row, Row::default());
                self.rows.truncate(self.top + self.height);
                self.column = 0;
            }
            ("[", "C") => self.column = (self.column + count).min(self.columns - 1),
            ("[", "K") => self.erase_row(),
            ("[", "J") => {
                // There are terminals that keep what is erased from their upper left corner on.
                assert!(self.column > 0, "what is erased is not to be found where it scrolls off");
                self.rows.truncate(self.row + 1);
                self.erase_row();
            }
            _ => panic!("{text:?} is not known here"),
        }
    }

    fn erase_row(&mut self) {
        let row = &mut self.rows[self.row];
        row.cells.truncate(self.column);
        row.goes_on = false;
    }

    pub(crate) fn resize(&mut self, columns: u16) {
        self.columns = columns.into();
        match self.narrowed {
            Narrowed::Cuts => {
                self.rows.iter_mut().for_each(|row| row.cells.truncate(self.columns));
                self.column = self.column.min(self.columns - 1);
            }
            Narrowed::Reflows => self.reflow(),
        }
    }

    /// The cursor stays with the character that it stands on.
    fn reflow(&mut self) {
        let mut rows: Vec<Row> = Vec::new();
        let (mut line, mut at) = (Vec::new(), None);
        let cursor = self.row;
        for (number, row) in std::mem::take(&mut self.rows).into_iter().enumerate() {
            if number == cursor {
                at = Some(line.len() + self.column);
            }
            line.extend(row.cells);
            if row.goes_on {
                continue;
            }
            if let Some(at) = at.take() {
                let before = at / self.columns;
                self.row = rows.len() + before;
                self.column = at % self.columns;
                line.resize(line.len().max(before * self.columns), ' ');
            }
            let pieces = line.chunks(self.columns);
            rows.extend(pieces.map(|cells| Row { cells: cells.to_vec(), goes_on: true }));
            if line.is_empty() {
                rows.push(Row::default());
            }
            rows.last_mut().expect("there is one").goes_on = false;
            line.clear();
        }
        if self.row == rows.len() {
            rows.push(Row::default());
        }
        self.top = rows.len().saturating_sub(self.height);
        self.row = self.row.max(self.top);
        self.rows = rows;
    }
}
