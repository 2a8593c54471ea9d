//! What can happen to a server.

use proptest::collection::vec;
use proptest::prelude::*;

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// A new object.
    Create(Key, Label),
    /// A put, on top of the newest version, of none, or of one that is not the newest.
    Update(Key, Label, Basis),
    /// A merge patch of the label.
    Patch(Key, Label),
    /// A delete.
    Delete(Key),
    /// Everything older than so many revisions is forgotten.
    Compact(u64),
    /// The server stops, and another starts on the same folder.
    Restart,
    /// A list, page by page; after the first page this happens.
    List(View, Option<usize>, Box<Option<Operation>>),
    /// A list as of so many revisions ago.
    ListAt(View, u64),
    /// A watch from so many revisions ago.
    Watch(View, u64),
}

/// An object by its namespace and name.
pub(crate) type Key = (usize, usize);

/// The value of the label that selectors look at; none for 0.
pub(crate) type Label = u8;

/// What an update is on top of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Basis {
    Newest,
    None,
    Stale,
}

/// Which objects are looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// In which namespace; `None`: in all.
    pub(crate) namespace: Option<usize>,
    /// With which label; `None`: all.
    pub(crate) label: Option<Label>,
}

/// A sequence of operations on one server.
pub(crate) fn operations() -> impl Strategy<Value = Vec<Operation>> {
    vec(operation(), 1..40)
}

/// A sequence of operations on one server after the other.
pub(crate) fn operations_and_restarts() -> impl Strategy<Value = Vec<Operation>> {
    vec(prop_oneof![8 => operation(), 1 => Just(Operation::Restart)], 1..40)
}

fn operation() -> impl Strategy<Value = Operation> {
    let looks = prop_oneof![
        (view(), proptest::option::of(1..4_usize), proptest::option::of(change()))
            .prop_map(|(view, limit, meanwhile)| Operation::List(view, limit, Box::new(meanwhile))),
        (view(), 0..12_u64).prop_map(|(view, back)| Operation::ListAt(view, back)),
        (view(), 0..12_u64).prop_map(|(view, back)| Operation::Watch(view, back)),
    ];
    prop_oneof![
        12 => change(),
        8 => looks,
    ]
}

fn change() -> impl Strategy<Value = Operation> {
    let basis = prop_oneof![Just(Basis::Newest), Just(Basis::None), Just(Basis::Stale)];
    prop_oneof![
        6 => (key(), 0..3_u8).prop_map(|(key, label)| Operation::Create(key, label)),
        4 => (key(), 0..3_u8, basis)
            .prop_map(|(key, label, basis)| Operation::Update(key, label, basis)),
        4 => (key(), 0..3_u8).prop_map(|(key, label)| Operation::Patch(key, label)),
        3 => key().prop_map(Operation::Delete),
        1 => (0..8_u64).prop_map(Operation::Compact),
    ]
}

fn key() -> impl Strategy<Value = Key> {
    (0..2_usize, 0..4_usize)
}

fn view() -> impl Strategy<Value = View> {
    let namespace = proptest::option::of(0..2_usize);
    let label = proptest::option::of(1..3_u8);
    (namespace, label).prop_map(|(namespace, label)| View { namespace, label })
}
