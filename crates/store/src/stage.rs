//! Decides what a group of requests comes to, without doing any of it. It knows neither disk
//! nor who waits.

use crate::memory::Memory;
use crate::{Change, Condition, Entry, Operation, Revision, StoreError, Write};
use std::collections::HashMap;
use std::sync::Arc;

/// The changes of a group so far, on top of what is stored.
#[derive(Debug)]
pub(crate) struct Stage<'m> {
    memory: &'m Memory,
    /// What the group has made of the keys it touched.
    touched: HashMap<Arc<str>, Option<Arc<Entry>>>,
    changes: Vec<Arc<Change>>,
    revision: Revision,
}

impl<'m> Stage<'m> {
    pub(crate) fn new(memory: &'m Memory) -> Self {
        let revision = memory.revision();
        Stage { memory, touched: HashMap::new(), changes: Vec::new(), revision }
    }

    /// Adds all of `writes` to the group, or none of them if a condition does not hold. Earlier
    /// writes count as done.
    pub(crate) fn add(&mut self, writes: &[Write]) -> Result<Vec<Arc<Change>>, StoreError> {
        let first = self.changes.len();
        for write in writes {
            if let Err(conflict) = self.add_one(write) {
                self.undo(first);
                return Err(conflict);
            }
        }
        Ok(self.changes[first..].to_vec())
    }

    /// The changes of the group in the order of their revisions.
    pub(crate) fn into_changes(self) -> Vec<Arc<Change>> {
        self.changes
    }

    fn add_one(&mut self, write: &Write) -> Result<(), StoreError> {
        if let Some(guard) = &write.guard {
            check_condition(&guard.key, guard.condition, self.get(&guard.key).as_ref())?;
        }
        let before = self.get(&write.key);
        check(write, before.as_ref())?;
        let revision = self.revision.next();
        // The key's one allocation lives as long as the key is stored.
        let key = before.as_ref().map_or(&write.key, |entry| &entry.key).clone();
        let after = match &write.operation {
            Operation::Put(value) => Some(Arc::new(Entry {
                key: key.clone(),
                value: value.clone(),
                created: before.as_ref().map_or(revision, |entry| entry.created),
                modified: revision,
            })),
            Operation::Delete => None,
        };
        self.revision = revision;
        self.touched.insert(key.clone(), after.clone());
        self.changes.push(Arc::new(Change { key, revision, before, after }));
        Ok(())
    }

    /// What is stored under a key once the group so far is done.
    fn get(&self, key: &str) -> Option<Arc<Entry>> {
        match self.touched.get(key) {
            Some(touched) => touched.clone(),
            None => self.memory.get(key).cloned(),
        }
    }

    /// Takes back the changes from the `first` on, newest first.
    fn undo(&mut self, first: usize) {
        for change in self.changes.drain(first..).rev() {
            self.touched.insert(change.key.clone(), change.before.clone());
        }
        self.revision =
            self.changes.last().map_or(self.memory.revision(), |change| change.revision);
    }
}

/// Refuses a write whose key is not as it asks.
fn check(write: &Write, before: Option<&Arc<Entry>>) -> Result<(), StoreError> {
    // A delete needs something to delete, whatever else it asks for.
    let condition = match (&write.operation, write.condition) {
        (Operation::Delete, Condition::Any) => Condition::Present,
        (Operation::Delete, Condition::Absent) if before.is_none() => Condition::Present,
        (Operation::Put(_) | Operation::Delete, condition) => condition,
    };
    check_condition(&write.key, condition, before)
}

fn check_condition(
    key: &Arc<str>,
    condition: Condition,
    current: Option<&Arc<Entry>>,
) -> Result<(), StoreError> {
    if condition_holds(condition, current) {
        return Ok(());
    }
    Err(StoreError::Conflict { key: key.clone(), condition, current: current.cloned() })
}

fn condition_holds(condition: Condition, before: Option<&Arc<Entry>>) -> bool {
    match condition {
        Condition::Absent => before.is_none(),
        Condition::At(revision) => before.is_some_and(|entry| entry.modified == revision),
        Condition::Present => before.is_some(),
        Condition::Any => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_sees_the_earlier_writes_of_its_group() {
        let memory = Memory::new();
        let mut stage = Stage::new(&memory);
        let created = stage.add(&[Write::create("a", "1")]).expect("there is no a");
        let at = Condition::At(created[0].revision);
        stage.add(&[Write::put("a", at, "2")]).expect("a is where it was created");
        stage.add(&[Write::put("a", at, "3")]).expect_err("a has moved on");
        assert_eq!(stage.into_changes().len(), 2);
    }

    #[test]
    fn a_transaction_that_conflicts_leaves_no_trace() {
        let memory = Memory::new();
        let mut stage = Stage::new(&memory);
        stage.add(&[Write::create("b", "1")]).expect("there is no b");
        let both = [Write::create("a", "2"), Write::create("b", "2")];
        stage.add(&both).expect_err("there is a b");
        let again = stage.add(&[Write::create("a", "3")]).expect("there is no a");
        assert_eq!(again[0].revision, Revision::new(3));
        assert_eq!(stage.into_changes().len(), 2);
    }

    #[test]
    fn a_guard_is_looked_at_when_the_write_has_its_turn() {
        let memory = Memory::new();
        let mut stage = Stage::new(&memory);
        let guarded = |at| Write::create("a", "1").guarded("b", at);
        let error = stage.add(&[guarded(Condition::Present)]).expect_err("there is no b");
        assert!(matches!(&error, StoreError::Conflict { key, .. } if &**key == "b"), "{error}");
        let made = stage.add(&[Write::create("b", "1")]).expect("there is no b");
        let first = Condition::At(made[0].revision);
        stage.add(&[Write::put("b", first, "2")]).expect("b is where it was");
        stage.add(&[guarded(first)]).expect_err("b has moved on");
        stage.add(&[Write::delete("b", Condition::Any)]).expect("there is a b");
        stage.add(&[guarded(Condition::Any)]).expect("it asks for nothing");
        assert_eq!(stage.into_changes().len(), 4);
    }

    #[test]
    fn a_delete_needs_something_to_delete() {
        let memory = Memory::new();
        for condition in [Condition::Absent, Condition::Present, Condition::Any] {
            let error = Stage::new(&memory).add(&[Write::delete("a", condition)]).unwrap_err();
            assert_eq!(error.to_string(), "a: it must be stored, but it is not stored");
        }
    }
}
