//! From a byte of a text to its line and column.
//!
//! The text may be one line of megabytes or a million empty lines, and thousands
//! of places in it may be asked for. So neither a table of lines nor counting from
//! the start of the line will do: the index keeps one checkpoint for each block
//! of bytes, and a lookup replays at most one block.

/// Bytes between two checkpoints. A lookup reads at most this many bytes twice;
/// at 12 bytes for each checkpoint the index is about 1 % of the text.
const BLOCK_BYTES: usize = 1024;

/// A place in a text, as people count: from 1, in lines and characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The line, from 1.
    pub(crate) line: usize,
    /// The character in the line, from 1.
    pub(crate) column: usize,
    /// The byte at which the line starts.
    pub(crate) line_start: usize,
}

/// The checkpoints of one text.
#[derive(Clone, Debug)]
pub(crate) struct LineIndex {
    checkpoints: Vec<Checkpoint>,
}

/// What is known just before some byte.
#[derive(Clone, Copy, Debug)]
struct Checkpoint {
    /// Line breaks so far.
    line: u32,
    /// The byte at which the current line starts.
    line_start: u32,
    /// Characters so far.
    chars: u32,
}

impl LineIndex {
    /// Reads through `text` once.
    ///
    /// # Panics
    /// If the text has more than 4 GiB, which the limit on inputs rules out.
    pub(crate) fn new(text: &str) -> Self {
        assert!(u32::try_from(text.len()).is_ok(), "inputs are limited");
        let bytes = text.as_bytes();
        let mut here = Checkpoint::at_start(text);
        let mut checkpoints = Vec::with_capacity(bytes.len() / BLOCK_BYTES + 1);
        for offset in 0..bytes.len() {
            if offset.is_multiple_of(BLOCK_BYTES) {
                checkpoints.push(here);
            }
            here.pass(bytes, offset);
        }
        if bytes.len().is_multiple_of(BLOCK_BYTES) {
            checkpoints.push(here);
        }
        Self { checkpoints }
    }

    /// Where the byte at `offset` is. `text` is the text of the index, and
    /// `offset` at most its length.
    pub(crate) fn position(&self, text: &str, offset: usize) -> Position {
        let here = self.replay(text, offset);
        let line_start = here.line_start as usize;
        // Only a byte order mark lies before the start of its own line.
        let column = match offset.checked_sub(line_start) {
            Some(_) => here.chars - self.replay(text, line_start).chars + 1,
            None => 1,
        };
        Position { line: here.line as usize + 1, column: column as usize, line_start }
    }

    fn replay(&self, text: &str, offset: usize) -> Checkpoint {
        let block = offset / BLOCK_BYTES;
        let mut here = self.checkpoints[block];
        for passed in block * BLOCK_BYTES..offset {
            here.pass(text.as_bytes(), passed);
        }
        here
    }
}

impl Checkpoint {
    fn at_start(text: &str) -> Self {
        // An editor does not count the byte order mark as a character of the line.
        let line_start = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Self { line: 0, line_start, chars: 0 }
    }

    /// Moves past the byte at `offset`. A line ends where YAML says it does: at
    /// LF, at CR LF, and at a CR alone.
    fn pass(&mut self, bytes: &[u8], offset: usize) {
        let byte = bytes[offset];
        let is_continuation = byte & 0b1100_0000 == 0b1000_0000;
        self.chars += u32::from(!is_continuation);
        if byte == b'\n' || (byte == b'\r' && bytes.get(offset + 1) != Some(&b'\n')) {
            self.line += 1;
            self.line_start = offset as u32 + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line and column of `offset`, counted the slow and obvious way.
    fn counted(text: &str, offset: usize) -> (usize, usize) {
        let (mut line, mut column) = (1, 1);
        let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text).char_indices();
        let skipped = text.len() - rest.as_str().len();
        while let Some((at, c)) = rest.next() {
            if at + skipped >= offset {
                break;
            }
            if c == '\n' || (c == '\r' && !rest.as_str().starts_with('\n')) {
                (line, column) = (line + 1, 1);
            } else {
                column += 1;
            }
        }
        (line, column)
    }

    fn check_every_offset(text: &str) {
        let index = LineIndex::new(text);
        for offset in (0..=text.len()).filter(|&offset| text.is_char_boundary(offset)) {
            let position = index.position(text, offset);
            let expected = counted(text, offset);
            assert_eq!((position.line, position.column), expected, "at {offset}");
        }
    }

    #[test]
    fn every_offset_of_every_kind_of_text_is_found() {
        for text in [
            "",
            "\n",
            "a",
            "a\nb",
            "a\r\nbc\rd\n\n",
            "\u{feff}a: 1\nb: 2\n",
            "ä: 漢字\n  👩‍💻: e\u{301}\n",
        ] {
            check_every_offset(text);
        }
    }

    #[test]
    fn blocks_may_begin_anywhere_in_a_character_a_line_or_a_line_break() {
        for shift in 0..4 {
            let shift = "x".repeat(shift);
            check_every_offset(&format!("{shift}{}", "漢字\r\n".repeat(300)));
            check_every_offset(&format!("{shift}{}\nend", "ä".repeat(2 * BLOCK_BYTES)));
            check_every_offset(&format!("{shift}{}", "\r\n".repeat(BLOCK_BYTES)));
        }
        check_every_offset(&"y".repeat(BLOCK_BYTES));
        check_every_offset(&"y".repeat(2 * BLOCK_BYTES - 1));
    }

    #[test]
    fn many_lookups_in_one_long_line_are_cheap() {
        // 20,000 lookups at the end of a line of 8 MB: counting from its start
        // would be 160 GB to read.
        let text = "a".repeat(8 << 20);
        let index = LineIndex::new(&text);
        for offset in text.len() - 20_000..text.len() {
            assert_eq!(index.position(&text, offset).column, offset + 1);
        }
    }
}
