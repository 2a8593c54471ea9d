//! What is to happen when: keys with a time each. It knows nothing of what happens, and no
//! clock.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use jiff::Timestamp;

/// Keys, each with a time.
#[derive(Debug)]
pub(crate) struct Deadlines<K> {
    times: HashMap<K, Timestamp>,
    order: BTreeSet<(Timestamp, K)>,
}

impl<K> Default for Deadlines<K> {
    fn default() -> Self {
        Deadlines { times: HashMap::new(), order: BTreeSet::new() }
    }
}

impl<K: Clone + Eq + Hash + Ord> Deadlines<K> {
    /// Gives a key a time, in place of the one that it had.
    pub(crate) fn set(&mut self, key: K, time: Timestamp) {
        self.remove(&key);
        self.times.insert(key.clone(), time);
        self.order.insert((time, key));
    }

    pub(crate) fn contains(&self, key: &K) -> bool {
        self.times.contains_key(key)
    }

    pub(crate) fn remove(&mut self, key: &K) {
        if let Some(time) = self.times.remove(key) {
            self.order.remove(&(time, key.clone()));
        }
    }

    pub(crate) fn clear(&mut self) {
        self.times.clear();
        self.order.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.times.len()
    }

    /// When the next one is due.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.order.first().map(|(time, _)| *time)
    }

    /// Takes out one that is due.
    pub(crate) fn take_due(&mut self, now: Timestamp) -> Option<K> {
        self.next().filter(|time| *time <= now)?;
        self.take_first()
    }

    /// Takes out the one that is due next.
    pub(crate) fn take_first(&mut self) -> Option<K> {
        let (_, key) = self.order.pop_first()?;
        self.times.remove(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    #[test]
    fn keys_come_in_the_order_of_their_last_times() {
        let mut deadlines = Deadlines::default();
        for (key, second) in [("a", 3), ("b", 2), ("c", 1), ("a", 1), ("c", 4), ("d", 9)] {
            deadlines.set(key, at(second));
        }
        deadlines.remove(&"d");
        assert_eq!((deadlines.len(), deadlines.next()), (3, Some(at(1))));
        assert_eq!(deadlines.take_due(at(0)), None);
        assert_eq!(deadlines.take_due(at(3)), Some("a"));
        assert_eq!(deadlines.take_due(at(3)), Some("b"));
        assert_eq!(deadlines.take_due(at(3)), None);
        assert_eq!(deadlines.take_first(), Some("c"));
        assert_eq!((deadlines.len(), deadlines.next()), (0, None));
    }
}
