//! Where in an object something is: `spec.template.spec.containers[0].name`.
//!
//! [`Path`] is what a validator carries down the object: a chain of borrowed
//! steps that costs nothing until an error is found. [`FieldPath`] is the owned
//! form that an error keeps. Neither knows what the object is, nor the text it
//! was read from.

use std::borrow::Cow;
use std::fmt;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// A field of an object, or (from the decoder) any member of a mapping.
    Field(Cow<'static, str>),
    /// A position in a list.
    Index(usize),
    /// A key of a map, written in brackets: `labels[app]`.
    Key(String),
}

/// An owned path, as errors carry it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldPath(Vec<Segment>);

impl FieldPath {
    /// The path of the object itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// The path made of these steps.
    pub fn from_segments(segments: Vec<Segment>) -> Self {
        Self(segments)
    }

    /// The steps from the root down.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// Goes one step down.
    pub fn push(&mut self, segment: Segment) {
        self.0.push(segment);
    }

    /// Goes one step up; at the root nothing happens.
    pub fn pop(&mut self) {
        self.0.pop();
    }

    /// Whether this path is `ancestor` or lies below it. A map key matches a
    /// field of the same name: the decoder cannot always tell the two apart.
    pub fn starts_with(&self, ancestor: &FieldPath) -> bool {
        self.0.len() >= ancestor.0.len()
            && self.0.iter().zip(&ancestor.0).all(|(mine, theirs)| mine.names_the_same(theirs))
    }
}

impl Segment {
    /// Whether both steps lead to the same member.
    pub fn names_the_same(&self, other: &Segment) -> bool {
        match (self.member(), other.member()) {
            (Some(mine), Some(theirs)) => mine == theirs,
            _ => self == other,
        }
    }

    fn member(&self) -> Option<&str> {
        match self {
            Segment::Field(name) => Some(name),
            Segment::Key(key) => Some(key),
            Segment::Index(_) => None,
        }
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Field(name) if depth == 0 => write!(f, "{name}")?,
                Segment::Field(name) => write!(f, ".{name}")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Key(key) => write!(f, "[{key}]")?,
            }
        }
        Ok(())
    }
}

/// A path under construction, borrowed from the caller one step up.
///
/// ```
/// use stint_api::field_path::Path;
/// let spec = Path::field("spec");
/// let containers = spec.child("containers");
/// assert_eq!(containers.index(0).to_field_path().to_string(), "spec.containers[0]");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Field(&'static str),
    Member(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> Path<'a> {
    /// A field of the object itself.
    pub fn field(name: &'static str) -> Self {
        Self { parent: None, step: Step::Field(name) }
    }

    /// A field of what this path leads to.
    pub fn child(&'a self, name: &'static str) -> Path<'a> {
        Path { parent: Some(self), step: Step::Field(name) }
    }

    /// A field whose name is only known at run time, such as `capacity.cpu`, where
    /// upstream writes an entry of a map like a field.
    pub fn member(&'a self, name: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: Step::Member(name) }
    }

    /// An item of the list this path leads to.
    pub fn index(&'a self, index: usize) -> Path<'a> {
        Path { parent: Some(self), step: Step::Index(index) }
    }

    /// An entry of the map this path leads to.
    pub fn key(&'a self, key: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: Step::Key(key) }
    }

    /// The owned form.
    pub fn to_field_path(&self) -> FieldPath {
        let mut segments = Vec::new();
        let mut here = Some(self);
        while let Some(path) = here {
            segments.push(match path.step {
                Step::Field(name) => Segment::Field(Cow::Borrowed(name)),
                Step::Member(name) => Segment::Field(Cow::Owned(name.to_owned())),
                Step::Index(index) => Segment::Index(index),
                Step::Key(key) => Segment::Key(key.to_owned()),
            });
            here = path.parent;
        }
        segments.reverse();
        FieldPath(segments)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_field_path().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_the_way_kubernetes_writes_it() {
        let spec = Path::field("spec");
        let rules = spec.child("rules");
        let first = rules.index(3);
        let labels = first.child("labels");
        assert_eq!(labels.key("a.b/c").to_string(), "spec.rules[3].labels[a.b/c]");
    }

    #[test]
    fn a_key_and_a_field_of_one_name_are_the_same_place() {
        let metadata = Path::field("metadata");
        let labels = metadata.child("labels");
        let by_key = labels.key("app").to_field_path();
        let by_field = labels.child("app").to_field_path();
        assert!(by_key.starts_with(&by_field));
        assert!(by_key.starts_with(&labels.to_field_path()));
        assert!(!labels.to_field_path().starts_with(&by_key));
    }
}
