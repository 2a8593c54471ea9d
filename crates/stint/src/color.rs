//! Colours on a terminal: whether to use them, and which.

use std::fmt;

/// What `--color` was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set, CLICOLOR is 0, or TERM is dumb or not set
    #[default]
    Auto,
    /// Even into a file or a pipe
    Always,
    /// Not at all
    Never,
}

impl ColorChoice {
    /// Whether to colour a stream. `variable` looks up the environment.
    pub(crate) fn is_on(
        self,
        is_terminal: bool,
        variable: impl Fn(&str) -> Option<std::ffi::OsString>,
    ) -> bool {
        match self {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && takes_escapes(variable),
        }
    }
}

/// Whether a terminal can be sent colours and movements of its cursor, and its owner wants them:
/// not if TERM is dumb or unset, with NO_COLOR (<https://no-color.org>: set and not empty), or
/// with CLICOLOR=0. `variable` looks up the environment.
pub(crate) fn takes_escapes(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> bool {
    variable("TERM").is_some_and(|value| !value.is_empty() && value != "dumb")
        && variable("NO_COLOR").is_none_or(|value| value.is_empty())
        && variable("CLICOLOR").is_none_or(|value| value != "0")
}

/// What a piece of text is, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// The word "error" and its carets.
    Error,
    /// The word "warning" and its carets.
    Warning,
    /// The frame around a snippet, notes and their marks.
    Frame,
    /// What is wrong.
    Message,
}

impl Style {
    fn escape(self) -> &'static str {
        match self {
            Style::Error => "\x1b[1;31m",
            Style::Warning => "\x1b[1;33m",
            Style::Frame => "\x1b[1;34m",
            Style::Message => "\x1b[1m",
        }
    }
}

/// Paints text, or leaves it as it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Painter {
    is_on: bool,
}

impl Painter {
    /// One that paints if `is_on`.
    pub(crate) const fn new(is_on: bool) -> Self {
        Self { is_on }
    }

    /// `text` in the colour of `style`.
    pub(crate) fn paint<T: fmt::Display>(self, style: Style, text: T) -> Painted<T> {
        Painted { style: self.is_on.then_some(style), text }
    }
}

/// A text with its colour.
pub(crate) struct Painted<T> {
    style: Option<Style>,
    text: T,
}

impl<T: fmt::Display> fmt::Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.style {
            Some(style) => write!(f, "{}{}\x1b[0m", style.escape(), self.text),
            None => self.text.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_for_terminals_whose_owner_wants_it() {
        let auto = |is_terminal, variables: &[(&str, &str)]| {
            ColorChoice::Auto.is_on(is_terminal, |name| {
                let found = variables.iter().find(|(it, _)| *it == name);
                found.map(|(_, value)| value.into())
            })
        };
        let term = ("TERM", "xterm");
        assert!(auto(true, &[term]));
        assert!(auto(true, &[term, ("NO_COLOR", ""), ("CLICOLOR", "1")]));
        assert!(!auto(false, &[term]));
        assert!(!auto(true, &[term, ("NO_COLOR", "1")]));
        assert!(!auto(true, &[term, ("CLICOLOR", "0")]));
        assert!(!auto(true, &[("TERM", "dumb")]));
        assert!(!auto(true, &[("TERM", "")]));
        assert!(!auto(true, &[]));
        assert!(ColorChoice::Always.is_on(false, |_| Some("1".into())));
        assert!(!ColorChoice::Never.is_on(true, |_| None));
    }

    #[test]
    fn paint_ends_where_the_text_does() {
        let on = Painter::new(true);
        let off = Painter::new(false);
        assert_eq!(on.paint(Style::Error, "x").to_string(), "\x1b[1;31mx\x1b[0m");
        assert_eq!(off.paint(Style::Error, "x").to_string(), "x");
    }
}
