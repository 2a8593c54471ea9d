//! A set of completion indexes, and its text: `1,3-5,7`.
//!
//! This is the set behind `status.completedIndexes`, `status.failedIndexes` and
//! `successPolicy.rules[].succeededIndexes`. It keeps intervals, so its memory
//! and time follow how scattered the set is and never how large its numbers are:
//! `0-2147483646` is one interval.
//!
//! ```text
//!   firsts   chunks
//!   0        [ 0-3  7  9-12 … ]   at most CHUNK_MAX intervals each,
//!   640      [ 640  644-650 … ]   sorted, disjoint, never touching
//!   …        [ …              ]
//! ```
//!
//! A change finds its chunk by binary search over the chunks' first indexes, its
//! interval by binary search in the chunk, and moves at most one chunk's worth of
//! intervals. Against one sorted vector and a tree: docs/benchmarks.md.

mod interval;
mod parse;
#[cfg(test)]
mod tests;

use std::fmt;

pub use interval::Interval;
pub use parse::IndexSetError;

/// How many intervals a chunk holds before it is split: 1 KiB of intervals, so
/// that moving half a chunk costs about as much as finding it.
const CHUNK_MAX: usize = 128;

/// One more than the highest index: completions are counted in 31 bits.
const LIMIT: u32 = i32::MAX as u32;

/// A set of indexes from 0 to 2147483646.
#[derive(Clone, Default)]
pub struct IndexSet {
    /// The first index of each chunk, side by side: the search over chunks stays in a
    /// few cache lines.
    firsts: Vec<u32>,
    /// Runs of neighbouring intervals, none of them empty.
    chunks: Vec<Vec<Interval>>,
    /// The number of indexes in the set.
    count: u64,
    /// The number of intervals in all chunks.
    interval_count: usize,
}

/// Where an interval is.
#[derive(Clone, Copy)]
struct Position {
    chunk: usize,
    offset: usize,
}

