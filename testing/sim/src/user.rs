//! What users do to Jobs and Pods, wise or not.

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;
use stint_api::feature_gates::FeatureGates;
use stint_api::prepare::{prepare_for_create, prepare_for_update};
use stint_ledger::pod_facts::{Owner, PodFacts, PodPhase};
use stint_ledger::pod_name::PodNames;

use crate::api::{JOB_NAME, Manager, Propagation, StoredPod};
use crate::choice::UserAct;
use crate::world::World;

/// The uid of a Job of another controller.
const STRANGER: &str = "stranger";

impl World {
    /// Creates the Job of the scenario, with a uid that no other had.
    pub(crate) fn create_job(&mut self) {
        self.jobs_made += 1;
        let uid = format!("job-{}", self.jobs_made);
        let mut job: Job = serde_json::from_value(json!({
            "metadata": {"name": JOB_NAME, "namespace": "ns", "uid": uid},
            "spec": self.scenario.spec,
        }))
        .expect("a scenario's Job is well typed");
        job.metadata.creation_timestamp = Some(Time(self.now_in_seconds()));
        prepare_for_create(&mut job, &FeatureGates::default());
        self.api.put_job(uid.clone(), job, None);
        if self.has_two_leaders() {
            self.loosened.two_leaders.insert(uid);
        }
    }

    pub(crate) fn act_as_user(&mut self, act: &UserAct) -> bool {
        match act {
            UserAct::Suspend => self.edit(|spec| spec.suspend = Some(true)),
            UserAct::Resume => self.edit(|spec| spec.suspend = Some(false)),
            UserAct::Parallelism(count) => self.edit(|spec| spec.parallelism = Some(*count)),
            UserAct::Scale(count) => self.edit(|spec| {
                spec.parallelism = Some(*count);
                spec.completions = Some(*count);
            }),
            UserAct::Deadline(seconds) => {
                self.edit(|spec| spec.active_deadline_seconds = Some(*seconds))
            }
            UserAct::BackoffLimit(limit) => self.edit(|spec| spec.backoff_limit = Some(*limit)),
            UserAct::MaxFailedIndexes(max) => {
                self.edit(|spec| spec.max_failed_indexes = Some(*max))
            }
            UserAct::DeletePod(name) => self.api.delete_pod(name),
            UserAct::DeleteJob(propagation) => self.delete_job(*propagation),
            UserAct::Recreate => {
                let is_free = self.api.now.job.is_none();
                if is_free {
                    self.create_job();
                }
                is_free
            }
            UserAct::StripFinalizer(name) => {
                self.tamper(name, |pod| pod.facts.is_tracked, |pod| pod.facts.is_tracked = false)
            }
            UserAct::StripIndex(name) => {
                self.tamper(name, |pod| pod.facts.index.is_some(), |pod| pod.facts.index = None)
            }
            UserAct::StripFailureCounts(name) => self.tamper(
                name,
                |pod| pod.facts.failure_count + pod.facts.ignored_failure_count > 0,
                |pod| {
                    pod.facts.failure_count = 0;
                    pod.facts.ignored_failure_count = 0;
                },
            ),
            UserAct::StripLabels(name) => {
                self.tamper(name, |pod| pod.label_uid.is_some(), |pod| pod.label_uid = None)
            }
            UserAct::PutLabels(name) => {
                let Some(uid) = self.api.now.job.as_ref().map(|job| job.uid.clone()) else {
                    return false;
                };
                self.tamper(
                    name,
                    |pod| pod.label_uid.is_none(),
                    |pod| pod.label_uid = Some(uid.clone()),
                )
            }
            UserAct::StripOwner(name) => self.tamper(
                name,
                |pod| pod.facts.owner != Owner::Nobody,
                |pod| pod.facts.owner = Owner::Nobody,
            ),
            UserAct::GiveAway(name) => self.tamper(
                name,
                |pod| pod.facts.owner == Owner::Nobody,
                |pod| pod.facts.owner = Owner::Foreign(STRANGER.to_owned()),
            ),
            UserAct::MakeOrphan => self.make_pod(None),
            UserAct::Squat(index, attempt) => self.squat(*index, *attempt),
            UserAct::CorruptIndexes => self.corrupt(|status| {
                let text = status.completed_indexes.take().unwrap_or_default();
                status.completed_indexes = Some(format!("{text},x,7-3"));
            }),
            UserAct::CorruptFailedIndexes => {
                let has_list = !self.scenario.spec["backoffLimitPerIndex"].is_null();
                has_list
                    && self.corrupt(|status| {
                        let text = status.failed_indexes.take().unwrap_or_default();
                        status.failed_indexes = Some(format!("{text},y,6-2"));
                    })
            }
            // The API server lets no uid be listed twice.
            UserAct::ForgeUncounted => {
                let uid = format!("forged-{}", self.api.version());
                self.corrupt(|status| {
                    let pods = status.uncounted_terminated_pods.get_or_insert_default();
                    pods.failed.get_or_insert_default().push(uid);
                })
            }
        }
    }

