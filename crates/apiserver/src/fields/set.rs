//! A set of fields: who owns what, and its form in JSON, `fieldsV1`. It knows no types.
//!
//! ```text
//!   {"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{}}}}}
//!
//!   .spec.containers[name="c"]          the item itself, by the "."
//!   .spec.containers[name="c"].image    a field, which holds nothing
//! ```

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::Write as _;

use thiserror::Error;

use super::element::{Element, NoElement};
use super::tree::{Place, Tree, unescaped};

/// How deep a `fieldsV1` may be. The deepest field of the kinds served here is some 20 levels down.
/// The text is part of an object, of a table and of an event of a watch, each of which is read as
/// JSON again, and readers of JSON stop at 128.
pub const MAX_LEVELS: usize = 64;

/// A set of paths. What is in it need not be all that is below.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet<'a> {
    /// In the order of their elements, each once; each is in the set or leads to something.
    entries: Vec<Entry<'a>>,
}

/// What a set has at and below a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The step.
    pub element: Element<'a>,
    /// Whether the path that ends here is in the set.
    pub is_member: bool,
    /// The paths that go on from here.
    pub below: FieldSet<'a>,
}

/// A `fieldsV1` that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("it is no set of fields")]
pub struct NoFieldSet;

impl<'a> FieldSet<'a> {
    /// Nothing.
    pub const EMPTY: FieldSet<'static> = FieldSet { entries: Vec::new() };

    /// Reads a `fieldsV1`, if it is no deeper than [`MAX_LEVELS`].
    pub fn read(fields_v1: Place<'a>) -> Result<Self, NoFieldSet> {
        read(fields_v1, MAX_LEVELS).map(|(set, _)| set)
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What it has at and below each step.
    pub fn entries(&self) -> &[Entry<'a>] {
        &self.entries
    }

    /// The same, to be changed.
    pub(super) fn into_entries(self) -> Vec<Entry<'a>> {
        self.entries
    }

