//! The line of a text that a span points to, ready to be shown with a caret.
//!
//! The caret stands under the span whatever the line holds: tabs, wide and
//! combining characters, escapes of unprintable ones. Of a long line only a
//! window around the span is shown, and no more than that is looked at.

use stint_api::diagnostic::Span;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::printable::{is_unprintable, push_printable};
use crate::source::Source;

/// Columns of a line that are shown. Fits the terminals and CI logs people have,
/// and a line of a manifest is seldom longer.
const MAX_COLUMNS: usize = 120;

/// Of those, columns left of the span when both sides are longer than the window.
const COLUMNS_BEFORE: usize = MAX_COLUMNS / 3;

/// What a tab is shown as.
const TAB: &str = "    ";

/// What stands for the part of a line that is left out.
const CUT: &str = "…";

/// One line of a text, or a window on it, and the columns to mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snippet {
    /// The line's text without anything unprintable.
    pub(crate) text: String,
    /// Columns left of the mark.
    pub(crate) mark_start: usize,
    /// Columns of the mark: at least one.
    pub(crate) mark_width: usize,
}

impl Snippet {
    /// The line at which `span` starts. The mark ends with that line even if the
    /// span does not.
    pub(crate) fn new(source: &Source, span: Span) -> Self {
        let span = source.clamp(span);
        let text = source.text();
        let line_start = source.position(span.start).line_start.min(span.start);
        let before = &text[line_start..span.start];
        let after = &text[span.start..];

        let (before_columns, after_columns) = window(before, after);
        let before_fit = fit(before.chars().rev(), before_columns);
        let after_fit = fit(to_line_end(after), after_columns);

        let shown_before = &before[before.len() - before_fit.bytes..];
        let shown_after = &after[..after_fit.bytes];
        let marked = &shown_after[..shown_after.len().min(span.end - span.start)];

        let mut line = String::new();
        if before_fit.is_cut {
            line.push_str(CUT);
        }
        push_shown(&mut line, shown_before);
        let mark_start = line.width();
        push_shown(&mut line, shown_after);
        if after_fit.is_cut {
            line.push_str(CUT);
        }
        let mut mark = String::new();
        push_shown(&mut mark, marked);
        Self { text: line, mark_start, mark_width: mark.width().max(1) }
    }
}

/// How many columns to show on each side of the span's start.
fn window(before: &str, after: &str) -> (usize, usize) {
    let before = fit(before.chars().rev(), MAX_COLUMNS).columns;
    let after = fit(to_line_end(after), MAX_COLUMNS).columns;
    let after = after.min(MAX_COLUMNS - before.min(COLUMNS_BEFORE));
    (before.min(MAX_COLUMNS - after), after)
}

fn to_line_end(text: &str) -> impl Iterator<Item = char> {
    text.chars().take_while(|c| !matches!(c, '\n' | '\r'))
}

/// The part of a run of characters that fits into some columns.
struct Fit {
    bytes: usize,
    columns: usize,
    is_cut: bool,
}

fn fit(chars: impl Iterator<Item = char>, max_columns: usize) -> Fit {
    let mut fit = Fit { bytes: 0, columns: 0, is_cut: false };
    // Characters that take no column, such as combining marks, must not make
    // the window endless either.
    let max_bytes = max_columns * 16;
    for c in chars {
        let columns = shown_width(c);
        if fit.columns + columns > max_columns || fit.bytes >= max_bytes {
            fit.is_cut = true;
            break;
        }
        fit.columns += columns;
        fit.bytes += c.len_utf8();
    }
    fit
}

fn shown_width(c: char) -> usize {
    if c == '\t' {
        TAB.len()
    } else if is_unprintable(c) {
        c.escape_default().len()
    } else {
        c.width().unwrap_or(0)
    }
}

