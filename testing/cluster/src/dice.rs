//! Chance from a seed.

/// A stream of numbers (splitmix64).
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        // Where it begins is mixed, too: otherwise the stream of the next seed would be this one's
        // without its first number.
        Dice(mix(seed))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number from 0 to `limit`, without it.
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        (self.next() % u64::from(limit)) as u32
    }

    /// A number of these two or between them.
    pub(crate) fn between(&mut self, least: u32, most: u32) -> u32 {
        least + self.below(most - least + 1)
    }

    /// Whether something happens that happens so many times in a hundred.
    pub(crate) fn percent(&mut self, times: u32) -> bool {
        self.below(100) < times
    }

    /// One of them.
    pub(crate) fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u32) as usize].clone()
    }
}

/// Spreads every bit of a number over all of it.
fn mix(number: u64) -> u64 {
    let mut mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
