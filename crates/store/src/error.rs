//! Everything that can go wrong, told apart by what the caller can do about it. It knows no
//! protocol's answers.

use crate::lock::holder;
use crate::{Condition, Entry, Revision};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Why the store did not do what it was asked.
///
/// Errors can be cloned because one failed commit answers all the writers of its group.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The key is not as the write requires. Nothing was written.
    #[error("{key}: {}", conflict(*condition, current.as_deref()))]
    Conflict {
        /// The key of the write whose condition does not hold.
        key: Arc<str>,
        /// The condition.
        condition: Condition,
        /// What is stored instead.
        current: Option<Arc<Entry>>,
    },
    /// The revision has left the kept window. List anew and watch from there.
    #[error("revision {asked} is compacted, the oldest that is kept is {oldest}")]
    Compacted {
        /// The revision that was asked for.
        asked: Revision,
        /// The oldest revision that can be read and watched from.
        oldest: Revision,
    },
    /// The revision has not happened yet.
    #[error("revision {asked} is in the future, the newest is {newest}")]
    Future {
        /// The revision that was asked for.
        asked: Revision,
        /// The newest revision.
        newest: Revision,
    },
    /// A key, a value or a transaction is over its limit. Nothing was written.
    #[error("{what} of {size} exceeds the limit of {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large it is.
        size: usize,
        /// How large it may be.
        limit: usize,
    },
    /// The disk refused. A write that is answered with this was not done, and will not appear
    /// later. Reads go on, and so do writes once the disk takes them again.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// What the operating system says.
        source: Arc<io::Error>,
    },
    /// A commit failed, and the disk cannot be asked what became of it. The write may be there
    /// after the next successful write or the next start, entirely or not at all. Read the key
    /// then.
    #[error("it is not known whether the write was done: {source}")]
    InDoubt {
        /// What the operating system says.
        source: Arc<io::Error>,
    },
    /// What is on disk is not what was written there. Nothing of it is served.
    #[error(
        "{place} is damaged: {detail}; restore the folder from a copy, or move it away to start \
         with an empty store"
    )]
    Corrupted {
        /// The file or folder.
        place: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The folder was written by another version of this program.
    #[error(
        "{} has store format {found}, this program knows format {known}: open it with the version \
         that wrote it", folder.display()
    )]
    UnknownFormat {
        /// The store's folder.
        folder: PathBuf,
        /// The format it has.
        found: u32,
        /// The format that this program reads and writes.
        known: u32,
    },
    /// Another process, or another part of this one, has the folder open.
    #[error("{} is in use by {}: stop it first, or choose another folder", folder.display(), holder(*by))]
    InUse {
        /// The store's folder.
        folder: PathBuf,
        /// The number of the process, if it is known.
        by: Option<u32>,
    },
    /// The folder holds something else. Nothing was changed in it.
    #[error("{} is not a store: it holds {found:?}; choose an empty folder", folder.display())]
    NotAStore {
        /// The folder.
        folder: PathBuf,
        /// Something that does not belong to a store.
        found: String,
    },
    /// The store was closed, or its last handle is gone.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// An error of the operating system while the store was `doing` something.
    pub(crate) fn io(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| StoreError::Io { doing, source: Arc::new(source) }
    }

    /// Something on disk is not what was written there.
    pub(crate) fn corrupted(place: impl Into<String>, detail: impl Into<String>) -> Self {
        StoreError::Corrupted { place: place.into(), detail: detail.into() }
    }
}

fn conflict(condition: Condition, current: Option<&Entry>) -> String {
    let found = match current {
        Some(entry) => format!("it is stored at revision {}", entry.modified),
        None => "it is not stored".to_owned(),
    };
    match condition {
        Condition::Absent => format!("it must not be stored yet, but {found}"),
        Condition::At(revision) => format!("it must be at revision {revision}, but {found}"),
        Condition::Present | Condition::Any => format!("it must be stored, but {found}"),
    }
}
