//! What has changed from one object to another, by the schema: fields that were removed, changed
//! or added. It knows no owners.
//!
//! Objects are compared as Go would show them. What is always shown there, such as the
//! `resources` of a container or the status of a Pod, is taken to be there, empty.

use std::borrow::Cow;

use super::element::{Element, Scalar};
use super::set::FieldSet;
use super::shape::{Shape, each_always, find, key_of};
use super::tree::Place;
use crate::schema::Message;

/// What has changed. No field is in more than one of these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes<'a> {
    /// What is not there any more.
    pub removed: FieldSet<'a>,
    /// What is there as something else.
    pub modified: FieldSet<'a>,
    /// What was not there.
    pub added: FieldSet<'a>,
}

impl<'a> Changes<'a> {
    /// From one object to another; from nothing, if there is none.
    pub fn between(old: Option<Place<'a>>, new: Place<'a>, message: Message) -> Self {
        let old = old.map_or(Value::Zero("{}"), Value::At);
        let mut found = compare(old, Value::At(new), Shape::Message(message));
        let [removed, modified, added] = found.below.each_mut().map(std::mem::take);
        Changes { removed, modified, added }
    }

    /// Without what is in a set, and what is below that.
    pub fn without(self, ignored: &FieldSet<'_>) -> Self {
        if ignored.is_empty() {
            return self;
        }
        Changes {
            removed: self.removed.without_below(ignored),
            modified: self.modified.without_below(ignored),
            added: self.added.without_below(ignored),
        }
    }

    /// The same, which borrows nothing.
    pub fn into_owned(self) -> Changes<'static> {
        Changes {
            removed: self.removed.into_owned(),
            modified: self.modified.into_owned(),
            added: self.added.into_owned(),
        }
    }

    /// What is there now and was not there so.
    pub fn written(&self) -> FieldSet<'a> {
        self.modified.clone().union(self.added.clone())
    }
}

/// A value of one of the two objects.
#[derive(Clone, Copy)]
enum Value<'a> {
    /// There is none.
    Absent,
    /// Nobody has set it, and Go shows it so.
    Zero(&'static str),
    /// There is one.
    At(Place<'a>),
}

impl<'a> Value<'a> {
    fn text(self) -> Option<&'a str> {
        match self {
            Value::Absent => None,
            Value::Zero(text) => Some(text),
            Value::At(place) => Some(place.text()),
        }
    }

    /// The fields of an object, by their names.
    fn members(self, shape: Shape) -> Vec<(Cow<'a, str>, Value<'a>)> {
        let mut members = Vec::new();
        if let Value::At(place) = self
            && place.is_object()
        {
            let member = |(key, value)| (super::tree::unescaped(key), Value::At(value));
            members.extend(place.children().map(member));
        }
        if let Shape::Message(message) = shape
            && self.text().is_some_and(|text| text.starts_with('{'))
        {
            let given = members.len();
            each_always(message, &mut |field, zero| {
                if !members[..given].iter().any(|(name, _)| *name == field.name) {
                    members.push((Cow::Borrowed(field.name), Value::Zero(zero)));
                }
            });
        }
        if !members.is_sorted_by(|a, b| a.0 <= b.0) {
            members.sort_by(|a, b| a.0.cmp(&b.0));
        }
        members
    }

    /// The items of a list, by what tells them apart; the same ones in their order.
    fn items(self, shape: Shape) -> Vec<(Element<'a>, Place<'a>)> {
        let Value::At(place) = self else { return Vec::new() };
        items(place, shape)
    }
}

