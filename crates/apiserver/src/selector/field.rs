//! Field selectors: `status.phase=Running,spec.nodeName!=a`. They know nothing of which
//! fields a kind has.

use thiserror::Error;

/// What must hold of some fields, all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// One for each term.
    pub terms: Vec<FieldTerm>,
}

/// One thing that must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    /// The field.
    pub field: String,
    /// Whether it must be the value, rather than must not.
    pub is_equal: bool,
    /// The value.
    pub value: String,
}

/// Why a text is no selector.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FieldSelectorError {
    /// A term has no operator.
    #[error("invalid selector: '{selector}'; can't understand '{term}'")]
    Term {
        /// The whole text.
        selector: String,
        /// The term.
        term: String,
    },
    /// A value has a backslash before something else than a backslash, comma or equals sign.
    #[error("invalid field selector: invalid escape sequence: {sequence}")]
    Escape {
        /// The backslash and what follows it.
        sequence: String,
    },
    /// A value has a comma or an equals sign without a backslash.
    #[error("invalid field selector: unescaped character in value: {character}")]
    Unescaped {
        /// The character.
        character: char,
    },
}

impl FieldSelector {
    /// Reads a selector. An empty one selects everything.
    pub fn parse(text: &str) -> Result<Self, FieldSelectorError> {
        let mut terms = Vec::new();
        for term in split_terms(text) {
            if term.is_empty() {
                continue;
            }
            let (field, is_equal, value) = split_operator(term).ok_or_else(|| {
                FieldSelectorError::Term { selector: text.to_owned(), term: term.to_owned() }
            })?;
            let value = unescape(value)?;
            terms.push(FieldTerm { field: field.to_owned(), is_equal, value });
        }
        Ok(FieldSelector { terms })
    }

    /// Whether all terms hold of what `value_of` says of the fields.
    pub fn matches<V: AsRef<str>>(&self, value_of: impl Fn(&str) -> V) -> bool {
        self.terms
            .iter()
            .all(|term| (value_of(&term.field).as_ref() == term.value) == term.is_equal)
    }

    /// The value that a field must have, if there is one.
    pub fn required(&self, field: &str) -> Option<&str> {
        let term = self.terms.iter().find(|term| term.is_equal && term.field == field)?;
        Some(&term.value)
    }
}

/// The parts between commas that are not escaped.
fn split_terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut is_escaped) = (Vec::new(), 0, false);
    for (position, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            ',' => {
                terms.push(&text[start..position]);
                start = position + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// The field, whether it must be equal, and the value.
fn split_operator(term: &str) -> Option<(&str, bool, &str)> {
    for (position, _) in term.char_indices() {
        let rest = &term[position..];
        for (operator, is_equal) in [("!=", false), ("==", true), ("=", true)] {
            if let Some(value) = rest.strip_prefix(operator) {
                return Some((&term[..position], is_equal, value));
            }
        }
    }
    None
}

fn unescape(value: &str) -> Result<String, FieldSelectorError> {
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                other => {
                    let sequence = ['\\'].into_iter().chain(other).collect();
                    return Err(FieldSelectorError::Escape { sequence });
                }
            },
            // What ends a term or begins a value must be escaped.
            ',' | '=' => return Err(FieldSelectorError::Unescaped { character: c }),
            c => plain.push(c),
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> String {
        match FieldSelector::parse(text) {
            Ok(selector) => selector
                .terms
                .iter()
                .map(|term| {
                    let operator = if term.is_equal { "=" } else { "!=" };
                    format!("{} {operator} {}", term.field, term.value)
                })
                .collect::<Vec<_>>()
                .join("; "),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn terms_are_read_with_their_operators_and_escapes() {
        let rows = [
            ("", ""),
            ("a=b", "a = b"),
            ("a==b,c!=d", "a = b; c != d"),
            ("a=", "a = "),
            (r"a=b\,c\=d\\e", r"a = b,c=d\e"),
            ("a", "invalid selector: 'a'; can't understand 'a'"),
            (r"a=b\c", r"invalid field selector: invalid escape sequence: \c"),
            ("a=b=c", "invalid field selector: unescaped character in value: ="),
        ];
        for (text, expected) in rows {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn all_terms_must_hold() {
        let selector = FieldSelector::parse("a=1,b!=2").expect("a selector");
        let of = |a: &'static str, b: &'static str| {
            selector.matches(|field| if field == "a" { a } else { b })
        };
        assert!(of("1", "3"));
        assert!(!of("1", "2"));
        assert!(!of("2", "3"));
        assert_eq!(selector.required("a"), Some("1"));
        assert_eq!(selector.required("b"), None);
    }
}
