//! Which Pods to delete.

use super::JobLedger;
use super::removals::PodOp;
use crate::context::Course;
use crate::freshness::LookUp;
use crate::op::Op;
use crate::pods::Slot;

impl JobLedger {
    pub(super) fn next_deletions(&mut self, ops: &mut Vec<Op>) {
        if self.context.course == Course::Running {
            if self.end.is_some() {
                return;
            }
            if self.job_look_up == LookUp::NotNeeded {
                self.doom_surplus();
            }
        }
        let room = self.room();
        let to_delete = self.pods.sums.to_delete.iter().copied();
        // What is about to stop being ours is nobody's to delete.
        let ours = to_delete.filter(|&slot| !self.is_leaving(&self.pods.get(slot).uid));
        let slots: Vec<Slot> = ours.take(room).collect();
        for slot in slots {
            self.issue_for(slot, PodOp::Delete, ops);
        }
    }

    /// Chooses the Pods that are too many: duplicates of an index, those above what is
    /// wanted, and all of a suspended Job. They do not count as failures, so the finalizer
    /// goes before the Pod.
    fn doom_surplus(&mut self) {
        let crowded: Vec<u32> = self.crowded.iter().copied().collect();
        for index in crowded {
            let slots = self.pods.sums.by_index.get(&index).into_iter().flatten().copied();
            let active: Vec<Slot> = slots.filter(|&slot| self.is_kept(slot)).collect();
            self.doom_all_but(active, 1);
        }
        let Some(job) = &self.job else {
            return;
        };
        let wanted = if job.suspended { 0 } else { self.wanted(job) };
        // Pods on their way do not count: when they come they are the least useful.
        if self.pods.sums.active - self.pods.sums.unwanted.len() > wanted {
            let active = self.pods.sums.active_slots.iter().copied();
            let kept = active.filter(|&slot| self.is_kept(slot)).collect();
            self.doom_all_but(kept, wanted);
        }
    }

    fn is_kept(&self, slot: Slot) -> bool {
        let share = &self.pods.get(slot).share;
        share.is_active && !share.is_unwanted
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
}
