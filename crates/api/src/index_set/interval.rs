//! A run of neighbouring indexes.

/// The indexes from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval {
    /// The lowest index.
    pub first: u32,
    /// The highest index.
    pub last: u32,
}

impl Interval {
    /// The interval from `first` to `last`.
    ///
    /// # Panics
    /// If `last` is below `first`, or is no index (2147483647 and above): both mean
    /// that the caller's arithmetic is wrong.
    pub fn new(first: u32, last: u32) -> Self {
        assert!(first <= last, "an interval ends at or after its start: {first}-{last}");
        assert!(last < i32::MAX as u32, "no Job has an index of {last}");
        Self { first, last }
    }

    /// How many indexes it has.
    pub fn count(self) -> u64 {
        u64::from(self.last - self.first) + 1
    }
}