impl IndexSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// All indexes below `limit`, or below the highest there can be.
    pub fn below(limit: u32) -> Self {
        match limit.min(LIMIT) {
            0 => Self::new(),
            limit => Self::from_iter([Interval::new(0, limit - 1)]),
        }
    }

    /// Reads a list of intervals the way validation does: strictly increasing, every
    /// index below `completions`. An empty text is the empty set.
    ///
    /// The errors carry the fragment and the words Kubernetes uses.
    pub fn parse_strict(text: &str, completions: u32) -> Result<Self, IndexSetError> {
        parse::strict(text, completions)
    }

    /// Reads a list from a status that anyone may have written: fragments that make no
    /// sense are skipped, indexes at or above `completions` are cut, order does not matter.
    pub fn parse_lenient(text: &str, completions: u32) -> Self {
        parse::lenient(text, completions)
    }

    /// Adds an index; `false` if it was there.
    ///
    /// # Panics
    /// If it is no index: a Job has at most 2147483647, the highest being one less.
    pub fn insert(&mut self, index: u32) -> bool {
        assert!(index < LIMIT, "no Job has an index of {index}");
        let before = self.last_starting_at_or_before(index);
        if before.is_some_and(|position| self.at(position).last >= index) {
            return false;
        }
        let after = self.following(before);
        let joins_before = before.filter(|&position| self.at(position).last + 1 == index);
        let joins_after = after.filter(|&position| self.at(position).first == index + 1);
        match (joins_before, joins_after) {
            (Some(before), Some(after)) => {
                self.at_mut(before).last = self.at(after).last;
                self.remove_interval(after);
            }
            (Some(before), None) => self.at_mut(before).last = index,
            (None, Some(after)) => self.set_first(after, index),
            (None, None) => self.insert_interval(before, Interval::new(index, index)),
        }
        self.count += 1;
        true
    }

    /// Takes an index out; `false` if it was not there.
    pub fn remove(&mut self, index: u32) -> bool {
        let Some(position) = self.last_starting_at_or_before(index) else {
            return false;
        };
        let Interval { first, last } = self.at(position);
        if last < index {
            return false;
        }
        match (first == index, last == index) {
            (true, true) => self.remove_interval(position),
            (true, false) => self.set_first(position, index + 1),
            (false, true) => self.at_mut(position).last = index - 1,
            (false, false) => {
                self.at_mut(position).last = index - 1;
                self.insert_interval(Some(position), Interval::new(index + 1, last));
            }
        }
        self.count -= 1;
        true
    }

    /// Whether `index` is in the set.
    pub fn contains(&self, index: u32) -> bool {
        self.last_starting_at_or_before(index)
            .is_some_and(|position| self.at(position).last >= index)
    }

    /// How many indexes are in the set.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many intervals the set is made of, which is what it costs.
    pub fn interval_count(&self) -> usize {
        self.interval_count
    }

    /// The lowest index.
    pub fn first(&self) -> Option<u32> {
        self.intervals().next().map(|interval| interval.first)
    }

    /// The highest index.
    pub fn last(&self) -> Option<u32> {
        self.chunks.last().and_then(|chunk| chunk.last()).map(|interval| interval.last)
    }

    /// The intervals in increasing order; no two of them touch.
    pub fn intervals(&self) -> impl Iterator<Item = Interval> + '_ {
        self.chunks.iter().flatten().copied()
    }

    /// The indexes in increasing order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.intervals().flat_map(|interval| interval.first..=interval.last)
    }

    /// Drops every index at or above `limit`, as when an elastic Job is scaled down.
    pub fn cut(&mut self, limit: u32) {
        while let Some(chunk) = self.chunks.last_mut() {
            let Some(last) = chunk.last_mut() else { unreachable!("no chunk is empty") };
            if last.last < limit {
                return;
            }
            if last.first < limit {
                self.count -= u64::from(last.last - limit + 1);
                last.last = limit - 1;
                return;
            }
            self.count -= last.count();
            self.interval_count -= 1;
            chunk.pop();
            if chunk.is_empty() {
                self.chunks.pop();
                self.firsts.pop();
            }
        }
    }

    /// Adds every index of `other`.
    pub fn union(&mut self, other: &IndexSet) {
        // A few indexes are placed one by one; otherwise both runs are merged once.
        const FEW: u64 = 8;
        if other.count <= FEW {
            for index in other.iter() {
                self.insert(index);
            }
            return;
        }
        let mut builder = Builder::default();
        let mut mine = self.intervals().peekable();
        let mut theirs = other.intervals().peekable();
        loop {
            let next = match (mine.peek(), theirs.peek()) {
                (Some(one), Some(two)) if one.first <= two.first => mine.next(),
                (_, Some(_)) => theirs.next(),
                (Some(_), None) => mine.next(),
                (None, None) => break,
            };
            builder.push(next.expect("the side that was peeked at has an interval"));
        }
        drop(mine);
        *self = builder.finish();
    }

    /// How many indexes both sets have.
    pub fn intersection_count(&self, other: &IndexSet) -> u64 {
        self.common_intervals(other).map(|interval| interval.count()).sum()
    }

    /// The lowest index both sets have.
    pub fn first_common(&self, other: &IndexSet) -> Option<u32> {
        self.common_intervals(other).next().map(|interval| interval.first)
    }

    /// The intervals of indexes below `limit` that are not in the set.
    pub fn gaps(&self, limit: u32) -> impl Iterator<Item = Interval> + '_ {
        let limit = limit.min(LIMIT);
        let mut next = 0_u32;
        let ends = self.intervals().map(Some).chain([None]);
        ends.map_while(move |interval| {
            if next >= limit {
                return None;
            }
            let start = next;
            // The first index that is no longer part of the gap.
            let stop = interval.map_or(limit, |interval| interval.first.min(limit));
            next = interval.map_or(limit, |interval| interval.last + 1);
            Some((start < stop).then(|| Interval::new(start, stop - 1)))
        })
        .flatten()
    }

    /// The lowest `count` indexes below `limit` that are not in the set.
    pub fn first_missing(&self, count: usize, limit: u32) -> Vec<u32> {
        self.gaps(limit).flat_map(|gap| gap.first..=gap.last).take(count).collect()
    }

    /// The indexes below `limit` that are not in the set.
    pub fn complement(&self, limit: u32) -> IndexSet {
        self.gaps(limit).collect()
    }

    fn common_intervals<'a>(&'a self, other: &'a IndexSet) -> impl Iterator<Item = Interval> + 'a {
        let mut mine = self.intervals().peekable();
        let mut theirs = other.intervals().peekable();
        std::iter::from_fn(move || {
            loop {
                let (one, two) = (*mine.peek()?, *theirs.peek()?);
                if one.last <= two.last {
                    mine.next();
                } else {
                    theirs.next();
                }
                let (first, last) = (one.first.max(two.first), one.last.min(two.last));
                if first <= last {
                    return Some(Interval::new(first, last));
                }
            }
        })
    }

    fn last_starting_at_or_before(&self, index: u32) -> Option<Position> {
        let chunk = self.firsts.partition_point(|&first| first <= index).checked_sub(1)?;
        let offset = self.chunks[chunk].partition_point(|interval| interval.first <= index) - 1;
        Some(Position { chunk, offset })
    }

    /// The interval after `position`, or the very first one.
    fn following(&self, position: Option<Position>) -> Option<Position> {
        let Some(Position { chunk, offset }) = position else {
            return (!self.chunks.is_empty()).then_some(Position { chunk: 0, offset: 0 });
        };
        if offset + 1 < self.chunks[chunk].len() {
            Some(Position { chunk, offset: offset + 1 })
        } else {
            (chunk + 1 < self.chunks.len()).then_some(Position { chunk: chunk + 1, offset: 0 })
        }
    }

    fn at(&self, position: Position) -> Interval {
        self.chunks[position.chunk][position.offset]
    }

    fn at_mut(&mut self, position: Position) -> &mut Interval {
        &mut self.chunks[position.chunk][position.offset]
    }

    fn set_first(&mut self, position: Position, first: u32) {
        self.at_mut(position).first = first;
        if position.offset == 0 {
            self.firsts[position.chunk] = first;
        }
    }

    /// Puts an interval behind `before`, or in front of all.
    fn insert_interval(&mut self, before: Option<Position>, interval: Interval) {
        self.interval_count += 1;
        if self.chunks.is_empty() {
            self.push_chunk(interval);
            return;
        }
        let (number, offset) = before.map_or((0, 0), |before| (before.chunk, before.offset + 1));
        let chunk = &mut self.chunks[number];
        chunk.insert(offset, interval);
        self.firsts[number] = chunk[0].first;
        if chunk.len() > CHUNK_MAX {
            let upper = chunk.split_off(CHUNK_MAX / 2);
            self.firsts.insert(number + 1, upper[0].first);
            self.chunks.insert(number + 1, upper);
        }
    }

    fn remove_interval(&mut self, position: Position) {
        self.interval_count -= 1;
        let chunk = &mut self.chunks[position.chunk];
        chunk.remove(position.offset);
        match chunk.first() {
            Some(interval) => self.firsts[position.chunk] = interval.first,
            None => {
                self.chunks.remove(position.chunk);
                self.firsts.remove(position.chunk);
            }
        }
    }

    /// Starts a new last chunk with its first interval.
    fn push_chunk(&mut self, interval: Interval) {
        self.firsts.push(interval.first);
        self.chunks.push(vec![interval]);
    }
}

