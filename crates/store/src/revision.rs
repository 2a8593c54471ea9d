//! The number that orders everything the store has ever accepted. It knows nothing of what is
//! stored.

use std::fmt;

/// A point in the store's history: the number of the write that led there.
///
/// An empty store is at [`Revision::EMPTY`], which is 1 as in etcd, so that protocols have 0
/// left to say "any".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(u64);

impl Revision {
    /// The revision of a store that was never written to.
    pub const EMPTY: Revision = Revision(1);

    /// The revision with this number, for numbers that come back from a client.
    pub const fn new(number: u64) -> Self {
        Revision(number)
    }

    /// The number, for clients.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The revision of the write that comes next.
    pub(crate) fn next(self) -> Self {
        Revision(self.0.checked_add(1).expect("2^64 writes take longer than there is"))
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
