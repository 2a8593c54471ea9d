//! Pods that are known to be gone, while older news of them may still arrive.
//!
//! An answer can be ahead of the watch: a Pod that an answer told to be gone must not
//! come back to life, and be counted again, by an event from before.

use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(crate) struct Graves {
    /// News up to this version is old, by uid.
    buried: BTreeMap<String, u64>,
    /// Uids by the version at which they can be forgotten.
    by_version: BTreeMap<u64, Vec<String>>,
}

impl Graves {
    /// Buries a Pod that was last known at `version`, unless all Pods are known as of then
    /// and older news of it cannot be taken for new.
    pub(crate) fn bury(&mut self, uid: &str, version: u64, pods_version: u64) {
        if version > pods_version {
            self.buried.insert(uid.to_owned(), version);
            self.by_version.entry(version).or_default().push(uid.to_owned());
        }
    }

    /// Buries a Pod that no longer exists, until the watch says so too.
    pub(crate) fn bury_for_good(&mut self, uid: &str) {
        self.buried.insert(uid.to_owned(), u64::MAX);
    }

    /// Whether news of this version is old.
    pub(crate) fn is_buried(&self, uid: &str, version: u64) -> bool {
        self.buried.get(uid).is_some_and(|&known| version <= known)
    }

    /// The watch has told that the Pod is gone: nothing comes after that.
    pub(crate) fn forget(&mut self, uid: &str) {
        self.buried.remove(uid);
    }

    /// The watch has come to this version.
    pub(crate) fn clear_up_to(&mut self, version: u64) {
        while let Some(entry) = self.by_version.first_entry() {
            if *entry.key() > version {
                return;
            }
            let known = *entry.key();
            for uid in entry.remove() {
                if self.buried.get(&uid) == Some(&known) {
                    self.buried.remove(&uid);
                }
            }
        }
    }
}
