//! A line of a log file, as container runtimes write them: the time, the stream, whether the line
//! ends here (`F`) or goes on in the next (`P`), and the text.

use std::io::Write;

use jiff::Timestamp;

use super::LogStream;

/// The longest text of one line; what is longer is several.
pub(super) const LINE_BYTES: usize = 16 << 10;

/// A line that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'l> {
    pub(super) time: &'l str,
    pub(super) is_stderr: bool,
    /// Whether the text ends with the end of a line.
    pub(super) is_full: bool,
    pub(super) text: &'l [u8],
}

impl<'l> Line<'l> {
    /// Reads a line without its end; none if it is no line of a log.
    pub(super) fn read(bytes: &'l [u8]) -> Option<Self> {
        let mut parts = bytes.splitn(4, |byte| *byte == b' ');
        let time = std::str::from_utf8(parts.next()?).ok()?;
        let stream = parts.next()?;
        let tag = parts.next()?;
        let text = parts.next()?;
        Some(Line { time, is_stderr: stream == b"stderr", is_full: tag != b"P", text })
    }

    pub(super) fn is_of(&self, wanted: LogStream) -> bool {
        match wanted {
            LogStream::All => true,
            LogStream::Stdout => !self.is_stderr,
            LogStream::Stderr => self.is_stderr,
        }
    }

    pub(super) fn is_since(&self, since: Option<Timestamp>) -> bool {
        let Some(since) = since else { return true };
        self.time.parse::<Timestamp>().is_ok_and(|time| time >= since)
    }
}

/// Cuts what one stream of a container writes into lines.
#[derive(Debug)]
pub(super) struct Cutter {
    is_stderr: bool,
    rest: Vec<u8>,
}

impl Cutter {
    pub(super) fn new(is_stderr: bool) -> Self {
        Cutter { is_stderr, rest: Vec::new() }
    }

    /// Takes in what was written; whole lines go to `lines`.
    pub(super) fn take(&mut self, mut bytes: &[u8], now: Timestamp, lines: &mut Vec<u8>) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, after) = (&bytes[..end], &bytes[end + 1..]);
            if self.rest.is_empty() {
                self.put_long(line, now, lines);
            } else {
                self.rest.extend_from_slice(line);
                let rest = std::mem::take(&mut self.rest);
                self.put_long(&rest, now, lines);
            }
            bytes = after;
        }
        self.rest.extend_from_slice(bytes);
        if self.rest.len() >= LINE_BYTES {
            let rest = std::mem::take(&mut self.rest);
            let whole = rest.len() - rest.len() % LINE_BYTES;
            for piece in rest[..whole].chunks(LINE_BYTES) {
                self.put(piece, "P", now, lines);
            }
            self.rest.extend_from_slice(&rest[whole..]);
        }
    }

    /// The stream has ended: what is left is a line that does not end.
    pub(super) fn end(&mut self, now: Timestamp, lines: &mut Vec<u8>) {
        let rest = std::mem::take(&mut self.rest);
        if !rest.is_empty() {
            self.put(&rest, "P", now, lines);
        }
    }

    fn put_long(&self, line: &[u8], now: Timestamp, lines: &mut Vec<u8>) {
        let mut line = line;
        while line.len() > LINE_BYTES {
            let (piece, after) = line.split_at(LINE_BYTES);
            self.put(piece, "P", now, lines);
            line = after;
        }
        self.put(line, "F", now, lines);
    }

    fn put(&self, text: &[u8], tag: &str, now: Timestamp, lines: &mut Vec<u8>) {
        let stream = if self.is_stderr { "stderr" } else { "stdout" };
        write!(lines, "{now:.9} {stream} {tag} ").expect("a vector can be written to");
        lines.extend_from_slice(text);
        lines.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(pieces: &[&[u8]]) -> String {
        let now = Timestamp::from_second(1_800_000_000).expect("a time");
        let (mut cutter, mut lines) = (Cutter::new(false), Vec::new());
        for piece in pieces {
            cutter.take(piece, now, &mut lines);
        }
        cutter.end(now, &mut lines);
        String::from_utf8(lines)
            .expect("text")
            .replace("2027-01-15T08:00:00.000000000Z stdout ", "")
    }

    #[test]
    fn lines_are_cut_wherever_the_pieces_end() {
        let rows: [(&[&[u8]], &str); 6] = [
            (&[b""], ""),
            (&[b"a\nb\n"], "F a\nF b\n"),
            (&[b"a", b"b", b"\nc"], "F ab\nP c\n"),
            (&[b"\n\n"], "F \nF \n"),
            (&[b"no end"], "P no end\n"),
            (&[b"x y  z\n"], "F x y  z\n"),
        ];
        for (pieces, expected) in rows {
            assert_eq!(cut(pieces), expected);
        }
    }

    #[test]
    fn a_long_line_is_several_and_none_is_longer_than_allowed() {
        let long = vec![b'x'; LINE_BYTES * 2 + 10];
        for pieces in [vec![&long[..], b"\n"], long.chunks(1000).chain([&b"\n"[..]]).collect()] {
            let text = cut(&pieces);
            let tags: Vec<&str> = text.lines().map(|line| &line[..1]).collect();
            assert_eq!(tags, ["P", "P", "F"]);
            let total: usize = text.lines().map(|line| line.len() - 2).sum();
            assert_eq!(total, long.len());
            assert!(text.lines().all(|line| line.len() - 2 <= LINE_BYTES));
        }
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let line = Line::read(b"2027-01-15T08:00:00Z stderr P a b  c").expect("a line");
        assert!(line.is_stderr && !line.is_full);
        assert_eq!(line.text, b"a b  c");
        assert!(line.is_of(LogStream::Stderr) && !line.is_of(LogStream::Stdout));
        let at = |text: &str| Some(text.parse::<Timestamp>().expect("a time"));
        assert!(line.is_since(at("2027-01-15T08:00:00Z")));
        assert!(!line.is_since(at("2027-01-15T08:00:00.1Z")));
        assert_eq!(Line::read(b"torn"), None);
    }
}
