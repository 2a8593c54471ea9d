//! What is known of one index: whether it is done, taken, held back or free.

use k8s_openapi::jiff::Timestamp;

use super::JobLedger;
use crate::pod_failure_policy::Verdict;
use crate::pods::Slot;

impl JobLedger {
    pub(super) fn look_at(&mut self, index: Option<u32>) {
        if let Some(index) =
            index.filter(|&index| self.context.completions.is_some_and(|limit| index < limit))
        {
            self.look_at_index(index);
        }
    }

    /// Brings what is known of one index up to date.
    pub(super) fn look_at_index(&mut self, index: u32) {
        let is_done = self.completed.contains(index) || self.failed.contains(index);
        let active = self.pods.sums.by_index.get(&index).map_or(0, |slots| {
            slots.iter().filter(|&&slot| self.pods.get(slot).share.is_active).count()
        });
        if active > 1 {
            self.crowded.insert(index);
        } else {
            self.crowded.remove(&index);
        }
        self.release_failures(index, is_done || active > 0 || self.is_barren);
        let is_taken = self.pods.sums.by_index.contains_key(&index)
            || self.creating_indexes.contains(&index)
            || self.stray_indexes.contains(&index);
        self.end_wait(index);
        if is_done || is_taken {
            self.occupied.insert(index);
        } else if let Some(ready_at) = self.index_ready_at(index) {
            self.occupied.insert(index);
            self.held_back.insert(index, ready_at);
            self.alarms.insert((ready_at, index));
        } else {
            self.occupied.remove(index);
        }
    }

    /// Lets the failures of an index be counted: all of them once the index has another
    /// Pod or is done; before that, all but the last.
    pub(super) fn release_failures(&mut self, index: u32, has_successor: bool) {
        let Some(slots) = self.pods.sums.waiting.get(&index) else {
            return;
        };
        let last = self.last_failure(index);
        let released: Vec<Slot> =
            slots.iter().copied().filter(|&slot| has_successor || Some(slot) != last).collect();
        for slot in released {
            let context = &self.context;
            self.pods.change(
                slot,
                |record| record.is_released = true,
                |record| context.share(record),
            );
        }
    }

    /// No index will have another Pod: failures that wait for one are counted. Their finalizers would
    /// keep the namespace for ever, as it deletes the Job only once all Pods are gone.
    pub(super) fn has_no_future(&mut self) {
        self.is_barren = true;
        let waiting: Vec<u32> = self.pods.sums.waiting.keys().copied().collect();
        waiting.into_iter().for_each(|index| self.look_at_index(index));
        self.is_dirty = true;
    }

    /// The failure of an index that its replacement is counted from.
    pub(super) fn last_failure(&self, index: u32) -> Option<Slot> {
        let slots = self.pods.sums.waiting.get(&index)?;
        slots.iter().copied().max_by_key(|&slot| {
            let record = self.pods.get(slot);
            (record.attempts_before(), record.finished_at, slot)
        })
    }

    pub(super) fn index_ready_at(&self, index: u32) -> Option<Timestamp> {
        let record = self.pods.get(self.last_failure(index)?);
        if record.verdict == Verdict::Forgive {
            return Some(record.finished_at);
        }
        let failures = record.failures_before().saturating_add(1);
        Some(self.settings.delays.ready_at(failures, record.finished_at))
    }

    /// Frees the indexes whose backoff was over when the last Pod ended. Where another index
    /// would have to stand back for it, two leaders must not differ in whether it is over: one
    /// may be a moment ahead of the other, and both would fill one place.
    pub(super) fn let_go(&mut self, now: Timestamp) {
        let until = now.min(*self.last_end.get_or_insert(now));
        while let Some(&(at, index)) = self.alarms.first().filter(|(at, _)| *at <= until) {
            self.alarms.remove(&(at, index));
            self.held_back.remove(&index);
            self.occupied.remove(index);
        }
    }

    /// The indexes whose backoff is over by now, those that have waited longest first: for
    /// places that no other index needs.
    pub(super) fn rested(&self, now: Timestamp) -> impl Iterator<Item = u32> {
        self.alarms.iter().take_while(move |(at, _)| *at <= now).map(|&(_, index)| index)
    }

    /// An index is given a Pod: it waits no longer.
    pub(super) fn end_wait(&mut self, index: u32) {
        if let Some(at) = self.held_back.remove(&index) {
            self.alarms.remove(&(at, index));
        }
    }

    /// When the next backoff is over. What was over when the ledger was last asked has had its
    /// chance, and gets another one with the next place.
    pub(super) fn next_alarm(&self) -> Option<Timestamp> {
        let is_ahead = |at: &Timestamp| self.last_asked.is_none_or(|asked| *at > asked);
        let from = (self.last_asked.unwrap_or(Timestamp::MIN), 0);
        self.alarms.range(from..).map(|&(at, _)| at).find(is_ahead)
    }
}