    /// What it has at and below a step.
    pub fn get(&self, element: &Element<'_>) -> Option<&Entry<'a>> {
        let found = self.entries.binary_search_by(|entry| entry.element.cmp(element));
        found.ok().map(|at| &self.entries[at])
    }

    /// Whether a path is in it.
    pub fn has(&self, path: &[Element<'_>]) -> bool {
        let Some((first, rest)) = path.split_first() else { return false };
        let Some(entry) = self.get(first) else { return false };
        if rest.is_empty() { entry.is_member } else { entry.below.has(rest) }
    }

    /// Adds a path.
    pub fn insert(&mut self, path: &[Element<'a>]) {
        let Some((first, rest)) = path.split_first() else { return };
        let at = match self.entries.binary_search_by(|entry| entry.element.cmp(first)) {
            Ok(at) => at,
            Err(at) => {
                let entry =
                    Entry { element: first.clone(), is_member: false, below: FieldSet::default() };
                self.entries.insert(at, entry);
                at
            }
        };
        if rest.is_empty() {
            self.entries[at].is_member = true;
        } else {
            self.entries[at].below.insert(rest);
        }
    }

    /// Adds what is at and below a step that comes after all others, if there is something.
    pub(super) fn push(&mut self, element: Element<'a>, is_member: bool, below: FieldSet<'a>) {
        if is_member || !below.is_empty() {
            debug_assert!(self.entries.last().is_none_or(|last| last.element < element));
            self.entries.push(Entry { element, is_member, below });
        }
    }

    /// Of entries in any order, none of which is there twice.
    pub(super) fn of_entries(mut entries: Vec<Entry<'a>>) -> Self {
        entries.retain(|entry| entry.is_member || !entry.below.is_empty());
        entries.sort_by(|a, b| a.element.cmp(&b.element));
        FieldSet { entries }
    }

    /// What is in either.
    pub fn union(self, other: FieldSet<'a>) -> FieldSet<'a> {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        let mut entries = Vec::with_capacity(self.entries.len().max(other.entries.len()));
        let (mut ours, mut theirs) = (self.entries.into_iter(), other.entries.into_iter());
        let (mut our, mut their) = (ours.next(), theirs.next());
        loop {
            match (our.take(), their.take()) {
                (Some(a), Some(b)) => match a.element.cmp(&b.element) {
                    Ordering::Less => {
                        entries.push(a);
                        (our, their) = (ours.next(), Some(b));
                    }
                    Ordering::Greater => {
                        entries.push(b);
                        (our, their) = (Some(a), theirs.next());
                    }
                    Ordering::Equal => {
                        let is_member = a.is_member || b.is_member;
                        let below = a.below.union(b.below);
                        entries.push(Entry { element: a.element, is_member, below });
                        (our, their) = (ours.next(), theirs.next());
                    }
                },
                (Some(a), None) => {
                    entries.push(a);
                    entries.extend(ours);
                    break;
                }
                (None, Some(b)) => {
                    entries.push(b);
                    entries.extend(theirs);
                    break;
                }
                (None, None) => break,
            }
        }
        FieldSet { entries }
    }

    /// What is in any of many. Each path is looked at as often as the number of sets has digits to
    /// the base of two: one after the other would be as often as there are sets.
    pub fn union_of(mut sets: Vec<FieldSet<'a>>) -> FieldSet<'a> {
        while sets.len() > 1 {
            let mut pairs = sets.into_iter();
            let mut halved = Vec::with_capacity(pairs.len().div_ceil(2));
            while let Some(first) = pairs.next() {
                halved.push(match pairs.next() {
                    Some(second) => first.union(second),
                    None => first,
                });
            }
            sets = halved;
        }
        sets.pop().unwrap_or_default()
    }

    /// What is in both.
    pub fn intersection(&self, other: &FieldSet<'_>) -> FieldSet<'a> {
        let mut both = FieldSet::default();
        each_shared(self, other, &mut |entry, their| {
            let below = entry.below.intersection(&their.below);
            both.push(entry.element.clone(), entry.is_member && their.is_member, below);
            true
        });
        both
    }

    /// What is in this one and not in the other.
    pub fn difference(&self, other: &FieldSet<'_>) -> FieldSet<'a> {
        self.clone().minus(other)
    }

    /// The same of a set that nobody needs any more.
    pub fn minus(self, other: &FieldSet<'_>) -> FieldSet<'a> {
        self.reduced(other, &|entry, other| {
            entry.is_member &= !other.is_member;
            let below = std::mem::take(&mut entry.below);
            entry.below = below.minus(&other.below);
        })
    }

    /// What is in this one and neither in the other nor below something in the other.
    pub fn without_below(self, other: &FieldSet<'_>) -> FieldSet<'a> {
        self.reduced(other, &|entry, other| {
            let below = std::mem::take(&mut entry.below);
            if other.is_member {
                entry.is_member = false;
            } else {
                entry.below = below.without_below(&other.below);
            }
        })
    }

    /// Whether both have a path in common.
    pub fn meets(&self, other: &FieldSet<'_>) -> bool {
        !each_shared(self, other, &mut |a, b| {
            !((a.is_member && b.is_member) || a.below.meets(&b.below))
        })
    }

    /// Calls with every path, in their order.
    pub fn each<'s>(&'s self, visit: &mut dyn FnMut(&[&'s Element<'a>])) {
        fn walk<'s, 'a>(
            set: &'s FieldSet<'a>,
            path: &mut Vec<&'s Element<'a>>,
            visit: &mut dyn FnMut(&[&'s Element<'a>]),
        ) {
            // As upstream: all that is here comes before all that is below.
            for entry in set.entries.iter().filter(|entry| entry.is_member) {
                path.push(&entry.element);
                visit(path);
                path.pop();
            }
            for entry in &set.entries {
                path.push(&entry.element);
                walk(&entry.below, path, visit);
                path.pop();
            }
        }
        walk(self, &mut Vec::new(), visit);
    }

    /// Every path as a client is told of it.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.each(&mut |path| {
            let mut text = String::new();
            for element in path {
                write!(text, "{element}").expect("a text takes all");
            }
            paths.push(text);
        });
        paths
    }

    /// Adds the `fieldsV1` to a JSON text.
    pub fn write(&self, json: &mut String) {
        json.push('{');
        for (at, entry) in self.entries.iter().enumerate() {
            if at > 0 {
                json.push(',');
            }
            entry.element.write(json);
            json.push(':');
            if entry.is_member && !entry.below.is_empty() {
                json.push_str("{\".\":{},");
                let start = json.len();
                entry.below.write(json);
                // Its own brace is the one that is open already.
                json.remove(start);
            } else {
                entry.below.write(json);
            }
        }
        json.push('}');
    }

    /// The same set, which borrows nothing.
    pub fn into_owned(self) -> FieldSet<'static> {
        let own = |entry: Entry<'a>| Entry {
            element: entry.element.into_owned(),
            is_member: entry.is_member,
            below: entry.below.into_owned(),
        };
        FieldSet { entries: self.entries.into_iter().map(own).collect() }
    }

    /// The set with each entry changed for which the other has one.
    fn reduced(
        mut self,
        other: &FieldSet<'_>,
        reduce: &dyn Fn(&mut Entry<'a>, &Entry<'_>),
    ) -> FieldSet<'a> {
        if other.is_empty() {
            return self;
        }
        let mut theirs = &other.entries[..];
        self.entries.retain_mut(|entry| {
            theirs = from(theirs, &entry.element);
            if let Some(their) = theirs.first().filter(|their| their.element == entry.element) {
                reduce(entry, their);
            }
            entry.is_member || !entry.below.is_empty()
        });
        self
    }
}

/// Calls with what both have at the same step, until that says no; whether it never did. It costs
/// what the smaller of them has: who owns one field is compared with a thousand that were written.
fn each_shared<'a, 'b>(
    ours: &FieldSet<'a>,
    theirs: &FieldSet<'b>,
    visit: &mut dyn FnMut(&Entry<'a>, &Entry<'b>) -> bool,
) -> bool {
    let (mut ours, mut theirs) = (&ours.entries[..], &theirs.entries[..]);
    while let (Some(our), Some(their)) = (ours.first(), theirs.first()) {
        match our.element.cmp(&their.element) {
            Ordering::Less => ours = from(ours, &their.element),
            Ordering::Greater => theirs = from(theirs, &our.element),
            Ordering::Equal => {
                if !visit(our, their) {
                    return false;
                }
                (ours, theirs) = (&ours[1..], &theirs[1..]);
            }
        }
    }
    true
}

/// The entries from a step on. It is looked for in steps that double, so that what is near is found
/// soon, and what is far not much later.
fn from<'s, 'a>(entries: &'s [Entry<'a>], element: &Element<'_>) -> &'s [Entry<'a>] {
    let is_before = |entry: &Entry<'a>| entry.element < *element;
    let mut bound = 1;
    while entries.get(bound - 1).is_some_and(is_before) {
        bound *= 2;
    }
    let (start, end) = (bound / 2, bound.min(entries.len()));
    &entries[start + entries[start..end].partition_point(is_before)..]
}

/// A set of so many levels at most, and whether what it hangs from is in the set around it.
fn read(place: Place<'_>, levels: usize) -> Result<(FieldSet<'_>, bool), NoFieldSet> {
    if place.text() == "null" {
        return Ok((FieldSet::default(), true));
    }
    let levels = levels.checked_sub(1).ok_or(NoFieldSet)?;
    if !place.is_object() {
        return Err(NoFieldSet);
    }
    let mut is_member = false;
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for (key, value) in place.children() {
        if key == "." {
            is_member = true;
            continue;
        }
        let element = match Element::read(unescaped(key)) {
            Ok(element) => element,
            Err(NoElement::Unknown) => continue,
            Err(NoElement::Malformed) => return Err(NoFieldSet),
        };
        let (below, is_member) = read(value, levels)?;
        entries.push(Entry { element, is_member, below });
    }
    if !entries.is_sorted_by(|a, b| a.element < b.element) {
        entries.sort_by(|a, b| a.element.cmp(&b.element));
        entries.dedup_by(|later, first| {
            let is_same = later.element == first.element;
            if is_same {
                first.is_member |= later.is_member;
                let below = std::mem::take(&mut first.below);
                first.below = below.union(std::mem::take(&mut later.below));
            }
            is_same
        });
    }
    let is_member = is_member || entries.is_empty();
    Ok((FieldSet { entries }, is_member))
}

/// A path of plain fields, for sets that are written in code.
pub fn fields(names: &[&'static str]) -> Vec<Element<'static>> {
    names.iter().map(|name| Element::Field(Cow::Borrowed(name))).collect()
}

/// A set that was read from a text of its own.
pub fn read_text(text: &str) -> Result<FieldSet<'static>, NoFieldSet> {
    let tree = Tree::of(text);
    Ok(FieldSet::read(tree.root())?.into_owned())
}
