//! Who owns what after a write: from what is stored and what is written to the managedFields of
//! the object. It knows no HTTP, and no kind by name.

use bytes::Bytes;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::Value;
use stint_api::feature_gates::FeatureGates;

use crate::api::{Api, Current, in_seconds};
use crate::clock::Clock;
use crate::fields::FieldSet;
use crate::fields::compare::Changes;
use crate::fields::managed::{Author, Managed};
use crate::fields::set::fields;
use crate::fields::tree::Tree;
use crate::kind::{AnyKind, Part};
use crate::kinds;
use crate::object::{self, Object};
use crate::schema::{self, Message};

/// How it is known who owns what after a write.
#[derive(Clone, Debug)]
pub(super) enum Owners {
    /// Whoever writes owns what it changes.
    By(String),
    /// As an apply has found: the managedFields.
    Known(Option<String>),
}

/// Who owns what after a write.
#[derive(Clone, Debug, Default)]
pub(super) struct Tracked {
    /// The managedFields of the object, if it has any.
    pub(super) managed: Option<String>,
    /// The same, if a client has written some: it is to be seen whether they are valid.
    pub(super) given: Option<Vec<ManagedFieldsEntry>>,
}

impl Tracked {
    /// As an apply has found: nothing of it is a client's own.
    pub(super) fn known(managed: Option<String>) -> Self {
        Tracked { managed, given: None }
    }
}

/// Whoever finds out who owns what.
#[derive(Clone, Debug)]
pub(super) struct Tracker {
    gates: FeatureGates,
    clock: Clock,
    /// Whether something new is tracked from its beginning.
    begins: bool,
}

impl Api {
    /// Whoever finds out who owns what here.
    pub(super) fn tracker(&self) -> Tracker {
        Tracker { gates: self.gates, clock: self.clock.clone(), begins: self.tracks_owners }
    }
}

impl Tracker {
    /// Who owns what of an object after a write. The managedFields that it brings itself are taken
    /// out of it.
    pub(super) fn track(
        &self,
        kind: &dyn AnyKind,
        part: Part,
        current: Option<&Current>,
        new: &mut dyn Object,
        manager: &str,
    ) -> Tracked {
        let given = new.meta_mut().managed_fields.take().filter(|_| part == Part::Whole);
        let stored = current.and_then(|current| current.managed.clone());
        let given_text = given.as_ref().map(|entries| {
            serde_json::to_string(entries).expect("Kubernetes types serialise to JSON")
        });
        let trees =
            [given_text.as_deref(), stored.as_deref().map(text)].map(|text| text.map(Tree::of));
        let [given_tree, stored_tree] = &trees;
        let given_managed = given_tree.as_ref().and_then(|tree| Managed::read(tree.root()));
        let given_managed = given_managed.filter(|managed| !managed.is_empty());
        let is_given = given_managed.is_some();
        let mut managed = match given_managed {
            _ if given.as_deref().is_some_and(is_reset) => Managed::default(),
            Some(managed) => managed.rewritten(),
            // Who does not know them, or does not understand them, does not take them away.
            None => {
                stored_tree.as_ref().and_then(|tree| Managed::read(tree.root())).unwrap_or_default()
            }
        };
        // What was not tracked from its beginning is not tracked, until somebody applies it.
        if (current.is_some() || (!self.begins && !is_given)) && managed.is_empty() {
            return Tracked::default();
        }
        let names = kind.names();
        let api_version = names.api_version();
        let message = message_of(kind);
        let new_text = kind.tracked(new, &self.gates);
        let old_text = current.map(|current| kind.as_stored(&current.entry));
        let old_text = old_text.as_ref().map(|stored| object::without_managed(stored));
        // What is the same to the letter has not changed: most of an object, most of the time.
        let (old_text, new_text) = match &old_text {
            Some(old) => {
                let (old, new) = object::differing(old, &new_text);
                (Some(old), new)
            }
            None => (None, new_text),
        };
        let (new_tree, old_tree) =
            (Tree::of(text(&new_text)), old_text.as_deref().map(|old| Tree::of(text(old))));
        let changes = Changes::between(old_tree.as_ref().map(Tree::root), new_tree.root(), message);
        let (resets, now) = (resets_of(kind, part), in_seconds(&self.clock).to_string());
        let author = Author {
            name: manager,
            api_version: &api_version,
            subresource: part.subresource(),
            resets: &resets,
            now: &now,
        };
        managed.update(changes, author, &mut |version| {
            let other = same_kind_in(kind, version)?;
            let new = kind.to_stored(new, None).ok()?;
            let texts = [current.map(|current| &current.entry.value), Some(&new)]
                .map(|stored| stored.map(|stored| in_kind(other, stored)));
            let trees = texts.each_ref().map(|text| text.as_deref().map(Tree::of));
            let [old, new] = trees.each_ref().map(|tree| tree.as_ref().map(Tree::root));
            Some(Changes::between(old, new?, message_of(other)).into_owned())
        });
        let managed = managed.write();
        let given = managed
            .as_deref()
            .filter(|_| is_given)
            .map(|entries| serde_json::from_str(entries).expect("what is written can be read"));
        Tracked { managed, given }
    }
}

/// Whether somebody wants that nobody owns anything any more.
fn is_reset(given: &[ManagedFieldsEntry]) -> bool {
    matches!(given, []) || matches!(given, [entry] if *entry == ManagedFieldsEntry::default())
}

/// Whether both say the same but for the times.
pub(super) fn differ_in_times_only(one: &str, other: &str) -> bool {
    let without_times = |text: &str| {
        let mut entries: Value = serde_json::from_str(text).ok()?;
        for entry in entries.as_array_mut().into_iter().flatten() {
            entry.as_object_mut().and_then(|entry| entry.remove("time"));
        }
        Some(entries)
    };
    // Of what cannot be read nobody knows in what it differs.
    one == other || without_times(one).is_some_and(|one| Some(one) == without_times(other))
}

/// What a write of a part never changes, as a set.
pub(super) fn resets_of(kind: &dyn AnyKind, part: Part) -> FieldSet<'static> {
    let mut resets = FieldSet::default();
    for path in kind.resets(part) {
        resets.insert(&fields(path));
    }
    resets
}

pub(super) fn message_of(kind: &dyn AnyKind) -> Message {
    let names = kind.names();
    schema::of_kind(&names.api_version(), names.kind).expect("every kind has a message")
}

/// The same objects as another version has them.
pub(super) fn same_kind_in(kind: &dyn AnyKind, version: &str) -> Option<&'static dyn AnyKind> {
    kinds::ALL.iter().copied().find(|other| {
        other.stored_under() == kind.stored_under() && other.names().api_version() == version
    })
}

/// An object, stored by whatever kind, as another kind has it.
fn in_kind(kind: &dyn AnyKind, stored: &Bytes) -> String {
    let own = kind.restored(stored, stint_store::Revision::EMPTY);
    text(&object::without_managed(&own)).to_owned()
}

/// What is stored is JSON.
pub(super) fn text(stored: &[u8]) -> &str {
    std::str::from_utf8(stored).expect("JSON is text")
}
