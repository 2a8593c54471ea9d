//! Lists and counts as of one revision, in steps short enough that writers hardly wait. It
//! knows no disk.

use crate::shared::Shared;
use crate::{Entry, Revision, StoreError};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// How many keys are looked at under one hold of the lock. At some 50 ns a key that is 3 µs,
/// about as long as a thread spins for a lock before it goes to sleep. With 1,024 keys a busy
/// lister costs writers four fifths of their throughput, with 64 next to nothing.
const STEP_KEYS: usize = 64;

/// Which part of a list is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The revision to list at; `None`: the newest. The pages of one list are consistent if
    /// each asks for the revision of the first.
    pub at: Option<Revision>,
    /// Only keys after this one: the last key of the page before.
    pub after: Option<Arc<str>>,
    /// The most entries; `None`: all.
    pub limit: Option<usize>,
    /// Whether to count what comes after the page. That looks at every key that is left, so
    /// who reads a long list to its end page by page had better not.
    pub counts_rest: bool,
}

impl Default for Page {
    fn default() -> Self {
        Page { at: None, after: None, limit: None, counts_rest: true }
    }
}

/// A list, or a page of one, as of one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The entries in the order of their keys.
    pub entries: Vec<Arc<Entry>>,
    /// The revision that the list is as of.
    pub revision: Revision,
    /// How many more entries there are after the last of these. If the page does not count
    /// them, 1 stands for any number but none.
    pub remaining: usize,
}

impl Listing {
    /// Whether there are more entries after the last of these.
    pub fn has_more(&self) -> bool {
        self.remaining > 0
    }
}

/// Lists the keys that start with `prefix`.
pub(crate) fn list(shared: &Shared, prefix: &str, page: Page) -> Result<Listing, StoreError> {
    let reader = shared.reader(page.at)?;
    let limit = page.limit.unwrap_or(usize::MAX);
    let mut listing = Listing { entries: Vec::new(), revision: reader.revision, remaining: 0 };
    let after = page.after.filter(|after| &**after >= prefix);
    walk(shared, prefix, after, reader.revision, |entry| {
        if listing.entries.len() < limit {
            listing.entries.push(entry.clone());
            return ControlFlow::Continue(());
        }
        listing.remaining += 1;
        if page.counts_rest { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    Ok(listing)
}

/// Counts the keys that start with `prefix`.
pub(crate) fn count(
    shared: &Shared,
    prefix: &str,
    at: Option<Revision>,
) -> Result<usize, StoreError> {
    let reader = shared.reader(at)?;
    let mut count = 0;
    walk(shared, prefix, None, reader.revision, |_| {
        count += 1;
        ControlFlow::Continue(())
    });
    Ok(count)
}

/// Visits the entries under `prefix` as of a revision that a reader is at, until it is told to
/// stop.
fn walk(
    shared: &Shared,
    prefix: &str,
    after: Option<Arc<str>>,
    revision: Revision,
    mut visit: impl FnMut(&Arc<Entry>) -> ControlFlow<()>,
) {
    let mut last = after;
    loop {
        let memory = shared.read();
        let start = last.as_deref().map_or(Bound::Included(prefix), Bound::Excluded);
        let mut seen = 0;
        let mut newest_key = None;
        for (key, entry) in memory.scan(start, revision).take(STEP_KEYS) {
            if !key.starts_with(prefix) {
                return;
            }
            if let Some(entry) = entry
                && visit(entry).is_break()
            {
                return;
            }
            seen += 1;
            newest_key = Some(key.clone());
        }
        if seen < STEP_KEYS {
            return;
        }
        last = newest_key;
        drop(memory);
        // The committer may have been waiting for the lock, and for a processor to run on.
        std::thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit::Commit;
    use crate::memory::Memory;
    use crate::stage::Stage;
    use crate::{Options, Write};

    #[test]
    fn a_walk_ends_where_it_is_told_to() {
        let shared = Shared::new(Memory::new());
        let commit = {
            let memory = shared.read();
            let mut stage = Stage::new(&memory);
            for number in 0..1000 {
                let write = Write::create(format!("/{number:03}"), "value");
                stage.add(&[write]).expect("nothing is in the way");
            }
            Commit::plan(&memory, stage.into_changes(), None, &Options::default())
        };
        shared.publish(&commit);
        let mut visited = 0;
        walk(&shared, "/", None, commit.revision, |_| {
            visited += 1;
            if visited == 100 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(visited, 100);
    }
}
