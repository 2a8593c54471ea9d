//! A set of names that does not grow for ever: the oldest are forgotten if there are too many.

use std::collections::{BTreeMap, HashMap};

/// How many names are kept: four times as many Pods as a cluster keeps that have ended, so that
/// nothing is forgotten that is there, even if it is not always told what has gone.
const MAX_NAMES: usize = 20_000;

/// Names, the latest at least.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    places: HashMap<String, u64>,
    by_age: BTreeMap<u64, String>,
    last: u64,
}

impl Recent {
    /// Whether the name is new.
    pub(crate) fn insert(&mut self, name: &str) -> bool {
        if self.contains(name) {
            return false;
        }
        self.last += 1;
        self.places.insert(name.to_owned(), self.last);
        self.by_age.insert(self.last, name.to_owned());
        if self.by_age.len() > MAX_NAMES
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.places.remove(&oldest);
        }
        true
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    pub(crate) fn remove(&mut self, name: &str) {
        if let Some(place) = self.places.remove(name) {
            self.by_age.remove(&place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten_and_those_that_are_removed() {
        let mut recent = Recent::default();
        for number in 0..MAX_NAMES + 10 {
            assert!(recent.insert(&number.to_string()));
        }
        assert!(!recent.contains("9") && recent.contains("10") && !recent.insert("10"));
        recent.remove("10");
        assert!(!recent.contains("10") && recent.insert("10"));
        assert_eq!(recent.places.len(), recent.by_age.len());
        assert_eq!(recent.places.len(), MAX_NAMES);
    }
}
