//! Building a tree of nodes, one value after another, within limits.
//!
//! Both readers build through here, so that depth, size and duplicate keys are
//! watched in one place. A tree in the making is a stack of open collections:
//!
//! ```text
//!   open_map ─▶ key ─▶ place(value) ─▶ key ─▶ open_list ─▶ place ─▶ close ─▶ …
//! ```

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::node::{Entry, Node, NodeValue, path_name, shortened};
use super::problem::{Problem, ProblemKind, Problems};
use super::{MAX_DEPTH, MAX_DOCUMENT_BYTES, MAX_NODES_PER_DOCUMENT};
use crate::diagnostic::Span;
use crate::field_error::quote;
use crate::field_path::{FieldPath, Segment};

/// How much of the document's budget a value takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) nodes: usize,
    pub(super) bytes: usize,
    /// How many levels of collections; 0 for a scalar.
    pub(super) height: usize,
}

/// The tree so far.
#[derive(Debug, Default)]
pub(super) struct Tree {
    open: Vec<Collection>,
    root: Option<Node>,
    used: Weight,
    pub(super) problems: Problems,
}

#[derive(Debug)]
struct Collection {
    start: usize,
    members: Members,
    /// The anchor that a YAML reader wants back when the collection is closed.
    anchor: usize,
}

#[derive(Debug)]
enum Members {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        /// Members that `<<` brought in; those given explicitly win.
        merged: Vec<Entry>,
        merge_span: Option<Span>,
        key: Option<Key>,
    },
}

/// The key whose value comes next.
#[derive(Debug)]
pub(super) enum Key {
    Name(String, Span),
    /// `<<`: the members of the value are taken over.
    Merge(Span),
    /// No key at all, which has been reported; its value is dropped.
    Broken,
}

/// A collection that has just been closed.
#[derive(Debug)]
pub(super) struct Closed {
    pub(super) node: Node,
    pub(super) anchor: usize,
}

/// Why a document cannot be read on.
pub(super) type Stop = Box<Problem>;

impl Tree {
    /// Begins a list that starts at this byte.
    pub(super) fn open_list(&mut self, start: usize, anchor: usize) -> Result<(), Stop> {
        self.open(start, anchor, Members::List(Vec::new()))
    }

    /// Begins a mapping that starts at this byte.
    pub(super) fn open_map(&mut self, start: usize, anchor: usize) -> Result<(), Stop> {
        let members =
            Members::Map { entries: Vec::new(), merged: Vec::new(), merge_span: None, key: None };
        self.open(start, anchor, members)
    }

    /// Whether the next thing must be the key of a mapping.
    pub(super) fn wants_key(&self) -> bool {
        matches!(self.open.last(), Some(Collection { members: Members::Map { key: None, .. }, .. }))
    }

    /// Whether the innermost open collection is a mapping.
    pub(super) fn in_map(&self) -> bool {
        let innermost = self.open.last();
        innermost.is_some_and(|open| matches!(open.members, Members::Map { .. }))
    }

    /// Whether the root value is complete.
    pub(super) fn is_complete(&self) -> bool {
        self.open.is_empty() && self.root.is_some()
    }

    /// The end of the key whose value comes next.
    pub(super) fn key_end(&self) -> Option<usize> {
        match self.open.last().map(|open| &open.members) {
            Some(Members::Map { key: Some(key), .. }) => match key {
                Key::Name(_, span) | Key::Merge(span) => Some(span.end),
                Key::Broken => None,
            },
            _ => None,
        }
    }

    /// Gives the key of the value that follows.
    pub(super) fn key(&mut self, next: Key) -> Result<(), Stop> {
        if let Key::Name(name, span) = &next {
            let weight = Weight { bytes: name.len(), ..Weight::default() };
            self.charge(weight, *span)?;
        }
        let Some(Members::Map { key, merge_span, .. }) =
            self.open.last_mut().map(|open| &mut open.members)
        else {
            unreachable!("a key is only given where wants_key() said so");
        };
        if let Key::Merge(span) = next {
            if let Some(first) = *merge_span {
                *key = Some(Key::Broken);
                self.report(
                    ProblemKind::Duplicate,
                    span,
                    |problem| {
                        problem
                            .related(first, "first given here")
                            .help("name all sources in one list: `<<: [*a, *b]`")
                    },
                    "the merge key `<<` is given twice",
                );
                return Ok(());
            }
            *merge_span = Some(span);
        }
        *key = Some(next);
        Ok(())
    }

