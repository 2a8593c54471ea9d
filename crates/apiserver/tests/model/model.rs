//! The plain model: a map, and a list of what happened to it.

use std::collections::BTreeMap;

use crate::operation::{Key, Label, View};

/// An object: its version and its label.
pub(crate) type Object = (u64, Label);

/// What should be there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    objects: BTreeMap<Key, Object>,
    /// In the order of their revisions: what was there before and is there since.
    changes: Vec<(u64, Key, Option<Object>, Option<Object>)>,
}

impl Model {
    /// What is there under a key.
    pub(crate) fn get(&self, key: Key) -> Option<Object> {
        self.objects.get(&key).copied()
    }

    /// Stores an object, or removes it, at a revision.
    pub(crate) fn set(&mut self, key: Key, revision: u64, label: Option<Label>) {
        assert!(self.changes.last().is_none_or(|(last, ..)| *last < revision), "versions grow");
        let before = self.get(key);
        let after = label.map(|label| (revision, label));
        match after {
            Some(object) => self.objects.insert(key, object),
            None => self.objects.remove(&key),
        };
        self.changes.push((revision, key, before, after));
    }

    /// What is seen of what is there.
    pub(crate) fn list(&self, view: View) -> Vec<(Key, Object)> {
        let all = self.objects.iter().map(|(key, object)| (*key, *object));
        all.filter(|(key, object)| sees(view, *key, *object)).collect()
    }

    /// What is seen of what was there as of a revision.
    pub(crate) fn list_at(&self, view: View, revision: u64) -> Vec<(Key, Object)> {
        let mut then = Model::default();
        for (at, key, _, after) in self.changes.iter().take_while(|(at, ..)| *at <= revision) {
            then.set(*key, *at, after.map(|(_, label)| label));
        }
        then.list(view)
    }

    /// What a watch from a revision on is told.
    pub(crate) fn watch(&self, view: View, from: u64) -> Vec<(&'static str, Key, Object)> {
        let later = self.changes.iter().skip_while(|(at, ..)| *at <= from);
        later
            .filter_map(|(at, key, before, after)| {
                let before = before.filter(|object| sees(view, *key, *object));
                let after = after.filter(|object| sees(view, *key, *object));
                match (before, after) {
                    (None, None) => None,
                    (None, Some(after)) => Some(("ADDED", *key, after)),
                    (Some(_), Some(after)) => Some(("MODIFIED", *key, after)),
                    // With the revision of its leaving, and as it was last seen.
                    (Some((_, label)), None) => Some(("DELETED", *key, (*at, label))),
                }
            })
            .collect()
    }
}

fn sees(view: View, key: Key, (_, label): Object) -> bool {
    view.namespace.is_none_or(|namespace| namespace == key.0)
        && view.label.is_none_or(|wanted| wanted == label)
}
