//! Where the documents of a file begin and end.
//!
//! In YAML a line that starts with `---` or `...` is a document marker wherever
//! it stands, even inside quotes, so documents can be told apart without reading
//! them. That way a broken document cannot take the others with it, each has a
//! size, and each may be JSON.

use crate::diagnostic::Span;

/// What separates tokens in YAML and JSON; all other characters mean something.
pub(super) const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

/// Cuts the next part off the rest of `text` that holds something other than space,
/// comments and markers. A part begins with its `---`, if it has one.
pub(super) fn next(text: &str, rest: &mut Span) -> Option<Span> {
    while rest.start < rest.end {
        let (chunk, has_content) = next_chunk(text, *rest);
        rest.start = chunk.end;
        if has_content {
            return Some(chunk);
        }
    }
    None
}

/// Cuts off the first part. Directives (`%YAML 1.1`) stand before the `---` of
/// the document they belong to.
fn next_chunk(text: &str, rest: Span) -> (Span, bool) {
    let mut has_content = false;
    let mut has_directive = false;
    let mut has_start = false;
    let mut line_start = rest.start;
    for line in lines(&text[rest.start..rest.end]) {
        let line_end = line_start + line.len();
        match marker(line) {
            Some(Marker::Start) if line_start > rest.start && (has_content || !has_directive) => {
                let end = line_start;
                return (Span { start: rest.start, end }, has_content);
            }
            Some(Marker::Start) => {
                has_start = true;
                has_content |= is_content(&line[3..]);
            }
            Some(Marker::End) => {
                let end = line_end;
                return (Span { start: rest.start, end }, has_content);
            }
            None if line.starts_with('%') && !has_content => has_directive = true,
            None => has_content |= is_content(line),
        }
        line_start = line_end;
    }
    // A directive without a document is for the parser to complain about.
    (rest, has_content || (has_directive && !has_start))
}

enum Marker {
    Start,
    End,
}

fn marker(line: &str) -> Option<Marker> {
    let (marker, rest) = line.split_at_checked(3)?;
    let separated = rest.is_empty() || rest.starts_with([' ', '\t', '\n', '\r']);
    match marker {
        "---" if separated => Some(Marker::Start),
        "..." if separated => Some(Marker::End),
        _ => None,
    }
}

fn is_content(line: &str) -> bool {
    let visible = line.trim_start_matches(BLANKS);
    !visible.is_empty() && !visible.starts_with('#')
}

/// The lines with their line breaks; a lone carriage return is one in YAML.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n').flat_map(|line| {
        let body = line.strip_suffix('\n').unwrap_or(line);
        let body = body.strip_suffix('\r').unwrap_or(body);
        let (head, last) = match body.rfind('\r') {
            Some(at) => line.split_at(at + 1),
            None => ("", line),
        };
        head.split_inclusive('\r').chain(std::iter::once(last))
    })
}

/// The chunk without the space behind it. What is read keeps that space: a block
/// of text may end with empty lines that count.
pub(super) fn trimmed(text: &str, chunk: Span) -> Span {
    let part = &text[chunk.start..chunk.end];
    let end = chunk.start + part.trim_end_matches(BLANKS).len();
    Span { end, ..chunk }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<&str> {
        let mut rest = Span { start: 0, end: text.len() };
        std::iter::from_fn(|| next(text, &mut rest))
            .map(|chunk| trimmed(text, chunk))
            .map(|span| &text[span.start..span.end])
            .collect()
    }

    #[test]
    fn documents_are_told_apart_by_their_markers() {
        let rows: [(&str, &[&str]); 14] = [
            ("%YAML 1.1\n---\n# nothing\n", &[]),
            ("%YAML 1.1\n", &["%YAML 1.1"]),
            ("", &[]),
            ("# only a comment\n", &[]),
            ("---\n---\n# x\n---\n", &[]),
            ("a: 1", &["a: 1"]),
            ("a: 1\n---\nb: 2\n", &["a: 1", "---\nb: 2"]),
            ("---\na: 1\n--- # next\nb: 2\n", &["---\na: 1", "--- # next\nb: 2"]),
            ("--- a\n--- b\n", &["--- a", "--- b"]),
            ("a: 1\n...\nb: 2\n", &["a: 1\n...", "b: 2"]),
            ("a\r---\rb", &["a", "---\rb"]),
            ("a: |\n  ---\n----\n---x\n", &["a: |\n  ---\n----\n---x"]),
            ("%YAML 1.1\n---\na: 1\n", &["%YAML 1.1\n---\na: 1"]),
            ("a: 1\r\n---\r\nb: 2\r\n", &["a: 1", "---\r\nb: 2"]),
        ];
        for (text, expected) in rows {
            assert_eq!(split(text), expected, "{text:?}");
        }
    }
}