/// The items of a list, by what tells them apart. What nothing tells apart is left out.
pub(super) fn items<'a>(list: Place<'a>, shape: Shape) -> Vec<(Element<'a>, Place<'a>)> {
    if !list.is_list() {
        return Vec::new();
    }
    let element = |item: Place<'a>| match shape {
        Shape::Keyed(..) if !item.is_object() => None,
        Shape::Keyed(_, keys) => {
            key_of(keys, |name| item.get(name).map(|value| Scalar::of_text(value.text())))
        }
        _ => (!item.is_object() && !item.is_list())
            .then(|| Element::Value(Scalar::of_text(item.text()))),
    };
    let mut items: Vec<_> =
        list.children().filter_map(|(_, item)| Some((element(item)?, item))).collect();
    if !items.is_sorted_by(|a, b| a.0 <= b.0) {
        items.sort_by(|a, b| a.0.cmp(&b.0));
    }
    items
}

const REMOVED: usize = 0;
const MODIFIED: usize = 1;
const ADDED: usize = 2;

/// What has changed at and below a value.
#[derive(Default)]
struct Found<'a> {
    here: [bool; 3],
    below: [FieldSet<'a>; 3],
}

impl<'a> Found<'a> {
    fn only(which: usize) -> Self {
        let mut found = Found::default();
        found.here[which] = true;
        found
    }

    /// Adds what was found below a step that comes after all others.
    fn push(&mut self, element: Element<'a>, found: Found<'a>) {
        let Found { here, below } = found;
        let mut element = Some(element);
        let last = (0..3).rev().find(|&which| here[which] || !below[which].is_empty());
        for (which, below) in below.into_iter().enumerate() {
            if here[which] || !below.is_empty() {
                let step = if Some(which) == last { element.take() } else { element.clone() };
                self.below[which].push(step.expect("it is taken last"), here[which], below);
            }
        }
    }

    /// Says that a value that holds others came or went as a whole.
    fn around(mut self, old: Value<'_>, new: Value<'_>) -> Self {
        match (old, new) {
            (Value::Absent, _) => self.here[ADDED] = true,
            (_, Value::Absent) => self.here[REMOVED] = true,
            _ => {}
        }
        self
    }
}

/// The depth is that of the schema.
fn compare<'a>(old: Value<'a>, new: Value<'a>, shape: Shape) -> Found<'a> {
    if let (Value::At(old), Value::At(new)) = (old, new)
        && old.text() == new.text()
    {
        return Found::default();
    }
    match shape {
        Shape::Scalar(_) | Shape::Atomic(_) => as_a_whole(old, new),
        Shape::Message(_) | Shape::Map(_) => compare_members(old, new, shape),
        Shape::Set(_) | Shape::Keyed(..) => compare_items(old, new, shape),
    }
}

fn as_a_whole<'a>(old: Value<'a>, new: Value<'a>) -> Found<'a> {
    match (old.text(), new.text()) {
        (None, None) => Found::default(),
        (None, Some(_)) => Found::only(ADDED),
        (Some(_), None) => Found::only(REMOVED),
        (Some(old), Some(new)) if !is_same(old, new) => Found::only(MODIFIED),
        (Some(_), Some(_)) => Found::default(),
    }
}

/// Whether two texts are the same value: `2` and `2.0` are, as in Kubernetes.
fn is_same(old: &str, new: &str) -> bool {
    if old == new {
        return true;
    }
    let may_be_same = |text: &str| !text.starts_with('"') && text.contains(['.', 'e', 'E']);
    if !may_be_same(old) && !may_be_same(new) {
        return false;
    }
    let read = |text| serde_json::from_str::<serde_json::Value>(text).expect("a JSON text");
    is_same_value(&read(old), &read(new))
}

/// The depth is that of what was read.
fn is_same_value(old: &serde_json::Value, new: &serde_json::Value) -> bool {
    use serde_json::Value::{Array, Number, Object};
    match (old, new) {
        (Number(_), Number(_)) => Scalar::of_value(old.clone()) == Scalar::of_value(new.clone()),
        (Array(old), Array(new)) => {
            old.len() == new.len() && old.iter().zip(new).all(|(a, b)| is_same_value(a, b))
        }
        (Object(old), Object(new)) => {
            let has_same = |(name, value)| new.get(name).is_some_and(|it| is_same_value(value, it));
            old.len() == new.len() && old.iter().all(has_same)
        }
        (old, new) => old == new,
    }
}

