//! YAML syntax errors in plain words.
//!
//! The parser says what rule of the grammar was broken; the author of a manifest
//! wants to know what to change.

use granit_parser::ErrorKind;

use super::chunk::BLANKS;
use super::problem::{Problem, ProblemKind};
use crate::diagnostic::Span;

/// The problem for one of the parser's errors at this place.
pub(super) fn problem(kind: &ErrorKind, span: Span) -> Problem {
    let (message, help) = words(kind);
    let problem = Problem::new(ProblemKind::Syntax, span, message);
    match help {
        "" => problem,
        help => problem.help(help),
    }
}

/// The character at this byte, or the last visible one before it where nothing
/// but space follows: a caret behind the end of the text would point nowhere.
pub(super) fn character_at(text: &str, within: Span, offset: usize) -> Span {
    let offset = text.floor_char_boundary(offset.clamp(within.start, within.end));
    let rest = &text[offset..within.end];
    let start = if rest.trim_start_matches(BLANKS).is_empty() {
        let before = text[within.start..offset].trim_end_matches(BLANKS);
        let last = before.chars().next_back().map_or(0, char::len_utf8);
        within.start + before.len() - last
    } else {
        offset
    };
    let width = text[start..within.end]
        .chars()
        .next()
        .map_or(0, |c| if c == '\n' || c == '\r' { 0 } else { c.len_utf8() });
    Span { start, end: start + width }
}

/// Where the offending character is. The parser places some errors at the start
/// of the value in which it met them.
pub(super) fn culprit(kind: &ErrorKind, text: &str, within: Span, offset: usize) -> usize {
    let offset = text.floor_char_boundary(offset.clamp(within.start, within.end));
    let start = match kind {
        // The tab may stand before the place or after it.
        kind if is_about_tabs(kind) => line_start(text, within, offset),
        _ => offset,
    };
    let rest = &text[start..within.end];
    let distance = match kind {
        kind if is_about_tabs(kind) => rest.find('\t'),
        ErrorKind::UnknownQuotedScalarEscape => find_unknown_escape(rest),
        _ => None,
    };
    distance.map_or(offset, |distance| start + distance)
}

/// Where the line of this byte starts.
pub(super) fn line_start(text: &str, within: Span, offset: usize) -> usize {
    let before = &text[within.start..offset];
    within.start + before.rfind(['\n', '\r']).map_or(0, |at| at + 1)
}

fn is_about_tabs(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::TabNotAllowed
            | ErrorKind::TabInBlockIndentation
            | ErrorKind::TabInIndentation
            | ErrorKind::TabAtBlockScalarStart
            | ErrorKind::TabInPlainScalar
    )
}

/// The first backslash that does not start an escape of YAML.
fn find_unknown_escape(quoted: &str) -> Option<usize> {
    let mut bytes = quoted.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        if byte == b'\\' {
            let (_, escaped) = bytes.next()?;
            if !b"0abt\tnvfre \"/\\N_LPxuU\n\r".contains(&escaped) {
                return Some(at);
            }
        }
    }
    None
}

/// A key that is too long is not taken for one, and the parser then trips over
/// its colon.
pub(super) fn long_key(kind: &ErrorKind, text: &str, within: Span, span: Span) -> Option<Problem> {
    /// YAML's own limit for a key without `?` before it.
    const MAX_KEY_CHARS: usize = 1024;
    if !matches!(
        kind,
        ErrorKind::MappingValueNotAllowed
            | ErrorKind::SimpleKeyExpected
            | ErrorKind::ExpectedFlowMappingSeparator
    ) {
        return None;
    }
    let line = &text[line_start(text, within, span.start)..span.start];
    let key = line.trim_start_matches([' ', '-', '{', '[']);
    let is_long = key.chars().count() > MAX_KEY_CHARS && !key.contains(": ");
    is_long.then(|| {
        let start = span.start - key.len();
        let shown = key.chars().take(40).map(char::len_utf8).sum::<usize>();
        let end = start + shown;
        let message = format!("a key must not have more than {MAX_KEY_CHARS} characters");
        Problem::new(ProblemKind::Limit, Span { start, end }, message)
    })
}

const SPACES: &str = "indent with spaces";
const ALIGN: &str =
    "keys of one mapping, and the dashes of one list, must start in the same column";
/// What to do about text behind the end of a document.
const STRAY: &str =
    "start it in the column of the document's first key, or put a line `---` before it";
const QUOTE: &str = "if this is meant as text, quote it";

