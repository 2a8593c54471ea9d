//! Where in an object a patch is, for errors.
//!
//! It must not know what is wrong there.

use std::fmt::{self, Display, Formatter};

/// A field and the ones it is in, kept on the stack while they are merged.
#[derive(Clone, Copy)]
pub(super) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    field: &'a str,
}

impl<'a> Path<'a> {
    /// The object itself.
    pub(super) const ROOT: Path<'static> = Path { parent: None, field: "" };

    /// A field of what is here.
    pub(super) fn field(&'a self, field: &'a str) -> Self {
        Self { parent: Some(self), field }
    }
}

impl Display for Path<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(parent) = self.parent else { return Ok(()) };
        parent.fmt(f)?;
        let dot = if parent.parent.is_some() { "." } else { "" };
        write!(f, "{dot}{}", self.field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_joined_by_dots() {
        assert_eq!(Path::ROOT.to_string(), "");
        assert_eq!(Path::ROOT.field("spec").field("ports").to_string(), "spec.ports");
    }
}