    /// Puts a complete value in its place.
    pub(super) fn place(&mut self, node: Node) {
        let Some(collection) = self.open.last_mut() else {
            self.root = Some(node);
            return;
        };
        match &mut collection.members {
            Members::List(items) => items.push(node),
            Members::Map { entries, merged, key, .. } => {
                match key.take().expect("a value comes after its key") {
                    Key::Name(name, key_span) => {
                        entries.push(Entry { key: name, key_span, value: node })
                    }
                    Key::Broken => {}
                    Key::Merge(key_span) => {
                        if !merge(node, merged) {
                            let message = "`<<` takes a mapping or a list of mappings";
                            self.report(ProblemKind::Type, key_span, |p| p, message);
                        }
                    }
                }
            }
        }
    }

    /// Ends the innermost collection. Without `end` it ends with its last member.
    pub(super) fn close(&mut self, end: Option<usize>) -> Closed {
        let Collection { start, members, anchor } =
            self.open.pop().expect("only an open collection is closed");
        let (value, last_end) = match members {
            Members::List(items) => {
                let last_end = items.last().map(|item| item.span.end);
                (NodeValue::List(items), last_end)
            }
            Members::Map { mut entries, merged, merge_span, .. } => {
                let last_end = entries
                    .last()
                    .map(|entry| entry.value.span.end.max(entry.key_span.end))
                    .max(merge_span.map(|span| span.end));
                self.drop_duplicates(&mut entries);
                add_merged(&mut entries, merged);
                (NodeValue::Map(entries), last_end)
            }
        };
        let end = end.or(last_end).unwrap_or(start).max(start);
        Closed { node: Node::new(Span { start, end }, value), anchor }
    }

    /// Takes a value's weight from the document's budget.
    pub(super) fn charge(&mut self, weight: Weight, span: Span) -> Result<(), Stop> {
        self.used.nodes += weight.nodes;
        self.used.bytes += weight.bytes;
        if self.open.len() + weight.height > MAX_DEPTH {
            return Err(too_deep(span));
        }
        if self.used.nodes > MAX_NODES_PER_DOCUMENT {
            let message = format!("the document holds more than {MAX_NODES_PER_DOCUMENT} values");
            return Err(over_budget(span, message));
        }
        if self.used.bytes > MAX_DOCUMENT_BYTES {
            let message = format!("the document expands to more than {MAX_DOCUMENT_BYTES} bytes");
            return Err(over_budget(span, message));
        }
        Ok(())
    }

    /// Takes the weight of one scalar from the budget.
    pub(super) fn charge_scalar(&mut self, bytes: usize, span: Span) -> Result<(), Stop> {
        let weight = Weight { nodes: 1, bytes, height: 0 };
        self.charge(weight, span)
    }

    /// Reports a problem at the place where the next value goes.
    pub(super) fn report(
        &mut self,
        kind: ProblemKind,
        span: Span,
        adorn: impl FnOnce(Problem) -> Problem,
        message: impl Into<String>,
    ) {
        let Self { open, problems, .. } = self;
        problems.add(span, || adorn(Problem::new(kind, span, message).at(path_of(open))));
    }

    /// How many values were read so far, each alias counted in full.
    pub(super) fn node_count(&self) -> usize {
        self.used.nodes
    }

    /// The root, if the document is complete, and all problems.
    pub(super) fn finish(self) -> (Option<Node>, Vec<Problem>) {
        (self.root, self.problems.finish())
    }

    /// The problems of a document that could not be read to its end.
    pub(super) fn abandon(mut self, stop: Stop) -> Vec<Problem> {
        self.problems.add(stop.span, || *stop);
        self.problems.finish()
    }

    fn open(&mut self, start: usize, anchor: usize, members: Members) -> Result<(), Stop> {
        let span = Span { start, end: start };
        let weight = Weight { nodes: 1, bytes: 0, height: 1 };
        self.charge(weight, span)?;
        self.open.push(Collection { start, members, anchor });
        Ok(())
    }

