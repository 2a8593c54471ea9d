//! What is seen of Pods, and what follows from it.

use std::collections::BTreeSet;

use k8s_openapi::jiff::Timestamp;
use stint_api::names::pod_condition;
use stint_api::view::BackoffPerIndex;

use super::{InFlight, JobLedger};
use crate::metric::Metric;
use crate::op::{Applied, Op, OpKind, Outcome};
use crate::pod_facts::{Owner, PodFacts, PodPhase};
use crate::pod_failure_policy::{Verdict, judge};
use crate::pods::{Duty, Record, Share, Slot};
use crate::removal::Standing;

impl JobLedger {
    pub(super) fn see_pod(&mut self, facts: &PodFacts, is_selected: bool) {
        if self.is_old_news(facts) {
            return;
        }
        if self.job.is_none() && !self.is_gone {
            // What its end means only the Job can tell.
            let is_newer = |held: &(PodFacts, bool)| held.0.version <= facts.version;
            if self.unjudged.get(&facts.uid).is_none_or(is_newer) {
                self.unjudged.insert(facts.uid.clone(), (facts.clone(), is_selected));
            }
            return;
        }
        let is_mine = facts.owner == Owner::Controller(self.job_uid.clone());
        self.note_stranger(facts, is_mine, is_selected);
        if !is_mine {
            self.lose_pod(&facts.uid, facts.is_tracked && facts.owner == Owner::Nobody);
            self.graves.bury(&facts.uid, facts.version, self.freshness.pods_version());
            return;
        }
        self.note_attempt(facts.index, &facts.name);
        self.note_past(facts);
        self.give_up(&facts.name);
        self.note_removal(facts);
        self.note_time(facts);
        let verdict = self.verdict(facts);
        let Some(slot) = self.pods.find(&facts.uid) else {
            self.note_legacy(facts);
            let context = &self.context;
            let mut record = new_record(facts, verdict);
            record.share = context.share(&record);
            self.note_finalizer(false, record.is_held());
            let slot = self.pods.insert(record);
            return self.after_change(slot);
        };
        let known = self.pods.get(slot);
        let (was_held, is_held) = (known.is_held(), facts.is_finished() && facts.is_tracked);
        // It may have failed or completed an index that it no longer speaks for.
        let changed_mind = (known.is_finished() && known.phase != known.phase_by(facts))
            || known.index != facts.index
            || known.failure_count != facts.failure_count;
        let (old_index, was_finished) = (known.index, known.is_finished());
        let was_doomed = known.is_doomed;
        // Its deletion counted as a failure already: that it has ended now is no second one.
        let is_counted = known.is_noted && facts.phase == PodPhase::Failed;
        let context = &self.context;
        self.pods.change(
            slot,
            |record| record.take(facts, verdict),
            |record| context.share(record),
        );
        self.note_finalizer(was_held, is_held);
        if !was_finished && !facts.is_tracked && !was_doomed && !is_counted {
            // Somebody else has taken its finalizer, and counted it or not.
            self.note_end(facts);
        }
        if changed_mind {
            self.rebuild();
            self.look_at(old_index);
        }
        self.after_change(slot);
    }

    /// Takes in the Pods that were seen before their Job.
    pub(super) fn judge_waiting(&mut self) {
        for (facts, is_selected) in std::mem::take(&mut self.unjudged).into_values() {
            self.see_pod(&facts, is_selected);
        }
        if let Some(version) = self.unjudged_version.take() {
            self.pods_known_at(version);
        }
    }

    /// A Pod that is not known is old news if all Pods are known as of its version: it has
    /// been known, and has left.
    fn is_old_news(&self, facts: &PodFacts) -> bool {
        // Whose it is may become known after it was seen. Should it have changed since, no harm is
        // done: it is written to at this version only.
        let is_foreign = matches!(facts.owner, Owner::Foreign(_));
        if self.graves.is_buried(&facts.uid, facts.version + u64::from(is_foreign)) {
            return true;
        }
        if let Some(slot) = self.pods.find(&facts.uid) {
            return self.pods.get(slot).version > facts.version;
        }
        match self.strangers.get(&facts.uid) {
            Some(stranger) => stranger.version() > facts.version,
            None => !is_foreign && facts.version <= self.freshness.pods_version(),
        }
    }

    pub(super) fn after_change(&mut self, slot: Slot) {
        self.is_dirty = true;
        self.learn(slot);
        let record = self.pods.get(slot);
        let index = record.index;
        let is_over = !record.is_tracked && record.is_finished();
        let is_asked_for = !self.unanswered.is_empty() && !record.share.is_active;
        let ended = is_asked_for.then(|| record.name.to_string());
        if !record.is_tracked && self.context.is_uncounted(&record.uid) {
            self.settled.insert(record.uid.to_string());
        }
        if let Some(name) = ended {
            self.note_stray(&name);
        }
        if is_over {
            let record = self.pods.remove(slot);
            self.graves.bury(&record.uid, record.version, self.freshness.pods_version());
        }
        self.look_at(index);
    }

