//! A run of neighbouring indexes.

/// The indexes from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval {
    pub(super) first: u32,
    pub(super) last: u32,
}

impl Interval {
    /// The interval from `first` to `last`.
    ///
    /// # Panics
    /// If `last` is below `first`, or is no index (2147483647 and above): both mean
    /// that the caller's arithmetic is wrong.
    pub fn new(first: u32, last: u32) -> Self {
        assert!(first <= last, "an interval ends at or after its start: {first}-{last}");
        assert!(last < super::LIMIT, "no Job has an index of {last}");
        Self { first, last }
    }

    /// The lowest index.
    pub fn first(self) -> u32 {
        self.first
    }

    /// The highest index.
    pub fn last(self) -> u32 {
        self.last
    }

    /// How many indexes it has.
    pub fn count(self) -> u64 {
        u64::from(self.last - self.first) + 1
    }
}
