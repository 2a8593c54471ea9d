//! Lines at the end of a terminal that are drawn again and again. This file knows nothing of what
//! they say.
//!
//! The cursor rests at the beginning of the first line, not behind the last:
//!
//! ```text
//!   what was written before
//! ▌ first line
//!   last line
//! ```
//!
//! When a terminal is made narrower it may cut lines off, or go on with them in further rows, and
//! nobody tells which. The cursor stays with its line either way. So whatever is there is found
//! without counting rows: it is all that comes after the cursor. The terminal may also be narrower
//! when lines are drawn than it was when asked, or become so half-way. For that reason it must not
//! wrap them; and the last line is drawn first, each other is inserted before it, and so the cursor
//! stays in its row all the time. Only a terminal that is made narrower in the midst of one line, and
//! goes on with that in a further row, keeps the beginning of it.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::termios::tcgetwinsize;
use unicode_width::UnicodeWidthChar;

/// What is taken for the size of a terminal that does not tell its own.
const USUAL_SIZE: Size = Size { columns: 80, rows: 24 };

/// Takes away all from the row of the cursor on. Not in one go: what is erased from the upper left
/// corner of the screen on is kept by some, among what has scrolled off.
const ERASE: &str = "\r\x1b[C\x1b[J\r\x1b[K";

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: u16,
    pub(crate) rows: u16,
}

impl Size {
    /// That of the terminal that is standard error.
    pub(crate) fn of_terminal() -> Self {
        let told = tcgetwinsize(io::stderr()).ok();
        let known = |told: Option<u16>, usual| told.filter(|count| *count > 0).unwrap_or(usual);
        Size {
            columns: known(told.map(|size| size.ws_col), USUAL_SIZE.columns),
            rows: known(told.map(|size| size.ws_row), USUAL_SIZE.rows),
        }
    }
}

/// The lines on standard error.
#[derive(Clone, Default)]
pub(crate) struct Frame {
    drawn: Arc<Mutex<Drawn>>,
}

#[derive(Default)]
struct Drawn {
    lines: Vec<String>,
    /// What the terminal was when they were drawn; none if they are not there.
    size: Option<Size>,
    /// Whether the row of the cursor is not at its end: others write there.
    is_held: bool,
}

impl Frame {
    /// Draws these lines in place of those that are there.
    pub(crate) fn show(&self, lines: Vec<String>) {
        let mut drawn = self.lock();
        let is_same = drawn.lines == lines;
        drawn.lines = lines;
        if !is_same || drawn.size != Some(Size::of_terminal()) {
            drawn.draw();
        }
    }

    /// Takes the lines away.
    pub(crate) fn clear(&self) {
        let mut drawn = self.lock();
        drawn.erase();
        drawn.lines.clear();
    }

    /// Puts a text where the lines are, and them beneath it.
    pub(crate) fn above<T>(&self, text: &[u8], put: impl FnOnce(&[u8]) -> T) -> T {
        let mut drawn = self.lock();
        drawn.erase();
        let done = put(text);
        drawn.is_held = text.last().is_some_and(|byte| *byte != b'\n');
        drawn.draw();
        done
    }

    fn lock(&self) -> MutexGuard<'_, Drawn> {
        self.drawn.lock().expect("nobody panics here")
    }
}

impl Drawn {
    fn draw(&mut self) {
        if self.is_held || (self.lines.is_empty() && self.size.is_none()) {
            return;
        }
        let size = Size::of_terminal();
        write(&drawing(&self.lines, size));
        self.size = Some(size);
    }

    fn erase(&mut self) {
        if self.size.take().is_some() {
            write(ERASE);
        }
    }
}

/// What draws them: as many as there are rows, and as much of each as there are columns.
fn drawing(lines: &[String], size: Size) -> String {
    let shown = &lines[..lines.len().min(size.rows.into())];
    let shown: Vec<&str> = shown.iter().map(|line| cut(line, size.columns.into())).collect();
    let mut text = format!("\x1b[?7l{ERASE}");
    if let below @ 1.. = shown.len().saturating_sub(1) {
        // Rows are made, by scrolling if need be.
        text += &"\n".repeat(below);
        // Writing to a String does not fail.
        let _ = write!(text, "\x1b[{below}A");
    }
    let upwards: Vec<&str> = shown.into_iter().rev().collect();
    text + &upwards.join("\r\x1b[L") + "\r\x1b[?7h"
}

fn cut(line: &str, columns: usize) -> &str {
    let mut width = 0;
    let end = line.char_indices().find(|(_, c)| {
        width += c.width().unwrap_or(0);
        width > columns
    });
    end.map_or(line, |(end, _)| &line[..end])
}

fn write(text: &str) {
    // If that fails there is nowhere left to say so.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_to_the_columns_and_rows_there_are() {
        let lines = ["abcdef", "", "漢字漢", "more"].map(str::to_owned);
        let rows = [
            ((80, 24), "\n\n\n\x1b[3Amore\r\x1b[L漢字漢\r\x1b[L\r\x1b[Labcdef"),
            ((5, 24), "\n\n\n\x1b[3Amore\r\x1b[L漢字\r\x1b[L\r\x1b[Labcde"),
            ((4, 3), "\n\n\x1b[2A漢字\r\x1b[L\r\x1b[Labcd"),
            ((1, 1), "a"),
        ];
        for ((columns, rows), expected) in rows {
            let text = drawing(&lines, Size { columns, rows });
            assert_eq!(text, format!("\x1b[?7l{ERASE}{expected}\r\x1b[?7h"), "{columns}x{rows}");
        }
    }
}
