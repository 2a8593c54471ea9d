//! What somebody owns who applies an object: every leaf, item and entry that is in it. It knows
//! no owners and no other objects.

use super::compare::items;
use super::element::Element;
use super::set::{Entry, FieldSet};
use super::shape::{Shape, find};
use super::tree::{Place, unescaped};
use crate::schema::Message;

/// The fields of an object.
pub fn fields_of<'a>(object: Place<'a>, message: Message) -> FieldSet<'a> {
    owned(object, Shape::Message(message)).1
}

/// The set with every field of an object that leads to something in it: who takes all that is
/// in a field away takes the field away.
pub(super) fn with_fields_on_the_way<'a>(set: &FieldSet<'a>, shape: Shape) -> FieldSet<'a> {
    let entry = |entry: &Entry<'a>| {
        let below = shape.below(&entry.element);
        let is_field = matches!(shape, Shape::Message(_)) && below.is_some();
        Entry {
            element: entry.element.clone(),
            is_member: entry.is_member || is_field,
            below: match below {
                Some(below) => with_fields_on_the_way(&entry.below, below),
                None => entry.below.clone(),
            },
        }
    };
    FieldSet::of_entries(set.entries().iter().map(entry).collect())
}

/// The set with nothing below what is owned as a whole.
pub(super) fn reconciled<'a>(set: FieldSet<'a>, shape: Shape) -> FieldSet<'a> {
    let is_atomic =
        |entry: &Entry<'a>| matches!(shape.below(&entry.element), Some(Shape::Atomic(_)));
    let entry = |entry: Entry<'a>| {
        if is_atomic(&entry) {
            return Entry { is_member: true, below: FieldSet::default(), ..entry };
        }
        match shape.below(&entry.element) {
            Some(below) => Entry { below: reconciled(entry.below, below), ..entry },
            None => entry,
        }
    };
    FieldSet::of_entries(set.into_entries().into_iter().map(entry).collect())
}

/// Whether a value is owned itself, and what below it is.
fn owned(value: Place<'_>, shape: Shape) -> (bool, FieldSet<'_>) {
    match shape {
        Shape::Scalar(_) | Shape::Atomic(_) => (true, FieldSet::default()),
        Shape::Message(_) | Shape::Map(_) => (false, owned_members(value, shape)),
        Shape::Set(_) | Shape::Keyed(..) => (false, owned_items(value, shape)),
    }
}

fn owned_members(value: Place<'_>, shape: Shape) -> FieldSet<'_> {
    if !value.is_object() {
        return FieldSet::default();
    }
    let mut entries = Vec::new();
    for (key, value) in value.children() {
        let name = unescaped(key);
        let below = match shape {
            Shape::Message(message) => match find(message, &name) {
                Some(field) => Shape::of_field(field),
                None => continue,
            },
            Shape::Map(of) => Shape::Scalar(of),
            _ => unreachable!("only these have members"),
        };
        let (is_owned, below) = owned(value, below);
        let is_nothing = matches!(value.text(), "null" | "{}");
        entries.push(Entry {
            element: Element::Field(name),
            is_member: is_owned || is_nothing,
            below,
        });
    }
    FieldSet::of_entries(entries)
}

fn owned_items(value: Place<'_>, shape: Shape) -> FieldSet<'_> {
    let item_shape = match shape {
        Shape::Keyed(of, _) | Shape::Set(of) => Shape::of(of),
        _ => unreachable!("only these have items"),
    };
    let items = items(value, shape);
    let mut set = FieldSet::default();
    let mut rest = &items[..];
    while let Some((element, item)) = rest.first() {
        let count = rest.iter().take_while(|(other, _)| other == element).count();
        // Several that nothing tells apart are owned as one.
        let below = if count == 1 { owned(*item, item_shape).1 } else { FieldSet::default() };
        set.push(element.clone(), true, below);
        rest = &rest[count..];
    }
    set
}