    /// Reports every key that is given again, and keeps the first of each.
    fn drop_duplicates(&mut self, entries: &mut Vec<Entry>) {
        let repeats = find_repeats(entries);
        if repeats.is_empty() {
            return;
        }
        for (again, first) in &repeats {
            let (span, first_span) = (entries[*again].key_span, entries[*first].key_span);
            let Self { open, problems, .. } = self;
            problems.add(span, || {
                let name = &entries[*again].key;
                let mut path = path_of(open);
                path.push(member(name));
                let message = format!("the key {} is given twice", quote(&shortened(name)));
                Problem::new(ProblemKind::Duplicate, span, message)
                    .at(path)
                    .related(first_span, "first given here")
                    .help("remove one of the two, or rename it")
            });
        }
        let dropped: HashSet<usize> = repeats.into_iter().map(|(again, _)| again).collect();
        let mut index = 0;
        entries.retain(|_| {
            index += 1;
            !dropped.contains(&(index - 1))
        });
    }
}

/// The weight of a whole tree.
pub(super) fn weigh(node: &Node) -> Weight {
    let mut weight = Weight { nodes: 1, ..Weight::default() };
    let mut add = |member: &Node| {
        let inner = weigh(member);
        weight.nodes += inner.nodes;
        weight.bytes += inner.bytes;
        weight.height = weight.height.max(inner.height + 1);
    };
    match &node.value {
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => {}
        NodeValue::String(text) => weight.bytes += text.len(),
        NodeValue::List(items) => items.iter().for_each(add),
        NodeValue::Map(entries) => {
            entries.iter().for_each(|entry| add(&entry.value));
            weight.bytes += entries.iter().map(|entry| entry.key.len()).sum::<usize>();
        }
    }
    if matches!(node.value, NodeValue::List(_) | NodeValue::Map(_)) {
        weight.height = weight.height.max(1);
    }
    weight
}

/// What is said of a document that nests too deeply, whoever notices it.
pub(super) fn too_deep(span: Span) -> Stop {
    let message = format!("the document nests more than {MAX_DEPTH} levels deep");
    Box::new(Problem::new(ProblemKind::Limit, span, message))
}

fn over_budget(span: Span, message: String) -> Stop {
    let help = "aliases count as often as they are used; split the document or write less of it";
    Box::new(Problem::new(ProblemKind::Limit, span, message).help(help))
}

/// Positions of keys that were there before, each with the position of the first.
fn find_repeats(entries: &[Entry]) -> Vec<(usize, usize)> {
    /// Up to this many keys, comparing all pairs is quicker than hashing.
    const FEW: usize = 12;
    let mut repeats = Vec::new();
    if entries.len() <= FEW {
        for (again, entry) in entries.iter().enumerate() {
            let earlier = entries[..again].iter().position(|e| e.key == entry.key);
            repeats.extend(earlier.map(|first| (again, first)));
        }
        return repeats;
    }
    let mut first_of: HashMap<&str, usize> = HashMap::with_capacity(entries.len());
    for (again, entry) in entries.iter().enumerate() {
        let first = *first_of.entry(&entry.key).or_insert(again);
        if first != again {
            repeats.push((again, first));
        }
    }
    repeats
}

/// Takes the members of a mapping, or of the mappings in a list; `false` if the
/// value is neither.
fn merge(node: Node, merged: &mut Vec<Entry>) -> bool {
    match node.value {
        NodeValue::Map(entries) => {
            merged.extend(entries);
            true
        }
        NodeValue::List(items) => items.into_iter().all(|item| match item.value {
            NodeValue::Map(entries) => {
                merged.extend(entries);
                true
            }
            _ => false,
        }),
        _ => false,
    }
}

/// Adds merged members that are not there yet; of two merged ones the earlier.
fn add_merged(entries: &mut Vec<Entry>, merged: Vec<Entry>) {
    if merged.is_empty() {
        return;
    }
    let mut present: HashSet<String> = entries.iter().map(|entry| entry.key.clone()).collect();
    for entry in merged {
        if present.insert(entry.key.clone()) {
            entries.push(entry);
        }
    }
}

/// The path to where the next value goes.
fn path_of(open: &[Collection]) -> FieldPath {
    let mut path = FieldPath::root();
    for collection in open {
        match &collection.members {
            Members::List(items) => path.push(Segment::Index(items.len())),
            Members::Map { key: Some(Key::Name(name, _)), .. } => path.push(member(name)),
            Members::Map { .. } => break,
        }
    }
    path
}

/// A member of a mapping as a step of a path. Whether it is a field or the key
/// of a map cannot be told without the type; a name with dots or slashes is
/// surely a key.
fn member(name: &str) -> Segment {
    if name.bytes().all(|b| b.is_ascii_alphanumeric()) {
        Segment::Field(Cow::Owned(path_name(name)))
    } else {
        Segment::Key(path_name(name))
    }
}