/// Builds a set from intervals in increasing order of their first index.
#[derive(Default)]
struct Builder {
    set: IndexSet,
}

impl Builder {
    fn push(&mut self, interval: Interval) {
        let set = &mut self.set;
        if let Some(tail) = set.chunks.last_mut().and_then(|chunk| chunk.last_mut())
            && interval.first <= tail.last.saturating_add(1)
        {
            let last = tail.last.max(interval.last);
            set.count += u64::from(last - tail.last);
            tail.last = last;
            return;
        }
        set.count += interval.count();
        set.interval_count += 1;
        match set.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK_MAX => chunk.push(interval),
            _ => set.push_chunk(interval),
        }
    }

    fn finish(self) -> IndexSet {
        self.set
    }
}

impl FromIterator<Interval> for IndexSet {
    /// The union of the intervals, in whatever order they come.
    fn from_iter<I: IntoIterator<Item = Interval>>(intervals: I) -> Self {
        let mut sorted: Vec<Interval> = intervals.into_iter().collect();
        sorted.sort_unstable();
        let mut builder = Builder::default();
        for interval in sorted {
            builder.push(interval);
        }
        builder.finish()
    }
}

impl FromIterator<u32> for IndexSet {
    fn from_iter<I: IntoIterator<Item = u32>>(indexes: I) -> Self {
        indexes.into_iter().map(|index| Interval::new(index, index)).collect()
    }
}

impl PartialEq for IndexSet {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count && self.intervals().eq(other.intervals())
    }
}

impl Eq for IndexSet {}

impl fmt::Display for IndexSet {
    /// The canonical text: two neighbours as `3,4`, three or more as `3-5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render())
    }
}

impl fmt::Debug for IndexSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IndexSet({self})")
    }
}

impl IndexSet {
    fn render(&self) -> String {
        // Most lists are of scattered indexes: a comma and up to six digits each.
        let mut text = String::with_capacity(self.interval_count * 7);
        for Interval { first, last } in self.intervals() {
            if !text.is_empty() {
                text.push(',');
            }
            push_decimal(&mut text, first);
            if last > first {
                text.push(if last == first + 1 { ',' } else { '-' });
                push_decimal(&mut text, last);
            }
        }
        text
    }
}

/// Appends a number without going through the formatting machinery, which takes
/// several times as long as the digits themselves.
fn push_decimal(text: &mut String, number: u32) {
    let mut digits = [0_u8; 10];
    let mut start = digits.len();
    let mut rest = number;
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    text.extend(digits[start..].iter().map(|&digit| char::from(digit)));
}
