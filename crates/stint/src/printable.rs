//! Text from a manifest, a file name or an error message, made safe to show.
//!
//! Whoever wrote the manifest must not be able to drive the reader's terminal or
//! to make a line read differently from what it says, so control characters and
//! invisible ones are shown as escapes. This file knows nothing of layout.

/// Longest text shown for one message. A message may quote a value of megabytes;
/// 1,000 characters are some ten lines of a terminal, and JSON output has all of it.
pub(crate) const MAX_MESSAGE_CHARS: usize = 1_000;

/// Whether `c` must not reach a terminal as it is: control characters (escape
/// sequences begin with one), marks that reorder text, and invisible characters.
///
/// The two joiners U+200C and U+200D are let through: they are part of words in
/// several scripts and of emoji, and change only how their neighbours are drawn.
pub(crate) fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' // soft hyphen
                | '\u{61c}' // Arabic letter mark
                | '\u{180e}' // Mongolian vowel separator
                | '\u{200b}' // zero width space
                | '\u{200e}'..='\u{200f}' // direction marks
                | '\u{2028}'..='\u{202e}' // separators, direction embeddings and overrides
                | '\u{2060}'..='\u{206f}' // invisible operators, direction isolates
                | '\u{feff}' // byte order mark
                | '\u{fff9}'..='\u{fffb}' // interlinear annotations
                | '\u{fffe}'..='\u{ffff}' // not characters
                | '\u{e0000}'..='\u{e0fff}' // tags
        )
}

/// `text` on one line without anything unprintable, cut after `max_chars` characters.
pub(crate) fn printable(text: &str, max_chars: usize) -> String {
    let mut shown = String::with_capacity(text.len().min(max_chars));
    for (count, c) in text.chars().enumerate() {
        if count == max_chars {
            shown.push('…');
            break;
        }
        push_printable(&mut shown, c);
    }
    shown
}

/// The same, cut in the middle: what tells names apart may stand at their end. The cut counts as
/// a character.
pub(crate) fn printable_ends(text: &str, max_chars: usize) -> String {
    let count = text.chars().count();
    let Some(kept) = max_chars.checked_sub(1).filter(|_| count > max_chars) else {
        return printable(text, max_chars);
    };
    let first: String = text.chars().take(kept - kept / 2).collect();
    let last: String = text.chars().skip(count - kept / 2).collect();
    printable(&first, max_chars) + "…" + &printable(&last, max_chars)
}

/// Appends `c`, or its escape such as `\u{1b}` or `\n` if it is unprintable.
pub(crate) fn push_printable(shown: &mut String, c: char) {
    if is_unprintable(c) {
        shown.extend(c.escape_default());
    } else {
        shown.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_drive_or_deceive_a_terminal_is_shown_as_an_escape() {
        let rows = [
            ("plain ä 漢 👩‍💻", "plain ä 漢 👩‍💻"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
            ("\u{9b}2J\u{7f}", "\\u{9b}2J\\u{7f}"),
            ("x\u{202e}y\u{2066}z", "x\\u{202e}y\\u{2066}z"),
            ("a\u{200b}b\u{feff}", "a\\u{200b}b\\u{feff}"),
            ("tag\u{e0041}", "tag\\u{e0041}"),
        ];
        for (text, expected) in rows {
            assert_eq!(printable(text, MAX_MESSAGE_CHARS), expected);
        }
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        assert_eq!(printable("abc", 3), "abc");
        assert_eq!(printable("abcd", 3), "abc…");
        for (max_chars, expected) in [(7, "abcdefg"), (6, "abc…fg"), (3, "a…g"), (1, "…")] {
            assert_eq!(printable_ends("abcdefg", max_chars), expected);
        }
    }
}