/// A table, long because the parser tells so many mistakes apart: what is wrong, and
/// what to do about it.
fn words(kind: &ErrorKind) -> (String, &'static str) {
    use ErrorKind as E;
    let (message, help) = match kind {
        kind if is_about_tabs(kind) => ("a tab is not allowed here", SPACES),
        E::UnclosedQuotedScalar => ("the quote that starts here is never closed", ""),
        E::DocumentIndicatorInQuotedScalar => (
            "a quoted string runs into the end of the document",
            "close the quote before the line `---`",
        ),
        E::InvalidQuotedScalarIndent => (
            "a quoted string goes on here with too little indentation",
            "close its quote, or indent its lines further than its key",
        ),
        E::UnclosedFlowCollection { open } => {
            return (format!("the bracket {open} is never closed"), "");
        }
        E::MismatchedFlowCollectionEnd { open, close } => {
            return (format!("the bracket {open} is closed by {close}"), "");
        }
        E::MisplacedFlowCollectionEnd => ("this bracket closes nothing", QUOTE),
        E::UnexpectedEofFlowSequence | E::UnexpectedEofFlowMapping => {
            ("the text ends inside brackets", "")
        }
        E::ExpectedFlowMappingSeparator => ("expected `,` or `}` here", ""),
        E::ExpectedFlowSequenceSeparator => ("expected `,` or `]` here", ""),
        E::InvalidColonPlacement => {
            ("`key: value` is not allowed here", "check that every bracket above is closed")
        }
        E::MappingValueNotAllowed
        | E::MappingKeyNotAllowed
        | E::FlowMappingValueAdjacentCollection => (
            "`key: value` is not allowed here",
            "a text with `: ` in it must be quoted; otherwise check the indentation",
        ),
        E::SimpleKeyExpected | E::InvalidSimpleKey => (
            "this is neither a `key: value` pair nor part of the value before it",
            "a key ends with `:` and a space, and is at most 1024 characters long",
        ),
        E::InvalidIndentation
        | E::ExpectedBlockMappingKey
        | E::ExpectedBlockSequenceEntry
        | E::InvalidFlowScalarIndent => ("the indentation does not fit what is above", ALIGN),
        E::BlockSequenceEntryNotAllowed | E::BlockEntryInFlowCollection => {
            ("a list item `- ` is not allowed here", ALIGN)
        }
        E::MissingAnchorOrAliasName => (
            "an anchor `&` or alias `*` has no name",
            "a text that starts with `&` or `*` must be quoted",
        ),
        E::UnexpectedCharacter { character } => {
            return (format!("a value cannot start with the character {character:?}"), QUOTE);
        }
        E::PlainScalarStartsWithDashFlowIndicator | E::UnexpectedEndOfPlainScalar => {
            ("this is no value", QUOTE)
        }
        E::UnknownQuotedScalarEscape => (
            "this escape is unknown in a double-quoted string",
            "write a backslash as `\\\\`, or use single quotes",
        ),
        E::InvalidQuotedScalarHexEscape | E::InvalidUnicodeEscape => {
            ("this escape is no character", "")
        }
        E::InvalidLowSurrogateHexEscape
        | E::InvalidLowSurrogate
        | E::MissingLowSurrogate
        | E::UnpairedLowSurrogate => ("this escape is one half of a surrogate pair", ""),
        E::InvalidTrailingSingleQuotedScalar => (
            "there is text after the closing quote",
            "quote the whole value, and write a quote inside it as ''",
        ),
        E::InvalidTrailingDoubleQuotedScalar => (
            "there is text after the closing quote",
            "quote the whole value, and write a quote inside it as \\\"",
        ),
        E::InvalidBlockScalarHeader | E::ZeroBlockScalarIndent => (
            "this is no header of a block of text",
            "write `|` or `>`, followed by nothing, `-`, `+` or a digit from 1 to 9",
        ),
        E::InvalidBlockScalarIndent => (
            "the block of text after `|` or `>` is not indented as it should be",
            "indent every line of it further than its key",
        ),
        E::CommentInterceptedScalar | E::CommentNotSeparated => {
            ("a comment is not allowed here", "put a space before `#`, or quote the text")
        }
        E::BomInsideDocument => ("a byte order mark is inside the document", "remove it"),
        E::ExpectedWhitespace
        | E::InvalidBlockEntryWhitespace
        | E::InvalidMappingValueWhitespace => ("a space is missing here", SPACES),
        E::MissingDocumentEndBeforeDirective => {
            ("a line must not start with % inside a document", QUOTE)
        }
        E::ExpectedNodeContent => ("a value is missing here", ""),
        E::ExpectedDocumentStart | E::InvalidDocumentEnd => {
            ("the document has ended before this text", STRAY)
        }
        E::UnexpectedEofBlockSequence
        | E::UnexpectedEofBlockMapping
        | E::UnexpectedEofImplicitFlowMapping
        | E::UnexpectedEof => ("this is out of place", QUOTE),
        E::UndeclaredTagHandle => ("the tag's prefix is not declared", "remove the tag"),
        E::MissingTagUri
        | E::ExpectedTagBang
        | E::InvalidGlobalTagCharacter
        | E::InvalidTagTerminator
        | E::InvalidTagEscape
        | E::UnclosedVerbatimTag => {
            ("this is not a tag", "a text that starts with `!` must be quoted")
        }
        E::MissingDirectiveName
        | E::InvalidDirectiveName
        | E::InvalidDirectiveTerminator
        | E::MissingYamlVersion
        | E::MissingYamlVersionSeparator
        | E::YamlVersionTooLong
        | E::UnsupportedYamlMajorVersion
        | E::DuplicateVersionDirective
        | E::DuplicateTagDirective
        | E::DirectiveByteLimitExceeded { .. }
        | E::TooManyReservedDirectiveParams { .. } => (
            "this is not a directive that YAML knows",
            "remove the line; a text that starts with % must be quoted",
        ),
        _ => ("this is not valid YAML", ""),
    };
    (message.to_owned(), help)
}