fn push_shown(line: &mut String, text: &str) {
    for c in text.chars() {
        if c == '\t' {
            line.push_str(TAB);
        } else {
            push_printable(line, c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The snippet of the span between the two `¦` of `marked`, or at the only one,
    /// as its line and a line of carets.
    fn shown(marked: &str) -> String {
        let start = marked.find('¦').expect("a mark");
        let text = marked.replace('¦', "");
        let end = match marked.rfind('¦') {
            Some(second) if second > start => second - '¦'.len_utf8(),
            _ => start,
        };
        let snippet = Snippet::new(&Source::new("f", text), Span { start, end });
        let carets = "^".repeat(snippet.mark_width);
        let indent = " ".repeat(snippet.mark_start);
        format!("{}\n{indent}{carets}", snippet.text)
    }

    #[test]
    fn the_caret_stands_under_the_span() {
        let rows = [
            // In the middle of a line, and of the first and last lines.
            ("a: 1\nb: ¦two¦\nc: 3\n", "b: two\n   ^^^"),
            ("¦a¦: 1\n", "a: 1\n^"),
            ("a: 1\nb: ¦2¦", "b: 2\n   ^"),
            // Nothing, at the start, at a line's end, and at the end of the text.
            ("¦", "\n^"),
            ("a:¦\nb: 2\n", "a:\n  ^"),
            ("a: 1\n¦", "\n^"),
            ("a: 1¦", "a: 1\n    ^"),
            // Over several lines, and over the line break alone.
            ("a:\n  ¦b: 1\n  c: 2¦\n", "  b: 1\n  ^^^^"),
            ("a: 1¦\n¦b: 2\n", "a: 1\n    ^"),
            ("a: ¦1\r\nb: 2¦\r\n", "a: 1\n   ^"),
            // Tabs, wide characters, combining ones, and both in the span.
            ("\ta:\t¦b¦", "    a:    b\n          ^"),
            ("漢字: ¦値¦ # x", "漢字: 値 # x\n      ^^"),
            ("e\u{301}te\u{301}: ¦e\u{301}¦", "e\u{301}te\u{301}: e\u{301}\n     ^"),
            ("a: ¦\t¦", "a:     \n   ^^^^"),
            ("👩‍💻: ¦x¦", "👩‍💻: x\n    ^"),
            // What a terminal must not see.
            ("\u{1b}[31m: ¦x\u{202e}¦", "\\u{1b}[31m: x\\u{202e}\n            ^^^^^^^^^"),
            ("\u{feff}¦a¦: 1", "a: 1\n^"),
        ];
        for (marked, expected) in rows {
            assert_eq!(shown(marked), expected, "{marked:?}");
        }
    }

    #[test]
    fn of_a_long_line_a_window_around_the_span_is_shown() {
        let long = "x".repeat(1 << 20);

        let at_start = shown(&format!("¦key¦: {long}"));
        assert_eq!(at_start, format!("key: {}…\n^^^", "x".repeat(115)));

        let at_end = shown(&format!("{long}: ¦end¦"));
        let expected = format!("…{}: end\n{:118}^^^", "x".repeat(115), "");
        assert_eq!(at_end, expected);

        let in_middle = shown(&format!("{long}¦here¦{long}"));
        let (line, carets) = in_middle.split_once('\n').unwrap();
        assert_eq!(line.width(), MAX_COLUMNS + 2);
        assert_eq!(line.find("here"), Some('…'.len_utf8() + COLUMNS_BEFORE));
        assert_eq!(carets, format!("{:41}^^^^", ""));

        let all_of_it = shown(&format!("k: ¦{long}¦"));
        let (line, carets) = all_of_it.split_once('\n').unwrap();
        assert_eq!(line, format!("k: {}…", "x".repeat(117)));
        assert_eq!(carets, format!("   {}", "^".repeat(117)));
    }

    #[test]
    fn a_line_of_characters_without_width_is_cut_too() {
        let marks = "\u{301}".repeat(1 << 20);
        let shown = shown(&format!("¦a¦{marks}"));
        assert!(shown.len() < 4_000, "{} bytes", shown.len());
    }

    #[test]
    fn a_span_outside_the_text_does_no_harm() {
        let source = Source::new("f", "ä: 1\n".to_owned());
        for (start, end) in [(0, 1), (1, 2), (1, 99), (99, 100), (5, 2)] {
            let snippet = Snippet::new(&source, Span { start, end });
            assert!(snippet.mark_width >= 1);
        }
    }
}
