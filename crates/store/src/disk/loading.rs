//! Memory made from records, and the proof that none is missing and none too many. It knows
//! nothing of fjall.

use super::damaged;
use crate::floor::Floor;
use crate::memory::Memory;
use crate::record::{self, State};
use crate::{Change, Entry, StoreError};
use std::path::Path;
use std::sync::Arc;

/// A store while it is read: first what is live as of the floor, then every change since.
pub(super) struct Loading<'p> {
    path: &'p Path,
    state: State,
    live: Vec<Arc<Entry>>,
    floor: Floor,
    memory: Option<Memory>,
}

impl<'p> Loading<'p> {
    pub(super) fn new(path: &'p Path, state: State) -> Self {
        let floor = Floor { revision: state.floor.revision, ..Floor::EMPTY };
        Loading { path, state, live: Vec::new(), floor, memory: None }
    }

    /// Takes in the next record, in the order of revisions.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let revision = record::record_revision(key)
            .ok_or_else(|| damaged(self.path, "a record's key is not a revision"))?;
        let wrong = |detail: &str| {
            damaged(self.path, format!("the record of revision {revision}: {detail}"))
        };
        let record = record::decode_record(revision, value).map_err(wrong)?;
        if revision <= self.state.floor.revision {
            let entry = record.after.ok_or_else(|| wrong("it should have been removed"))?;
            self.floor.add(&entry);
            self.live.push(entry);
            return Ok(());
        }
        let expected = match &self.memory {
            Some(memory) => memory.revision().next(),
            None => self.state.floor.revision.next(),
        };
        if revision != expected {
            return Err(wrong(&format!("it comes where {expected} is missing")));
        }
        let memory = self.above_floor()?;
        let before = memory.get(&record.key).cloned();
        let key = before.as_ref().map_or(&record.key, |entry| &entry.key).clone();
        memory.apply(Arc::new(Change { key, revision, before, after: record.after }));
        Ok(())
    }

    /// Memory, once every record was taken in.
    pub(super) fn finish(mut self) -> Result<Memory, StoreError> {
        let expected = self.state.revision;
        let path = self.path;
        self.above_floor()?;
        let memory = self.memory.expect("it was just made");
        if memory.revision() == expected {
            return Ok(memory);
        }
        let found = memory.revision();
        Err(damaged(path, format!("the changes from {found} to {expected} are missing")))
    }

    /// Memory once everything below the floor is read, and is what it should be.
    fn above_floor(&mut self) -> Result<&mut Memory, StoreError> {
        if self.memory.is_none() {
            if self.floor != self.state.floor {
                let Floor { revision, live: found, .. } = self.floor;
                let detail = format!(
                    "the {found} entries as of revision {revision} are not the {} that there \
                     should be",
                    self.state.floor.live,
                );
                return Err(damaged(self.path, detail));
            }
            self.memory = Some(Memory::at_floor(self.floor, std::mem::take(&mut self.live)));
        }
        Ok(self.memory.as_mut().expect("it was just made"))
    }
}
