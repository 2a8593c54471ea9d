//! The ways in which the ledger is broken: what stands in its sources, and what is put
//! there instead.

/// One way to break the ledger.
pub(crate) struct Breakage {
    /// What is wrong then.
    pub(crate) name: &'static str,
    /// Where.
    pub(crate) file: &'static str,
    /// What stands there, once.
    pub(crate) healthy: &'static str,
    /// What is put there.
    pub(crate) broken: &'static str,
}

const ADOPTION: &str = "crates/ledger/src/ledger/adoption.rs";
const CONTEXT: &str = "crates/ledger/src/context.rs";
const FRESHNESS: &str = "crates/ledger/src/freshness.rs";
const CREATION: &str = "crates/ledger/src/ledger/creation.rs";
const DELETION: &str = "crates/ledger/src/ledger/deletion.rs";
const REMOVALS: &str = "crates/ledger/src/ledger/removals.rs";
const SIGHT: &str = "crates/ledger/src/ledger/sight.rs";
const STATUS: &str = "crates/ledger/src/ledger/status.rs";
const INDEXES: &str = "crates/ledger/src/ledger/indexes.rs";
const LEDGER: &str = "crates/ledger/src/ledger.rs";
const JOB: &str = "crates/ledger/src/ledger/job.rs";

/// All of them.
pub(crate) const BREAKAGES: &[Breakage] = &[
    Breakage {
        name: "the finalizer of a failed Pod goes before the status lists it",
        file: CONTEXT,
        healthy: "if record.verdict.counts() { Duty::Failure } else { Duty::Removal }",
        broken: "Duty::Removal",
    },
    Breakage {
        name: "the finalizer of a Pod that succeeded goes before the status lists it",
        file: CONTEXT,
        healthy: "(None, _) => Duty::Success,",
        broken: "(None, _) => Duty::Removal,",
    },
    Breakage {
        name: "a uid is counted while its Pod bears the finalizer",
        file: STATUS,
        healthy: "Some(slot) => !self.pods.get(slot).is_tracked,",
        broken: "Some(_) => true,",
    },
    Breakage {
        name: "a uid that is not known is taken for gone",
        file: STATUS,
        healthy: "self.settled.contains(uid) || self.freshness.pods_version() >= self.version",
        broken: "true",
    },
    Breakage {
        name: "a stale cache of Pods is trusted",
        file: FRESHNESS,
        healthy: "self.is_listed && self.pods_version >= self.foreign_version",
        broken: "self.is_listed",
    },
    Breakage {
        name: "an old event of a Pod that has left brings it back",
        file: SIGHT,
        healthy: "None => !is_foreign && facts.version <= self.freshness.pods_version(),",
        broken: "None => false,",
    },
    Breakage {
        name: "an old event rolls back what is known of a Pod",
        file: SIGHT,
        healthy: "return self.pods.get(slot).version > facts.version;",
        broken: "return false;",
    },
    Breakage {
        name: "a create in doubt is forgotten",
        file: CREATION,
        healthy: "new.is_in_doubt = true;",
        broken: "new.is_in_doubt = false;",
    },
    Breakage {
        name: "a name that is taken is not looked up but passed over",
        file: CREATION,
        healthy: "Outcome::Refused(Refusal::AlreadyExists) => self.set_step(&name, Step::LookUp),",
        broken: "Outcome::Refused(Refusal::AlreadyExists) => self.give_up(&name),",
    },
    Breakage {
        name: "a replacement does not inherit the failure",
        file: CREATION,
        healthy: "Verdict::FailIndex | Verdict::FailJob(_) => failures += 1,",
        broken: "Verdict::FailIndex | Verdict::FailJob(_) => failures += 0,",
    },
    Breakage {
        name: "a replacement inherits an ignored failure as one that counts",
        file: CREATION,
        healthy: "Verdict::Ignore => ignored += 1,",
        broken: "Verdict::Ignore => failures += 1,",
    },
    Breakage {
        name: "an ignored failure is counted",
        file: "crates/ledger/src/pod_failure_policy.rs",
        healthy: "Verdict::Ignore | Verdict::Forgive => false,",
        broken: "Verdict::Ignore | Verdict::Forgive => true,",
    },
    Breakage {
        name: "a failed Pod of an index does not wait for its replacement",
        file: INDEXES,
        healthy: "filter(|&slot| has_successor || Some(slot) != last)",
        broken: "filter(|_| true)",
    },
    Breakage {
        name: "the terminal condition does not wait for Pods",
        file: STATUS,
        healthy: "if !is_counted || !self.is_at_rest() {",
        broken: "if !is_counted {",
    },
    Breakage {
        name: "the terminal condition does not wait for its interim condition",
        file: STATUS,
        healthy: "            return;\n        }\n        let uncounted = status",
        broken: "        }\n        let uncounted = status",
    },
    Breakage {
        name: "a second status is written while one is on its way",
        file: STATUS,
        healthy: "            && self.write.is_none()\n",
        broken: "",
    },
    Breakage {
        name: "Pods are created after the end is decided",
        file: CREATION,
        healthy: "            && self.end.is_none()\n",
        broken: "",
    },
    Breakage {
        name: "the backoff of the Job is not waited for",
        file: CREATION,
        healthy: "            && !backs_off\n",
        broken: "",
    },
    Breakage {
        name: "the backoff of an index is not waited for",
        file: INDEXES,
        healthy: "} else if let Some(ready_at) = self.index_ready_at(index) {",
        broken: "} else if let Some(ready_at) = self.index_ready_at(index).filter(|_| false) {",
    },
    Breakage {
        name: "a Pod that is removed for scaling down is not asked for at its version",
        file: REMOVALS,
        healthy: "version: is_guarded.then_some(version),",
        broken: "version: is_guarded.then_some(version).filter(|_| false),",
    },
    Breakage {
        name: "a Pod that is removed for scaling down counts as a failure",
        file: CONTEXT,
        healthy: "Course::Running => is_unwanted && !record.is_tracked,",
        broken: "Course::Running => is_unwanted,",
    },
    Breakage {
        name: "Pods deleted because the Job has succeeded count as failures",
        file: CONTEXT,
        healthy: "self.course == Course::Completing && record.is_deleted && !record.failed_by_itself",
        broken: "self.course == Course::Over && record.is_deleted",
    },
    Breakage {
        name: "a terminating Pod loses its place although only failed Pods are replaced",
        file: CONTEXT,
        healthy: "let keeps_place = is_active || (is_terminating && self.only_failed_are_replaced);",
        broken: "let keeps_place = is_active;",
    },
    Breakage {
        name: "the Pods of a failing Job are left running",
        file: CONTEXT,
        healthy: "Course::Failing | Course::Completing => is_active,",
        broken: "Course::Failing | Course::Completing => false,",
    },
    Breakage {
        name: "the Pods of a Job that is over keep their finalizer",
        file: CONTEXT,
        healthy: "        if self.course == Course::Over {\n            return Duty::Removal;\n        }\n",
        broken: "",
    },
    Breakage {
        name: "orphans of a Job that is gone keep their finalizer",
        file: LEDGER,
        healthy: "            self.next_strangers(ops);\n            self.next_deletions(ops);\n",
        broken: "            self.next_deletions(ops);\n",
    },
    Breakage {
        name: "surplus Pods are left running",
        file: DELETION,
        healthy: "            self.doom_surplus();\n",
        broken: "",
    },
    Breakage {
        name: "two Pods of one index are both kept",
        file: DELETION,
        healthy: "            self.doom_all_but(active, 1);\n",
        broken: "            self.doom_all_but(active, 2);\n",
    },
    Breakage {
        name: "a Job that was seen while a status was written is forgotten",
        file: STATUS,
        healthy: "if let Some(job) = self.postponed.take() {",
        broken: "if let Some(job) = self.postponed.take().filter(|_| false) {",
    },
    Breakage {
        name: "a Job that is not in an old list is taken for gone",
        file: JOB,
        healthy: "Some(_) if self.version > version => {}",
        broken: "Some(_) if version == 0 => {}",
    },
    Breakage {
        name: "a Job that somebody has begun is taken over without a look",
        file: FRESHNESS,
        healthy: "self.is_job_verified && self.are_pods_verified",
        broken: "true",
    },
    Breakage {
        name: "Pods are created before the status says that the Job has begun",
        file: LEDGER,
        healthy: "        if self.freshness.is_verified() {\n",
        broken: "        if true {\n",
    },
    Breakage {
        name: "a request for a Pod without an answer is no reason to wait",
        file: STATUS,
        healthy: "            && self.unanswered.is_empty()\n            && self.strays.is_empty()\n",
        broken: "",
    },
    Breakage {
        name: "an index gets another Pod while a request for it is unanswered",
        file: INDEXES,
        healthy: "            || self.stray_indexes.contains(&index);\n",
        broken: ";\n",
    },
    Breakage {
        name: "a Job ends while an adoption is on its way",
        file: ADOPTION,
        healthy: "self.idle_strangers.len() == self.strangers.len()\n            && self",
        broken: "self",
    },
    Breakage {
        name: "what became of an adoption in doubt is not looked up",
        file: ADOPTION,
        healthy: "Outcome::Refused(Refusal::Conflict) | Outcome::InDoubt => {",
        broken: "Outcome::InDoubt => {}\n            Outcome::Refused(Refusal::Conflict) => {",
    },
    Breakage {
        name: "an adoption in doubt is forgotten when old news comes",
        file: ADOPTION,
        healthy: "known.is_stale && known.version() >= facts.version",
        broken: "known.is_stale && known.version() > facts.version",
    },
    Breakage {
        name: "a success that is written down can still become a failure",
        file: CONTEXT,
        healthy: "if self.is_uncounted(&record.uid) || record.is_success_written || ",
        broken: "if self.uncounted_failed.contains(&*record.uid) || ",
    },
    Breakage {
        name: "a success that was let go counts when its index is wanted again",
        file: CONTEXT,
        healthy: "|| record.is_let_go {",
        broken: "{",
    },
    Breakage {
        name: "a Pod that was being written down as failed completes its index as well",
        file: JOB,
        healthy: "if !overtaken.is_empty()\n            || self.completed",
        broken: "if self.completed",
    },
    Breakage {
        name: "a success is taken back when its Pod says that it has failed",
        file: "crates/ledger/src/pods.rs",
        healthy: "(PodPhase::Succeeded, PodPhase::Failed) => PodPhase::Succeeded,",
        broken: "(PodPhase::Succeeded, PodPhase::Failed) => PodPhase::Failed,",
    },
    Breakage {
        name: "a list of indexes that somebody has spoilt is left so",
        file: STATUS,
        healthy: "if draft.status == self.acknowledged(job) && job.status.is_canonical {",
        broken: "if draft.status == self.acknowledged(job) {",
    },
    Breakage {
        name: "while no index can fail, one that had failed cannot succeed either",
        file: CONTEXT,
        healthy: "job.status.failed_indexes.clone().filter(|_| per_index.is_some());",
        broken: "job.status.failed_indexes.clone();",
    },
    Breakage {
        name: "failures are judged before the Job is known",
        file: SIGHT,
        healthy: "if self.job.is_none() && !self.is_gone {\n            // What its end",
        broken: "if false {\n            // What its end",
    },
    Breakage {
        name: "the API is asked again at once after a refusal",
        file: "crates/ledger/src/pace.rs",
        healthy: "self.is_due || self.until.is_some()",
        broken: "false",
    },
    Breakage {
        name: "a Pod is made although the status that accounts for another is not known",
        file: FRESHNESS,
        healthy: "self.untracked_version > version.max(self.job_known_at)",
        broken: "false",
    },
    Breakage {
        name: "an attempt that came to nothing is not made again, but the next",
        file: CREATION,
        healthy: "self.taken.remove(attempt);",
        broken: "let _ = attempt;",
    },
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// A breakage whose place has gone would try nothing.
    #[test]
    fn every_breakage_has_its_place() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for breakage in BREAKAGES {
            let text = std::fs::read_to_string(root.join(breakage.file));
            let text = text.unwrap_or_else(|error| panic!("{}: {error}", breakage.file));
            let places = text.matches(breakage.healthy).count();
            assert_eq!(places, 1, "{}: {:?}", breakage.name, breakage.healthy);
            assert_ne!(breakage.healthy, breakage.broken, "{}", breakage.name);
        }
    }
}