    fn edit(&mut self, change: impl FnOnce(&mut JobSpec)) -> bool {
        let Some(old) = self.api.now.job.clone() else {
            return false;
        };
        let mut job = old.job.clone();
        change(job.spec.get_or_insert_default());
        prepare_for_update(&mut job, &old.job, &FeatureGates::default());
        if job.metadata.generation == old.job.metadata.generation {
            return false;
        }
        self.api.put_job(old.uid.clone(), job, old.deletion);
        true
    }

    fn delete_job(&mut self, propagation: Propagation) -> bool {
        let Some(old) = self.api.now.job.clone() else {
            return false;
        };
        if old.deletion.is_some() {
            return false;
        }
        match propagation {
            Propagation::Background => self.api.drop_job(),
            Propagation::Foreground | Propagation::Orphan => {
                let mut job = old.job.clone();
                job.metadata.deletion_timestamp = Some(Time(self.now_in_seconds()));
                self.api.put_job(old.uid.clone(), job, Some(propagation));
            }
        }
        true
    }

    /// Changes what only the Job's controller should write.
    fn tamper(
        &mut self,
        name: &str,
        applies: impl FnOnce(&StoredPod) -> bool,
        change: impl FnOnce(&mut StoredPod),
    ) -> bool {
        let Some(pod) = self.api.pod(name) else {
            return false;
        };
        if !applies(pod) {
            return false;
        }
        let uid = pod.facts.uid.clone();
        self.history.tamper(&uid);
        self.api.change_pod(name, change)
    }

    fn corrupt(
        &mut self,
        change: impl FnOnce(&mut k8s_openapi::api::batch::v1::JobStatus),
    ) -> bool {
        let Some(old) = self.api.now.job.clone() else {
            return false;
        };
        // The API server refuses to touch the lists of a finished Job.
        let conditions = stint_api::condition::of(old.job.status.as_ref());
        if stint_api::condition::is_finished(conditions) {
            return false;
        }
        let mut job = old.job.clone();
        change(job.status.get_or_insert_default());
        self.api.put_job(old.uid.clone(), job, old.deletion);
        self.loosened.is_corrupted = true;
        true
    }

    fn squat(&mut self, index: u32, attempt: u32) -> bool {
        let Some(job) = &self.api.now.job else {
            return false;
        };
        let is_indexed = self.scenario.spec["completionMode"] == "Indexed";
        let names = PodNames::new(JOB_NAME, &job.uid);
        let name = names.name(is_indexed.then_some(index), attempt);
        self.make_pod(Some(name))
    }

    /// Creates a Pod of the user's own: one that the selector matches, or, given a name, one
    /// that has nothing to do with the Job.
    fn make_pod(&mut self, name: Option<String>) -> bool {
        let Some(job_uid) = self.api.now.job.as_ref().map(|job| job.uid.clone()) else {
            return false;
        };
        let label_uid = name.is_none().then_some(job_uid);
        let name = name.unwrap_or_else(|| format!("my-{}", self.api.version()));
        if self.api.pod(&name).is_some() {
            return false;
        }
        let uid = self.api.next_pod_uid(&name);
        let now = self.now_in_seconds();
        let is_indexed = self.scenario.spec["completionMode"] == "Indexed";
        let facts = PodFacts {
            name,
            uid,
            version: 0,
            owner: Owner::Nobody,
            is_tracked: false,
            phase: PodPhase::Pending,
            created: now,
            is_deleted: false,
            index: is_indexed.then_some(0),
            failure_count: 0,
            ignored_failure_count: 0,
            interruption_count: 0,
            is_scheduled: false,
            ready_since: None,
            restart_count: 0,
            finished_at: now,
            exits: Vec::new(),
            conditions: Vec::new(),
        };
        self.api.put_pod(StoredPod { facts, finalizer_of: Manager::BuiltIn, label_uid });
        true
    }
}