fn compare_members<'a>(old: Value<'a>, new: Value<'a>, shape: Shape) -> Found<'a> {
    let (olds, news) = (old.members(shape), new.members(shape));
    // What is empty, or null, is owned as such.
    if olds.is_empty() && news.is_empty() {
        return as_a_whole(old, new);
    }
    let mut found = Found::default();
    let (mut olds, mut news) = (olds.into_iter().peekable(), news.into_iter().peekable());
    loop {
        let is_old_first = match (olds.peek(), news.peek()) {
            (None, None) => break,
            (Some(old), Some(new)) => old.0 <= new.0,
            (old, _) => old.is_some(),
        };
        let (name, old, new) = if is_old_first {
            let (name, old) = olds.next().expect("it was seen");
            let new = news.next_if(|(other, _)| *other == name);
            (name, old, new.map_or(Value::Absent, |(_, new)| new))
        } else {
            let (name, new) = news.next().expect("it was seen");
            (name, Value::Absent, new)
        };
        let below = match shape {
            Shape::Map(of) => Shape::Scalar(of),
            Shape::Message(message) => match find(message, &name) {
                Some(field) => Shape::of_field(field),
                // The type is no part of the schema, and nothing else is unknown.
                None => continue,
            },
            _ => unreachable!("only these have members"),
        };
        found.push(Element::Field(name), compare(old, new, below));
    }
    found.around(old, new)
}

fn compare_items<'a>(old: Value<'a>, new: Value<'a>, shape: Shape) -> Found<'a> {
    let (olds, news) = (old.items(shape), new.items(shape));
    if olds.is_empty() && news.is_empty() {
        return as_a_whole(old, new);
    }
    let below = match shape {
        Shape::Keyed(of, _) | Shape::Set(of) => Shape::of(of),
        _ => unreachable!("only these have items"),
    };
    let mut found = Found::default();
    let (mut olds, mut news) = (&olds[..], &news[..]);
    while let Some(element) = first_of(olds, news).cloned() {
        let (old, new) = (take_same(&mut olds, &element), take_same(&mut news, &element));
        found.push(element, compare_same(old, new, below));
    }
    found.around(old, new)
}

/// The items that have the same key, of which there should be one.
fn compare_same<'a>(
    old: &[(Element<'a>, Place<'a>)],
    new: &[(Element<'a>, Place<'a>)],
    below: Shape,
) -> Found<'a> {
    let one = |items: &[(Element<'a>, Place<'a>)]| match items {
        [] => Value::Absent,
        [(_, first), ..] => Value::At(*first),
    };
    match (old.len(), new.len()) {
        (0 | 1, 0 | 1) => compare(one(old), one(new), below),
        // Several are owned as one.
        (2.., 2..) => {
            let is_same = old.len() == new.len()
                && old.iter().zip(new).all(|((_, old), (_, new))| old.text() == new.text());
            if is_same { Found::default() } else { Found::only(MODIFIED) }
        }
        (2.., _) => {
            let mut found = compare(Value::Absent, one(new), below);
            found.here[REMOVED] = true;
            found
        }
        (_, _) => {
            let mut found = compare(one(old), Value::Absent, below);
            found.here[ADDED] = true;
            found
        }
    }
}

fn first_of<'i, 'a>(
    olds: &'i [(Element<'a>, Place<'a>)],
    news: &'i [(Element<'a>, Place<'a>)],
) -> Option<&'i Element<'a>> {
    match (olds.first(), news.first()) {
        (Some((old, _)), Some((new, _))) => Some(old.min(new)),
        (old, new) => old.or(new).map(|(element, _)| element),
    }
}

fn take_same<'i, 'a>(
    items: &mut &'i [(Element<'a>, Place<'a>)],
    element: &Element<'a>,
) -> &'i [(Element<'a>, Place<'a>)] {
    let count = items.iter().take_while(|(other, _)| other == element).count();
    let (same, rest) = items.split_at(count);
    *items = rest;
    same
}