    /// At this version the Pod does not exist.
    pub(super) fn miss_pod(&mut self, uid: &str, version: u64) {
        let known = match (self.pods.find(uid), self.strangers.get(uid)) {
            (Some(slot), _) => self.pods.get(slot).version,
            (None, Some(stranger)) => stranger.version(),
            (None, None) => 0,
        };
        if self.job.is_none() && !self.is_gone {
            if self.unjudged.get(uid).is_some_and(|(facts, _)| facts.version <= version) {
                self.unjudged.remove(uid);
            }
            return;
        }
        if known <= version {
            self.forget_stranger(uid);
            if let Some(slot) = self.pods.find(uid) {
                let record = self.pods.get(slot);
                if record.is_tracked && record.share.duty != Duty::Removal {
                    self.freshness.foreign_removal(version);
                }
            }
            self.lose_pod(uid, false);
            self.graves.forget(uid);
            self.graves.bury(uid, version, self.freshness.pods_version());
        }
    }

    pub(super) fn pods_known_at(&mut self, version: u64) {
        if self.job.is_none() && !self.is_gone {
            self.unjudged_version = self.unjudged_version.max(Some(version));
            return;
        }
        if self.freshness.pods_known_at(version) {
            self.graves.clear_up_to(version);
            // Uids that could not be told to be gone may be so now.
            self.is_dirty |= !self.context.uncounted_failed.is_empty()
                || !self.context.uncounted_succeeded.is_empty()
                || self.last_asked.is_none();
        }
    }

    /// The Pod is gone or not ours any more. As long as it bears the finalizer it may
    /// become ours again, and is not settled.
    pub(super) fn lose_pod(&mut self, uid: &str, is_tracked: bool) {
        if !is_tracked && self.context.is_uncounted(uid) {
            self.settled.insert(uid.to_owned());
        }
        self.is_dirty = true;
        if let Some(slot) = self.pods.find(uid) {
            let record = self.pods.remove(slot);
            self.note_finalizer(record.is_held(), is_tracked && record.is_finished());
            self.note_stray(&record.name);
            self.look_at(record.index);
        }
    }

    /// The API has said that the Pod does not exist: no older news brings it back.
    pub(super) fn lose_for_good(&mut self, uid: &str) {
        self.forget_stranger(uid);
        self.lose_pod(uid, false);
        self.graves.bury_for_good(uid);
    }

    /// The finalizers of Pods that have ended, for the metrics.
    fn note_finalizer(&mut self, was_held: bool, is_held: bool) {
        match (was_held, is_held) {
            (false, true) => self.metrics.push(Metric::FinalizerHeld),
            (true, false) => self.metrics.push(Metric::FinalizerGone),
            (false, false) | (true, true) => {}
        }
    }

    pub(super) fn note_attempt(&mut self, index: Option<u32>, name: &str) {
        let index = index.filter(|_| self.context.completions.is_some());
        // An index that has succeeded needs no more names.
        if index.is_some_and(|index| self.completed.contains(index)) {
            return;
        }
        let Some(attempt) = self.names.attempt(index, name) else {
            return;
        };
        match index {
            Some(index) => {
                let next = self.attempts.entry(index).or_insert(0);
                *next = (*next).max(attempt.saturating_add(1));
            }
            None => {
                self.taken.insert(attempt);
            }
        }
    }

    /// Somebody else has taken a finalizer off, by a status that may not be known yet. What
    /// the status that is known accounts for, or nothing has to, tells nothing new.
    fn note_removal(&mut self, facts: &PodFacts) {
        if facts.is_tracked || facts.version <= self.version {
            return;
        }
        let index = facts.index.filter(|_| self.context.completions.is_some());
        let is_written = self.context.is_uncounted(&facts.uid)
            || index.is_some_and(|index| self.context.written_completed.contains(index))
            || index.is_some_and(|index| self.context.written_failed.contains(index));
        let is_no_news = match self.pods.find(&facts.uid).map(|slot| self.pods.get(slot)) {
            Some(record) => !record.is_tracked || record.share.duty == Duty::Removal,
            None => false,
        };
        if !is_written && !is_no_news {
            self.freshness.foreign_removal(facts.version);
        }
    }

    /// When the last Pod ended, or was given up.
    fn note_time(&mut self, facts: &PodFacts) {
        if !facts.is_active() {
            self.last_end = self.last_end.map(|last| last.max(facts.finished_at));
        }
    }

    /// Pods that were counted before this ledger began hold the next one back all the same,
    /// as long as they exist.
    fn note_past(&mut self, facts: &PodFacts) {
        let is_past = !self.freshness.is_listed() && !facts.is_tracked;
        if is_past && self.verdict(facts) != Verdict::Forgive {
            self.note_end(facts);
        }
    }

    fn note_end(&mut self, facts: &PodFacts) {
        match facts.phase {
            PodPhase::Succeeded => self.streak.succeeded(facts.finished_at),
            PodPhase::Failed => self.streak.failed(facts.finished_at),
            PodPhase::Pending | PodPhase::Running => {}
        }
    }

