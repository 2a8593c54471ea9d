//! A text that was read, the name it goes by, and the places in it.

use stint_api::diagnostic::Span;

use crate::line_index::{LineIndex, Position};

/// One input, read.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    name: String,
    text: String,
    index: LineIndex,
}

impl Source {
    /// The text of the file `name`; the name is for people and may be no path.
    pub(crate) fn new(name: impl Into<String>, text: String) -> Self {
        let index = LineIndex::new(&text);
        Self { name: name.into(), text, index }
    }

    /// What the input is called.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The line and column of a byte; one past the end counts as a place too.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let offset = self.text.floor_char_boundary(offset);
        self.index.position(&self.text, offset)
    }

    /// `span`, made to lie within the text and on character boundaries. A span
    /// does so already, but a report of what is wrong is no place to fall over
    /// one that is off by a byte.
    pub(crate) fn clamp(&self, span: Span) -> Span {
        let start = self.text.floor_char_boundary(span.start);
        let end = self.text.ceil_char_boundary(span.end.max(start));
        Span { start, end }
    }
}
