//! The last lines of a log, each as far as anybody shows it: a log comes by whole, and little of it is
//! held. It knows nothing of where the log comes from.

use std::collections::VecDeque;

/// The last lines of what was pushed.
#[derive(Debug)]
pub(crate) struct LastLines {
    lines: VecDeque<Vec<u8>>,
    most_lines: usize,
    line_bytes: usize,
    /// Whether the last line has no end yet.
    is_open: bool,
}

impl LastLines {
    /// So many lines, and of each so many bytes.
    pub(crate) fn new(most_lines: usize, line_bytes: usize) -> Self {
        LastLines { lines: VecDeque::new(), most_lines, line_bytes, is_open: false }
    }

    /// Takes in what comes next.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if !self.is_open {
                if self.lines.len() == self.most_lines {
                    self.lines.pop_front();
                }
                self.lines.push_back(Vec::new());
            }
            let text = piece.strip_suffix(b"\n");
            self.is_open = text.is_none();
            let text = text.unwrap_or(piece);
            if let Some(line) = self.lines.back_mut() {
                let room = self.line_bytes.saturating_sub(line.len());
                line.extend_from_slice(&text[..text.len().min(room)]);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The lines as text. Not everybody writes UTF-8.
    pub(crate) fn told(&self) -> Vec<String> {
        let text = |line: &Vec<u8>| {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            String::from_utf8_lossy(line).into_owned()
        };
        self.lines.iter().map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_does_not_hide_those_that_come_after_it() {
        let long = "L".repeat(200_000);
        let rows = [
            (format!("{long}\nboom\n"), vec!["LLLLLLLL", "boom"]),
            (format!("a\nb\r\n\n{long}"), vec!["b", "", "LLLLLLLL"]),
            ("a\nb\nc\nd\n".to_owned(), vec!["b", "c", "d"]),
            ("\n".to_owned(), vec![""]),
            (String::new(), vec![]),
        ];
        for (text, expected) in rows {
            for step in [1, 7, 64 << 10, 1 << 20] {
                let mut last = LastLines::new(3, 8);
                text.as_bytes().chunks(step).for_each(|piece| last.push(piece));
                assert_eq!(last.told(), expected, "in steps of {step}");
                assert_eq!(last.is_empty(), expected.is_empty());
            }
        }
    }
}
