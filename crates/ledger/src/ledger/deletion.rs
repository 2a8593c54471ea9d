//! Which Pods to delete.

use super::JobLedger;
use crate::context::Course;
use crate::op::{Op, OpKind};
use crate::pods::Slot;

impl JobLedger {
    pub(super) fn next_deletions(&mut self, ops: &mut Vec<Op>) {
        match self.context.course {
            // The end stands written: every Pod goes, and counts as the end says.
            Course::Failing | Course::Completing => {
                let active: Vec<Slot> = self.pods.sums.active_slots.iter().copied().collect();
                for slot in active {
                    self.issue_for(slot, OpKind::DeletePod, ops);
                }
            }
            Course::Running if self.end.is_none() => {
                self.doom_surplus();
                self.delete_unwanted(ops);
            }
            Course::Running | Course::Over => {}
        }
    }

    /// Chooses the Pods that are too many: duplicates of an index, those above what is
    /// wanted, and all of a suspended Job. They do not count as failures, so the finalizer
    /// goes before the Pod.
    fn doom_surplus(&mut self) {
        let crowded: Vec<u32> = self.crowded.iter().copied().collect();
        for index in crowded {
            let slots = self.pods.sums.by_index.get(&index).into_iter().flatten().copied();
            let active: Vec<Slot> =
                slots.filter(|&slot| self.pods.get(slot).share.is_active).collect();
            self.doom_all_but(active, 1);
        }
        let Some(job) = &self.job else {
            return;
        };
        let wanted = if job.suspended { 0 } else { self.wanted(job) };
        let kept = self.pods.sums.active - self.pods.sums.unwanted.len();
        if kept + self.creating.len() > wanted {
            let surplus = kept.min(kept + self.creating.len() - wanted);
            let is_kept = |slot: &Slot| !self.pods.sums.unwanted.contains(slot);
            let active: Vec<Slot> =
                self.pods.sums.active_slots.iter().copied().filter(is_kept).collect();
            self.doom_all_but(active, kept - surplus);
        }
    }

    fn doom_all_but(&mut self, mut slots: Vec<Slot>, kept: usize) {
        slots.sort_by(|&one, &two| {
            let (one, two) = (self.pods.get(one), self.pods.get(two));
            one.standing.goes_before(&two.standing).then_with(|| one.uid.cmp(&two.uid))
        });
        let surplus = slots.len().saturating_sub(kept);
        for slot in slots.into_iter().take(surplus) {
            let context = &self.context;
            self.pods.change(
                slot,
                |record| record.is_doomed = true,
                |record| context.share(record),
            );
            self.is_dirty = true;
        }
    }

    fn delete_unwanted(&mut self, ops: &mut Vec<Op>) {
        let unwanted: Vec<Slot> = self.pods.sums.unwanted.iter().copied().collect();
        for slot in unwanted {
            if !self.pods.get(slot).is_doomed {
                let context = &self.context;
                self.pods.change(
                    slot,
                    |record| record.is_doomed = true,
                    |record| context.share(record),
                );
            }
            if !self.pods.get(slot).is_tracked {
                self.issue_for(slot, OpKind::DeletePod, ops);
            }
        }
    }
}
