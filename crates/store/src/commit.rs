//! What one group of writers comes to: the changes, the floor after them, and what is no longer
//! needed. It knows neither where they are kept nor who waits for them.

use crate::floor::Floor;
use crate::memory::Memory;
use crate::{Change, Options, Revision};
use std::collections::HashSet;
use std::sync::Arc;

/// One atomic step of the store.
#[derive(Clone, Debug)]
pub(crate) struct Commit {
    /// The changes in order; the first follows the newest change so far.
    pub(crate) changes: Vec<Arc<Change>>,
    /// The revision after them.
    pub(crate) revision: Revision,
    /// The floor after them.
    pub(crate) floor: Floor,
    /// The revisions whose records are no longer needed.
    pub(crate) superseded: Vec<Revision>,
    /// The bytes that the window holds on to after them.
    pub(crate) window_bytes: usize,
}

impl Commit {
    /// The bytes of its keys and values.
    pub(crate) fn bytes(&self) -> usize {
        let value = |change: &Change| change.after.as_ref().map_or(0, |entry| entry.value.len());
        self.changes.iter().map(|change| change.key.len() + value(change)).sum()
    }

    /// The step that makes `changes`, keeps to the window of `options`, and raises the floor to
    /// `compact_to` if that was asked for.
    ///
    /// The floor never rises over the new changes themselves: a record that one batch both puts
    /// and removes would have no defined fate.
    pub(crate) fn plan(
        memory: &Memory,
        changes: Vec<Arc<Change>>,
        compact_to: Option<Revision>,
        options: &Options,
    ) -> Self {
        let revision = changes.last().map_or(memory.revision(), |change| change.revision);
        let mut kept_changes =
            (memory.revision().get() - memory.floor().revision.get()) as usize + changes.len();
        let mut floor = memory.floor();
        let added = changes.iter().map(|change| change.added_bytes(floor.revision));
        let mut window_bytes = memory.window_bytes() + added.sum::<usize>();
        let befores = changes.iter().filter_map(|change| change.before.as_ref());
        let superseded_now: HashSet<_> = befores.map(|before| before.modified).collect();
        let is_superseded = |change: &Change| {
            let live = memory.get(&change.key).map(|entry| entry.modified);
            live != Some(change.revision) || superseded_now.contains(&change.revision)
        };
        let mut superseded = Vec::new();
        for change in memory.changes_after(floor.revision) {
            let asked = compact_to.is_some_and(|revision| change.revision <= revision);
            let over = kept_changes > options.window_changes || window_bytes > options.window_bytes;
            if !asked && !over {
                break;
            }
            floor.raise(change, &mut superseded);
            kept_changes -= 1;
            window_bytes -= change.released_bytes(is_superseded(change));
        }
        Commit { changes, revision, floor, superseded, window_bytes }
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self, memory: &Memory) -> bool {
        self.changes.is_empty() && self.floor == memory.floor()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::Stage;
    use crate::{Condition, Write};
    use std::collections::BTreeMap;

    fn write(memory: &mut Memory, writes: &[Write], options: &Options) {
        let mut stage = Stage::new(memory);
        stage.add(writes).expect("nothing is in the way");
        let commit = Commit::plan(memory, stage.into_changes(), None, options);
        memory.publish(&commit);
        memory.trim(memory.floor().revision);
    }

    /// What the kept changes hold on to, each value once.
    fn retained(memory: &Memory) -> usize {
        let mut values = BTreeMap::new();
        let mut bytes = 0;
        for change in memory.changes_after(memory.floor().revision) {
            bytes += change.own_bytes();
            for entry in change.before.iter().chain(&change.after) {
                values.insert(entry.modified, entry.value.len());
            }
        }
        bytes + values.values().sum::<usize>()
    }

    #[test]
    fn deletes_of_large_values_from_before_the_window_keep_to_its_bytes() {
        const VALUE_BYTES: usize = 10_000;
        let options = Options { window_bytes: 50 * VALUE_BYTES, ..Options::default() };
        let mut memory = Memory::new();
        for number in 0..1000 {
            let create = Write::create(format!("/{number}"), vec![7; VALUE_BYTES]);
            write(&mut memory, &[create], &options);
        }
        for number in 0..1000 {
            let delete = Write::delete(format!("/{number}"), Condition::Any);
            write(&mut memory, &[delete], &options);
            assert!(retained(&memory) <= options.window_bytes, "{}", retained(&memory));
        }
        assert!(retained(&memory) > options.window_bytes / 2, "it is not smaller than it may be");
    }

    #[test]
    fn the_bytes_of_the_window_are_those_of_each_value_it_holds_on_to() {
        for (window_bytes, window_changes) in [(5_000, 1000), (100_000, 12), (100_000, 1000)] {
            let options = Options { window_bytes, window_changes, ..Options::default() };
            let mut memory = Memory::new();
            // A walk over seven keys that puts, puts again and deletes, in groups of up to four.
            for step in 0_usize..500 {
                let one = |step: usize| {
                    let key = format!("/{}", step * step % 7);
                    let is_stored = memory.get(&key).is_some();
                    if step.is_multiple_of(3) && is_stored {
                        Write::delete(key, Condition::Any)
                    } else {
                        Write::put(key, Condition::Any, vec![1; step * 37 % 900])
                    }
                };
                let mut writes = vec![one(step)];
                for _ in 0..step % 4 {
                    writes.push(Write::put("/again", Condition::Any, vec![2; step]));
                }
                write(&mut memory, &writes, &options);
                assert_eq!(memory.window_bytes(), retained(&memory), "{step}");
            }
        }
    }
}
