//! What can be asked of the store, and how large it may be. It knows nothing of how a write is
//! carried out.

use crate::{Revision, StoreError};
use bytes::Bytes;
use std::sync::Arc;

/// The longest key. Kubernetes' longest path has three names of 253 bytes and short fixed
/// parts; 1 KiB holds it and leaves room. A record stores the length in two bytes.
pub const MAX_KEY_BYTES: usize = 1024;

/// The largest value: 3 MiB is what kube-apiserver takes as a request body, and more than the
/// 1.5 MiB that etcd takes.
pub const MAX_VALUE_BYTES: usize = 3 * 1024 * 1024;

/// The most writes of one transaction: as in etcd.
pub const MAX_TRANSACTION_WRITES: usize = 128;

/// The most bytes of one transaction: two of the largest values and then some. One commit
/// takes about as much before it leaves the rest to the next one, so that none takes long.
pub const MAX_TRANSACTION_BYTES: usize = 8 * 1024 * 1024;

/// One write: what to do to a key, and what must hold for it to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The key to write.
    pub key: Arc<str>,
    /// What must hold of the key when the write's turn comes.
    pub condition: Condition,
    /// What must hold of another key at the same moment.
    pub guard: Option<Guard>,
    /// What to do then.
    pub operation: Operation,
}

/// What must hold of a key that a write does not touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The key.
    pub key: Arc<str>,
    /// What must hold of it.
    pub condition: Condition,
}

/// What must hold of a key for a write to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The key is not stored.
    Absent,
    /// The key is stored, and was last written at this revision.
    At(Revision),
    /// The key is stored.
    Present,
    /// Nothing. A delete still needs something to delete.
    Any,
}

/// What a write does to its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Store this value.
    Put(Bytes),
    /// Remove the key. With [`Condition::Absent`] there is nothing to remove: it conflicts.
    Delete,
}

impl Write {
    /// Stores a key that must not be there yet.
    pub fn create(key: impl Into<Arc<str>>, value: impl Into<Bytes>) -> Self {
        Self::put(key, Condition::Absent, value)
    }

    /// Stores a value if `condition` holds.
    pub fn put(key: impl Into<Arc<str>>, condition: Condition, value: impl Into<Bytes>) -> Self {
        let operation = Operation::Put(value.into());
        Write { key: key.into(), condition, guard: None, operation }
    }

    /// Removes a key if `condition` holds.
    pub fn delete(key: impl Into<Arc<str>>, condition: Condition) -> Self {
        Write { key: key.into(), condition, guard: None, operation: Operation::Delete }
    }

    /// The same write, if something holds of another key when its turn comes. A conflict names
    /// that key.
    #[must_use]
    pub fn guarded(self, key: impl Into<Arc<str>>, condition: Condition) -> Self {
        Write { guard: Some(Guard { key: key.into(), condition }), ..self }
    }

    /// Refuses what is too large, before it takes part in a commit.
    pub(crate) fn check_size(&self) -> Result<(), StoreError> {
        limit("a key", self.key.len(), MAX_KEY_BYTES)?;
        if let Some(guard) = &self.guard {
            limit("a key", guard.key.len(), MAX_KEY_BYTES)?;
        }
        match &self.operation {
            Operation::Put(value) => limit("a value", value.len(), MAX_VALUE_BYTES),
            Operation::Delete => Ok(()),
        }
    }

    /// What the write adds to the size of a commit.
    pub(crate) fn bytes(&self) -> usize {
        let value = match &self.operation {
            Operation::Put(value) => value.len(),
            Operation::Delete => 0,
        };
        self.key.len() + value
    }
}

/// Refuses what has more than `limit` of something.
pub(crate) fn limit(what: &'static str, size: usize, limit: usize) -> Result<(), StoreError> {
    if size > limit { Err(StoreError::TooLarge { what, size, limit }) } else { Ok(()) }
}
