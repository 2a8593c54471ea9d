//! What the graph asks for, and what may come of it.

use std::sync::Arc;

use super::object::{ObjectId, Owners, Propagation};
use super::uid::Uid;

/// What there may be work on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Item {
    /// An object that is known.
    Object(Uid),
    /// An owner that is not.
    Owner(Arc<ObjectId>),
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Look whether there is such an object.
    Ask(Arc<ObjectId>),
    /// Delete an object, if it still is at this version or still has these owners.
    Delete { id: Arc<ObjectId>, version: u64, owners: Owners, propagation: Propagation },
    /// Take the references to these owners off an object.
    DropOwners { id: Arc<ObjectId>, owners: Vec<Uid> },
    /// Let an object block the deletion of these owners no longer.
    Unblock { id: Arc<ObjectId>, owners: Vec<Uid> },
    /// Take this finalizer off an object.
    Release { id: Arc<ObjectId>, finalizer: &'static str },
}

impl Op {
    /// What the outcome is about.
    pub(crate) fn item(&self) -> Item {
        match self {
            Op::Ask(id) => Item::Owner(id.clone()),
            Op::Delete { id, .. }
            | Op::DropOwners { id, .. }
            | Op::Unblock { id, .. }
            | Op::Release { id, .. } => Item::Object(id.uid.clone()),
        }
    }
}

/// What came of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was done, and will be seen at this version at the latest.
    Done(u64),
    /// It was done, or was not necessary: the object is gone.
    Gone,
    /// There is no such owner, nor will there be.
    Absent,
    /// There is one.
    Present,
    /// It was not done.
    Refused,
}
