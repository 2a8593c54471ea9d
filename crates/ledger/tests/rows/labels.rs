//! Short names for Pods. The first Pod of index 3 is `3`, the next attempt at it `3.2`.
//! Without indexes they are `a`, `b`, `c` as they are asked for. A label belongs to a
//! name: what is asked for twice under one name has one label.

use std::collections::BTreeMap;

#[derive(Default)]
pub(crate) struct Labels {
    by_name: BTreeMap<String, String>,
    asked: BTreeMap<Option<u32>, usize>,
}

impl Labels {
    /// The label of a Pod that is asked for.
    pub(crate) fn ask(&mut self, name: &str, index: Option<u32>) -> String {
        if let Some(label) = self.by_name.get(name) {
            return label.clone();
        }
        let asked = self.asked.entry(index).or_insert(0);
        *asked += 1;
        let label = match (index, *asked) {
            (Some(index), 1) => index.to_string(),
            (Some(index), attempt) => format!("{index}.{attempt}"),
            (None, number @ 1..=26) => char::from(b'a' + (number as u8 - 1)).to_string(),
            (None, number) => format!("p{number}"),
        };
        self.by_name.insert(name.to_owned(), label.clone());
        label
    }

    /// The name of a Pod that the ledger did not ask for: its label, or the name of a Pod
    /// that was asked for, if somebody else makes that.
    pub(crate) fn introduce(&mut self, label: &str) -> String {
        if !self.by_name.values().any(|known| known == label) {
            self.by_name.insert(label.to_owned(), label.to_owned());
        }
        self.name(label)
    }

    pub(crate) fn of<'a>(&'a self, name: &'a str) -> &'a str {
        self.by_name.get(name).map_or(name, String::as_str)
    }

    pub(crate) fn name(&self, label: &str) -> String {
        let found = self.by_name.iter().find(|(_, known)| *known == label);
        found.map_or_else(|| panic!("no Pod has been named {label}"), |(name, _)| name.clone())
    }

    /// A message with labels instead of names.
    pub(crate) fn shorten(&self, text: &str) -> String {
        self.by_name.iter().fold(text.to_owned(), |text, (name, label)| text.replace(name, label))
    }
}

/// Sorts labels by number, then by attempt.
pub(crate) fn order(label: &str) -> (usize, usize, String) {
    let (head, tail) = label.split_once('.').unwrap_or((label, "1"));
    let number = |text: &str| text.parse().unwrap_or(usize::MAX);
    (number(head), number(tail), label.to_owned())
}