    fn verdict(&self, facts: &PodFacts) -> Verdict {
        let Some(job) = &self.job else {
            return Verdict::Count { by_rule: false };
        };
        let verdict = match &job.failure_policy {
            Some(policy) => judge(policy, &job.namespace, facts, self.context.per_index.is_some()),
            None => Verdict::Count { by_rule: false },
        };
        let is_ruled = verdict != Verdict::Count { by_rule: false };
        let is_forgiven = self.settings.forgives_nodes && is_ended_by_node(facts) && !is_ruled;
        if is_forgiven { Verdict::Forgive } else { verdict }
    }

    /// Draws the conclusions of a Pod's end that outlast the Pod.
    pub(super) fn learn(&mut self, slot: Slot) {
        let record = self.pods.get(slot);
        match record.share.duty {
            Duty::IndexSuccess(index) => {
                self.streak.succeeded(record.finished_at);
                // A Pod that was given up has succeeded before its failure was written.
                self.failed.remove(index);
                if self.completed.insert(index) {
                    self.attempts.remove(&index);
                    self.legacies.remove(&index);
                    if let Some(progress) = &mut self.progress {
                        progress.insert(index);
                    }
                }
            }
            Duty::Success => self.streak.succeeded(record.finished_at),
            Duty::Failure | Duty::IndexFailure(_) => self.learn_failure(slot),
            Duty::Removal if record.share.is_failure => self.learn_failure(slot),
            Duty::None | Duty::Removal => {}
        }
    }

    fn learn_failure(&mut self, slot: Slot) {
        let record = self.pods.get(slot);
        if let Verdict::FailJob(message) = &record.verdict
            && self.fail_job.is_none()
            && record.phase == PodPhase::Failed
        {
            self.fail_job = Some(message.clone());
        }
        if let (Duty::IndexFailure(index), Some(per_index)) =
            (record.share.duty, self.context.per_index)
        {
            if is_last_failure(record, per_index) && !self.completed.contains(index) {
                self.failed.insert(index);
                self.legacies.remove(&index);
            }
        } else if !record.is_noted && record.verdict != Verdict::Forgive {
            // Ignored failures hold the next Pod back as well: or a Pod that always fails
            // would be replaced at once, for ever.
            self.streak.failed(record.finished_at);
        }
        if !record.is_noted
            && let Some(action) = record.verdict.action()
        {
            self.metrics.push(Metric::FailureHandled(action));
        }
        let context = &self.context;
        self.pods.change(slot, |record| record.is_noted = true, |record| context.share(record));
    }

    /// Looks the Pods up once the watch has taken too long to catch up with the Job.
    pub(super) fn next_pods_look_up(&mut self, now: Timestamp, ops: &mut Vec<Op>) {
        if self.freshness.is_look_up_due(now) && !self.write_pace.is_paused() {
            self.freshness.pods_are_asked_for();
            self.issue(OpKind::LookUpPods, Some(InFlight::LookUpPods), ops);
        }
    }

    pub(super) fn settle_pods_look_up(&mut self, outcome: Outcome) {
        self.freshness.looking_ends();
        let Outcome::Applied(Applied::Pods { pods, version }) = outcome else {
            return;
        };
        self.freshness.pods_are_answered(version);
        let strangers = self.strangers.keys().cloned();
        let mut missing: BTreeSet<String> = self.pods.uids().chain(strangers).collect();
        for (facts, is_selected) in &pods {
            self.see_pod(facts, *is_selected);
            missing.remove(&facts.uid);
        }
        for uid in missing {
            self.miss_pod(&uid, version);
        }
        self.freshness.verify_pods();
        // While they came in one by one, some were judged beside others that are gone by now:
        // a failure may seem to have its replacement already.
        self.rebuild();
        self.pods_known_at(version);
    }
}

/// Whether a failure is the one after which its index has failed.
fn is_last_failure(record: &Record, per_index: BackoffPerIndex) -> bool {
    record.verdict == Verdict::FailIndex
        || (record.verdict.counts() && record.failure_count >= per_index.limit)
}

/// Whether the node has ended this Pod, or went down with it.
fn is_ended_by_node(facts: &PodFacts) -> bool {
    facts.conditions.iter().any(|condition| {
        condition.condition_type == pod_condition::DISRUPTION_TARGET
            && condition.status == "True"
            && condition.reason == pod_condition::TERMINATION_BY_KUBELET
    })
}

fn new_record(facts: &PodFacts, verdict: Verdict) -> Record {
    Record {
        name: facts.name.as_str().into(),
        uid: facts.uid.as_str().into(),
        version: facts.version,
        index: facts.index,
        failure_count: facts.failure_count,
        ignored_failure_count: facts.ignored_failure_count,
        interruption_count: facts.interruption_count,
        phase: facts.phase,
        is_deleted: facts.is_deleted,
        is_tracked: facts.is_tracked,
        standing: Standing::of(facts),
        finished_at: facts.finished_at,
        verdict,
        is_doomed: false,
        is_released: false,
        failed_by_itself: facts.phase == PodPhase::Failed && !facts.is_deleted,
        is_success_written: false,
        is_let_go: false,
        is_noted: false,
        stale_version: None,
        is_busy: false,
        share: Share::default(),
    }
}
