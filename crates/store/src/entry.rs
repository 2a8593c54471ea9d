//! What is stored under a key, and what happened to it. It knows neither where that is kept
//! nor what the bytes mean.

use crate::Revision;
use bytes::Bytes;
use std::sync::Arc;

/// What is stored under one key as of one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Arc<str>,
    /// The value, opaque to the store.
    pub value: Bytes,
    /// The revision of the write that made the key come into being.
    pub created: Revision,
    /// The revision of the write that put this value.
    pub modified: Revision,
}

/// One write as it happened. All watchers and readers share the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key that was written.
    pub key: Arc<str>,
    /// The revision of the write.
    pub revision: Revision,
    /// What was stored before; `None`: the key was created.
    pub before: Option<Arc<Entry>>,
    /// What is stored since; `None`: the key was deleted.
    pub after: Option<Arc<Entry>>,
}

impl Change {
    /// What a change costs beyond its key and value: itself, its entry, their reference counts
    /// and a place in the window and in the key's own history come to about 200 bytes.
    const OVERHEAD_BYTES: usize = 200;

    /// The memory that the window spends on this change without its values.
    pub(crate) fn own_bytes(&self) -> usize {
        Self::OVERHEAD_BYTES + self.key.len()
    }

    /// What the window holds more because of this change. What was stored before belongs to
    /// the change that put it as long as that is in the window, too; below the floor it would
    /// be gone, were it not for this one.
    pub(crate) fn added_bytes(&self, floor: Revision) -> usize {
        let before = self.before.as_ref().filter(|before| before.modified <= floor);
        self.own_bytes() + value_bytes(before) + value_bytes(self.after.as_ref())
    }

    /// What the window holds less once the floor has risen over this change. Its value stays if
    /// a later change has superseded it: then that one holds on to it.
    pub(crate) fn released_bytes(&self, is_superseded: bool) -> usize {
        let after = self.after.as_ref().filter(|_| !is_superseded);
        self.own_bytes() + value_bytes(self.before.as_ref()) + value_bytes(after)
    }
}

fn value_bytes(entry: Option<&Arc<Entry>>) -> usize {
    entry.map_or(0, |entry| entry.value.len())
}
