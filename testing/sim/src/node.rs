//! What happens to Pods: the scheduler, the kubelet, evictions, and the collectors.

use std::sync::Arc;

use stint_ledger::pod_facts::{ContainerExit, Owner, PodCondition, PodFacts, PodPhase};

use crate::api::{Propagation, StoredPod};
use crate::choice::PodAct;
use crate::world::World;

/// Whether this can happen to a Pod now.
pub fn can(facts: &PodFacts, act: PodAct, restarts_in_place: bool) -> bool {
    let runs = facts.phase == PodPhase::Running;
    match act {
        PodAct::Schedule => {
            !facts.is_scheduled && !facts.is_deleted && facts.phase == PodPhase::Pending
        }
        PodAct::Start => {
            facts.is_scheduled && !facts.is_deleted && facts.phase == PodPhase::Pending
        }
        PodAct::Ready => runs && facts.ready_since.is_none() && !facts.is_deleted,
        PodAct::Restart => runs && restarts_in_place && !facts.is_deleted,
        PodAct::Succeed => runs && !facts.is_deleted,
        PodAct::Fail(_) => runs && !facts.is_deleted && !restarts_in_place,
        // An eviction takes a Pod off a node that it has got just now, if need be.
        PodAct::Evict | PodAct::EndAtOnce(_) => facts.is_active(),
        PodAct::Terminate(_) => facts.is_terminating() && facts.is_scheduled,
        PodAct::MarkFailed => facts.is_terminating() && !facts.is_scheduled,
        PodAct::Recant => facts.phase == PodPhase::Failed && facts.is_scheduled,
        PodAct::Relapse => facts.phase == PodPhase::Succeeded,
    }
}

impl World {
    /// Whether the Job's containers are restarted in their Pods.
    pub(crate) fn restarts_in_place(&self) -> bool {
        self.scenario.spec["template"]["spec"]["restartPolicy"] == "OnFailure"
    }

    pub(crate) fn act_on_pod(&mut self, name: &str, act: PodAct) -> bool {
        let in_place = self.restarts_in_place();
        if !self.api.pod(name).is_some_and(|pod| can(&pod.facts, act, in_place)) {
            return false;
        }
        let now = self.now_in_seconds();
        self.api.change_pod(name, |pod| {
            let facts = &mut pod.facts;
            let mut end = |phase, exit_code| {
                facts.phase = phase;
                facts.ready_since = None;
                facts.finished_at = now;
                let name = "main".to_owned();
                facts.exits = vec![ContainerExit { name, exit_code }];
            };
            match act {
                PodAct::Schedule => facts.is_scheduled = true,
                PodAct::Start => facts.phase = PodPhase::Running,
                PodAct::Ready => facts.ready_since = Some(now),
                PodAct::Restart => facts.restart_count += 1,
                PodAct::Succeed => end(PodPhase::Succeeded, 0),
                PodAct::Fail(code) => end(PodPhase::Failed, i32::from(code)),
                PodAct::EndAtOnce(code) => {
                    let is_success = code == 0;
                    end(
                        if is_success { PodPhase::Succeeded } else { PodPhase::Failed },
                        i32::from(code),
                    );
                    facts.is_scheduled = true;
                }
                PodAct::Evict => {
                    facts.is_scheduled = true;
                    facts.is_deleted = true;
                    facts.finished_at = now;
                    let condition_type = "DisruptionTarget".to_owned();
                    let status = "True".to_owned();
                    facts.conditions.push(PodCondition {
                        condition_type,
                        status,
                        reason: String::new(),
                    });
                }
                PodAct::Terminate(true) | PodAct::Recant => end(PodPhase::Succeeded, 0),
                PodAct::Terminate(false) => end(PodPhase::Failed, 143),
                PodAct::Relapse => end(PodPhase::Failed, 1),
                // The Pod collector knows of no exit code.
                PodAct::MarkFailed => facts.phase = PodPhase::Failed,
            }
        })
    }

    /// Whether the garbage collector has something to do about a Pod.
    pub(crate) fn is_collectors(&self, pod: &StoredPod) -> bool {
        // A stranger is there, and stays.
        let Owner::Controller(owner) = &pod.facts.owner else {
            return false;
        };
        match self.api.job(owner).map(|job| job.deletion) {
            Some(None) => false,
            Some(Some(Propagation::Orphan)) => true,
            None | Some(Some(Propagation::Foreground | Propagation::Background)) => {
                !pod.facts.is_deleted
            }
        }
    }

    pub(crate) fn collect_pod(&mut self, name: &str) -> bool {
        let Some(pod) = self.api.pod(name).map(Arc::clone) else {
            return false;
        };
        if !self.is_collectors(&pod) {
            return false;
        }
        let owner = pod.owner_uid().unwrap_or_default();
        let orphans =
            self.api.job(owner).is_some_and(|job| job.deletion == Some(Propagation::Orphan));
        if orphans {
            self.api.change_pod(name, |pod| pod.facts.owner = Owner::Nobody)
        } else {
            self.api.delete_pod(name)
        }
    }

    /// Lets a Job go once nothing that it owns is left.
    pub(crate) fn collect_job(&mut self) -> bool {
        let Some(job) = &self.api.now.job else {
            return false;
        };
        let owns = |pod: &Arc<StoredPod>| pod.owner_uid() == Some(job.uid.as_str());
        if job.deletion.is_none() || self.api.now.pods.values().any(owns) {
            return false;
        }
        self.api.drop_job();
        true
    }
}
